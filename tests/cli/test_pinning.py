"""Commands that are suggested mean the cluster that the error was about."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.cli.pinning import Pin, as_typed, by_file

STAGING = as_typed(["--context=staging", "--namespace=web", "--yes=true"])
OURS = by_file(Path("/state/clusters/my lab/kubeconfig"), "kwok-lab")


@pytest.mark.parametrize(
    ("pin", "said", "expected"),
    [
        (STAGING, "kubectl ctrl install foo", "kubectl ctrl install --context=staging foo"),
        (
            STAGING,
            "kubectl create namespace web, or name another one with -n",
            "kubectl --context=staging create namespace web, or name another one with -n",
        ),
        (OURS, "kubectl ctrl install foo", "kubectl ctrl install --context=kwok-lab foo"),
        (OURS, "kubectl patch crd foos", "kubectl '--kubeconfig=/state/clusters/my lab/kubeconfig' patch crd foos"),
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
