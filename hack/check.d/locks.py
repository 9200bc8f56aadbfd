"""Checks that the lock files match the requirements, with hashes and without addresses, offline: `locks.py ROOT`."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)")


def pins(lock: str) -> dict[str, str]:
    """Package -> version."""
    found = (PINNED.match(line) for line in lock.splitlines())
    return {canonicalize_name(pin["name"]): pin["version"] for pin in found if pin}


def required(root: Path) -> Iterator[tuple[str, Requirement]]:
    """Every direct dependency, with the lock file that must contain it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"]:
        yield "requirements.lock", Requirement(text)
    for line in (root / "hack/requirements.in").read_text().splitlines():
        if line and not line.startswith("#"):
            yield "hack/requirements.lock", Requirement(line)


def problems(root: Path) -> Iterator[str]:
    locked = {}
    for name in ("requirements.lock", "hack/requirements.lock"):
        first, _, body = (root / name).read_text().partition("\n")
        locked[name] = pins(body)
        if first != f"# key: {hashlib.sha256(body.encode()).hexdigest()[:16]}":
            yield f"{name}:1: The key does not match the lines below it, so existing environments would not be rebuilt."
        if "://" in body:
            yield f"{name}: contains an address; packages come from the index that the user has configured."
        if body.count("--hash=sha256:") < len(locked[name]):
            yield f"{name}: contains a package without a hash."
    for name, requirement in required(root):
        version = locked[name].get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version):
            yield f"{name}: contains {version or 'no version'} for {str(requirement)!r}."
    for package in locked["requirements.lock"].keys() & locked["hack/requirements.lock"].keys():
        if locked["requirements.lock"][package] != locked["hack/requirements.lock"][package]:
            yield f"hack/requirements.lock: contains another version of {package!r} than requirements.lock."


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print("\n".join([*found, *(["Run hack/update."] if found else [])]))
    sys.exit(bool(found))
