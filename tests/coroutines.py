"""Coroutine tests run on virtual time; those marked `real_loop` run on asyncio's own loop, for sockets and programs.

An async fixture runs on its test's loop, in the test's own task: a coroutine function returns the value, an async
generator function yields it and cleans up. Other async fixtures may request it, sync ones cannot.

tests/conftest.py takes the hooks from here.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from kubectl_ctrl.testing.loop import run_virtual


class Later:
    """An async fixture that was requested; its value exists only while the test runs."""

    def __init__(self, function: Callable[..., Any], /, **arguments: Any) -> None:
        self.function = function
        self.arguments = arguments


class _Fixtures(AsyncExitStack):
    """The async fixtures of one test, each entered once."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[Later, Any] = {}

    async def value(self, given: Any) -> Any:
        if not isinstance(given, Later):
            return given
        if given not in self._values:
            arguments = {name: await self.value(argument) for name, argument in given.arguments.items()}
            if inspect.isasyncgenfunction(given.function):
                manager = asynccontextmanager(given.function)(**arguments)
                self._values[given] = await self.enter_async_context(manager)
            else:
                self._values[given] = await given.function(**arguments)
        return self._values[given]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    function = fixturedef.func
    if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        return (yield)
    assert fixturedef.scope == "function", f"{fixturedef.argname}: an async fixture lives as long as its test's loop"
    fixturedef.func = partial(Later, function)  # type: ignore[misc]
    try:
        return (yield)
    finally:
        fixturedef.func = function  # type: ignore[misc]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        late = [name for name, given in pyfuncitem.funcargs.items() if isinstance(given, Later)]
        assert not late, f"{', '.join(late)}: only a coroutine test can request an async fixture"
        return None

    async def run() -> None:
        async with _Fixtures() as fixtures:
            values = {name: await fixtures.value(given) for name, given in pyfuncitem.funcargs.items()}
            await pyfuncitem.obj(**{name: values[name] for name in pyfuncitem._fixtureinfo.argnames})

    if pyfuncitem.get_closest_marker("real_loop"):
        asyncio.run(run(), debug=True)
    else:
        run_virtual(run)
    return True
