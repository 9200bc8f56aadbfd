"""Guards around every test: it leaves the environment as it was, talks to nobody but itself, and loses no error."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: a busy one must not fail a test.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# Who started us with nohup ignores it, and so would we.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_SOCKET_CALLS = ("connect", "connect_ex", "bind", "sendto")


class _Complaints(logging.Handler):
    """What asyncio says about lost tasks and unseen errors outside of a virtual loop."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _guarded(name: str) -> Any:
    original = getattr(socket.socket, name)

    def call(self: socket.socket, *args: Any) -> Any:
        if not _is_local(args[-1]):
            raise RuntimeError(f"A test may use loopback only, not {args[-1]!r}.")
        return original(self, *args)

    return call


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _SOCKET_CALLS:
        monkeypatch.setattr(socket.socket, name, _guarded(name))


@pytest.fixture(autouse=True)
def _environment_unchanged() -> Iterator[None]:
    def snapshot() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    before, directory = snapshot(), Path.cwd()
    yield
    assert snapshot() == before, "the test changed os.environ"
    assert Path.cwd() == directory, "the test changed the working directory"


@pytest.fixture(autouse=True)
def _no_lost_tasks() -> Iterator[None]:
    complaints = _Complaints()
    logger = logging.getLogger("asyncio")
    logger.addHandler(complaints)
    yield
    logger.removeHandler(complaints)
    lost = [message for message in complaints.messages if "destroyed" in message or "never retrieved" in message]
    assert not lost, f"the test lost tasks or errors: {lost}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test made of hostile text has to pass from one worker process to the other."""
    report = yield
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report
