"""Runs the README's commands as a new user, on Debian systems that have only Python and git; see hack/fresh."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "hack/realkube.d"))

import debian  # noqa: E402 - after the path is set
import machine  # noqa: E402
from debian import HOME  # noqa: E402
from machine import Ended, Machine  # noqa: E402
from readme import Readme  # noqa: E402
from realkube import Failed, build  # noqa: E402
from realkube.build import locked, say  # noqa: E402

CHECKOUT = f"{HOME}/kubectl-ctrl"
ACTIVATE = ". ~/venv/bin/activate"
# Programs of developers that must be absent; the step prints the first one that is there.
ABSENT = "cc gcc make go docker podman kubectl kind kwok pip pipx uv curl"
TESTED = re.compile(r"^(?:=+ )?(?:\d+ \w+, )*\d+ (?:passed|failed)\b.*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A Debian suite, and the tests that run there."""

    suite: str
    tests: str


# Once is enough for the controllers under faults (a third of the time), which use the same paths of the runtime as its
# own tests, and for the tests of the repository itself, which start programs of this machine.
FEWER = "hack/test tests -- --ignore=tests/controllers --ignore=tests/house"
# Named after the version of their Python.
ROOTS = {
    "default": Root(suite="trixie", tests="hack/test"),
    "oldest": Root(suite="bookworm", tests=FEWER),
    "newest": Root(suite="forky", tests=FEWER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the new user, and its expected result."""

    command: str
    folder: str = CHECKOUT
    code: int = 0
    prints: str = ""
    index: bool = True  # False: only loopback, no package index


def steps(readme: Readme, tests: str) -> Iterator[Step]:
    yield Step(command=f"for name in {ABSENT}; do ! command -v $name || exit 1; done", folder=HOME)
    yield Step(command="git clone --quiet kubectl-ctrl.bundle kubectl-ctrl", folder=HOME)
    for command in readme.first():
        if command.startswith("bin/kubectl-ctrl up "):
            yield Step(command=command, prints="memcached-sample")
        elif command == "hack/test":
            # hack/check creates the environment of the tests from the index; after that they need no network.
            yield Step(command="hack/check shell")
            yield Step(command=tests, index=False)
        else:
            yield Step(command=command)
    yield Step(command="python3 -m venv ~/venv")
    tools = "mkdir -p ~/.local/bin && ln -s ~/tools/bin/pipx ~/tools/bin/uv ~/.local/bin"
    yield Step(command=f"python3 -m venv ~/tools && ~/tools/bin/pip install --quiet pipx uv && {tools}")
    use = "cd && kubectl-ctrl version && kubectl-ctrl list && command -v kubectl_complete-ctrl"
    for install in readme.installs():
        tool = install.removesuffix(" install .")
        if tool == "pip":
            yield Step(command=f"{ACTIVATE} && {install} && {use}")
        else:
            yield Step(command=f"{install} && {use} && {tool} uninstall kubectl-ctrl")
    new = readme.new()
    test = f"{new} && cd {new.split()[-1]} && pytest"
    yield Step(command=f"{ACTIVATE} && pip install --quiet pytest && {test}", folder=HOME)


def run(name: str, where: Root, checkout: Path, lock: int) -> list[bool]:
    """Every step on a new machine; a failed step does not stop those after it."""
    unpacked = debian.provided(where.suite, os.environ, lock)
    with machine.started(unpacked, os.environ) as new:
        bundle = new.home / "kubectl-ctrl.bundle"
        subprocess.run(["git", "-C", str(checkout), "bundle", "create", "--quiet", str(bundle), "HEAD"], check=True)
        python = new.run("python3 --version && id --user --name", HOME, index=False).output.split()
        print(f"\n--- {name}: Debian {where.suite}, {' '.join(python[:2])}, as {python[2]}", flush=True)
        return [passes(step, new) for step in steps(Readme(checkout / "README.md"), where.tests)]


def passes(step: Step, new: Machine) -> bool:
    began = time.monotonic()
    ended = new.run(step.command, step.folder, index=step.index)
    problem = mismatch(step, ended)
    counts = TESTED.findall(ended.output)
    note = f"  [{counts[-1].strip('= ')}]" if counts else ""
    print(f"{'FAIL' if problem else 'ok':<4} {time.monotonic() - began:6.1f} s  {step.command}{note}", flush=True)
    if problem:
        print(f"{ended.output.rstrip()}\n-> {problem}\n", flush=True)
    return not problem


def mismatch(step: Step, ended: Ended) -> str:
    """The difference between the result of a step and the expected one; empty if there is none."""
    if ended.code == step.code and step.prints in ended.output:
        return ""
    words = f" and {step.prints!r}" if step.prints else ""
    return f"exit code {ended.code}; expected exit code {step.code}{words}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/fresh")
    parser.add_argument("words", nargs="*", choices=[*ROOTS, "prepare", []], metavar="ROOT | prepare")
    words = parser.parse_args().words
    chosen = [name for name in ROOTS if name in words] or list(ROOTS)
    passed: list[bool] = []
    try:
        with locked(build.root(os.environ) / "fresh.lock", "Waiting for another hack/fresh to finish.") as lock:
            if "prepare" in words:
                for name in chosen:
                    print(debian.provided(ROOTS[name].suite, os.environ, lock))
                return 0
            for name in chosen:
                passed += run(name, ROOTS[name], ROOT, lock)
    except Failed as error:
        say(str(error))
        return error.code
    print(f"\n{sum(passed)} passed, {len(passed) - sum(passed)} failed", flush=True)
    return int(not all(passed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
