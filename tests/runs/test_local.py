"""`status`, `stop` and `logs` on what was noted and locked, without any cluster."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.main import main
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
from kubectl_ctrl.errors import TimedOut
from kubectl_ctrl.runs import background, background_notes
from kubectl_ctrl.runs.background_notes import BackgroundNote
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner, only_runner
from kubectl_ctrl.value import asdict, replace
from tests.cli.ours import kubeconfig, made
from tests.cli.own import Write
from tests.history.made import FOO, NOON, RUN, recording
from tests.objects import present

Captured = pytest.CaptureFixture[str]

# Stands for a controller: says that it runs, and ends when it is asked to.
_RUNNER = """
import signal, sys
from pathlib import Path
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner, only_runner
import json, os
fields = json.loads(sys.argv[1])
fields |= {"pid": os.getpid(), "holder": identity("r7f3"), "controllers": tuple(fields["controllers"])}
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with only_runner(Path(sys.argv[2]), Runner(**fields)):
    print("on", flush=True)
    signal.pause()
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The user has two clusters of ours, and a current context that is neither."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    registry = App.of_this_process().registry
    made(registry, "ctrl", "https://127.0.0.1:1", provider="kwok")
    made(registry, "two", "https://127.0.0.1:2")
    return registry


@pytest.fixture
def ctrl(registry: Registry) -> ClusterEntry:
    entry = present(registry.find("ctrl"))
    entry.controllers.mkdir()
    return entry


@pytest.fixture
def finishing(registry: Registry, ctrl: ClusterEntry) -> Iterator[subprocess.Popen[str]]:
    """Runs foo in the foreground of another terminal, and takes its time to end, unless it is asked twice."""
    fields = json.dumps(asdict(runner(ctrl, "foo")))
    polite = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
    twice = "seen = []; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9) if seen else seen.append(1))"
    code = _RUNNER.replace(polite, twice).replace("signal.pause()", "while True: signal.pause()")
    argv = [sys.executable, "-c", code, fields, str(registry.folder.parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own kubeconfig, whose current context is none of ours."""
    (tmp_path / "theirs").write_text(kubeconfig("prod", prod="https://prod.invalid"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "theirs"))
    return tmp_path / "theirs"


def runner(entry: ClusterEntry, *controllers: str, scope: str = "default") -> Runner:
    return Runner(
        cluster=entry.uid,
        controller=controllers[0],
        scope=scope,
        pid=os.getpid(),
        run="r7f3",
        controllers=controllers,
        context=entry.context,
        since=NOON,
        holder=identity("r7f3"),
    )


@pytest.fixture
def process(registry: Registry, ctrl: ClusterEntry) -> Iterator[subprocess.Popen[str]]:
    """Runs foo and scaler in the foreground of another terminal."""
    fields = json.dumps(asdict(runner(ctrl, "foo", "scaler")))
    argv = [sys.executable, "-c", _RUNNER, fields, str(registry.folder.parent)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def noted(entry: ClusterEntry, name: str, **fields: object) -> Path:
    log = background_notes.log_of(entry, name)
    log.touch()
    note = BackgroundNote(word=name, scope="default", pid=2**22 + 1, began=NOON)
    background_notes.write(log, replace(note, **fields))  # type: ignore[arg-type]
    return log


def said(capsys: Captured, *words: str, code: int = 0) -> tuple[list[str], list[str]]:
    assert main(list(words)) == code
    shown = capsys.readouterr()
    return shown.out.splitlines(), shown.err.splitlines()


# status


def test_status_shows_processes_and_those_that_ended(registry: Registry, ctrl: ClusterEntry, capsys: Captured) -> None:
    noted(ctrl, "memcached")
    noted(ctrl, "podcount", ended=NOON + 1, code=3)
    noted(ctrl, "scaler", ended=NOON + 1, code=0)
    with only_runner(registry.folder.parent, runner(ctrl, "foo", scope="")):
        rows, told = said(capsys, "status", "--name", "ctrl")
    assert [line.split() for line in rows] == [
        ["CONTROLLER", "CLUSTER", "SCOPE", "PID", "SINCE", "STATE", "RUN"],
        ["foo", "ctrl", "(all)", str(os.getpid()), "2026-01-01T12:00:00.000+00:00", "running", "r7f3"],
        ["memcached", "ctrl", "default", "4194305", "2026-01-01T12:00:00.000+00:00", "dead"],
        ["podcount", "ctrl", "default", "4194305", "2026-01-01T12:00:01.000+00:00", "failed", "(3)"],
        ["scaler", "ctrl", "default", "4194305", "2026-01-01T12:00:01.000+00:00", "ended", "(0)"][:-1],
    ]
    assert told == [
        "memcached is dead; its log: kubectl ctrl logs memcached --name ctrl",
        "podcount has failed; its log: kubectl ctrl logs podcount --name ctrl",
    ]


def test_status_fits_a_terminal_also_of_another_day(
    registry: Registry, ctrl: ClusterEntry, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(App, "terminal", True)
    monkeypatch.setattr(App, "width", 80)
    noted(ctrl, "memcached", ended=NOON, code=3)
    with only_runner(registry.folder.parent, replace(runner(ctrl, "foo"), pid=2**22)):
        rows, _ = said(capsys, "status", "--name=ctrl")
    assert rows[2].split()[3:] == ["4194305", "2026-01-01", "12:00:00", "failed", "(3)"]
    assert max(map(len, rows)) <= 80


def test_status_knows_what_is_asked_to_stop_and_what_is_in_the_background(
    registry: Registry, ctrl: ClusterEntry, capsys: Captured
) -> None:
    log = noted(ctrl, "foo", pid=os.getpid(), asked=NOON)
    with only_runner(registry.folder.parent, runner(ctrl, "foo")):
        rows, _ = said(capsys, "status", "-A", "-o", "json")
    (found,) = json.loads("\n".join(rows))["controllers"]
    assert found == {
        "name": "foo",
        "cluster": "ctrl",
        "context": "kwok-ctrl",
        "namespace": "default",
        "pid": os.getpid(),
        "since": "2026-01-01T12:00:00Z",
        "state": "draining",
        "run": "r7f3",
        "background": True,
        "word": "foo",
        "log": str(log),
        "exitCode": None,
    }


def test_status_is_about_the_cluster_that_is_meant(registry: Registry, ctrl: ClusterEntry, capsys: Captured) -> None:
    noted(ctrl, "foo")
    elsewhere = "1 controller on cluster ctrl: kubectl ctrl status --name ctrl"
    for way in (("--context", "kind-two"), ("--name=two",)):
        assert said(capsys, "status", *way) == ([], ["No controller runs here on cluster two.", elsewhere])
    # Two clusters of ours and no current context: none is meant, so all are.
    assert [line.split()[0] for line in said(capsys, "status")[0]] == ["CONTROLLER", "foo"]
    assert said(capsys, "status", "-A", "-o", "name")[0] == ["foo"]


def test_status_of_nothing(registry: Registry, capsys: Captured) -> None:
    assert said(capsys, "status") == ([], ["No controller runs here."])
    assert said(capsys, "status", "foo", code=2)[1][0] == "error[CTRL-USAGE]: status takes no arguments."
    assert said(capsys, "status", "--name", "three", code=4)[1][0].startswith("error[CTRL-NO-CLUSTER]: ")


def test_status_names_what_it_does_not_show(
    registry: Registry, ctrl: ClusterEntry, theirs: Path, process: subprocess.Popen[str], capsys: Captured
) -> None:
    one = "1 controller on cluster ctrl: kubectl ctrl status --name ctrl"
    assert said(capsys, "status") == ([], ["No controller runs here on context prod.", one])
    two = present(registry.find("two"))
    two.controllers.mkdir()
    noted(two, "foo", ended=NOON, code=0)
    rows, told = said(capsys, "status", "--name=two")
    assert ([row.split()[0] for row in rows], told) == (["CONTROLLER", "foo"], [one])
    more = "2 controllers on other clusters: kubectl ctrl status -A"
    assert said(capsys, "status")[1] == ["No controller runs here on context prod.", more]
    assert said(capsys, "status", "-A")[1] == []


def test_another_cluster_of_that_context_is_not_taken_for_the_one_that_is_meant(
    registry: Registry, ctrl: ClusterEntry, theirs: Path, capsys: Captured
) -> None:
    """Half of all kubeconfigs call their context `default`."""
    there = replace(runner(ctrl, "foo"), cluster="uid-of-another", context="prod")
    with only_runner(registry.folder.parent, there):
        # Of neither cluster anything was recorded: the name is all that is known.
        assert [row.split()[0] for row in said(capsys, "status")[0]] == ["CONTROLLER", "foo"]
        recording(registry.folder.parent, run=replace(RUN, cluster="uid-of-another", server="https://another.invalid"))
        assert said(capsys, "status") == (
            [],
            ["No controller runs here on context prod.", "1 controller on other clusters: kubectl ctrl status -A"],
        )
        assert said(capsys, "stop", "foo")[1] == ["foo does not run here on context prod."]
        assert said(capsys, "status", "-A", "-o", "name")[0] == ["foo"]
    with only_runner(registry.folder.parent, replace(runner(ctrl, "foo"), context="prod")):
        rows, told = said(capsys, "status")
        assert (rows, told[1]) == ([], "1 controller on cluster ctrl: kubectl ctrl status --name ctrl")


def test_a_context_is_one_word_of_a_shell(
    registry: Registry, ctrl: ClusterEntry, theirs: Path, capsys: Captured
) -> None:
    with only_runner(registry.folder.parent, replace(runner(ctrl, "foo"), cluster="x", context="it's a (test)")):
        assert said(capsys, "status")[1][1].endswith(" kubectl ctrl status --context 'it'\"'\"'s a (test)'")


def test_a_name_in_the_environment_gives_way_to_what_is_typed(
    ctrl: ClusterEntry, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("KUBECTL_CTRL_NAME", "two")
    assert said(capsys, "status")[1][0] == "No controller runs here on cluster two."
    assert [row.split()[0] for row in said(capsys, "status", "--context=kwok-ctrl")[0]] == ["CONTROLLER", "foo"]
    for verb in (["status"], ["stop", "foo"], ["logs", "foo"]):
        assert said(capsys, *verb, "--context=kwok-ctrl", "--name=ctrl", code=2)[1] == [
            "error[CTRL-USAGE]: --name and --context exclude each other.",
            "next: leave one of them out",
        ]


def test_a_kubeconfig_that_says_nothing_of_use_is_as_bad_for_each_of_them(
    ctrl: ClusterEntry, theirs: Path, process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    next_step = "next: correct the kubeconfig, or choose another one with --kubeconfig"
    theirs.write_text("a: [")
    for verb in (["status"], ["stop", "foo"], ["logs", "foo"]):
        told = said(capsys, *verb, code=3)[1]
        assert told[0].startswith(f"error[CTRL-KUBECONFIG]: The kubeconfig '{theirs}' is not valid YAML at line ")
        assert told[1:] == [next_step]
        assert said(capsys, *verb, "--context=nix", "--kubeconfig=/", code=3)[1][-1] == next_step
    # Whoever names a cluster of ours, or all, needs none.
    assert said(capsys, "status", "-A")[0] == said(capsys, "status", "--name=ctrl")[0]
    # Of a cluster that is gone nothing runs, so all that does is told.
    monkeypatch.setenv("KUBECONFIG", str(ctrl.folder.parent / "gone" / "kubeconfig"))
    assert [row.split()[0] for row in said(capsys, "status")[0]] == ["CONTROLLER", "foo"]


def test_status_needs_no_cluster_and_little(registry: Registry) -> None:
    code = (
        "import sys; from kubectl_ctrl.cli.main import main; main(['status', '-A']); "
        "print({'aiohttp', 'kubectl_ctrl.client.client', 'kubectl_ctrl.runtime.manager'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"


def test_a_process_whose_lock_file_cannot_be_read_has_no_pid_and_no_time(
    registry: Registry, ctrl: ClusterEntry, capsys: Captured
) -> None:
    with only_runner(registry.folder.parent, runner(ctrl, "foo")):
        (lock,) = registry.folder.parent.rglob("foo-*.lock")
        lock.write_text("")
        rows, told = said(capsys, "status", "--name=two", "-o", "wide")
        assert rows[1].split() == ["foo", "?", "?", "?", "?", "running", "?", "?", "?"]
        assert told == [f"The lock file of foo cannot be read: {lock}. To find its process: lsof {lock}"]
        (found,) = json.loads("\n".join(said(capsys, "status", "-A", "-o", "json")[0]))["controllers"]
        assert (found["pid"], found["since"], found["state"]) == (None, None, "running")
        assert said(capsys, "stop", "foo", "--name=ctrl", code=6)[1] == [
            f"error[CTRL-REFUSED]: foo runs on this machine, but its lock file cannot be read: {lock}.",
            f"next: lsof {lock} prints the process, and kill stops it",
        ]
        assert not any("process" in line for line in said(capsys, "logs", "foo", "--name=ctrl", code=4)[1])


# stop


def test_stop_ends_a_process_wherever_it_was_started(
    ctrl: ClusterEntry, process: subprocess.Popen[str], capsys: Captured
) -> None:
    both = ("stop", "foo", "scaler", "--name", "ctrl")
    refused = said(capsys, "stop", "foo", "--name", "ctrl", code=6)[1]
    assert refused[1] == "next: kubectl ctrl stop foo scaler --name=ctrl stops all of them"
    assert process.poll() is None
    assert said(capsys, *both)[0] == ["foo stopped", "scaler stopped"]
    assert process.wait(60) == 0
    assert said(capsys, *both) == (
        [],
        ["foo does not run here on cluster ctrl.", "scaler does not run here on cluster ctrl."],
    )


def test_stop_forgets_what_is_dead(ctrl: ClusterEntry, capsys: Captured) -> None:
    noted(ctrl, "foo")
    assert said(capsys, "stop", "foo", "--name", "ctrl") == ([], ["foo had already exited on cluster ctrl."])
    assert said(capsys, "status", "--name", "ctrl")[1] == ["No controller runs here on cluster ctrl."]


def test_stop_says_where_it_runs_instead(
    registry: Registry, ctrl: ClusterEntry, theirs: Path, process: subprocess.Popen[str], capsys: Captured
) -> None:
    assert said(capsys, "stop", "foo", "--name", "two") == (
        [],
        ["foo does not run here on cluster two, but on cluster ctrl: add --name ctrl"],
    )
    # Nobody said that it is this cluster that is meant.
    assert said(capsys, "stop", "scaler", "foo", code=6) == (
        [],
        [
            "error[CTRL-REFUSED]: foo does not run here on context prod, but on cluster ctrl.",
            "next: kubectl ctrl stop foo --name ctrl",
        ],
    )
    two = present(registry.find("two"))
    with only_runner(registry.folder.parent, runner(two, "foo")):
        assert said(capsys, "stop", "foo", code=6)[1] == [
            "error[CTRL-REFUSED]: foo does not run here on context prod, but on cluster ctrl and cluster two.",
            "next: kubectl ctrl stop foo --name ctrl, or kubectl ctrl stop foo --name two",
        ]
    assert process.poll() is None


def test_stop_alone_lists_what_can_be_stopped(
    ctrl: ClusterEntry, process: subprocess.Popen[str], capsys: Captured
) -> None:
    nothing = "next: kubectl ctrl status -A shows what runs where"
    assert said(capsys, "stop", "--name", "two", code=2)[1][1] == nothing
    assert said(capsys, "stop", "--name", "ctrl", code=2)[1][1] == "next: choose one of: foo"


def test_stop_takes_no_word_that_means_nothing(
    registry: Registry, ctrl: ClusterEntry, process: subprocess.Popen[str], tmp_path: Path, capsys: Captured
) -> None:
    assert said(capsys, "stop", "foo", "memcachd", "--name=ctrl", code=2)[1] == [
        "error[CTRL-USAGE]: There is no controller 'memcachd'.",
        "next: did you mean memcached?",
    ]
    path = tmp_path / "mine.py"
    missing = said(capsys, "stop", str(path), "--name=ctrl", code=2)[1]
    assert missing[0] == f"error[CTRL-USAGE]: File '{path}' does not exist."
    assert process.poll() is None
    # What ever ran here has ended, and that is all that was wanted.
    recording(registry.folder.parent, run=replace(RUN, controllers=(replace(FOO, name="once"),)))
    assert said(capsys, "stop", "once", "--name=ctrl")[1] == ["once does not run here on cluster ctrl."]


def test_stop_takes_the_file_that_runs_in_the_foreground(
    ctrl: ClusterEntry, process: subprocess.Popen[str], write: Write, capsys: Captured
) -> None:
    mine = write(
        "mine.py",
        """
        from kubectl_ctrl import Resource, controller

        async def reconcile(ctx, request):
            pass

        CONTROLLER = controller("foo", reconcile).for_(Resource("g", "v1", "mines", "Mine"))
        """,
    )
    assert said(capsys, "stop", str(mine), "scaler", "--name=ctrl")[0] == ["foo stopped", "scaler stopped"]
    # Its code may have been broken since.
    (mine.parent / "scaler.py").write_text("raise RuntimeError")
    path = str(mine.parent / "scaler.py")
    assert said(capsys, "stop", path, "--name=ctrl")[1] == ["scaler does not run here on cluster ctrl."]


def test_stop_asks_again_without_cutting_short(
    registry: Registry, ctrl: ClusterEntry, finishing: subprocess.Popen[str], capsys: Captured
) -> None:
    late = "foo (process {pid}) did not exit within 300ms: running reconciles may finish."
    for _ in range(2):
        told = said(capsys, "stop", "foo", "--name=ctrl", "--timeout=300ms", code=124)[1]
        assert f"error[CTRL-TIMEOUT]: {late.format(pid=finishing.pid)}" in told
    assert said(capsys, "status", "--name=ctrl")[0][1].split()[5] == "draining"
    assert finishing.poll() is None


def test_one_that_finishes_is_waited_for_before_another_begins(
    ctrl: ClusterEntry, finishing: subprocess.Popen[str], capsys: Captured
) -> None:
    app, clock, notes = App.of_this_process(), SystemClock(), list[str]()

    def drained(*controllers: str) -> None:
        asyncio.run(background.drained(app.user, ctrl, controllers, clock, notes.append, patience=0.3))

    drained("foo")  # nobody asked it to end
    said(capsys, "stop", "foo", "--name=ctrl", "--timeout=300ms", code=124)
    drained("bar")
    assert notes == []
    with pytest.raises(TimedOut, match="did not exit") as caught:
        drained("foo")
    assert notes == [f"waiting for foo (process {finishing.pid})"]
    assert caught.value.next_step == "kubectl ctrl stop foo --name ctrl --force kills it after a timeout"
    assert finishing.poll() is None


# logs


def test_logs_shows_the_last_lines_and_nothing_that_drives_a_terminal(ctrl: ClusterEntry, capsys: Captured) -> None:
    log = noted(ctrl, "foo")
    background_notes.older(log).write_bytes(b"one\ntwo\n")
    log.write_bytes(b"thr\xffee\n\x1b[31mfo\tur\nunfinished")
    whole = ["one", "two", "thr�ee", "\\x1b[31mfo\tur", "unfinished"]
    assert said(capsys, "logs", "foo", "--name", "ctrl") == (whole, [])
    assert said(capsys, "logs", "foo", "--name=ctrl", "--tail", "2")[0] == whole[-2:]
    assert said(capsys, "logs", "foo", "--name=ctrl", "--tail", "0")[0] == []
    # It does not run any more, so there is nothing to wait for.
    assert said(capsys, "logs", "foo", "--name=ctrl", "-f", "--tail=1") == (
        whole[-2:],
        ["foo is dead: it left no exit code, as after kill -9."],
    )
    noted(ctrl, "foo", ended=NOON, code=0)
    assert said(capsys, "logs", "foo", "--name=ctrl", "-f", "--tail=0")[1] == ["foo has ended."]


def test_logs_of_all_say_whose_each_line_is(ctrl: ClusterEntry, capsys: Captured) -> None:
    for name in ("foo", "bar"):
        noted(ctrl, name).write_text("".join(f"{number}\n" for number in range(20)))
    rows, _ = said(capsys, "logs", "--context", "kwok-ctrl")
    assert rows == [f"[{name}] {number}" for name in ("bar", "foo") for number in range(10, 20)]


def test_logs_that_are_not_there(ctrl: ClusterEntry, process: subprocess.Popen[str], capsys: Captured) -> None:
    nothing = "error[CTRL-NOT-RECORDED]: No controller was ever in the background on cluster ctrl."
    assert said(capsys, "logs", "--name=ctrl", code=4)[1][0] == nothing
    assert said(capsys, "logs", "foo", "--name=ctrl", code=4)[1] == [
        "error[CTRL-NOT-RECORDED]: foo was never in the background on cluster ctrl.",
        f"tried: it runs in the foreground, as process {process.pid}, and prints its log there",
        "next: kubectl ctrl status -A shows what runs where",
    ]


def test_logs_mean_no_other_cluster_but_name_it(
    registry: Registry, ctrl: ClusterEntry, theirs: Path, process: subprocess.Popen[str], capsys: Captured
) -> None:
    noted(ctrl, "podcount").write_text("here\n")
    nothing = "error[CTRL-NOT-RECORDED]: podcount was never in the background on context prod."
    there = "next: kubectl ctrl logs podcount --name ctrl"
    assert said(capsys, "logs", "podcount", code=4) == ([], [nothing, there])
    assert said(capsys, "logs", "podcount", "--name=two", code=4)[1][1] == there
    assert said(capsys, "logs", code=4)[1] == [
        "error[CTRL-NOT-RECORDED]: No controller was ever in the background on context prod.",
        "next: kubectl ctrl logs --name ctrl",
    ]
    two = present(registry.find("two"))
    two.controllers.mkdir()
    noted(two, "podcount")
    assert said(capsys, "logs", "podcount", code=4)[1][1] == f"{there}, or {there.removeprefix('next: ')[:-4]}two"
    assert said(capsys, "logs", "podcont", "--name=two", code=4)[1][1] == "next: did you mean podcount?"
    assert said(capsys, "logs", "--tail=-3", code=2)[1][1] == "next: for instance: --tail 20"


def test_logs_where_nothing_ever_ran_say_how_to_begin(registry: Registry, theirs: Path, capsys: Captured) -> None:
    assert said(capsys, "logs", "foo", code=4)[1][1] == "next: kubectl ctrl up foo --detach starts one"
    assert said(capsys, "logs", code=4)[1][1] == "next: kubectl ctrl up CONTROLLER --detach starts one"


def test_processes_of_another_cluster_are_not_ended(registry: Registry, ctrl: ClusterEntry) -> None:
    two = present(registry.find("two"))
    with only_runner(registry.folder.parent, runner(ctrl, "foo")):
        app = App.of_this_process()
        assert [live.pid for live in background.processes(app.user, ctrl)] == [os.getpid()]
        assert background.processes(app.user, two) == []
