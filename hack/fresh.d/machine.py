"""A new machine: a Debian, an unprivileged user, an empty home folder.

The user's files are in a folder that is deleted with the machine; the Debian stays unchanged.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from debian import HOME, UID, USER
from realkube import rootfs
from realkube.build import root

# The home folder, and all folders that everybody may write to.
WRITABLE = {HOME: 0o755, "/tmp": 0o1777, "/var/tmp": 0o1777, "/run/lock": 0o1777}
# The configuration of the package index. A file that one of the variables names is copied too.
INDEX_FILES = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/uv/uv.toml", "/etc/ssl/certs/ca-certificates.crt")
INDEX_FILES_OF_USER = (".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml")
INDEX_VARIABLES = re.compile(
    r"(?i:(https?|all|no)_proxy)|SSL_CERT_FILE|(REQUESTS|CURL)_CA_BUNDLE"
    r"|PIP_(CERT|CLIENT_CERT|DEFAULT_TIMEOUT|EXTRA_INDEX_URL|INDEX_URL|PROXY|RETRIES|TRUSTED_HOST)"
    r"|UV_(DEFAULT_INDEX|EXTRA_INDEX_URL|HTTP_TIMEOUT|INDEX|INDEX_URL|INSECURE_HOST|NATIVE_TLS)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The result of a command on a machine."""

    code: int
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A Debian in use."""

    debian: Path
    scratch: Path
    index: Mapping[str, str]

    @property
    def home(self) -> Path:
        return self.scratch / _flat(HOME)

    def run(self, command: str, folder: str, *, index: bool) -> Ended:
        """Run a shell command as the user; without the index it has only the loopback network."""
        unshare = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--ipc", "--uts"]
        inside = [sys.executable, "-I", str(Path(__file__).with_name("inside.py"))]
        given = [str(self.debian), str(self.scratch), folder, str(UID), command]
        path = f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin"
        done = subprocess.run(
            [*unshare, *([] if index else ["--net"]), *inside, *given],
            env={"HOME": HOME, "USER": USER, "PATH": path, "LANG": "C.UTF-8", **(self.index if index else {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return Ended(code=done.returncode, output=done.stdout)


@contextmanager
def started(debian: Path, environ: Mapping[str, str]) -> Iterator[Machine]:
    """A new machine; the user's files are deleted afterwards."""
    index = {name: value for name, value in environ.items() if INDEX_VARIABLES.fullmatch(name)}
    for left in root(environ).glob("fresh-*"):
        shutil.rmtree(left)  # remains of a killed run
    with tempfile.TemporaryDirectory(prefix="fresh-", dir=root(environ), ignore_cleanup_errors=True) as scratch:
        machine = Machine(debian=debian, scratch=Path(scratch), index=index)
        for place, mode in WRITABLE.items():
            (machine.scratch / _flat(place)).mkdir()
            (machine.scratch / _flat(place)).chmod(mode)
        _introduce_index(machine, environ)
        for path in (machine.home, *machine.home.rglob("*")):
            os.chown(path, UID, UID)
        yield machine


def _introduce_index(machine: Machine, environ: Mapping[str, str]) -> None:
    named = [Path(value) for value in machine.index.values() if value.startswith("/")]
    for source in {*map(Path, INDEX_FILES), *named}:
        if source.is_file():
            to = machine.debian / source.relative_to("/")
            to.unlink(missing_ok=True)  # or a link of that file system would lead into this machine's
            rootfs.copied(source, to, 0o644)
    for name in INDEX_FILES_OF_USER:
        if (file := Path(environ.get("HOME") or Path.home()) / name).is_file():
            rootfs.copied(file, machine.home / name, 0o644)


def _flat(place: str) -> str:
    return place.strip("/").replace("/", "+")
