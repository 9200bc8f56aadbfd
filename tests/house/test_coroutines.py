"""Tests that are coroutines run, with their fixtures, and so does every function inside a test."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kubectl_ctrl.testing.loop import VirtualLoop

TESTS = Path(__file__).parent.parent


class Reached(Exception):
    """The end of a test."""


@pytest.fixture
def events() -> Iterator[list[str]]:
    """Checked after the test, when its async fixtures are gone."""
    events: list[str] = []
    yield events
    assert events == ["begin", "test", "end"]


@pytest.fixture
async def resource(events: list[str]) -> AsyncIterator[str]:
    events.append("begin")
    yield "resource"
    events.append("end")


@pytest.mark.xfail(raises=Reached, strict=True)
async def test_coroutine_runs_on_virtual_time() -> None:
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    raise Reached


@pytest.mark.real_loop
@pytest.mark.xfail(raises=Reached, strict=True)
async def test_coroutine_with_the_marker_runs_on_a_loop_of_asyncio() -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)
    raise Reached


async def test_async_fixture_ends_after_the_test(events: list[str], resource: str) -> None:
    assert resource == "resource"
    events.append("test")


def test_every_function_inside_a_test_is_used() -> None:
    """A coroutine that holds the assertions and is never called would pass."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    for path in TESTS.rglob("test_*.py"):
        for test in ast.parse(path.read_text()).body:
            if isinstance(test, functions):
                used = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
                unused = [node.name for node in test.body if isinstance(node, functions) and node.name not in used]
                assert unused == [], f"{path}: {test.name}"
