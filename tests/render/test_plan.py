"""The output of `plan`."""

from __future__ import annotations

import json
from functools import partial

import pytest

from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import LEASES, SECRETS
from kubectl_ctrl.plan.steps import Plan, PlannedEffect, PlannedObject
from kubectl_ctrl.render.plan import plan_json, plan_lines, then
from kubectl_ctrl.render.plan_diff import secrecy_of, sides_of, unified
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.render import plans
from tests.render.layouts import STYLES, in_every_style, sections
from tests.render.plans import FAILED, GROWN, KEPT, MADE, MIXED, NOTHING, OF_A_FILE, RESTLESS
from tests.render.samples import FOOS

PIPE = STYLES["pipe"]
OTHERS = {"nothing": NOTHING, "file": OF_A_FILE, "restless": RESTLESS, "failed": FAILED}


def text(plan: Plan, style: Style) -> str:
    return "\n".join(plan_lines(plan, style)) + "\n"


def test_the_layout(golden: Golden) -> None:
    golden("plan", in_every_style(partial(plan_lines, MIXED)))


def test_other_plans(golden: Golden) -> None:
    golden("plan-others", sections({name: plan_lines(plan, PIPE) for name, plan in OTHERS.items()}))


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for plan in (MIXED, *OTHERS.values()):
        assert max(map(len, plan_lines(plan, Style(width=width)))) <= width


def test_the_assumption_of_a_plan_to_fixpoint_is_never_cut() -> None:
    assert "assuming that no other controller acts" in " ".join(text(RESTLESS, STYLES["80"]).split())


def test_text_of_a_cluster_cannot_control_the_terminal() -> None:
    assert "\x1b" not in text(MIXED, PIPE)
    assert "\x1b" not in "\n".join(unified(sides_of(plans.GONE, secrecy_of(NOTHING))))


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (Verdict(outcome=Outcome.DONE), "done until something changes"),
        (Verdict(outcome=Outcome.AGAIN), "again immediately"),
        (Verdict(outcome=Outcome.AFTER, delay=5.0), "again in 5s"),
        (Verdict(outcome=Outcome.TERMINAL, message="it"), "FAILED, no retry: it"),
        (
            Verdict(outcome=Outcome.TERMINAL, message="it", delay=90.0),
            "FAILED, no retry for 1m30s: it",
        ),
        (Verdict(outcome=Outcome.WAITING, message="it"), "waits for it"),
        (Verdict(outcome=Outcome.WAITING, message="it", delay=90.0), "waits for it, and runs again in 1m30s"),
        (Verdict(outcome=Outcome.RETRY, message="no"), "FAILED, would be retried: no"),
        (Verdict(outcome=Outcome.TERMINAL, message="no"), "FAILED, no retry: no"),
        (Verdict(outcome=Outcome.DROPPED, message="cut"), "canceled: cut"),
    ],
)
def test_the_outcome_in_words(verdict: Verdict, words: str) -> None:
    assert then(verdict) == words


READY = {"type": "Ready", "status": "True", "reason": "Counted", "message": "3 of 3.", "lastTransitionTime": "then"}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (READY, {**READY, "status": "False", "message": "1 of 3."}, "True → False, Counted: 1 of 3."),
        (READY, {**READY, "message": "2 of 3."}, "Counted: 2 of 3."),
        (READY, {**READY, "lastTransitionTime": "now"}, "timestamps only"),
        (None, READY, "- → True, Counted: 3 of 3."),
        (READY, None, "True → -"),
        (READY, {"type": "Ready", "status": "Unknown"}, "True → Unknown"),
    ],
)
def test_a_condition_is_one_row(before: Obj | None, after: Obj | None, words: str) -> None:
    sides = [plans.obj(FOOS, "web", status={"conditions": [one] if one else []}) for one in (before, after)]
    found = plans.fate(FOOS, "web", PlannedEffect.CHANGED, *sides)
    assert text(replace(NOTHING, fates=(found,)), PIPE).splitlines()[1] == f"~ Foo/web   Ready   {words}"


def test_a_first_status_is_shown_field_by_field() -> None:
    before = plans.obj(FOOS, "web", spec={})
    status = {"seen": 1, "conditions": [READY], "names": ["a", "b"], "deep": {"a": {"b": True}}}
    plan = replace(
        NOTHING, fates=(plans.fate(FOOS, "web", PlannedEffect.CHANGED, before, {**before, "status": status}),)
    )
    assert text(plan, PIPE).splitlines()[1:-1] == [
        "~ Foo/web   Ready             - → True, Counted: 3 of 3.",
        "            status.seen       - → 1",
        "            status.names      - → [2 items]",
        "            status.deep.a.b   - → true",
    ]


def test_the_lease_that_a_run_would_hold_is_shown() -> None:
    plan = replace(NOTHING, lease=LEASES.ref("kubectl-ctrl-foo-default", "default"))
    assert text(plan, PIPE).splitlines()[-2] == (
        "not acquired: Lease default/kubectl-ctrl-foo-default, which a run would hold"
    )
    assert plan_json(plan)["leaseNotTaken"] == "default/kubectl-ctrl-foo-default"


# Whole objects.


def diffed(fate: PlannedObject) -> str:
    return "\n".join(unified(sides_of(fate, secrecy_of(NOTHING)), color=False)) + "\n"


def test_the_layout_of_a_diff(golden: Golden) -> None:
    def draw(style: Style) -> list[str]:
        diffs = (unified(sides_of(fate, secrecy_of(NOTHING)), color=style.color) for fate in (GROWN, MADE, KEPT))
        return [line for diff in diffs for line in diff]

    golden("plan-diff", in_every_style(draw, {"120": STYLES["120"]}))


def test_files_are_named_as_kubectl_diff_names_them() -> None:
    assert sides_of(GROWN, secrecy_of(NOTHING)).name == "apps.v1.Deployment.default.web"
    assert sides_of(KEPT, secrecy_of(NOTHING)).name == "v1.Secret.default.key"


def test_a_secret_shows_which_values_change_and_none_of_them() -> None:
    everything = diffed(KEPT) + text(MIXED, PIPE) + json.dumps(plan_json(MIXED, objects=True))
    for canary in (value for side in (KEPT.before, KEPT.after) if side for value in side["data"].values()):
        assert canary not in everything


def test_values_that_look_secret_are_masked_in_any_object() -> None:
    before = plans.obj(FOOS, "web", spec={"password": "first-canary", "size": 1})
    after = plans.next_of(before, spec={"password": "second-canary", "size": 1})
    found = plans.fate(FOOS, "web", PlannedEffect.CHANGED, before, after)
    plan = replace(NOTHING, fates=(found,))
    shown = text(plan, PIPE) + diffed(found) + json.dumps(plan_json(plan, objects=True))
    assert "canary" not in shown
    assert "spec.password   *** → ***" in shown


def test_values_of_secrets_are_masked_everywhere() -> None:
    before = plans.obj(FOOS, "web", spec={"url": "postgres://first-canary-7@db", "size": 1})
    after = plans.next_of(before, spec={"url": "postgres://second-canary-7@db", "size": 1})
    said = {"spec": {"old": "first-canary-7", "new": "second-canary-7"}}
    found = plans.fate(FOOS, "web", PlannedEffect.CHANGED, before, after)
    secret = plans.obj(SECRETS, "key", stringData=said["spec"])
    failed = Verdict(outcome=Outcome.RETRY, message="Nobody logs in with second-canary-7.")
    left = replace(plans.LEFT, note="ensure refused: 'first-canary-7' is no word.")
    passes = (plans.made_pass(failed, plans.step("patch", found)),)
    plan = replace(NOTHING, fates=(found, left), passes=passes, secrets=(secret,))
    shown = text(plan, PIPE) + "\n".join(unified(sides_of(found, secrecy_of(plan))))
    assert "canary" not in shown + json.dumps(plan_json(plan, objects=True))
    assert "spec.url   postgres://***@db → postgres://***@db" in shown
    assert "-  url: 'postgres://***@db (before)'" in shown or "-  url: postgres://***@db (before)" in shown


def test_the_copy_that_kubectl_apply_leaves_is_not_shown() -> None:
    notes = [{"annotations": {"kubectl.kubernetes.io/last-applied-configuration": text, "a": text}} for text in "12"]
    sides = [plans.obj(FOOS, "web", metadata=one) for one in notes]
    found = plans.fate(FOOS, "web", PlannedEffect.CHANGED, *sides)
    shown = text(replace(NOTHING, fates=(found,)), PIPE) + diffed(found)
    assert "last-applied" not in shown
    assert "metadata.annotations.a   1 → 2" in shown


def test_the_plans_own_versions_are_not_shown() -> None:
    live, merged = sides_of(GROWN, secrecy_of(NOTHING)).live, sides_of(GROWN, secrecy_of(NOTHING)).merged
    assert "resourceVersion: '7'" in live
    assert "resourceVersion: '7'" in merged
    assert "resourceVersion" not in sides_of(MADE, secrecy_of(NOTHING)).merged


# For machines.


def test_the_json_has_everything() -> None:
    shown = plan_json(MIXED)
    assert shown["schema"] == "kubectl-ctrl.plan/v1"
    assert (shown["changes"], shown["settled"]) == (7, True)
    assert [(one["name"], one["effect"]) for one in shown["objects"]][:3] == [
        ("web", "changed"),
        ("cub", "created"),
        ("old\x1b[31m", "deleted"),
    ]
    assert shown["objects"][0]["changed"] == [
        {"path": "spec.replicas", "old": 3, "new": 5},
        {"path": "spec.paused", "new": False},
    ]
    (made,) = shown["reconciles"]
    assert [f"{one['verb']} {one['name']} {one['subresource']}" for one in made["writes"]][-1] == "apply web status"
    assert made["outcome"] == "waiting"
    assert made["eventsNotSent"][0]["reason"] == "Synced"
    assert "live" not in shown["objects"][0]


def test_the_json_has_whole_objects_if_requested() -> None:
    grown, made, gone, *_ = plan_json(MIXED, objects=True)["objects"]
    assert (grown["live"]["spec"]["replicas"], grown["planned"]["spec"]["replicas"]) == (3, 5)
    assert (made["live"], made["planned"]["spec"]["replicas"]) == (None, 1)
    assert gone["planned"] is None
    assert "managedFields" not in grown["live"]["metadata"]
