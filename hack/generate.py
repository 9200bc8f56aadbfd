"""Files that are written from other files: `generate.py update` writes them, `generate.py verify [NAME...]` tells which differ."""

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

ROOT = Path(__file__).resolve().parent.parent


def lock(source: str, path: str, *, upgrade: bool) -> str:
    """The lock file at `path` for what `source` asks for; versions that are pinned there stay, if they can and may."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "requirements.lock"
        if not upgrade and (ROOT / path).exists():
            shutil.copy(ROOT / path, answer)
        command = [str(Path(sys.executable).parent / "uv"), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
        command += ["--generate-hashes", "--no-emit-index-url", "--no-header", "--output-file", str(answer), source]
        if source != "pyproject.toml":
            command += ["--constraint", "requirements.lock"]
        subprocess.run(command, cwd=ROOT, check=True)
        body = answer.read_text()
    return f"# key: {key(body)}\n{body}"


def key(body: str) -> str:
    """What names a lock's contents in its first line, where a shell script can read it without starting a process."""
    return hashlib.sha256(body.encode()).hexdigest()[:16]


# In this order: the tools' lock is made under the constraint of the program's.
PRODUCTS: Mapping[str, Callable[[bool], tuple[str, str]]] = {
    "lock": lambda upgrade: ("requirements.lock", lock("pyproject.toml", "requirements.lock", upgrade=upgrade)),
    "hack-lock": lambda upgrade: ("hack/requirements.lock", lock("hack/requirements.in", "hack/requirements.lock", upgrade=upgrade)),
}


def update(*, upgrade: bool) -> int:
    for make in PRODUCTS.values():
        path, text = make(upgrade)
        old = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        (ROOT / path).write_text(text)
        print(f"{path}: {'unchanged' if old == text else 'written'}")
    return 0


def verify(names: list[str]) -> int:
    stale = False
    for name in names or PRODUCTS:
        path, text = PRODUCTS[name](False)
        old = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        stale |= old != text
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), path, f"{path} (generated)"))
    if stale:
        print("Generated files differ from their sources; run hack/update.")
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
