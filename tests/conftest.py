"""Guards around every test: it leaves the environment unchanged, uses only loopback, and loses no error."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.coroutines import pytest_fixture_setup, pytest_pyfunc_call  # noqa: F401 - hooks
from tests.guard import Guard, Missing
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - hooks

pytest_plugins = ("kubectl_ctrl.testing.plugin", "tests.golden", "tests.scenes")

# The duration of an example depends on the machine: a busy one must not fail a test. The examples are the same in each
# run; `hack/test tests -- --hypothesis-profile=search` looks for others, and more of them.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", settings.get_profile("house"), derandomize=False, max_examples=2000)
settings.load_profile("house")

# A background job of a script ignores SIGINT and SIGQUIT, and under nohup SIGHUP; tests send them to programs.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

_GUARD = pytest.StashKey[Guard]()


class _Complaints(logging.Handler):
    """asyncio's messages about lost tasks and unhandled errors outside of a virtual loop."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def guard_of(config: pytest.Config) -> Guard:
    """The guard of this process."""
    if _GUARD not in config.stash:
        config.stash[_GUARD] = Guard(config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    return config.stash[_GUARD]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Before every fixture, so that module fixtures are guarded too."""
    names = [name for marker in item.iter_markers("programs") for name in marker.args]
    try:
        guard_of(item.config).begin(item.nodeid, names)
    except Missing as error:
        pytest.skip(f"There is no {error} here.")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        if found := guard_of(item.config).end():
            pytest.fail("\n".join([f"{item.nodeid} touched the machine (see tests/guard.py):", *found]), pytrace=False)


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
