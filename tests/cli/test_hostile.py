"""S12: what a cluster, a reconciler or a kubeconfig says does not drive the terminal on which it is told."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.attempt import (
    Attempt,
    BackgroundCall,
    Call,
    CallProgress,
    ControllerState,
    Intent,
    ObjectRead,
    Observed,
    Outcome,
    RaisedError,
    Verdict,
    WaitingRequest,
    WriteRequest,
)
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import RecordedController, RecordedType
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS
from kubectl_ctrl.runtime.summary import FailedRequest, Reason, Summary, Unmet
from kubectl_ctrl.text import Text, verbatim
from kubectl_ctrl.user import User
from kubectl_ctrl.value import replace
from tests.cli.foreground.test_output import plan, reporter
from tests.history.made import FOOS, KNOWN, NOON, RUN, recording
from tests.objects import started

# Sets the window's title, clears the screen, goes back over what was said, and turns the reading order around.
EVIL = "x\x1b]0;owned\x07\x1b[2J\r\nok\x08\x9b31m\u202egnp\u2028\ud83dz"
EVIL_NAME = EVIL.replace("\ud83d", "")  # a name is text
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def web(version: int, note: str) -> Obj:
    manager = {"manager": EVIL, "operation": "Update", "time": f"2026-01-01T12:00:0{version}Z"}
    fields: Obj = {"f:spec": {f"f:{EVIL}": {}, "f:note": {}}}
    meta = {
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": str(version),
        "managedFields": [{**manager, "fieldsType": "FieldsV1", "fieldsV1": fields}],
    }
    return {"metadata": meta, "spec": {EVIL: version, "note": note, "list": [{"name": EVIL, "v": note}]}}


def call(number: int, **more: object) -> Call:
    one = Call(
        id=f"r7f3-1.{number}",
        verb="patch",
        resource=DEPLOYMENTS,
        namespace="default",
        name=f"web{EVIL_NAME}",
        subresource=EVIL,
        started=NOON,
        took=0.01,
        code=422,
        reason=EVIL,
        error=f"It is wrong: {EVIL}",
        before=web(1, "a"),
        answer=web(2, EVIL),
    )
    return replace(one, **more)  # type: ignore[arg-type]


def observed() -> list[Observed]:
    key, other = Request("default", "web"), Request("default", f"web{EVIL_NAME}")
    causes = (
        Cause(kind=CauseKind.MODIFIED, at=NOON, resource=FOOS, key=key, old=web(1, "a"), new=web(2, EVIL)),
        Cause(kind=CauseKind.RETRY, at=NOON, detail=EVIL, count=2, attempt="r7f3-1"),
        Cause(kind=CauseKind.TIMER, at=NOON, detail=EVIL, attempt="r7f3-1"),
        Cause(kind=CauseKind.DELETED, at=NOON, resource=DEPLOYMENTS, key=other, old=web(1, EVIL)),
    )
    raised = RaisedError(error=EVIL, message=EVIL, next_step=EVIL, target=EVIL, reason=EVIL)
    values: list[Observed] = []
    for number, outcome in ((1, Outcome.RETRY), (2, Outcome.WAITING), (3, Outcome.TERMINAL)):
        start = started(f"r7f3-{number}", *causes, at=NOON, started=NOON + number, causes_total=9, waited=0.1, try_no=2)
        calls = (call(1), call(2, code=200, error="", reason=""), call(3, code=None))
        values += [start, CallProgress(attempt=start.id, call=calls[0], answered=True)]
        values.append(
            Attempt(
                start=start,
                took=0.5,
                verdict=Verdict(outcome=outcome, message=f"{EVIL} failed", delay=5.0),
                calls=calls,
                reads=(
                    ObjectRead(
                        verb="get", resource=FOOS, query="default/web", found=(("u1", "2"),), objects=(web(2, EVIL),)
                    ),
                    ObjectRead(verb="list", resource=DEPLOYMENTS, query=f"default {EVIL}", found=(), raised=raised),
                ),
                wishes=(
                    WriteRequest(
                        verb="create", resource=DEPLOYMENTS, key=Key("default", "web"), body="{}", raised=raised
                    ),
                ),
                intents=(Intent(type="Normal", reason=EVIL, message=EVIL, about=Key("default", "web")),),
                skipped=(EVIL,),
                traceback=f'Traceback\n  File "{EVIL}", line 1\nValueError: {EVIL}\n',
            )
        )
        event = call(4, resource=EVENTS, verb="create")
        values.append(BackgroundCall(attempt=start.id, call=event))
    entry = WaitingRequest(request=Request("default", f"web{EVIL_NAME}"), state="ready", since=NOON)
    values.append(
        ControllerState(controller="foo", at=NOON, leading=True, synced=False, entries=(entry,), message=EVIL)
    )
    return values


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    played = RecordedController(
        name="foo", word=EVIL, code=EVIL, settings=((EVIL, EVIL),), primaries=(FOOS,), manager=EVIL, owns=(DEPLOYMENTS,)
    )
    run = replace(RUN, context=EVIL, server=EVIL, host=EVIL, labels=EVIL, program=EVIL, controllers=(played,))
    known = (*KNOWN, RecordedType(resource=DEPLOYMENTS, singular=EVIL_NAME, short_names=("deploy",)))
    return recording(tmp_path, *observed(), run=run, known=known)


def assert_tame(what: str, text: str) -> None:
    found = _CONTROL.search(text)
    assert found is None, f"{what}: {text[max(found.start() - 60, 0) : found.start() + 20]!r}"


@pytest.mark.parametrize(
    "words",
    [
        "trace foo/web",
        "trace foo/web -o wide --calls",
        "trace foo/web --diff",
        "trace foo/web --diff --calls --color=never --last=1",
        "trace foo/web -o jsonl",
        "trace foo/web -o yaml",
        "trace foo/web -o dot",
        "trace foo/web --raw",
        "trace foo -A",
        "trace r7f3-1",
        "trace r7f3-3 --diff",
        "trace deploy/web",
        "trace foo/none",
        "explain foo/web",
        "explain foo/web r7f3-1",
        "explain foo",
        "queue foo",
        "queue foo -o wide",
        "queue foo -o yaml",
        "explain foo/web -o json",
        "explain foo/web -o yaml",
        "record list -o yaml",
        "record show r7f3 -o json",
        "rbac foo --from-trace",
        "rbac foo --missing",
        "record list",
        "record list -o wide",
        "record show r7f3",
        "record export r7f3-1",
        "record export foo/none --to=x",
        "record prune --all",
        "replay r7f3-1",
    ],
)
def test_s12_no_verb_that_looks_back_lets_it_through(
    file: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offline = ["--offline"] if words.startswith(("trace", "explain")) else []
    cli.main([*words.split(), *offline, f"--from={file}"])
    out, err = capsys.readouterr()
    assert "bug in kubectl-ctrl" not in err, err
    assert out or err
    assert_tame("stdout", out)
    assert_tame("stderr", err)


@pytest.mark.parametrize(
    "words",
    [
        "trace foo",
        "trace foo -A",
        "trace foo/web",
        "trace foo/web -o json",
        "trace foo/web -o dot",
        "trace r7f3-1",
        "trace bars/none --context=none",
        "trace foo --recorded-cluster=other",
        "explain foo/web",
        "explain foo",
        "queue foo",
        "rbac foo --from-trace",
        "record export foo/web --to=x",
        "record prune --all",
    ],
)
def test_s12_no_name_of_a_cluster_lets_it_through(
    file: Path, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several clusters in a recording that somebody sent, the answer names the one that it is about."""
    monkeypatch.chdir(file.parent)
    recording(file.parent, run=replace(RUN, id="r8f4", cluster="c2", context="other", server="https://other", ca="c2"))
    offline = ["--offline"] if words.startswith(("trace", "explain")) else []
    cli.main([*words.split(), *offline, f"--from={file}"])
    out, err = capsys.readouterr()
    assert "bug in kubectl-ctrl" not in err, err
    assert out or err
    assert_tame("stdout", out)
    assert_tame("stderr", err)


def test_s12_no_context_puts_a_command_into_the_one_that_is_suggested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for number, context in enumerate(("other", "$(touch pwned)"), 1):
        made = replace(RUN, id=f"r{number}", cluster=f"c{number}", context=context, ca=f"ca{number}")
        file = recording(tmp_path, run=replace(made, server=f"https://{number}", began=NOON - number))
    assert cli.main(["trace", "foo/web", "--offline", f"--from={file}"]) != 0
    assert "next: add --recorded-cluster '$(touch pwned)'" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["text", "json"])
def test_s12_no_traceback_of_a_log_line_lets_it_through(form: str) -> None:
    err = io.StringIO()
    app = App(out=io.StringIO(), err=err, user=User({}), verbosity=6)
    with logging_to(app.narrate, form=form, verbosity=6):
        try:
            raise ValueError(f"{EVIL} \x1b[31mred")
        except ValueError:
            logging.getLogger("kubectl_ctrl").exception("It failed: %s", EVIL)
    assert "Traceback" in err.getvalue()
    assert_tame("stderr", err.getvalue())


def test_s12_what_is_printed_as_a_line_stays_one_and_only_laid_out_text_has_colours() -> None:
    out = io.StringIO()
    app = App(out=out, err=io.StringIO(), user=User({}))
    app.answer("a\nb \x1b[31mred\t.")
    app.answer(Text("a\nb \x1b[31mred\x1b[0m\t. \x1b[2J\x9b31m"))
    app.answer(verbatim("a\nb \x1b[31mred\t."))
    assert out.getvalue().splitlines() == [
        "a\\x0ab \\x1b[31mred\\x09.",
        "a",
        "b \x1b[31mred\x1b[0m\t. \\x1b[2J\\x9b31m",
        "a",
        "b \\x1b[31mred\t.",
    ]


def test_s12_no_error_and_no_traceback_lets_it_through(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(app: App, words: object) -> int:
        raise CtrlError(EVIL, tried=EVIL, next_step=EVIL)

    monkeypatch.setattr(cli, "run", fail)
    assert cli.main(["version", "-v=6"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert_tame("stderr", err)


@pytest.mark.parametrize("log", ["text", "json"])
def test_s12_no_run_lets_it_through(tmp_path: Path, log: str) -> None:
    app = App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}), verbosity=9)
    with logging_to(app.narrate, form=log, verbosity=9):
        teller = reporter(app, plan(tmp_path), log)
        teller.begin("r7f3", EVIL)
        for value in observed():
            teller.observer(lambda: None)(value)
        verdict = Verdict(outcome=Outcome.RETRY, message=EVIL)
        failed = FailedRequest(controller="foo", request=Request("default", EVIL), verdict=verdict)
        teller.end(Summary(reason=Reason.TIMEOUT, failed=(failed,), unmet=(Unmet(EVIL, NOON),)))
    for what in (app.out, app.err):
        assert isinstance(what, io.StringIO)
        assert what.getvalue()
        assert_tame(log, what.getvalue())
