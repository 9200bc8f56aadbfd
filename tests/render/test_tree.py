"""Trees of owned objects."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Branch, FactSource
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, PODS, REPLICASETS, Resource
from kubectl_ctrl.render.trace.tree import tree_lines
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.render.layouts import STYLES, in_every_style
from tests.render.samples import FOOS, NOON


def branch(resource: Resource, name: str, ready: str, reason: str, age: float, *below: Branch) -> Branch:
    return Branch(
        resource=resource,
        key=Key("default", name),
        ready=ready,
        reason=reason,
        created=NOON - age,
        at=NOON,
        branches=below,
    )


def pods(count: int) -> list[Branch]:
    bad = branch(PODS, "web-5d4f-zz", "False", "CrashLoopBackOff", 12)
    return [*(branch(PODS, f"web-5d4f-{number:02}", "True", "", 42) for number in range(count)), bad]


TREE = branch(
    FOOS,
    "web",
    "False",
    "RolloutInProgressWithAReasonThatIsRatherLongForAColumn",
    7200,
    branch(CONFIGMAPS, "settings", "", "", 7200),
    branch(
        DEPLOYMENTS,
        "web",
        "True",
        "MinimumReplicasAvailable",
        7200,
        branch(REPLICASETS, "web-5d4f", "False", "24/25 ready", 60, *pods(24)),
        branch(
            REPLICASETS, "web-a-replicaset-of-a-name-that-is-very-long-for-eighty-columns", "True", "0/0 ready", 7200
        ),
    ),
)


def test_the_layout(golden: Golden) -> None:
    golden("tree", in_every_style(lambda style: tree_lines(TREE, style, now=NOON)))


def test_a_terminal_shows_unready_objects_first_and_a_pipe_all() -> None:
    lines = tree_lines(TREE, STYLES["80"], now=NOON)
    assert any("CrashLoopBack" in line for line in lines)
    assert any("and 5 more Pod, 5 ready" in line for line in lines)
    assert len(tree_lines(TREE, STYLES["pipe"], now=NOON)) == 1 + 5 + 25


def test_objects_that_are_only_recorded_are_marked() -> None:
    old = Branch(resource=DEPLOYMENTS, key=Key("default", "web"), source=FactSource.RECORDED, at=NOON)
    root = replace(TREE, branches=(old,), source=FactSource.RECORDED, ready="", reason="")
    assert tree_lines(root, STYLES["80"], now=NOON) == [
        "OBJECT               READY   REASON   AGE",
        "~Foo/web             ?       -        2h",
        "└─ ~Deployment/web   ?       -        ?",
    ]
