"""Makes one Python environment: `environment.py --home H --key K --uv UV CHECKOUT LOCK...` prints its folder.

Called by environment.sh when no complete environment is there. Runs on any Python >= 3.11, standard library alone.
An environment cannot be moved, so it is built in its place: it counts only once its file `ready` is there, which is
written last, and builders take turns by a file lock that ends with its processes. What a killed builder left is removed
by the next one.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

REPEAT = "repeat the command."

# What pip and uv say, in lower case.
NO_SPACE = ("no space left on device", "disk quota exceeded", "os error 28")
OTHER_BYTES = ("do not match the hashes", "hash mismatch")
NO_NETWORK = (
    "failed to establish a new connection",
    "connection broken by",
    "failed to fetch",
    "dns error",
    "timed out",
)
LEAST_SPACE = 10 << 20


class SetupError(Exception):
    """The environment cannot be made; shown as three lines."""

    def __init__(self, name: str, sentence: str, *, tried: str, next_step: str) -> None:
        super().__init__(sentence)
        self.lines = f"error[CTRL-SETUP-{name}]: {sentence}\ntried: {tried}\nnext: {next_step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be made, and where."""

    checkout: Path
    locks: tuple[str, ...]
    folder: Path
    uv: str

    @property
    def log(self) -> Path:
        return self.folder.with_name(self.folder.name + ".log")

    @property
    def ready(self) -> Path:
        return self.folder / "ready"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def is_complete(self) -> bool:
        return self.ready.is_file() and os.access(self.python, os.X_OK)


def main() -> int:
    plan = parse(sys.argv[1:])
    try:
        provide(plan)
    except SetupError as failed:
        print(failed.lines, file=sys.stderr)
        return 5
    except KeyboardInterrupt:
        return 130
    print(plan.folder)
    return 0


def parse(arguments: list[str]) -> Plan:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--uv", default="", help="make the environment with this uv instead of venv and pip")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("locks", nargs="+")
    given = parser.parse_args(arguments)
    folder = given.home / f"{given.key}-{sys.implementation.cache_tag}"
    return Plan(checkout=given.checkout, locks=tuple(given.locks), folder=folder, uv=given.uv)


def provide(plan: Plan) -> None:
    """Make the environment unless somebody else does so first."""
    try:
        plan.folder.parent.mkdir(parents=True, exist_ok=True)
        with turn(plan):
            if not plan.is_complete():
                build(plan)
    except OSError as failed:
        raise explain(plan, failed) from failed


@contextmanager
def turn(plan: Plan) -> Iterator[None]:
    """Hold the lock of the environment's folder, saying so when that means waiting."""
    with plan.folder.with_name(plan.folder.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            say(f"making the Python environment of this checkout in {plan.folder.parent} (once, about 15 s)")
        except BlockingIOError:
            say(f"waiting for another call that makes the Python environment in {plan.folder.parent}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Inherited by pip: when this process alone is killed, the turn ends no sooner than what it started.
        os.set_inheritable(lock.fileno(), True)
        yield


def say(sentence: str) -> None:
    print(f"kubectl-ctrl: {sentence}", file=sys.stderr, flush=True)


def build(plan: Plan) -> None:
    try:
        if plan.folder.exists():
            shutil.rmtree(plan.folder)
        install(plan)
        link(plan)
    except BaseException:
        # Half an environment is of no use to anybody, and on a full disk its space is.
        shutil.rmtree(plan.folder, ignore_errors=True)
        raise
    draft = plan.ready.with_suffix(".new")
    draft.write_text(f"{plan.checkout} with {' and '.join(plan.locks)} on Python {sys.version}\n")
    draft.replace(plan.ready)


def install(plan: Plan) -> None:
    # The interpreter behind every link, not a virtual environment that happens to be active: when an upgrade removes
    # it, the environment's own link dangles, which is seen; a link to plain `python3` would find no packages any more.
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    if plan.uv:
        run(plan, "uv venv", [plan.uv, "venv", "--quiet", "--no-project", "--python", base, str(plan.folder)])
        tool, options = (
            "uv pip install",
            [plan.uv, "pip", "install", "--python", str(plan.python), "--compile-bytecode"],
        )
    else:
        run(plan, "python -m venv", [base, "-I", "-m", "venv", str(plan.folder)])
        tool, options = "pip install", [str(plan.python), "-I", "-m", "pip", "install", "--no-input", "--no-user"]
    requirements = [word for lock in plan.locks for word in ("--requirement", str(plan.checkout / lock))]
    run(plan, tool, [*options, "--quiet", "--require-hashes", *requirements])


def link(plan: Plan) -> None:
    """What installing the checkout itself would do, without a build: its folder on sys.path, and its two commands."""
    # A .pth file reaches this interpreter alone; PYTHONPATH would reach every credential plugin that it starts.
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(plan.folder)}))
    (packages / "kubectl_ctrl_checkout.pth").write_bytes(os.fsencode(plan.checkout) + b"\n")
    project = tomllib.loads((plan.checkout / "pyproject.toml").read_text())["project"]
    for command, target in project["scripts"].items():
        module, function = target.split(":")
        script = f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
        (plan.folder / "bin" / command).write_text(script)


def run(plan: Plan, step: str, command: list[str]) -> None:
    """Run one step; a failure becomes our error, with the step's whole output in the log."""
    # The user's own settings of pip and uv hold (mirrors, proxies, certificates); a dead network is noticed sooner.
    environment = {"PIP_RETRIES": "2", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **os.environ}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=plan.folder.parent,
        env=environment,
        close_fds=False,
    )
    if done.returncode:
        output = done.stdout.decode(errors="replace")
        # Not while it runs: on a full disk there would be nothing to read, not even the reason.
        with suppress(OSError):
            plan.log.write_text(output)
        raise explain_output(plan, step, output)


def explain(plan: Plan, failed: OSError) -> SetupError:
    """The folder or the disk is in the way."""
    if failed.errno in {errno.ENOSPC, errno.EDQUOT}:
        return disk_full(plan)
    return SetupError(
        "FOLDER",
        f"The Python environment cannot be made in {str(plan.folder.parent)!r}.",
        tried=f"{failed.strerror} ({failed.filename or plan.folder})",
        next_step=f"Make that folder writable, or name another in XDG_CACHE_HOME; then {REPEAT}",
    )


def explain_output(plan: Plan, step: str, output: str) -> SetupError:
    """Why pip, uv or venv failed, as far as their words tell."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no output"]
    # venv keeps to itself what ensurepip said.
    if shutil.disk_usage(plan.folder.parent).free < LEAST_SPACE or any(told(line, NO_SPACE) for line in lines):
        return disk_full(plan)
    log = f"All its output is in {str(plan.log)!r}."
    for line in lines:
        if told(line, OTHER_BYTES):
            return SetupError(
                "HASHES",
                "A downloaded package is not the one that the lock file names.",
                tried=f"{step}: {line}",
                next_step=f"Find out what stands between you and the package index. {log}",
            )
        if words := told(line, NO_NETWORK):
            return SetupError(
                "NETWORK",
                "The Python packages could not be downloaded.",
                tried=f"{step}: {words[:160]}",
                next_step=f"Check the network, HTTPS_PROXY and the index that pip uses, then {REPEAT} {log}",
            )
    last = [line for line in lines if line.lower().startswith("error")] or lines
    return SetupError(
        "PACKAGES",
        "The Python packages could not be installed.",
        tried=f"{step}: {last[-1][:160]}",
        next_step=f"Mend that, then {REPEAT} {log}",
    )


def told(line: str, words: tuple[str, ...]) -> str:
    """The line from the first of the words that it has, or nothing."""
    return next((line[at:] for word in words if (at := line.lower().find(word)) >= 0), "")


def disk_full(plan: Plan) -> SetupError:
    return SetupError(
        "DISK",
        f"The disk is full: there is no room for the Python environment in {str(plan.folder.parent)!r}.",
        tried="making it, and removed the half that was there",
        next_step=f"Free some space, or name a folder on another disk in XDG_CACHE_HOME; then {REPEAT}",
    )


if __name__ == "__main__":
    sys.exit(main())
