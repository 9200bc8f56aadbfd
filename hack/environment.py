"""Creates a Python environment: `environment.py --home H --key K --uv UV CHECKOUT LOCK...` prints its folder.

environment.sh calls it when there is no complete environment. It needs Python >= 3.11 and the standard library only.
An environment cannot be moved, so it is built in place: it is valid once it contains the file `ready`, which is written
last. A file lock, released when its processes exit, allows one builder at a time. The next builder removes the remains
of a killed one.
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

# Parts of messages of pip and uv, in lower case.
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
    """The environment cannot be created; printed as three lines."""

    def __init__(self, name: str, sentence: str, *, tried: str, next_step: str) -> None:
        super().__init__(sentence)
        self.lines = f"error[CTRL-SETUP-{name}]: {sentence}\ntried: {tried}\nnext: {next_step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An environment to create."""

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
    parser.add_argument("--uv", default="", help="use this uv instead of venv and pip")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("locks", nargs="+")
    given = parser.parse_args(arguments)
    folder = given.home / f"{given.key}-{sys.implementation.cache_tag}"
    return Plan(checkout=given.checkout, locks=tuple(given.locks), folder=folder, uv=given.uv)


def provide(plan: Plan) -> None:
    """Create the environment unless another process does so first."""
    try:
        plan.folder.parent.mkdir(parents=True, exist_ok=True)
        with turn(plan):
            if not plan.is_complete():
                build(plan)
    except OSError as failed:
        raise explain(plan, failed) from failed


@contextmanager
def turn(plan: Plan) -> Iterator[None]:
    """Hold the lock of the environment's folder; prints a line if it has to wait."""
    with plan.folder.with_name(plan.folder.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            say(f"creating the Python environment of this checkout in {plan.folder.parent} (once, about 15 s)")
        except BlockingIOError:
            say(f"waiting for another process that creates the Python environment in {plan.folder.parent}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        # pip inherits it: if only this process is killed, the lock lasts as long as the pip that it started.
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
        # An incomplete environment is useless, and on a full disk its space is needed.
        shutil.rmtree(plan.folder, ignore_errors=True)
        raise
    draft = plan.ready.with_suffix(".new")
    draft.write_text(f"{plan.checkout} with {' and '.join(plan.locks)} on Python {sys.version}\n")
    draft.replace(plan.ready)


def install(plan: Plan) -> None:
    # The interpreter behind all links and behind an active virtual environment. After an upgrade the link to
    # it is broken, which environment.sh detects; a link to plain `python3` would lead to a Python without the packages.
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
    """Install the checkout itself without a build: its folder on sys.path, and its two commands."""
    # A .pth file affects this interpreter only; PYTHONPATH would affect every credential plugin that it starts.
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(plan.folder)}))
    (packages / "kubectl_ctrl_checkout.pth").write_bytes(os.fsencode(plan.checkout) + b"\n")
    project = tomllib.loads((plan.checkout / "pyproject.toml").read_text())["project"]
    for command, target in project["scripts"].items():
        module, function = target.split(":")
        script = f"import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
        (plan.folder / "bin" / command).write_text(script)


def run(plan: Plan, step: str, command: list[str]) -> None:
    """Run one step; if it fails, its whole output is in the log."""
    # The user's settings of pip and uv apply (mirrors, proxies, certificates); few retries report a dead network soon.
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
        # Written afterwards: on a full disk the log would be empty, and with it the reason lost.
        with suppress(OSError):
            plan.log.write_text(output)
        raise explain_output(plan, step, output)


def explain(plan: Plan, failed: OSError) -> SetupError:
    if failed.errno in {errno.ENOSPC, errno.EDQUOT}:
        return disk_full(plan)
    return SetupError(
        "FOLDER",
        f"Cannot create the Python environment in {str(plan.folder.parent)!r}.",
        tried=f"{failed.strerror} ({failed.filename or plan.folder})",
        next_step=f"Make that folder writable, or set XDG_CACHE_HOME to another one; then {REPEAT}",
    )


def explain_output(plan: Plan, step: str, output: str) -> SetupError:
    """The reason why pip, uv or venv failed, from their output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no output"]
    # venv does not print the output of ensurepip, so the free space is checked too.
    if shutil.disk_usage(plan.folder.parent).free < LEAST_SPACE or any(excerpt(line, NO_SPACE) for line in lines):
        return disk_full(plan)
    log = f"The whole output is in {str(plan.log)!r}."
    for line in lines:
        if excerpt(line, OTHER_BYTES):
            return SetupError(
                "HASHES",
                "A downloaded package differs from the one in the lock file.",
                tried=f"{step}: {line}",
                next_step=f"Check the package index and the proxies on the way to it. {log}",
            )
        if words := excerpt(line, NO_NETWORK):
            return SetupError(
                "NETWORK",
                "Cannot download the Python packages.",
                tried=f"{step}: {words[:160]}",
                next_step=f"Check the network, HTTPS_PROXY and the package index of pip, then {REPEAT} {log}",
            )
    last = [line for line in lines if line.lower().startswith("error")] or lines
    return SetupError(
        "PACKAGES",
        "Cannot install the Python packages.",
        tried=f"{step}: {last[-1][:160]}",
        next_step=f"Fix that, then {REPEAT} {log}",
    )


def excerpt(line: str, words: tuple[str, ...]) -> str:
    """The line from the first of these words on; empty if it has none of them."""
    return next((line[at:] for word in words if (at := line.lower().find(word)) >= 0), "")


def disk_full(plan: Plan) -> SetupError:
    return SetupError(
        "DISK",
        f"Cannot create the Python environment in {str(plan.folder.parent)!r}: no space left on device.",
        tried="creating it; the incomplete environment was removed",
        next_step=f"Free disk space, or set XDG_CACHE_HOME to a folder on another disk; then {REPEAT}",
    )


if __name__ == "__main__":
    sys.exit(main())
