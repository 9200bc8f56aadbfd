"""Error ids that need a real run; all others are in tests/cli/test_error_ids.py."""

from __future__ import annotations

import json
from pathlib import Path

from e2e.ctrl import Ctrl
from e2e.kube import Kubectl

_GIVES_UP = """\
from kubectl_ctrl import CONFIGMAPS, TerminalError, controller


async def reconcile(ctx, request):
    raise TerminalError("The colour must be blue.")


CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""


def test_a_terminal_error_is_not_retried(ctrl: Ctrl, kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "configmap", "red")
    code = tmp_path / "mine.py"
    code.write_text(_GIVES_UP)
    ran = ctrl("run", str(code), "--until-idle", "--timeout=3m", "--log=json")
    attempts = [json.loads(line) for line in ran.out.splitlines()]
    assert {(one["outcome"], one["errorId"]) for one in attempts} == {("terminal", "CTRL-TERMINAL")}
    assert ran.code == 1
    assert len([one for one in attempts if one["name"] == "red"]) == 1, "It is not tried again."
