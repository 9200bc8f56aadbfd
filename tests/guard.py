"""The guard around every test: a test depends on nothing of the machine, and changes nothing of it.

- Programs: this Python and the tools of its environment, files of the checkout, files that a test made, and programs of
  the machine that it names: `@pytest.mark.programs("sh", "git")`, or `pytestmark` for a file. PATH has these alone.
- Sockets: loopback, and Unix sockets below the folder of the run.
- Files: changed only below the folder of the run, where `tmp_path` is.

Anything else raises `Trespass` where it happens, and fails the test when it ends, because the code under test may catch
what is raised. An audit hook sees this process alone. Child processes get an environment with that PATH, a TMPDIR that
must be empty afterwards, and a HOME that does not exist and must not exist afterwards.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

CHECKOUT = Path(__file__).resolve().parents[1]
# Terminals, and files that store nothing.
_DEVICES = ("/dev/null", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts/", "/dev/fd/", "/proc/self/fd/")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Variables of Python and pytest; nothing else of the caller's environment reaches a test.
_KEPT = ("COVERAGE_", "COV_", "HYPOTHESIS_", "LD_LIBRARY_PATH", "PYTEST_", "PYTHON")


class Trespass(RuntimeError):
    """A test used the machine."""


class Missing(Exception):
    """This machine lacks a program of a test."""


class Guard:
    """Judges the audit events between `begin` and `end`. A hook cannot be removed, so there is one for each process."""

    def __init__(self, folder: Path) -> None:
        self._run = folder.resolve()
        self._own = self._run / "guard"
        self._storage = Path(os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY", ".hypothesis")).resolve()
        (self._own / "tmp").mkdir(parents=True)
        self._path = os.pathsep.join([os.environ.get("PATH", ""), os.defpath])
        self._before = dict(os.environ)
        self._test = ""
        self._programs: set[str] = set()
        self._found: list[str] = []
        sys.addaudithook(self._heard)

    def __repr__(self) -> str:
        return f"<Guard of {self._test or 'no test'}: {len(self._found)} found>"

    def begin(self, test: str, programs: Sequence[str]) -> None:
        """Raises Missing unless all `programs` exist."""
        path = self._own / "-".join(["path", *sorted(programs)])
        path.mkdir(exist_ok=True)
        self._programs = {os.path.realpath(sys.executable)}
        for name in programs:
            found = shutil.which(name, path=self._path)
            if found is None:
                raise Missing(name)
            if not (path / name).is_symlink():
                (path / name).symlink_to(found)
            self._programs.add(os.path.realpath(found))
        self._before = dict(os.environ)
        for name in self._before:
            if not name.startswith(_KEPT):
                del os.environ[name]
        os.environ.update(PATH=str(path), HOME=str(self._own / "home"), TMPDIR=str(self._own / "tmp"))
        tempfile.tempdir = os.environ["TMPDIR"]
        self._found, self._test = [], test

    def end(self) -> list[str]:
        """The violations of the test."""
        if not self._test:
            return []  # a program was missing
        self._test = ""
        for name in set(os.environ) - set(self._before):
            del os.environ[name]
        os.environ.update(self._before)
        tempfile.tempdir = None
        home, temporary = self._own / "home", self._own / "tmp"
        left = [*([home] if home.exists() else []), *home.rglob("*"), *temporary.rglob("*")]
        for path in reversed(left):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        return [*self._found, *(f"it left {path} behind" for path in left)]

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        judge = _JUDGES.get(event)
        if judge is None or not self._test:
            return
        if found := judge(self, args):
            self._found.append(found)
            raise Trespass(f"{self._test}: {found}.")

    # The violation of an event; empty if there is none

    def _started(self, program: Any, path: str, folder: str) -> str:
        name = os.fsdecode(program)
        if os.sep not in name:
            found = shutil.which(name, path=path)
            if found is None:
                return ""  # it does not exist, and so does not start
            name = found
        real = os.path.realpath(os.path.join(folder, name))  # noqa: PTH118
        beside = os.path.abspath(os.path.join(folder, name))  # noqa: PTH100, PTH118
        own = real in self._programs or _below(beside, Path(sys.executable).parent)
        if own or _below(real, CHECKOUT) or _below(real, self._run):
            return ""
        link = "" if real == name else f" ({real})"
        return f"it started {name}{link}, a program of the machine; name it with @pytest.mark.programs"

    def _popen(self, args: tuple[Any, ...]) -> str:
        program, _, folder, environ = args
        return self._started(
            program, (os.environ if environ is None else environ).get("PATH", os.defpath), folder or ""
        )

    def _replaced(self, args: tuple[Any, ...]) -> str:
        return self._started(args[0], os.defpath, "")

    def _shell(self, args: tuple[Any, ...]) -> str:
        return self._started("/bin/sh", "", "")

    def _addressed(self, args: tuple[Any, ...]) -> str:
        end, address = args
        # A message on a connection has no address; that of the connection was judged.
        if end.family in {socket.AF_INET, socket.AF_INET6} and address is not None:
            return "" if _is_loopback(address[0]) else f"it used the network: {address!r}"
        if end.family == socket.AF_UNIX and address:
            name = os.fsdecode(address)
            return "" if _below(os.path.realpath(name), self._run) else f"it used the socket {name!r}"
        return ""

    def _resolved(self, args: tuple[Any, ...]) -> str:
        host = os.fsdecode(args[0] or "localhost")
        # An address is judged when it is used.
        return "" if host == "localhost" or _address(host) else f"it looked up the host {host!r}"

    def _opened(self, args: tuple[Any, ...]) -> str:
        path, _, flags = args
        return self._changed(path) if flags & _WRITES else ""

    def _database(self, args: tuple[Any, ...]) -> str:
        name = os.fsdecode(args[0])
        if name.startswith("file:"):
            parts = urlsplit(name)
            query = parse_qs(parts.query)
            if query.get("mode") == ["ro"] or "immutable" in query:
                return ""
            name = unquote(parts.path)
        return "" if name in {"", ":memory:"} else self._changed(name)

    def _renamed(self, args: tuple[Any, ...]) -> str:
        return self._entry(args[0], args[2]) or self._entry(args[1], args[3])

    def _made(self, args: tuple[Any, ...]) -> str:
        return self._entry(args[0], args[2])

    def _removed(self, args: tuple[Any, ...]) -> str:
        return self._entry(args[0], args[1])

    def _linked(self, args: tuple[Any, ...]) -> str:
        return self._entry(args[1], args[-1])

    def _first(self, args: tuple[Any, ...]) -> str:
        return self._changed(args[0])

    def _entry(self, path: Any, folder: int) -> str:
        """For a folder: its name, not the target of a link."""
        name = os.fsdecode(path)
        if folder >= 0:
            name = f"/proc/self/fd/{folder}/{name}"
        head, tail = os.path.split(os.path.abspath(name))  # noqa: PTH100
        return self._changed(os.path.join(os.path.realpath(head), tail), follow=False)  # noqa: PTH118

    def _changed(self, path: Any, *, follow: bool = True) -> str:
        if isinstance(path, int):
            return ""  # an open file was judged before
        name = os.fsdecode(path)
        if name.startswith(_DEVICES) or "__pycache__" in name.rsplit(os.sep, 2)[-2:]:
            return ""
        real = os.path.realpath(name) if follow else name
        if _below(real, self._run) or _below(real, self._storage):
            return ""
        return f"it changed {name}, which is not below its tmp_path"


def _below(path: str, folder: Path) -> bool:
    return Path(path).is_relative_to(folder)


def _is_loopback(host: Any) -> bool:
    address = _address(os.fsdecode(host))
    return address.is_loopback if address else host == "localhost"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


_JUDGES: Mapping[str, Any] = {
    "subprocess.Popen": Guard._popen,
    "os.exec": Guard._replaced,
    "os.posix_spawn": Guard._replaced,
    "os.system": Guard._shell,
    "socket.bind": Guard._addressed,
    "socket.connect": Guard._addressed,
    "socket.sendto": Guard._addressed,
    "socket.sendmsg": Guard._addressed,
    "socket.getaddrinfo": Guard._resolved,
    "socket.gethostbyname": Guard._resolved,
    "open": Guard._opened,
    "sqlite3.connect": Guard._database,
    "os.rename": Guard._renamed,
    "os.mkdir": Guard._made,
    "os.remove": Guard._removed,
    "os.rmdir": Guard._removed,
    "os.link": Guard._linked,
    "os.symlink": Guard._linked,
    "os.chmod": Guard._first,
    "os.chown": Guard._first,
    "os.truncate": Guard._first,
    "os.utime": Guard._first,
    "os.setxattr": Guard._first,
    "os.removexattr": Guard._first,
}
