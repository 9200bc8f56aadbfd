"""The steps of hack/check, in parallel: prints one line for each, then the output of those that failed."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one step."""

    name: str
    passed: bool
    seconds: float
    output: str

    def __str__(self) -> str:
        return f"{self.name:<10} {'ok' if self.passed else 'FAIL':<4} {self.seconds:6.1f} s"


def commands() -> dict[str, list[str]]:
    """Name -> command; the longest first, because the others run beside it."""
    ours = {
        name: [sys.executable, str(HERE / f"{name}.py"), str(ROOT)] for name in ("ceilings", "locks", "rooms", "words")
    }
    return {
        "types": [str(BIN / "mypy"), *present("kubectl_ctrl", "tests", "e2e", "hack")],
        "startup": [sys.executable, str(HERE / "startup.py"), str(ROOT)],
        "layers": [str(BIN / "lint-imports"), "--no-logo", "--cache-dir", str(caches() / "imports")],
        "lint": [str(BIN / "ruff"), "check", "--quiet"],
        "reference": [sys.executable, str(ROOT / "hack/generate.py"), "verify", "reference"],
        "format": [str(BIN / "ruff"), "format", "--check", "--quiet", "--diff"],
        "shell": ["sh", "-c", 'for script; do sh -n "$script" || exit; done', "sh", *shell_scripts()],
        **ours,
    }


def present(*names: str) -> list[str]:
    return [name for name in names if any((ROOT / name).rglob("*.py"))]


def shell_scripts() -> list[str]:
    files = [*ROOT.glob("bin/*"), *ROOT.glob("hack/*"), *ROOT.glob(".ci/*")]
    found = [file for file in files if file.is_file() and file.read_bytes().startswith(b"#!/bin/sh\n")]
    return sorted(str(file) for file in [*found, ROOT / "hack/environment.sh"])


def caches() -> Path:
    """Outside the repository, in the environment that runs this."""
    return Path(sys.prefix) / "check"


def run(name: str, command: Sequence[str]) -> Outcome:
    settings = {"MYPY_CACHE_DIR": str(caches() / "mypy"), "RUFF_CACHE_DIR": str(caches() / "ruff")}
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    return Outcome(name=name, passed=not done.returncode, seconds=time.monotonic() - began, output=done.stdout)


def main() -> int:
    steps = commands()
    parser = argparse.ArgumentParser(prog="hack/check")
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("steps", nargs="*", metavar="STEP")
    given = parser.parse_args()
    if unknown := [name for name in given.steps if name not in steps]:
        parser.error(f"No such step: {', '.join(unknown)}. The steps are: {', '.join(steps)}.")
    if given.fix:
        for command in (["format"], ["check", "--fix"]):
            run("fix", [str(BIN / "ruff"), *command])
    outcomes = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for future in as_completed([pool.submit(run, name, steps[name]) for name in given.steps or steps]):
            outcomes.append(future.result())
            print(outcomes[-1], flush=True)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for outcome in failed:
        print(f"\n--- {outcome.name}\n{outcome.output.strip()}")
    print(f"\n{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `hack/check | head`
    sys.exit(main())
