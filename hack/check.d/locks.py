"""The lock files hold what is asked for, with hashes and without an address: `locks.py ROOT`. Asks no index."""

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


def asked(root: Path) -> Iterator[tuple[str, Requirement]]:
    """Every direct dependency with the lock that has to hold it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"]:
        yield "requirements.lock", Requirement(text)
    for line in (root / "hack/requirements.in").read_text().splitlines():
        if line and not line.startswith("#"):
            yield "hack/requirements.lock", Requirement(line)


def problems(root: Path) -> Iterator[str]:
    held = {}
    for name in ("requirements.lock", "hack/requirements.lock"):
        first, _, body = (root / name).read_text().partition("\n")
        held[name] = pins(body)
        if first != f"# key: {hashlib.sha256(body.encode()).hexdigest()[:16]}":
            yield f"{name}:1: The key is not that of the lines below, so an environment would not be made again."
        if "://" in body:
            yield f"{name}: holds an address; packages come from whatever index the user has."
        if body.count("--hash=sha256:") < len(held[name]):
            yield f"{name}: holds a package without a hash."
    for name, requirement in asked(root):
        version = held[name].get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version):
            yield f"{name}: holds {version or 'nothing'} for {str(requirement)!r}."
    for package in held["requirements.lock"].keys() & held["hack/requirements.lock"].keys():
        if held["requirements.lock"][package] != held["hack/requirements.lock"][package]:
            yield f"hack/requirements.lock: holds another version of {package!r} than requirements.lock."


def main() -> int:
    found = list(problems(Path(sys.argv[1])))
    print("\n".join([*found, *(["Run hack/update."] if found else [])]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
