"""`run --until`: the same conditions as `kubectl wait --for`, with a watch."""

from __future__ import annotations

import json

import pytest

from e2e.crds import install_crd, wait_until_served
from e2e.ctrl import Ctrl
from e2e.kube import Audit, AuditedRequest, Kubectl, crd_of_anything, wait_until
from e2e.test_foo import deployment, foo
from kubectl_ctrl.model.jsonpath import JsonPath
from tests.model.test_jsonpath import DATA, SAID, WRONG

LIMIT = "--timeout=3m"


@pytest.mark.real
def test_jsonpath_is_kubectls(kubectl: Kubectl) -> None:
    """Every condition of the table, and every invalid one, with real kubectl."""
    kubectl("apply", "--filename=-", stdin=json.dumps(_CRD))
    wait_until_served(kubectl, "things.jsonpath.example.com")
    kubectl.create(_THING)
    live = kubectl.json("get", "thing", "web")
    theirs = {source: kubectl("get", "thing", "web", f"--output=jsonpath={source}") for source, _ in SAID}
    assert theirs == dict(SAID)
    assert theirs == {source: JsonPath.parse(source).text(live) for source, _ in SAID}
    accepted = {source for source, _ in WRONG if not kubectl.try_("get", "thing", f"--output=jsonpath={source}").code}
    # kubectl parses the first as another condition, and never finishes with the second.
    assert accepted == {"{.status.conditions[?(@.type~='a')]}", "{range .spec.sizes[*]}{.}"}


_CRD = crd_of_anything("things", "Thing", "jsonpath.example.com")
_THING = {
    "apiVersion": "jsonpath.example.com/v1",
    "kind": "Thing",
    **DATA,
    "metadata": {"name": "web", "annotations": DATA["metadata"]["annotations"]},
}


@pytest.fixture
def crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


@pytest.mark.usefixtures("crd")
@pytest.mark.parametrize(
    "goal",
    [
        "foo/web=condition=Ready",
        "foos.samplecontroller.k8s.io/web=condition=ready=true",
        "foo/web=jsonpath={.status.availableReplicas}=1",
        "foo/web=jsonpath=.status.observedGeneration",
        'foo/web=jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
        "deploy/web=create",
        "deployment/other=delete",
    ],
)
@pytest.mark.real
def test_it_ends_when_the_condition_holds_and_kubectl_agrees(ctrl: Ctrl, kubectl: Kubectl, goal: str) -> None:
    kubectl.apply(foo("web"))
    ctrl("run", "foo", "--until", goal, LIMIT).checked()
    target, _, what = goal.partition("=")
    kubectl("wait", target, f"--for={what}", "--timeout=110s")


@pytest.mark.usefixtures("crd")
def test_all_conditions_hold_at_once(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("one"), foo("two"))
    ctrl("run", "foo", "--until=foo/one=condition=Ready", "--until=foo/two=condition=Ready", LIMIT).checked()
    for name in ("one", "two"):
        kubectl("wait", f"foo/{name}", "--for=condition=Ready", "--timeout=110s")


@pytest.mark.usefixtures("crd")
def test_a_condition_of_an_older_generation_does_not_count(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    ctrl("run", "foo", "--until=foo/web=condition=Ready", LIMIT).checked()
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"replicas":3}}')
    assert kubectl.try_("wait", "foo/web", "--for=condition=Ready", "--timeout=1s").code == 1
    ctrl("run", "foo", "--until=foo/web=condition=Ready", LIMIT).checked()
    assert kubectl.json("get", "foo", "web")["status"]["availableReplicas"] == 3


@pytest.mark.usefixtures("crd")
def test_the_time_runs_out_and_each_unmet_condition_is_named_with_its_last_change(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    ctrl("run", "foo", "--until=foo/web=condition=Ready", LIMIT).checked()
    kubectl.create(deployment("taken"))
    kubectl.apply(foo("taken"))
    # It only has to read a state that is true already: more might take longer than its timeout.
    ctrl("run", "foo", "--until=foo/taken=condition=Ready=False", LIMIT).checked()
    goals = ["foo/web=condition=Ready", "foo/taken=condition=Ready", "foo/none=condition=Ready", "gizmo/x=create"]
    ran = ctrl("run", "foo", *(f"--until={goal}" for goal in goals), "--timeout=20s")
    assert ran.code == 124
    unmet = [line for line in ran.err.splitlines() if line.startswith("  ")]
    assert "foo/taken condition=Ready: it is False (ErrResourceExists" in unmet[0]
    assert "foo/none condition=Ready: it does not exist (since " in unmet[1]
    assert (
        "gizmo/x create: it is of a type that is not served: gizmo (Install its CRD, or check the name) (since "
        in unmet[2]
    )
    assert not any("foo/web condition" in line for line in unmet)


@pytest.mark.usefixtures("crd")
def test_an_object_that_comes_and_goes_is_seen(ctrl: Ctrl, kubectl: Kubectl) -> None:
    running = ctrl.started("run", "foo", "--until=configmap/gate=create", LIMIT)
    running.line("leader election")
    kubectl("create", "configmap", "gate")
    assert running.wait() == 0
    running = ctrl.started("run", "foo", "--until=configmap/gate=delete", "--until=configmap/next=create", LIMIT)
    running.line("leader election")
    kubectl("create", "configmap", "next")
    kubectl("delete", "configmap", "gate")
    assert running.wait() == 0


@pytest.mark.usefixtures("crd")
def test_it_is_watched_and_not_polled(ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str) -> None:
    mark = audit.mark()

    def asked() -> list[AuditedRequest]:
        return [one for one in audit.requests(mark, namespace=namespace) if one.resource == "configmaps"]

    running = ctrl.started("run", "foo", "--until=configmap/gate=create")
    wait_until(lambda: "watch" in {one.verb for one in asked()})
    before = len(asked())
    audit.assert_no_writes(seconds=8, namespace=namespace)
    # A retry of the watch would be one more; a poll would be many.
    assert len(asked()) <= before + 1, asked()
    assert {one.verb for one in asked()} <= {"list", "watch"}
    assert running.stop() == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--until=foo"], "Invalid value for --until: 'foo'."),
        (["--until=foo/web"], "Invalid value for --until: 'foo/web'."),
        (["--until=foo/web=Ready"], "Invalid value for --until"),
        (["--until=foo/web=condition="], "Invalid value for --until"),
        (["--until=foo/web=condition=Ready="], "Invalid value for --until"),
        (["--until=foo/web=jsonpath={.status.x}="], "has no value after the last equals sign"),
        (["--until=foo/web=jsonpath={.status[x}"], "wrong at position"),
        (["--until=foo/web=create", "--once"], "--once and --until exclude each other"),
    ],
)
def test_invalid_arguments_are_named_with_the_valid_form(ctrl: Ctrl, flags: list[str], said: str) -> None:
    ran = ctrl("run", "foo", *flags)
    assert ran.code == 2
    assert said in ran.err
    if "--until" in said and "exclude" not in said:
        assert "next: write TYPE/NAME=condition=Ready" in ran.err


def test_m11_an_unknown_type_names_the_nearest(ctrl: Ctrl) -> None:
    ran = ctrl("run", "foo", "--until", "deploymnt/x=create", "--timeout=12s")
    assert ran.code == 124
    assert "it is of a type that is not served: deploymnt (Did you mean deployments.apps?)" in ran.err
