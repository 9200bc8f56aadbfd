"""The lanes of hack/test and hack/e2e: run one after the other, then listed with results and skipped lanes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hack import reach  # noqa: E402 - after the path is set

USAGE = """\
usage: hack/test [--all | --changed | LANE...] [-- ARGUMENT...]

Without arguments: the lanes that need no preparation, check and tests; with CI=true all lanes.
--all       every lane, but tests only where fresh cannot run them; builds or installs what a lane lacks
--changed   check, and the tests that the commits since main and the uncommitted changes can reach
LANE        only these: {lanes}
ARGUMENT    for pytest; a path replaces the lane's own: hack/test -- tests/cli -k trace
"""
# The last line of pytest and hack/check: `3 failed, 297 passed, 2 skipped in 4.56s`.
COUNT = re.compile(r"\b(\d+) (passed|failed|errors?|skipped)\b")
# Each worker has its own cluster, and a test mostly waits for it, so three workers suit two cores. e2e/conftest.py
# groups and orders the tests. `hack/e2e -n 0 ...` runs one worker, as `--pdb` requires.
SIDE_BY_SIDE = ("-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder", "-v")
GRACE = 60.0  # seconds for a command to exit after a signal
CANNOT = 3  # exit code of hack/realkube: this machine lacks what the build needs
KIND_FILES = "e2e/test_kind*.py"  # the kind lane's; of the others those marked `real` are the kwok lane's


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The result of one lane; `skipped` counts tests, `note` is the reason why the lane did not run or failed."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    ran: bool = True
    note: str = ""

    def __str__(self) -> str:
        if not self.ran:
            return f"{self.name:<11} {'FAILED' if self.failed else 'skipped'}: {self.note}"
        state = "FAILED" if self.failed else "ok"
        counts = f"{self.passed:5} passed {self.failed:3} failed {self.skipped:3} skipped {self.seconds:7.1f} s"
        return f"{self.name:<11} {state:<7} {counts}{'  ' if self.note else ''}{self.note}"


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of one call."""

    environ: Mapping[str, str]
    pytest_args: Sequence[str] = field(default=())
    tests: Sequence[str] = ("tests",)  # paths for the tests lane

    @property
    def must_all_run(self) -> bool:
        return self.environ.get("CI", "").lower() in {"true", "1"}

    def follow(self, name: str, command: Sequence[str], **environ: str) -> Lane:
        """Run a command whose last line has counts, and print its output as it comes."""
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
        # A path among the arguments, such as tests/cli/verbs/test_trace.py::test_one, replaces the lane's own.
        narrowed = any("/" in word and (ROOT / word.partition("::")[0]).exists() for word in self.pytest_args)
        where = () if narrowed else paths
        command = [sys.executable, "-m", "pytest", *where, "-o", f"cache_dir={caches / 'pytest'}", *self.pytest_args]
        return self.follow(name, command, HYPOTHESIS_STORAGE_DIRECTORY=str(caches / "hypothesis"), **environ)


def heading(name: str, command: Sequence[str]) -> None:
    print(f"\n=== {name}: {' '.join(Path(word).name for word in command[:4])}", flush=True)


@contextmanager
def started(
    command: Sequence[str], environ: Mapping[str, str], *, errors: int, output: int | IO[str] = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """A process whose output the block reads; leaving the block early stops it, with time to clean up."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=output,
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
    """As Ctrl-C does, which may have reached the process already; then with stronger signals."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            # Read its output meanwhile: on a full pipe it would never exit.
            process.communicate(timeout=GRACE)
            return


def counted(name: str, last: str, code: int, seconds: float) -> Lane:
    """The lane's counts from its last line; a non-zero exit code without failures counts as one failure."""
    counts = {word.rstrip("s"): int(number) for number, word in COUNT.findall(last)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    lane = Lane(
        name=name, passed=counts.get("passed", 0), failed=failed, skipped=counts.get("skipped", 0), seconds=seconds
    )
    return replace(lane, failed=1, note=f"exited with code {code}") if code and not failed else lane


def check(run: Run) -> Lane:
    return run.follow("check", [str(ROOT / "hack/check")])


def tests(run: Run) -> Lane:
    """The hermetic tests, on all processors; more than four workers only start more slowly."""
    if not run.tests:
        return Lane(name="tests", ran=False, note="the change reaches no test")
    args = ("-n", "auto", "--maxprocesses", "4", "--ignore=tests/browser")
    return unless_passed(run, "tests", args, *run.tests)


def fresh(run: Run) -> Lane:
    """A newcomer's commands, on Debian systems with only Python and git; needs root on Debian."""
    code, _, reason = prepared(run, [str(ROOT / "hack/fresh"), "prepare"])
    return unready(run, "fresh", code, reason) or run.follow("fresh", [str(ROOT / "hack/fresh")])


def browser(run: Run) -> Lane:
    """The generated pages, in a browser that clicks on them."""
    code, program, reason = prepared(run, [str(ROOT / "hack/browser")])
    return unready(run, "browser", code, reason) or run.pytest("browser", "tests/browser", BROWSER_UNDER_TEST=program)


def sandbox(run: Run) -> Lane:
    """End-to-end tests on the API server of the package, with the real kubectl; needs Go to build that."""
    path = path_with_programs(run, "sandbox")
    if isinstance(path, Lane):
        return path
    run = replace(run, pytest_args=(*marked("not real"), *run.pytest_args))
    return run.pytest("sandbox", "e2e", PATH=path, E2E_CLUSTER="sandbox")


def conformance(run: Run) -> Lane:
    """Kubernetes' own specs on the sandbox, unless they passed on this machine with the same files; needs Go."""
    folders = ("kubectl_ctrl/sandbox", "kubectl_ctrl/model", "hack/conformance.d", "hack/realkube.d/conformance")
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*"))]
    passed = caches(run) / "passed" / f"conformance-{digest(files)}"
    if passed.exists() and not run.pytest_args:
        note = f"all specs passed with these files (delete {passed} to run them)"
        return Lane(name="conformance", ran=False, note=note)
    code, program, reason = prepared(run, [str(ROOT / "hack/realkube"), "conformance"])
    if lane := unready(run, "conformance", code, reason) or without_program(run, "conformance"):
        return lane
    script = str(ROOT / "hack/conformance.d/conformance.py")
    lane = run.follow("conformance", [sys.executable, script, program, *run.pytest_args])
    if not lane.failed and not run.pytest_args:
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.touch()
    return lane


def kwok(run: Run) -> Lane:
    """Those that need a real control plane, whose nodes and pods kwok simulates; needs Go to build it."""
    path = path_with_programs(run, "kwok")
    return path if isinstance(path, Lane) else unless_passed(run, "kwok", marked("real"), "e2e", PATH=path)


def marked(marker: str) -> Sequence[str]:
    return (*SIDE_BY_SIDE, "-m", marker, f"--ignore-glob={ROOT / KIND_FILES}")


def path_with_programs(run: Run, name: str) -> str | Lane:
    """PATH with the programs of hack/realkube, or the lane if they cannot be built."""
    code, programs, reason = prepared(run, [str(ROOT / "hack/realkube"), "build"])
    if lane := unready(run, name, code, reason) or without_program(run, name):
        return lane
    return os.pathsep.join([programs, str(ROOT / "bin"), run.environ.get("PATH", os.defpath)])


def unless_passed(run: Run, name: str, args: Sequence[str], *paths: str, **environ: str) -> Lane:
    """A lane, without hack/realkube's own tests if they passed on this machine with the same inputs."""
    own = [file for folder in paths for file in sorted((ROOT / folder).rglob("test_realkube*.py"))]
    whole = replace(run, pytest_args=(*args, *run.pytest_args))
    if not own or run.pytest_args:
        return whole.pytest(name, *paths, **environ)
    passed = caches(run) / "passed" / f"realkube-{name}-{digest([*own, *realkube_files()])}"
    if passed.exists():
        print(
            f"\n{name}: without hack/realkube's own tests, which passed with these inputs (delete {passed} to run them)"
        )
        ignored = [f"--ignore={file.relative_to(ROOT)}" for file in own]
        return replace(run, pytest_args=(*args, *ignored)).pytest(name, *paths, **environ)
    lane = whole.pytest(name, *paths, **environ)
    if not lane.failed:
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.touch()
    return lane


def caches(run: Run) -> Path:
    return Path(run.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kubectl-ctrl")


def realkube_files() -> list[Path]:
    """hack/realkube, and the files that its tests use."""
    sources = [ROOT / "hack/realkube", *sorted((ROOT / "hack/realkube.d").rglob("*"))]
    return [*sources, *(ROOT / folder / name for folder in ("e2e", "tests") for name in ("conftest.py", "kube.py"))]


def digest(files: Sequence[Path]) -> str:
    seen = hashlib.sha256()
    for file in files:
        if file.is_file() and file.suffix != ".pyc":
            seen.update(os.fsencode(file.relative_to(ROOT)) + b"\0" + file.read_bytes() + b"\0")
    return seen.hexdigest()[:16]


def kind(run: Run) -> Lane:
    """Real clusters of kind, whose pods are processes; needs a docker daemon, or root on Debian to start one."""
    realkube = str(ROOT / "hack/realkube")
    code, answer, reason = prepared(run, [realkube, "kind", "up"])
    if lane := unready(run, "kind", code, reason):
        return lane
    there = json.loads(answer)
    try:
        if lane := without_program(run, "kind"):
            return lane
        path = os.pathsep.join([*there["path"], str(ROOT / "bin"), run.environ.get("PATH", os.defpath)])
        run = replace(run, pytest_args=("-v", *run.pytest_args))
        files = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob(KIND_FILES))
        return run.pytest("kind", *files, PATH=path, **there["env"])
    finally:
        if there["started"]:
            prepared(run, [realkube, "kind", "stop"])


def unready(run: Run, name: str, code: int, reason: str) -> Lane | None:
    """The lane if its preparation failed: skipped if this machine cannot run it."""
    if not code:
        return None
    failed = int(run.must_all_run) if code == CANNOT else 1
    return Lane(name=name, ran=False, failed=failed, note=reason or f"exit code {code}")


def without_program(run: Run, name: str) -> Lane | None:
    """The lane if bin/kubectl-ctrl does not start. This creates its environment, so that no test waits for that."""
    code, _, reason = prepared(run, [str(ROOT / "bin/kubectl-ctrl"), "version"])
    return unready(run, name, int(bool(code)), reason or f"exit code {code}")


def prepared(run: Run, command: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, standard output and last line of standard error, which is printed as it comes."""
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


# The fastest first, then those that fail most often; fresh last, because it repeats tests that passed by then.
LANES: Mapping[str, Callable[[Run], Lane]] = {
    "check": check,
    "tests": tests,
    "browser": browser,
    "sandbox": sandbox,
    "conformance": conformance,
    "kwok": kwok,
    "kind": kind,
    "fresh": fresh,
}
QUICK = ("check", "tests")  # they need no build and no installation
WITHOUT_PYTEST = ("check", "fresh")


def kind_beside_fresh(run: Run) -> Sequence[Lane]:
    """Both wait for disks and other programs much of the time; the output of fresh comes when both have ended."""
    began = time.monotonic()
    command = [sys.executable, str(ROOT / "hack/lanes.py"), "fresh"]
    with (
        TemporaryFile("w+") as output,
        started(command, run.environ, errors=subprocess.STDOUT, output=output) as process,
    ):
        lane = kind(run)
        process.wait()
        seconds, result = time.monotonic() - began, ""
        output.seek(0)
        for line in output:
            print(line, end="")
            result = line if line.startswith("fresh ") else result
    return lane, counted("fresh", result, process.returncode, seconds)


class UsageError(Exception):
    """Invalid arguments of hack/test."""


def chosen(args: Sequence[str], run: Run) -> tuple[Sequence[str], Run]:
    """The lanes to run, and their settings."""
    given, rest = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
    if unknown := [arg for arg in given if arg not in (*LANES, "--all", "--changed")]:
        raise UsageError(
            f"{unknown[0]!r} is not a lane. The lanes are: {', '.join(LANES)}. "
            f"Arguments for pytest come after --: hack/test -- {shlex.join([*unknown, *rest])}"
        )
    flags = {arg for arg in given if arg.startswith("--")}
    lanes = [name for name in LANES if name in given]
    if len(flags) + bool(lanes) > 1:
        raise UsageError("--all, --changed and names of lanes are mutually exclusive.")
    if rest and (without := [name for name in lanes if name in WITHOUT_PYTEST]):
        raise UsageError(
            f"The lane {without[0]} does not run pytest. Name other lanes, or none: hack/test -- {shlex.join(rest)}"
        )
    run = replace(run, pytest_args=rest)
    if "--changed" in flags:
        return QUICK, replace(run, tests=reachable())
    if "--all" in flags or (run.must_all_run and not lanes and not rest):
        return list(LANES), run
    return lanes or (("tests",) if rest else QUICK), run


def reachable() -> Sequence[str]:
    base, changed = reach.changes(ROOT)
    files = [test for test in reach.tests(ROOT, changed) if not test.startswith("tests/browser/")]
    print(f"{len(changed)} files differ from {base}; {len(files)} test files can notice.", flush=True)
    return files


def main() -> int:
    args = sys.argv[1:]
    if args and args[0] in {"-h", "--help"}:
        print(USAGE.format(lanes=", ".join(LANES)), end="")
        return 0
    try:
        names, run = chosen(args, Run(os.environ))
    except (UsageError, reach.UnknownChange) as error:
        print(f"hack/test: {error}", file=sys.stderr)
        return 2
    both = {"kind", "fresh"} <= set(names)
    # Now, because two cannot install packages at once.
    ready = both and not prepared(run, [str(ROOT / "hack/fresh"), "prepare"])[0]
    apart = {*(("kind", "fresh") if both else ()), *(("tests",) if ready else ())}
    ended = [LANES[name](run) for name in names if name not in apart]
    if ready and "tests" in names:
        ended.append(Lane(name="tests", ran=False, note="fresh runs them, on three versions of Python"))
    ended += kind_beside_fresh(run) if both else []
    print("\n=== lanes", *ended, sep="\n")
    if names is QUICK and (others := [name for name in LANES if name not in names]):
        print(f"\nnot run: {', '.join(others)}; hack/test --all runs every lane and installs what it needs")
    print(f"\n{sum(lane.passed for lane in ended)} passed, {sum(lane.failed for lane in ended)} failed", flush=True)
    return int(any(lane.failed for lane in ended))


if __name__ == "__main__":
    # A signal that stops this also stops the running command.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
