"""Debian packages: on this machine, as a root file system of their own, and single programs with what they load."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from realkube import CannotHere, Failed
from realkube.build import answer, followed, say

# Program -> the package that brings it to this machine.
DAEMON_NEEDS = {"dockerd": "docker.io", "docker": "docker.io", "runc": "runc", "iptables": "iptables"}
BUILD_NEEDS = {"debootstrap": "debootstrap"}
# A user's PATH often lacks the places where a daemon's programs are.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def provide(needs: Mapping[str, str], log: Path, lock: int) -> None:
    """Have these programs on this machine, from its package manager where they are missing."""
    missing = sorted({package for program, package in needs.items() if not shutil.which(program, path=SYSTEM_PATH)})
    _check_machine(f"{', '.join(missing)} must be installed" if missing else "they are unpacked")
    if not missing:
        return
    say(f"Installing {', '.join(missing)} with apt.")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *missing]
    for command in (["apt-get", "update", "--quiet"], install):
        try:
            followed(command, Path("/"), log, env, lock)
        except Failed as error:
            raise CannotHere(f"Debian's packages could not be installed. {error}") from error


def _check_machine(why: str) -> None:
    if sys.platform != "linux" or not shutil.which("apt-get", path=SYSTEM_PATH):
        raise CannotHere(f"Debian packages are needed, and {why}: this machine is not a Debian.")
    if os.geteuid() != 0:
        raise CannotHere(f"Debian packages are needed, and {why}: that requires root.")


def make(folder: Path, suite: str, packages: str, log: Path, lock: int) -> None:
    """Unpack a minimal Debian with these packages (comma-separated) into the folder."""
    # One script serves every suite of today; an older debootstrap does not know the newest names.
    bootstrap = ["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(folder), _mirror(), "sid"]
    # What debootstrap mounts lies in a mount namespace of its own and goes with it, however it ends.
    command = ["unshare", "--mount", "--propagation", "private", *bootstrap]
    try:
        followed(command, Path("/"), log, {**os.environ, "PATH": SYSTEM_PATH}, lock)
    except Failed as error:
        raise CannotHere(f"Debian's packages could not be fetched and unpacked. {error}") from error
    for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/lib/apt/lists"):
        emptied(folder / waste)
    emptied(folder / "var/cache/apt/archives")


def _mirror() -> str:
    """The archive that this machine's apt uses; empty, which is debootstrap's own choice, on another distribution."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    fields = "$(ORIGIN)|$(RELEASE)|$(REPO_URI)"
    listed = answer("apt-get", "indextargets", "--format", fields, "Identifier: Packages", env={"PATH": SYSTEM_PATH})
    # Security updates come from another archive, as "bookworm-security".
    uris = [line.split("|")[2] for line in listed.splitlines() if line.split("|")[:2] == ["Debian", codename]]
    return uris[0] if uris else ""


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def inside(root: Path, *command: str) -> str:
    """A program of that file system, run in it; its stdout."""
    return answer("chroot", str(root), *command, env={"PATH": SYSTEM_PATH, "LC_ALL": "C"})


def cut_out(root: Path, into: Path, *files: str) -> None:
    """Copy programs (and plugins) of that file system, with every shared library that they load."""
    libraries = re.findall(r"/\S+\.so\S*(?= \(0x)", inside(root, "ldd", *files))
    for file in {*files, *libraries}:
        copied(root / file.lstrip("/"), into / file.lstrip("/"))


def written(file: Path, text: str, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def copied(source: Path, to: Path, mode: int | None = None) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, to)
    if mode is not None:
        to.chmod(mode)
