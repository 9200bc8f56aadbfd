"""The inferred rows of an object."""

from __future__ import annotations

from kubectl_ctrl.findings.inference import Evidence, InferredState, Sign
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.inference import FOOTER, inferred_json, inferred_lines
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.render.layouts import STYLES, in_every_style
from tests.render.samples import NOON

FOUND = InferredState(
    resource=DEPLOYMENTS,
    key=Key("default", "web"),
    uid="u1",
    context="kind-ctrl",
    at=NOON,
    generation=3,
    observed=3,
    standing=(("Progressing", "True", NOON - 80), ("Available", "True", NOON - 12)),
    signs=(
        Sign(
            at=NOON - 100_000,
            evidence=Evidence.FIELDS,
            by=("kubectl-client-side-apply",),
            wrote="metadata.annotations, metadata.labels, spec.template, 14 more",
            verb="update",
        ),
        Sign(
            at=NOON - 80,
            evidence=Evidence.EVENT,
            by=("deployment-controller",),
            came="ScalingReplicaSet",
            message="Scaled up replica set web-5d4f from 0 to 3",
            count=4,
            first=NOON - 300,
        ),
        Sign(at=NOON - 60, evidence=Evidence.EVENT, came="FailedCreate", message="quota\n\x1b[2J", warning=True),
        Sign(
            at=NOON - 12,
            evidence=Evidence.FIELDS,
            by=("kube-controller-manager",),
            wrote="status.conditions",
            verb="update",
            subresource="status",
        ),
        Sign(
            at=NOON - 12,
            evidence=Evidence.CONDITION,
            by=("kube-controller-manager",),
            came="Available=True",
            message="MinimumReplicasAvailable Deployment has minimum availability.",
        ),
    ),
    lacking=("The events about it could not be read in time.",),
)


def test_the_layout(golden: Golden) -> None:
    golden("inferred", in_every_style(lambda style: inferred_lines(FOUND, style, now=NOON)))


def test_each_row_is_marked_and_the_last_line_says_that_they_are_inferred() -> None:
    lines = inferred_lines(FOUND, STYLES["pipe"], now=NOON)
    assert len([line for line in lines if line.lstrip().startswith("~")]) == len(FOUND.signs)
    assert lines[-1] == FOOTER
    assert not any("\x1b" in line for line in lines)


def test_an_object_without_signs() -> None:
    bare = replace(FOUND, signs=(), standing=(), lacking=())
    assert inferred_lines(bare, STYLES["80"], now=NOON)[4:] == [
        "      no events, managedFields or conditions to infer from",
        "",
        FOOTER,
    ]


def test_the_json_has_the_evidence_of_each_sign() -> None:
    document = inferred_json(FOUND)
    assert (document["schema"], document["source"]) == ("kubectl-ctrl.inferred/v1", "inferred")
    assert [sign["evidence"] for sign in document["signs"]] == [
        "managedFields",
        "event",
        "event",
        "managedFields",
        "condition",
    ]
    assert document["signs"][1]["count"] == 4
