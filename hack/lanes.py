"""The lanes of hack/test and hack/e2e: runs them one after the other, then says what ran, what was skipped, and why."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What pytest and hack/check end with: `3 failed, 297 passed, 2 skipped in 4.56s`.
COUNT = re.compile(r"\b(\d+) (passed|failed|errors?|skipped)\b")
# Every worker has a cluster of its own; most of a test is waiting for it, so three suit two cores. The files
# keep the order that e2e/conftest.py gives them. `hack/e2e -n 0 ...` is one worker, as `--pdb` wants it.
SIDE_BY_SIDE = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-v")
TIDYING = 60.0  # seconds for a command that was told to end
CANNOT = 3  # hack/realkube: this machine lacks what the build needs
KIND_FILES = "e2e/test_kind*.py"  # the kind lane's; all others are the kwok lane's


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """How one lane ended; `skipped` counts single tests, `note` says why the lane did not run or what broke it."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    ran: bool = True
    note: str = ""

    def __str__(self) -> str:
        if not self.ran:
            return f"{self.name:<8} {'FAILED' if self.failed else 'skipped'}: {self.note}"
        state = "FAILED" if self.failed else "ok"
        counts = f"{self.passed:5} passed {self.failed:3} failed {self.skipped:3} skipped {self.seconds:7.1f} s"
        return f"{self.name:<8} {state:<7} {counts}{'  ' if self.note else ''}{self.note}"


@dataclass(frozen=True, slots=True)
class Run:
    """What the lanes share."""

    environ: Mapping[str, str]
    pytest_words: Sequence[str] = field(default=())

    @property
    def must_all_run(self) -> bool:
        return self.environ.get("CI", "").lower() in {"true", "1"}

    def follow(self, name: str, command: Sequence[str], **environ: str) -> Lane:
        """Run a command that ends with counts, showing its output as it comes."""
        heading(name, command)
        began, last = time.monotonic(), ""
        with started(command, {**self.environ, **environ}, errors=subprocess.STDOUT) as process:
            assert process.stdout
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line if COUNT.search(line) else last
        return counted(name, last, process.returncode, time.monotonic() - began)

    def pytest(self, name: str, *paths: str, **environ: str) -> Lane:
        caches = Path(sys.prefix) / "check"
        command = [sys.executable, "-m", "pytest", *paths, "-o", f"cache_dir={caches / 'pytest'}", *self.pytest_words]
        return self.follow(name, command, HYPOTHESIS_STORAGE_DIRECTORY=str(caches / "hypothesis"), **environ)


def heading(name: str, command: Sequence[str]) -> None:
    print(f"\n=== {name}: {' '.join(Path(word).name for word in command[:4])}", flush=True)


@contextmanager
def started(command: Sequence[str], environ: Mapping[str, str], *, errors: int) -> Iterator[subprocess.Popen[str]]:
    """For the block, which reads its output; who leaves that before its end ends it, and it may tidy up first."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        encoding="utf-8",
        errors="replace",
    )
    try:
        yield process
        process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _end(process: subprocess.Popen[str]) -> None:
    """As Ctrl-C does, which may have reached it already; then more firmly."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            # Meanwhile nobody reads what it says, so it must not be waited for in a pipe that is full.
            process.communicate(timeout=TIDYING)
            return


def counted(name: str, last: str, code: int, seconds: float) -> Lane:
    """The lane's counts out of its last line; an end without failures that is no success is one."""
    counts = {word.rstrip("s"): int(number) for number, word in COUNT.findall(last)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    lane = Lane(
        name=name, passed=counts.get("passed", 0), failed=failed, skipped=counts.get("skipped", 0), seconds=seconds
    )
    return replace(lane, failed=1, note=f"ended with exit code {code}") if code and not failed else lane


def check(run: Run) -> Lane:
    return run.follow("check", [str(ROOT / "hack/check")])


def tests(run: Run) -> Lane:
    """Hermetic, so they can share the machine; more workers than this only start more slowly."""
    words = ("-n", "auto", "--maxprocesses", "4", "--ignore=tests/browser")
    return replace(run, pytest_words=words).pytest("tests", "tests")


def fresh(run: Run) -> Lane:
    """What a newcomer types, on Debians with Python and git alone; takes root on Debian."""
    code, _, reason = prepared(run, [str(ROOT / "hack/fresh"), "prepare"])
    if code == CANNOT:
        return Lane(name="fresh", ran=False, failed=int(run.must_all_run), note=reason)
    if code:
        return Lane(name="fresh", ran=False, failed=1, note=reason or f"exit code {code}")
    return run.follow("fresh", [str(ROOT / "hack/fresh")])


def browser(run: Run) -> Lane:
    """The pages that the program makes, in a browser that clicks them."""
    code, program, reason = prepared(run, [str(ROOT / "hack/browser")])
    if code == CANNOT:
        return Lane(name="browser", ran=False, failed=int(run.must_all_run), note=reason)
    if code:
        return Lane(name="browser", ran=False, failed=1, note=reason or f"exit code {code}")
    return run.pytest("browser", "tests/browser", BROWSER_UNDER_TEST=program)


def kwok(run: Run) -> Lane:
    """A real control plane whose nodes and pods kwok plays; needs Go to build it."""
    code, programs, reason = prepared(run, [str(ROOT / "hack/realkube"), "build"])
    if code == CANNOT:
        return Lane(name="kwok", ran=False, failed=int(run.must_all_run), note=reason)
    # The environment of the program itself is made here, so that no test waits for it.
    code, _, reason = (code, "", reason) if code else prepared(run, [str(ROOT / "bin/kubectl-ctrl"), "version"])
    if code:
        return Lane(name="kwok", ran=False, failed=1, note=reason or f"exit code {code}")
    path = os.pathsep.join([programs, str(ROOT / "bin"), run.environ.get("PATH", os.defpath)])
    run = replace(run, pytest_words=(*SIDE_BY_SIDE, f"--ignore-glob={ROOT / KIND_FILES}", *run.pytest_words))
    return run.pytest("kwok", "e2e", PATH=path)


def kind(run: Run) -> Lane:
    """Real clusters of kind, whose pods are processes; needs a docker daemon, or root on Debian to make all of it."""
    realkube = str(ROOT / "hack/realkube")
    code, answer, reason = prepared(run, [realkube, "kind", "up"])
    if code == CANNOT:
        return Lane(name="kind", ran=False, failed=int(run.must_all_run), note=reason)
    if code:
        return Lane(name="kind", ran=False, failed=1, note=reason or f"exit code {code}")
    there = json.loads(answer)
    try:
        code, _, reason = prepared(run, [str(ROOT / "bin/kubectl-ctrl"), "version"])
        if code:
            return Lane(name="kind", ran=False, failed=1, note=reason or f"exit code {code}")
        path = os.pathsep.join([*there["path"], str(ROOT / "bin"), run.environ.get("PATH", os.defpath)])
        run = replace(run, pytest_words=("-v", *run.pytest_words))
        files = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob(KIND_FILES))
        return run.pytest("kind", *files, PATH=path, **there["env"])
    finally:
        if there["started"]:
            prepared(run, [realkube, "kind", "stop"])


def prepared(run: Run, command: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, answer and last narrated line of a command, whose narration is shown as it comes."""
    heading("prepare", command)
    reason = ""
    with started(command, run.environ, errors=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        for line in process.stderr:
            print(line, end="", flush=True)
            reason = line.strip() or reason
        answer = process.stdout.read().strip()
    return process.returncode, answer, reason


LANES: Mapping[str, Callable[[Run], Lane]] = {
    "check": check,
    "tests": tests,
    "fresh": fresh,
    "browser": browser,
    "kwok": kwok,
    "kind": kind,
}
LATER = {"sandbox": "not yet in this version"}


def main() -> int:
    words = sys.argv[1:]
    ours, rest = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(prog="hack/test")
    parser.add_argument("lanes", nargs="*", choices=[*LANES, []])
    asked = parser.parse_args(ours).lanes or list(LANES)
    run = Run(os.environ, rest)
    ended = [LANES[name](run) for name in asked]
    ended += [Lane(name=name, ran=False, note=note) for name, note in LATER.items()]
    print("\n=== lanes", *ended, sep="\n")
    print(f"\n{sum(lane.passed for lane in ended)} passed, {sum(lane.failed for lane in ended)} failed", flush=True)
    return int(any(lane.failed for lane in ended))


if __name__ == "__main__":
    # Whatever ends this ends what it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
