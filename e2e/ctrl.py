"""The program under test, as a user runs it, in the foreground or in the background."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from e2e.kube import CHECKOUT, Audit, Ran, run, wait_until

PROGRAM = CHECKOUT / "bin" / "kubectl-ctrl"

# No controller may outlive a pytest that is killed with SIGKILL: this program asks the kernel for a SIGKILL when its
# parent dies (1 is PR_SET_PDEATHSIG), and becomes the one under test. preexec_fn does not work with threads, which a
# worker of pytest-xdist has.
_DIE_WITH_PARENT = """\
import ctypes, os, sys
parent, *words = sys.argv[1:]
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(parent):
    os.execv(words[0], words)
"""

_LATE = re.compile(r"(not|no) answer (within|in time)|could not be read in time")


class Ctrl:
    """bin/kubectl-ctrl with one environment."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self.env = env
        self.folder = folder
        self.all_started: list[Started] = []

    def __repr__(self) -> str:
        return f"<Ctrl {self.env.get('KUBECONFIG')} started={len(self.all_started)}>"

    def __call__(self, *args: str, stdin: str = "", timeout: float = 240) -> Ran:
        """Run it, with any exit code; `.checked()` requires success."""
        return run(PROGRAM, *args, env=self.env, stdin=stdin, timeout=timeout)

    def answered(self, *args: str) -> Ran:
        """Run a verb that waits for the cluster for a few seconds; repeat it if a busy machine took longer."""

        def ran() -> Ran:
            one = self(*args)
            assert not _LATE.search(one.out + one.err), f"{one.out}{one.err}"
            return one

        return wait_until(ran)

    def killed_after_lines(self, lines: int, *args: str) -> None:
        """Run it, and kill it after that many lines of output."""
        with subprocess.Popen(
            [PROGRAM, *args], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.kill()

    def started(self, *args: str) -> Started:
        """Run it in the background, at most until the end of the test."""
        started = Started(args, self.env, self.folder / f"ctrl-{len(self.all_started)}")
        self.all_started.append(started)
        return started


class Started:
    """A kubectl-ctrl in the background. Its output goes to files: a pipe could fill up, or stay open in an orphan."""

    def __init__(self, args: tuple[str, ...], env: Mapping[str, str], files: Path) -> None:
        self.args = args
        self._out = files.with_suffix(".out")
        self._err = files.with_suffix(".err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), str(PROGRAM), *args],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def __repr__(self) -> str:
        return f"<kubectl-ctrl {' '.join(self.args)} pid={self.process.pid} code={self.process.poll()}>"

    @property
    def out(self) -> list[str]:
        return self._out.read_text(errors="replace").splitlines()

    @property
    def err(self) -> list[str]:
        return self._err.read_text(errors="replace").splitlines()

    def line(self, pattern: str, *, deadline: float = 120) -> str:
        """Wait for the first line, of stdout or stderr, that matches the pattern."""

        def found() -> list[str]:
            return [text for text in [*self.out, *self.err] if re.search(pattern, text)]

        wait_until(
            lambda: self.process.poll() is not None or found(), deadline=deadline, what=f"{pattern!r} in {self!r}"
        )
        hits = found()
        assert hits, f"{self!r} exited without a line that matches {pattern!r}.\n{self.output()}"
        return hits[0]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, *, deadline: float = 120) -> int:
        """Its exit code."""
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self!r} did not exit within {deadline:g} s.\n{self.output()}") from None

    def stop(self, *, deadline: float = 120) -> int:
        """Stop it as Ctrl-C does; its exit code."""
        self.signal(signal.SIGINT)
        return self.wait(deadline=deadline)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def kill_after_calls(self, calls: int, audit: Audit, namespace: str) -> None:
        """Kill it after that many calls in the namespace, or once it is idle."""
        mark = audit.mark()
        with suppress(AssertionError):
            wait_until(lambda: len(audit.requests(mark, namespace=namespace)) >= calls, every=0.01, deadline=5)
        assert self.process.poll() is None, self.output()
        self.kill()

    def output(self) -> str:
        return f"$ kubectl-ctrl {' '.join(self.args)}\n" + "\n".join([*self.out, "-- stderr --", *self.err])


class AssertRests:
    """Asserts that the running controllers of a test rest: their queues have no work, and they write nothing."""

    def __init__(self, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
        self._ctrl = ctrl
        self._audit = audit
        self._namespace = namespace

    def __call__(self, *, seconds: float = 1) -> None:
        """Wait until no work is left, retries included; then there is no write for `seconds`. In a fight with another
        controller, milliseconds lie between two writes; the most important tests wait the promised 10 seconds."""
        wait_until(self._no_work_is_left)
        self._audit.assert_no_writes(seconds=seconds, namespace=self._namespace)

    def _no_work_is_left(self) -> bool:
        mark, since = self._audit.mark(), datetime.now(UTC)
        states = wait_until(lambda: self._states(since))
        for state in states:
            depth = state["depth"]
            assert state["leading"], state
            assert state["synced"], state
            assert (depth["ready"], depth["running"], depth["backoff"]) == (0, 0, 0), state
            assert not [one for one in state["entries"] if _time(one["due"]) < since + _DISTANT], state
        written = self._audit.writes(mark, namespace=self._namespace)
        assert not written, written
        return True

    def _states(self, since: datetime) -> list[dict[str, Any]]:
        """The queues of the running controllers at a time after `since`; each is reported every two seconds."""
        controllers = json.loads(self._ctrl("queue", "--output=json").checked().out)["controllers"]
        states = [one for one in controllers if one["life"] == "running"]
        assert states, controllers
        assert all(_time(one["asOf"]) > since for one in states), states
        return states


# A timer that is due later is a schedule; an earlier one is the second part of work that has begun.
_DISTANT = timedelta(seconds=20)


def _time(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)
