"""`sandbox`: its flags, and the environment of the command; e2e/test_sandbox_command.py runs commands."""

from __future__ import annotations

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.verbs.sandbox.main import environment


def test_the_command_has_the_sandbox_and_no_other_cluster() -> None:
    kept = {"PATH": "/bin", "KUBECTL_CTRL_RECORD": "never", "KUBEBUILDER_ASSETS": "/a", "HELM_NAMESPACE": "x"}
    others = {
        "KUBECONFIG": "/home/config",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
        "KUBERNETES_MASTER": "http://master",
        "KUBECTL_CTRL_CONTEXT": "prod",
        "KUBECTL_CTRL_NAME": "two",
        "KUBECTL_CTRL_TOKEN": "secret",
        "KUBE_CONFIG_PATH": "/home/config",
        "KUBE_CTX": "prod",
        "HELM_KUBECONTEXT": "prod",
    }
    ours = {"KUBECONFIG": "/tmp/s/kubeconfig", "KUBECACHEDIR": "/tmp/s/cache"}
    assert environment({**kept, **others}, ours) == {**kept, **ours}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--nodes=-1", "Invalid value for --nodes: it must be a whole number from 0 to 1000."),
        ("--port=65536", "Invalid value for --port: it must be a whole number from 0 to 65535."),
        ("--context=prod", "sandbox does not take --context: it uses no cluster of your kubeconfig."),
    ],
)
def test_an_invalid_flag_starts_nothing(flag: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sandbox", flag, "--", "true"]) == 2
    assert message in capsys.readouterr().err
