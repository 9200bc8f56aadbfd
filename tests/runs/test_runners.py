from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubectl_ctrl.errors import CtrlError, Refused
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner, ask_to_stop, note_asked, only_runner, runners
from kubectl_ctrl.value import asdict, replace

ME = Runner(
    cluster="c",
    controller="foo",
    scope="default",
    pid=4121,
    run="r7f3",
    controllers=("foo", "bar"),
    context="kind-ctrl",
    since=1000.5,
    holder=identity("r7f3"),
)


def test_a_second_runner_of_the_same_scope_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    said = r"foo already runs here .*: process 4121 on this machine \(namespace default\)\."
    with only_runner(tmp_path, ME), pytest.raises(Refused, match=said), only_runner(tmp_path, replace(ME, pid=1)):
        pass


@pytest.mark.parametrize(
    "other", [replace(ME, cluster="d"), replace(ME, controller="bar"), replace(ME, scope="kube-public")]
)
def test_another_cluster_controller_or_namespace_is_another_place(tmp_path: Path, other: Runner) -> None:
    with only_runner(tmp_path, ME), only_runner(tmp_path, other):
        assert sorted(runners(tmp_path), key=repr) == sorted([ME, other], key=repr)


@pytest.mark.parametrize(("first", "second"), [("", "default"), ("default", "")])
def test_all_namespaces_and_one_of_them_exclude_each_other(tmp_path: Path, first: str, second: str) -> None:
    where = "namespace default" if first else "all namespaces"
    with (
        only_runner(tmp_path, replace(ME, scope=first)),
        pytest.raises(Refused, match=rf"process 4121 on this machine \({where}\)"),
        only_runner(tmp_path, replace(ME, scope=second)),
    ):
        pass


def test_the_place_is_free_again_afterwards_and_nothing_is_left(tmp_path: Path) -> None:
    for scope in ("default", "", "default"):
        with only_runner(tmp_path, replace(ME, scope=scope)):
            pass
    assert runners(tmp_path) == []
    assert list(tmp_path.rglob("*.lock")) == []


def test_who_runs_can_be_seen_where_no_file_can_be_made(tmp_path: Path) -> None:
    """As on a file system that has become read-only."""
    with only_runner(tmp_path, ME):
        gate = tmp_path / "runners" / "gate"
        gate.unlink()
        gate.mkdir()
        assert runners(tmp_path) == [ME]
        gate.rmdir()


def test_who_runs_is_told_by_its_lock_and_not_by_its_file(tmp_path: Path) -> None:
    with only_runner(tmp_path, ME):
        assert runners(tmp_path, cluster="c", controller="foo") == [ME]
        assert runners(tmp_path, cluster="other") == runners(tmp_path, controller="bar") == []
        (lock,) = tmp_path.rglob("*.lock")
    lock.write_text(json.dumps(asdict(ME)))
    assert runners(tmp_path) == []
    assert not lock.exists(), "What a killed run left stays for ever."


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free disk space"),
        (errno.EDQUOT, "free disk space: the quota is used up"),
        (errno.EROFS, "use a disk that is not read-only"),
        (errno.EIO, "check the disk"),
    ],
)
def test_a_disk_that_takes_no_lock_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def failing(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", failing)
        patched.setattr(os, "pwrite", failing)
        with pytest.raises(CtrlError) as caught, only_runner(tmp_path, ME):
            pass
    assert caught.value.message.startswith("Cannot write the lock file ")
    assert caught.value.message.endswith(f".lock': {os.strerror(number)}.")
    assert caught.value.next_step == f"{remedy}, or set XDG_STATE_HOME to another folder"
    assert list(tmp_path.rglob("*.lock")) == []


@pytest.mark.parametrize(("long", "reason"), [(True, "File name too long"), (False, "levels of symbolic links")])
def test_a_path_that_takes_no_lock_is_an_error(tmp_path: Path, long: bool, reason: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    folder = tmp_path / ("x" * 300 if long else "loop")
    with pytest.raises(CtrlError, match=reason), only_runner(folder, ME):
        pass


@contextmanager
def held_with(folder: Path, content: str) -> Iterator[Path]:
    """The place of `ME`, held by somebody who wrote this into its file."""
    with only_runner(folder, ME):
        (path,) = folder.rglob("*.lock")
        path.write_text(content)
        yield path


def test_a_lock_of_a_later_version_holds(tmp_path: Path) -> None:
    content = {**asdict(ME), "controllers": ["foo", "bar"], "of_a_later_version": {"a": 1}}
    with held_with(tmp_path, json.dumps(content)) as path:
        assert runners(tmp_path, cluster="c", controller="foo") == [ME]
        with pytest.raises(Refused, match="process 4121"), only_runner(tmp_path, replace(ME, scope="")):
            pass
        note_asked(tmp_path, ME.holder)
        assert json.loads(path.read_text()) == {**content, "asked": True}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": 1}', "\x00"])
def test_a_lock_whose_file_cannot_be_read_is_held_by_somebody(tmp_path: Path, content: str) -> None:
    with held_with(tmp_path, content) as path:
        (found,) = runners(tmp_path, cluster="c", controller="foo")
        assert not ask_to_stop(tmp_path, found)
        assert runners(tmp_path, controller="bar") == []
        said = "foo already runs here .*: a process on this machine whose lock file cannot be read"
        with pytest.raises(Refused, match=said) as refused, only_runner(tmp_path, replace(ME, scope="other")):
            pass
        assert refused.value.next_step == f"lsof {path} prints the process, and kill stops it"
        with only_runner(tmp_path, replace(ME, controller="bar")):
            pass


def test_a_lock_file_that_was_planted_as_a_link_is_not_followed(tmp_path: Path) -> None:
    with only_runner(tmp_path, ME):
        (lock,) = tmp_path.rglob("*.lock")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock.symlink_to(victim)
    with pytest.raises(CtrlError, match="Cannot create or lock"), only_runner(tmp_path, ME):
        pass
    assert victim.read_text() == "precious"


def test_that_it_was_asked_to_end_is_seen_with_all_that_it_runs(tmp_path: Path) -> None:
    bar, other = replace(ME, controller="bar"), replace(ME, cluster="d", holder=identity("r800"))
    with only_runner(tmp_path, ME), only_runner(tmp_path, bar), only_runner(tmp_path, other):
        note_asked(tmp_path, ME.holder)
        found = runners(tmp_path)
        assert {(one.cluster, one.controller): one.asked for one in found} == {
            ("c", "foo"): True,
            ("c", "bar"): True,
            ("d", "foo"): False,
        }
        assert ME in found, "It is the same one still."
    with only_runner(tmp_path, ME):
        assert [one.asked for one in runners(tmp_path)] == [False]


def test_nobody_has_to_be_there_to_be_asked(tmp_path: Path) -> None:
    note_asked(tmp_path, ME.holder)
    assert list(tmp_path.iterdir()) == []


_CHECKOUT = Path(__file__).parents[2]
_HOLD = """
import os, signal, sys
from kubectl_ctrl.value import replace
from pathlib import Path
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import only_runner
from tests.runs.test_runners import ME
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
scope, signed = sys.argv[2:]
with only_runner(Path(sys.argv[1]), replace(ME, scope=scope, pid=os.getpid(), holder=signed or identity("r1"))):
    print("held", flush=True)
    signal.sigwait({signal.SIGTERM})
sys.exit(3)
"""


@contextmanager
def holding(folder: Path, scope: str = "default", signed: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the place until SIGTERM, then ends with code 3."""
    words = [sys.executable, "-c", _HOLD, str(folder), scope, signed]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=_CHECKOUT)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_process_that_holds_its_lock_can_be_asked_to_stop(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        (runner,) = runners(tmp_path)
        assert runner.pid == process.pid
        assert ask_to_stop(tmp_path, runner)
        assert process.wait(60) == 3


def test_it_is_asked_once_however_often_somebody_asks(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        (runner,) = runners(tmp_path)
        note_asked(tmp_path, runner.holder)  # as another did, whose signal is on its way
        assert ask_to_stop(tmp_path, runner)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 3


def test_a_killed_holder_leaves_its_place_free_at_once(tmp_path: Path) -> None:
    with holding(tmp_path, "") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        with only_runner(tmp_path, ME):
            pass


def test_a_process_of_another_machine_with_the_same_home_is_not_ours_to_stop(tmp_path: Path) -> None:
    with holding(tmp_path, signed="elsewhere.1.2_1_r1") as process:
        (runner,) = runners(tmp_path)
        assert not ask_to_stop(tmp_path, runner)
        assert process.poll() is None


def test_nobody_is_stopped_who_does_not_hold_the_lock(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        (runner,) = runners(tmp_path)
        assert not ask_to_stop(tmp_path, replace(runner, run="r000"))  # the pid is that of another run by now
        assert process.poll() is None
