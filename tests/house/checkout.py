"""A small checkout, started as a user starts it: the launcher and scripts around a program that prints its input."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

PROGRAM = """\
import json, os, sys

def main():
    print("narration", file=sys.stderr)
    seen = {"argv": sys.argv, "path": sys.path, "cwd": os.getcwd()}
    print(json.dumps({**seen, "python": os.environ.get("PYTHONPATH"), "stdin": sys.stdin.read()}))
    return 7
"""

INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
UV = Path(sys.executable).parent / "uv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of a call."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The checkout, the home folder of its user and the only folder on their PATH."""

    root: Path
    home: Path
    programs: Path

    @property
    def cache(self) -> Path:
        return self.home / ".cache"

    @property
    def environments(self) -> list[Path]:
        """The complete environments."""
        return sorted(file.parent for file in self.cache.rglob("ready"))

    def lock(self, key: str, body: str = "") -> None:
        (self.root / "requirements.lock").write_text(f"# key: {key}\n{body}")

    def offer(self, *programs: str | Path) -> None:
        for program in programs:
            (self.programs / Path(program).name).symlink_to(program)

    def fake(self, name: str, script: str) -> None:
        """A program that runs only `script`."""
        file = self.programs / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def environ(self, changes: Mapping[str, str]) -> dict[str, str]:
        ours = {"HOME": str(self.home), "PATH": str(self.programs), "UV_CACHE_DIR": str(self.home / "uv")}
        return {**ours, "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "PIP_NO_CACHE_DIR": "1", **changes}

    def start(
        self, *words: str | Path, at: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command in its own process group."""
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=at or self.home,
            env=self.environ(environ or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self, *words: str | Path, at: Path | None = None, stdin: str = "", environ: Mapping[str, str] | None = None
    ) -> Ran:
        """Run a command and wait for it."""
        return ended(self.start(*words, at=at, environ=environ), stdin)

    def call(self, *words: str, environ: Mapping[str, str] | None = None) -> Ran:
        return self.run(self.root / "bin/kubectl-ctrl", *words, environ=environ)


def ended(process: subprocess.Popen[str], stdin: str = "") -> Ran:
    with process:
        out, err = process.communicate(stdin, timeout=120)
    return Ran(code=process.returncode, out=out, err=err)


def make(folder: Path, programs: Sequence[str | Path] = ()) -> Checkout:
    """A checkout in a folder with a space in its name, and a PATH with only `programs` and readlink."""
    checkout = Checkout(root=folder / "my code" / "ctrl", home=folder / "home", programs=folder / "programs")
    for directory in (
        checkout.root / "kubectl_ctrl/cli/completion",
        checkout.root / "hack",
        checkout.home,
        checkout.programs,
    ):
        directory.mkdir(parents=True)
    shutil.copytree(REPOSITORY / "bin", checkout.root / "bin", symlinks=True)
    for name in ("environment.sh", "environment.py"):
        shutil.copy(REPOSITORY / "hack" / name, checkout.root / "hack" / name)
    shutil.copy(REPOSITORY / "pyproject.toml", checkout.root)
    for name in ("main", "completion/main"):
        (checkout.root / f"kubectl_ctrl/cli/{name}.py").write_text(PROGRAM)
    checkout.lock("0123456789abcdef")
    readlink = shutil.which("readlink")
    assert readlink
    checkout.offer(readlink, *programs)
    return checkout


def with_uv(folder: Path) -> Checkout:
    """The fast way to environments: uv, and a Python that the launcher does not find by itself."""
    checkout = make(folder, [UV])
    (checkout.programs / "python").symlink_to(INTERPRETER)
    return checkout
