"""What a run prints of its attempts, as text and as JSON, holds nothing of a Secret."""

from __future__ import annotations

import base64
import io
import json
import logging
from pathlib import Path
from random import Random

import pytest

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.foreground.output import TerminalReporter
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.loader import sources
from kubectl_ctrl.model.attempt import Attempt, ControllerState, ObjectRead, Outcome, Verdict
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CONFIGMAPS, SECRETS
from kubectl_ctrl.model.secrecy import Secrecy
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.target.pin import as_typed
from kubectl_ctrl.user import User
from kubectl_ctrl.value import replace
from tests.objects import started
from tests.target.test_guard import resolved

CANARY = "correct-horse-battery-9"
NOON = 1_767_268_800.0


def plan(tmp_path: Path) -> RunPlan:
    return RunPlan(
        clock=SystemClock(),
        rng=Random(1),
        controllers=sources.resolve(["foo"]),
        resolved=resolved(tmp_path, "kind-ctrl", "https://127.0.0.1:6443"),
        all_namespaces=False,
        options=RunOptions(),
        elect="auto",
        local=True,
        ours="",
        takeover=False,
        holder_gone=False,
        again=lambda *words: "",
        as_installed=False,
        metrics_address="",
        health_address="",
        record=None,
        caps=Caps(),
    )


def reporter(app: App, plan: RunPlan, log: str = "text", secrecy: Secrecy | None = None) -> TerminalReporter:
    style = Style(full_times=True)
    return TerminalReporter(app, plan, secrecy or Secrecy(), machine=log == "json", style=style)


def revealing() -> Attempt:
    """An attempt that read a Secret, and puts what it holds wherever it can."""
    secret = {"metadata": {"name": "db", "uid": "s"}, "data": {"pass": base64.b64encode(CANARY.encode()).decode()}}

    def config(**data: str) -> Obj:
        return {"metadata": {"name": "app", "namespace": "default"}, "data": data}

    cause = Cause(
        kind=CauseKind.MODIFIED,
        at=NOON,
        resource=CONFIGMAPS,
        key=Request("default", "app"),
        old=config(url="-"),
        new=config(url=f"db:{CANARY}", token="tok-1234567890"),
    )
    start = started("r7f3-1", cause, at=NOON)
    return Attempt(
        start=start,
        took=0.01,
        verdict=Verdict(outcome=Outcome.RETRY, message=f"Login with {CANARY} failed."),
        calls=(),
        reads=(ObjectRead(verb="get", resource=SECRETS, query="default/db", found=(("s", "1"),), objects=(secret,)),),
        skipped=(f"ConfigMap of {CANARY}",),
        traceback=f"Traceback: {CANARY}",
    )


def test_the_header_names_context_server_and_namespace_and_whose_cluster_it_is(tmp_path: Path) -> None:
    app = App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}))
    reporter(app, plan(tmp_path)).begin("r7f3", "recorded in history.db")
    reporter(app, replace(plan(tmp_path), local=False, ours="dev")).begin("r7f4", "not recorded")
    reporter(app, replace(plan(tmp_path), local=False)).begin("r7f5", "not recorded")
    assert isinstance(app.err, io.StringIO)
    assert app.err.getvalue().splitlines() == [
        "run r7f3: foo on context kind-ctrl (https://127.0.0.1:6443), namespace apps (-A for all)",
        "recorded in history.db",
        "leader election off (local cluster); Ctrl-C stops it",
        "run r7f4: foo on context kind-ctrl (https://127.0.0.1:6443, managed cluster dev), namespace apps (-A for all)",
        "not recorded",
        "leader election off (managed cluster); Ctrl-C stops it",
        "run r7f5: foo on context kind-ctrl (https://127.0.0.1:6443), namespace apps (-A for all)",
        "not recorded",
        "leader election on; Ctrl-C stops it",
    ]


ONE, OTHER = "r7f3-1 (foo default/web)", "r7f3-2 (foo default/db)"


@pytest.mark.parametrize(
    ("at_work", "blocked", "standing"),
    [
        ([(ONE, False), (OTHER, True)], True, f": {OTHER} blocks the event loop"),
        ([(ONE, False), (OTHER, False)], True, f": the event loop is blocked, with {ONE}, {OTHER} in progress"),
        ([], True, ": the event loop is blocked"),
        ([(ONE, True), (OTHER, False)], False, f": {ONE}, {OTHER} in progress"),
        ([], False, ""),
    ],
)
def test_a_run_that_does_not_stop_says_what_keeps_it(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    at_work: list[tuple[str, bool]],
    blocked: bool,
    standing: str,
) -> None:
    app = App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}))
    shown = reporter(app, plan(tmp_path))
    shown.at_work = lambda: at_work
    shown.forced(blocked=blocked)
    if blocked:
        shown.unheard()
    assert [record.getMessage() for record in caplog.records] == [
        f"Exiting: the run did not stop within 2s{standing}.",
        f"Stopping{standing}, so nothing can finish; Ctrl-C again stops the run.",
    ][: 1 + blocked]


@pytest.mark.parametrize("log", ["text", "json"])
def test_nothing_of_a_secret_is_printed(tmp_path: Path, log: str, caplog: pytest.LogCaptureFixture) -> None:
    app = App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}), verbosity=6)
    with caplog.at_level("INFO"):
        reporter(app, plan(tmp_path), log).observer(lambda: None)(revealing())
    assert isinstance(app.out, io.StringIO)
    said = app.out.getvalue()
    assert "Login with *** failed." in said
    for text in (said, caplog.text):
        assert CANARY not in text
        assert base64.b64encode(CANARY.encode()).decode() not in text
        assert "tok-1234567890" not in text
    assert "Traceback: ***" in caplog.text
    if log == "json":
        changes = json.loads(said)["causes"][0]["changes"]
        assert changes == [
            {"path": "data.url", "old": "-", "new": "db:***"},
            {"path": "data.token", "new": "***"},
        ]


def test_what_gives_a_controller_its_type_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = App(
        out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}), pin=as_typed(["--context=kind-a"])
    )
    whole = plan(tmp_path)
    show = reporter(app, whole).observer(lambda: None)
    show_once = reporter(app, replace(whole, options=RunOptions(once=True))).observer(lambda: None)
    waits = ControllerState(controller="foo", at=NOON, leading=True, synced=False, entries=())
    with caplog.at_level(logging.INFO):
        show_once(replace(waits, message="foos.samplecontroller.k8s.io is not installed"))
        show(replace(waits, message="the cache of pods in default is starting"))
        show(replace(waits, message="horizontalpodautoscalers.autoscaling is not installed"))
        assert caplog.messages == []
        for _ in range(2):
            show(replace(waits, message="foos.samplecontroller.k8s.io is not installed"))
    assert caplog.messages == ["In another terminal: kubectl ctrl install --context=kind-a foo"]
