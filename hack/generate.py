"""The generated files: `generate.py update` writes them, `generate.py verify [NAME...]` compares them."""

from __future__ import annotations

import argparse
import difflib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hack.reference import reference
from hack.sandbox_page import sandbox_page

ROOT = Path(__file__).resolve().parent.parent


def lock(source: str, path: str, *, upgrade: bool) -> str:
    """The lock file at `path` for the requirements in `source`; keeps pinned versions if possible."""
    uv = str(Path(sys.executable).parent / "uv")
    constraint = ["--constraint", "requirements.lock"] if path != "requirements.lock" else []
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "requirements.lock"
        if not upgrade and (ROOT / path).exists():
            shutil.copy(ROOT / path, answer)
        command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-emit-index-url", "--no-header", *constraint, "--output-file", str(answer), source]
        subprocess.run(command, cwd=ROOT, check=True)
        body = answer.read_text()
    return f"# key: {key(body)}\n{body}"


def key(body: str) -> str:
    """The hash in the first line of a lock file, which a shell script can read without starting a process."""
    return hashlib.sha256(body.encode()).hexdigest()[:16]


# Name -> file and its generator. In this order: the program's lock file constrains the tools' one.
PRODUCTS: Mapping[str, tuple[str, Callable[[bool], str]]] = {
    "lock": ("requirements.lock", lambda upgrade: lock("pyproject.toml", "requirements.lock", upgrade=upgrade)),
    "hack-lock": (
        "hack/requirements.lock",
        lambda upgrade: lock("hack/requirements.in", "hack/requirements.lock", upgrade=upgrade),
    ),
    "reference": ("docs/reference.md", lambda upgrade: reference()),
    "sandbox": ("docs/sandbox.md", lambda upgrade: sandbox_page()),
}


def current(path: str) -> str:
    file = ROOT / path
    return file.read_text() if file.exists() else ""


def update(*, upgrade: bool) -> int:
    for path, make in PRODUCTS.values():
        text = make(upgrade)
        print(f"{path}: {'unchanged' if text == current(path) else 'written'}")
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text)
    return 0


def verify(names: list[str]) -> int:
    stale = False
    for path, make in (PRODUCTS[name] for name in names or PRODUCTS):
        old, new = current(path).splitlines(keepends=True), make(False).splitlines(keepends=True)
        stale |= old != new
        sys.stdout.writelines(difflib.unified_diff(old, new, path, f"{path} (generated)"))
    if stale:
        print("A generated file is out of date; run hack/update.")
    return int(stale)


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack/update or hack/verify", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("update").add_argument("--upgrade", action="store_true")
    actions.add_parser("verify").add_argument("names", nargs="*", choices=[*PRODUCTS, []])
    given = parser.parse_args()
    return update(upgrade=given.upgrade) if given.action == "update" else verify(given.names)


if __name__ == "__main__":
    sys.exit(main())
