"""Controllers in the background, as real processes against servers that are not there: found, ended, judged."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_ctrl import exec as programs
from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.devcluster import background_environ
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
from kubectl_ctrl.errors import CtrlError, ProgramFailed, TimedOut
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.loader.sources import resolve
from kubectl_ctrl.model.attempt import ControllerState
from kubectl_ctrl.model.objects import labels_of
from kubectl_ctrl.model.resources import CONFIGMAPS
from kubectl_ctrl.runs import background, background_notes
from kubectl_ctrl.runs.background import BackgroundController
from kubectl_ctrl.runs.background_notes import BackgroundNote
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner, only_runner
from kubectl_ctrl.user import User
from kubectl_ctrl.value import asdict, replace
from tests.cli.ours import made
from tests.cli.own import Write
from tests.client.served import served
from tests.history.made import NOON, RUN, recording
from tests.objects import present
from tests.waiting import until

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return App.of_this_process()


@pytest.fixture
def entry(app: App) -> Iterator[ClusterEntry]:
    """A cluster of ours that does not answer; whatever was started for it is gone afterwards."""
    entry = made(app.registry, "ctrl", NOBODY)
    yield entry
    for pid in background.starting(entry):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def started(app: App, entry: ClusterEntry, word: str = "foo") -> BackgroundController:
    (sourced,) = resolve([word])
    return background.started(app.user.environ, entry, app.pointed_at(entry), sourced)


def settled(app: App, one: BackgroundController, patience: float = 60.0) -> list[str]:
    notes: list[str] = []
    asyncio.run(background.settled(app.user, one, SystemClock(), notes.append, patience))
    return notes


def ended(app: App, entry: ClusterEntry, drain: float = 30.0) -> list[str]:
    return asyncio.run(background.ended(app.user, entry, drain, SystemClock(), lambda _: None))


def until_listed(entry: ClusterEntry) -> None:
    """The kernel shows the words of a process a moment after it has begun."""
    until(lambda: background.starting(entry))


def until_said(one: BackgroundController, text: str) -> str:
    until(lambda: one.log.exists() and text in one.log.read_text())
    return one.log.read_text()


def test_one_that_waits_for_its_cluster_is_found_adopted_and_ended(app: App, entry: ClusterEntry) -> None:
    one = started(app, entry)
    assert str(one) == f"foo runs in the background (process {one.pid})"
    until_listed(entry)
    assert background.starting(entry) == background.starting(entry, "foo") == (one.pid,)
    assert background.starting(entry, "bar") == ()
    assert started(app, entry).pid == one.pid
    with pytest.raises(TimedOut, match=rf"foo is not ready after 1s: it is starting. Process {one.pid} still runs."):
        settled(app, one, patience=1.0)
    said = until_said(one, "The cluster does not answer yet")
    assert said.startswith("run r")
    assert "SIGTERM stops it" in said
    assert one.log.stat().st_mode & 0o777 == 0o600
    note = present(background_notes.read(one.log))
    assert (note.word, note.scope, note.pid, note.ended) == ("foo", "default", one.pid, None)
    assert ended(app, entry) == ["foo"]
    os.waitpid(one.pid, 0)
    note = present(background_notes.read(one.log))
    assert (note.code, note.ended is not None) == (0, True)
    assert (background.starting(entry), ended(app, entry)) == ((), [])


def test_one_that_works_is_listed_with_its_log_and_stopped(
    app: App, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = '{"metadata": {"labels": {"seen": "yes"}}}'
    write(
        "mine.py",
        f"""\
        from kubectl_ctrl import CONFIGMAPS, controller

        async def reconcile(ctx, request):
            if found := await ctx.read.get(CONFIGMAPS, request.name):
                await ctx.write.patch(found, {seen})

        CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
        """,
    )
    with served() as cluster:
        cluster.do(lambda server: server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}))
        entry = made(app.registry, "ctrl", cluster.url)
        one = started(app, entry, "./mine.py")
        try:
            settled(app, one)
            cluster.until(lambda server: labels_of(server.get(CONFIGMAPS, "web") or {}) == {"seen": "yes"})
            assert cli.main(["status"]) == 0
            assert re.search(rf"^mine +ctrl .*{one.pid}", capsys.readouterr().out, re.MULTILINE)
            assert cli.main(["stop", "mine"]) == 0
            assert cli.main(["logs", "mine"]) == 0
            assert "patch ConfigMap/web 200" in capsys.readouterr().out
        finally:
            os.kill(one.pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(one.pid, 0)[1])
        assert code == 0
        with Recording.open(recording_file(app.user)) as reader:
            assert [run.ended is not None for run in reader.runs()] == [True]


@pytest.mark.programs("sh")
def test_what_only_names_a_log_is_not_ended(app: App, entry: ClusterEntry) -> None:
    """As somebody who searches for it, or reads it."""
    log = background_notes.log_of(entry, "foo")
    log.parent.mkdir()
    log.touch()
    words = ["/bin/sh", "-c", "echo; read line", "kubectl_ctrl.cli.background_main", str(log)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        reader.stdout.readline()
        try:
            assert (background.starting(entry), background.starting(entry, "foo")) == ((), ())
            assert ended(app, entry, drain=0.0) == []
            assert reader.poll() is None
        finally:
            reader.kill()


def test_one_that_dies_says_why_and_what_to_do(app: App) -> None:
    entry = made(app.registry, "ctrl", "https://127.0.0.1:1")  # its authority is none
    one = started(app, entry)
    with pytest.raises(ProgramFailed) as caught:
        settled(app, one)
    error = caught.value
    assert error.message.startswith("foo exited with code 3 right after its start in the background: ")
    assert "error[" not in error.message
    assert error.tried == "kubectl ctrl run foo --context=kind-ctrl --namespace=default"
    assert error.next_step.endswith("its log: kubectl ctrl logs foo --name ctrl")
    assert present(background_notes.read(one.log)).code == 3


def test_what_an_earlier_start_said_is_not_its_reason(app: App, entry: ClusterEntry) -> None:
    log = background_notes.log_of(entry, "foo")
    log.parent.mkdir()
    log.write_text("error[CTRL-OLD]: long ago\n")
    one = started(app, entry)
    os.kill(one.pid, signal.SIGKILL)
    with pytest.raises(
        ProgramFailed, match=r"foo was terminated by signal 9 right after its start in the background\.$"
    ):
        settled(app, one)


def test_how_a_run_begins_is_not_its_reason(app: App, entry: ClusterEntry) -> None:
    one = started(app, entry)
    until_said(one, "stops it")
    os.kill(one.pid, signal.SIGKILL)
    with pytest.raises(ProgramFailed) as caught:
        settled(app, one)
    assert "leader election" not in caught.value.message
    assert "leader election" not in caught.value.stderr


def test_what_it_complains_of_is_told_where_it_takes_too_long(app: App, entry: ClusterEntry, write: Write) -> None:
    path = write(
        "hang.py",
        """
        import time
        from kubectl_ctrl import Resource, controller

        async def reconcile(ctx, request):
            pass

        CONTROLLER = controller("hang", reconcile).for_(Resource("g", "v1", "mines", "Mine"))
        """,
    )
    one = started(app, entry, str(path))
    until_said(one, "The cluster does not answer yet")
    with pytest.raises(TimedOut) as caught:
        settled(app, one, patience=0.1)
    assert caught.value.tried.startswith("its log: The cluster does not answer yet; retrying: ")
    with one.log.open("a") as log:  # as a loop that is blocked has it said
        log.write("2026-01-01T12:00:00.000+00:00 warning: The event loop is blocked: some code does not await.\n")
        log.write('      File "manager.py", line 1, in run\n        await it\n')
        log.write('      File "hang.py", line 5, in reconcile\n        time.sleep(99)\n')
        log.write("2026-01-01T12:00:01.000+00:00 more\n")
    with pytest.raises(TimedOut) as caught:
        settled(app, one, patience=0.1)
    said = 'The event loop is blocked: some code does not await. File "hang.py", line 5, in reconcile'
    assert caught.value.tried == f"its log: {said}"


def test_a_file_of_ones_own_is_named_by_its_whole_path(app: App, entry: ClusterEntry, write: Write) -> None:
    path = write(
        "mine.py",
        """
        from kubectl_ctrl import Resource, controller

        async def reconcile(ctx, request):
            pass

        CONTROLLER = controller("mine", reconcile).for_(Resource("g", "v1", "mines", "Mine"))
        """,
    )
    one = started(app, entry, "./mine.py")
    assert one.command[:4] == ("kubectl", "ctrl", "run", str(path))
    assert one.log.name == "mine.log"
    until_listed(entry)  # or it would not be ended


def test_variables_that_would_stop_or_redirect_it_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"KUBECTL_CTRL_SERVER": "https://prod", "KUBECTL_CTRL_UNTIL_IDLE": "true", "KUBECTL_CTRL_RECORD": "off"}
    monkeypatch.setattr(sys, "path", ["/elsewhere", *sys.path])
    python, env = programs.python(background_environ({**given, "PATH": "/bin"}))
    assert (python, env) == ([sys.executable, "-P"], {"KUBECTL_CTRL_RECORD": "off", "PATH": "/bin"})


def asked(*way: str) -> tuple[list[str], dict[str, str]]:
    """How a Python that was started so would start ours again."""
    root = str(Path(background.__file__).parents[2])
    code = (
        f"import json, sys; sys.path.insert(0, {root!r}); from kubectl_ctrl import exec as programs; "
        "print(json.dumps(programs.python({'PYTHONPATH': '/theirs'})))"
    )
    said = subprocess.run([sys.executable, *way, "-c", code], capture_output=True, text=True, check=True).stdout
    python, env = json.loads(said)
    return python, env


def test_the_same_package_is_found_again_and_nothing_beside_it(tmp_path: Path) -> None:
    # As `python -m kubectl_ctrl` in a checkout does it: the package is in the first folder of the path.
    python, env = asked()
    (tmp_path / "queue.py").write_text("raise SystemExit('not this one')")
    again = [*python, "-c", "import queue, kubectl_ctrl; print(kubectl_ctrl.__file__)"]
    ran = subprocess.run(again, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{Path(background.__file__).parents[1] / '__init__.py'}\n"
    assert env["PYTHONPATH"].endswith(":/theirs")


def test_a_python_apart_from_its_environment_stays_so() -> None:
    # As bin/kubectl-ctrl does it, whose environment has the package.
    assert asked("-I") == ([sys.executable, "-I"], {"PYTHONPATH": "/theirs"})


def test_a_python_that_leaves_out_the_folder_does_so_again() -> None:
    assert asked("-P") == ([sys.executable, "-P"], {"PYTHONPATH": "/theirs"})


# What it tells of itself.


@pytest.fixture
def placed(app: App, entry: ClusterEntry) -> Iterator[BackgroundController]:
    """This process has the place of foo, as if it ran in the background."""
    place = replace(RUN, pid=os.getpid(), holder=identity(RUN.id))
    runner = Runner(
        cluster=place.cluster,
        controller="foo",
        scope=place.namespace,
        pid=place.pid,
        run=place.id,
        controllers=("foo",),
        context=entry.context,
        since=NOON,
        holder=place.holder,
    )
    with only_runner(app.user.state, runner):
        yield BackgroundController(entry=entry, controller="foo", pid=place.pid, command=())


def told(app: App, *, synced: bool, message: str = "") -> None:
    state = ControllerState(controller="foo", at=NOON, leading=True, synced=synced, entries=(), message=message)
    recording(app.user.state, state, run=RUN)


def test_it_works_once_its_recording_has_its_caches_synced(
    app: App, placed: BackgroundController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_UNRECORDED", 0.2)  # what it tells counts also after that
    told(app, synced=False, message="foos is not installed")
    with pytest.raises(TimedOut, match="foo is not ready after 1s: foos is not installed"):
        settled(app, placed, patience=1.0)
    told(app, synced=True)
    assert settled(app, placed) == []


def test_without_a_recording_its_place_is_enough(
    app: App, placed: BackgroundController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_UNRECORDED", 0.5)
    assert settled(app, placed) == ["foo: its caches are not synced"]
    off = App(out=sys.stdout, err=sys.stderr, user=User({**os.environ, "KUBECTL_CTRL_RECORD": "off"}))
    assert settled(off, placed) == []


# Logs.


def test_a_log_that_became_too_long_is_gone_on_with_in_a_new_file(tmp_path: Path) -> None:
    log = tmp_path / "foo.log"
    code = (
        "import sys; from pathlib import Path; from kubectl_ctrl.cli.background_main import keep_small\n"
        "log = Path(sys.argv[1])\n"
        "print('x' * 100, flush=True); print(keep_small(log, 200), flush=True)\n"
        "print('y' * 100, flush=True); print(keep_small(log, 200), flush=True); print('z', file=sys.stderr)"
    )
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    subprocess.run([sys.executable, "-c", code, str(log)], stdout=handle, stderr=handle, check=True)
    os.close(handle)
    assert background_notes.older(log).read_text() == "x" * 100 + "\nFalse\n" + "y" * 100 + "\n"
    assert log.read_text() == "True\nz\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_pages_that_cannot_be_read_say_nothing(app: App, tmp_path: Path) -> None:
    entry = made(Registry(tmp_path / "registry"), "ctrl", NOBODY)
    entry.controllers.mkdir()
    log = background_notes.log_of(entry, "foo")
    assert (background_notes.logged(entry), background_notes.read(log)) == ([], None)
    log.touch()
    note = BackgroundNote(word="foo", scope="default", pid=1, began=2.0)
    background_notes.write(log, note)
    assert list(background_notes.notes(entry)) == [("foo", note)]
    background_notes.write(log, replace(note, code=1))
    assert background_notes.read(log) == replace(note, code=1)
    later = {**asdict(note), "of_a_later_version": 1}
    (log.parent / "foo.json").write_text(json.dumps(later))
    assert background_notes.read(log) == note
    for garbage in (b"", b"[]", b'{"word": 1}', b"\xff"):
        (log.parent / "foo.json").write_bytes(garbage)
        assert list(background_notes.notes(entry)) == []
    background_notes.forget(log)
    background_notes.forget(log)
    assert background_notes.logged(entry) == ["foo"]


def test_a_folder_that_cannot_be_made_is_named(app: App, entry: ClusterEntry) -> None:
    entry.controllers.write_text("no folder")
    with pytest.raises(CtrlError, match=r"Cannot use the folder '.*clusters/ctrl/controllers' for controllers .*: "):
        started(app, entry)
