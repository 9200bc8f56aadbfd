"""A Debian with Python, git and nothing else, unpacked once and only read from then on."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from realkube import rootfs
from realkube.build import root, say, staged

PACKAGES = "git,python3,python3-venv"
USER, UID = "newcomer", 1000
HOME = f"/home/{USER}"


def provided(suite: str, environ: Mapping[str, str], lock: int) -> Path:
    """Its folder; unpacked when it is not there, or when a file that says how has changed."""
    base = root(environ)
    recipe = b"\0".join(Path(file).read_bytes() for file in (__file__, rootfs.__file__))
    target = base / f"debian-{suite}-{hashlib.sha256(recipe).hexdigest()[:16]}"
    if not target.is_dir():
        rootfs.provide({"debootstrap": "debootstrap"}, base / "apt.log", lock)
        for older in base.glob(f"debian-{suite}-*"):
            shutil.rmtree(older)
        with staged(target) as staging:
            say(f"Unpacking a Debian ({suite}) with {PACKAGES}; about a minute.")
            rootfs.make(staging, suite, PACKAGES, base / f"debian-{suite}.log", lock)
            rootfs.inside(staging, "useradd", f"--uid={UID}", "--create-home", "--shell=/bin/sh", USER)
            # An installer writes it; without it `localhost` is asked of the network.
            rootfs.written(staging / "etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    return target
