"""Commands that are suggested mean the cluster that the error was about."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kubectl_ctrl import findings
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.target.pin import Pin, as_typed, by_file

STAGING = as_typed(["--context=staging", "--namespace=web", "--yes=true"])
# Verbs that take --context, and are suggested in words that mean no context: all clusters, or one by --name.
UNPINNED = {"logs", "record", "status", "stop"}
OURS = by_file(Path("/state/clusters/my lab/kubeconfig"), "kwok-lab", known=True)
UNKNOWN = by_file(Path("/state/kubeconfig"), "kwok-lab")


@pytest.mark.parametrize(
    ("pin", "said", "expected"),
    [
        (STAGING, "kubectl ctrl install foo", "kubectl ctrl install --context=staging foo"),
        (
            STAGING,
            "kubectl create namespace web, or select another one with -n",
            "kubectl --context=staging create namespace web, or select another one with -n",
        ),
        (OURS, "kubectl ctrl install foo", "kubectl ctrl install --context=kwok-lab foo"),
        (
            OURS,
            "kubectl patch crd foos",
            "kubectl '--kubeconfig=/state/clusters/my lab/kubeconfig' --context=kwok-lab patch crd foos",
        ),
        (
            UNKNOWN,
            "kubectl ctrl install foo",
            "kubectl ctrl install --kubeconfig=/state/kubeconfig --context=kwok-lab foo",
        ),
        (
            STAGING,
            "kubectl ctrl rbac foo | kubectl apply -f -",
            "kubectl ctrl rbac --context=staging foo | kubectl --context=staging apply -f -",
        ),
        # What says it already, what means no cluster, and what is no command.
        (STAGING, "kubectl ctrl run foo --context=staging --yes", "kubectl ctrl run foo --context=staging --yes"),
        (STAGING, "kubectl ctrl doctor --fix kind", "kubectl ctrl doctor --fix kind"),
        (STAGING, "kubectl ctrl up --name two", "kubectl ctrl up --name two"),
        (STAGING, "Install kubectl, or add its folder to PATH.", "Install kubectl, or add its folder to PATH."),
        (Pin(), "kubectl ctrl install foo", "kubectl ctrl install foo"),
        (as_typed(["--namespace=web"]), "kubectl ctrl install foo", "kubectl ctrl install foo"),
    ],
)
def test_the_flags_that_led_to_the_cluster_are_in_the_line(pin: Pin, said: str, expected: str) -> None:
    assert pin.into(said) == expected


@pytest.mark.parametrize("name", table.names())
def test_no_verb_that_takes_a_context_is_forgotten(name: str) -> None:
    takes = table.load(table.find(name)).cluster and name not in UNPINNED
    assert OURS.into(f"kubectl ctrl {name}") == f"kubectl ctrl {name}" + (" --context=kwok-lab" if takes else "")


def test_no_verb_of_kubectl_that_a_finding_tells_to_try_is_forgotten() -> None:
    [folder] = findings.__path__
    calls = [
        node
        for file in Path(folder).glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "kubectl"
    ]
    verbs = {ast.literal_eval(call.args[1]) for call in calls}
    assert {"describe", "edit", "get"} <= verbs
    assert {
        verb for verb in verbs if STAGING.into(f"kubectl {verb} x") != f"kubectl --context=staging {verb} x"
    } == set()
