"""A whole cluster in memory for tests that are plain functions; the pytest fixture `sandbox` is one.

    def test_a_greeting_gets_its_config_map(sandbox: Sandbox) -> None:
        sandbox.install(FOLDER / "crd.yaml", FOLDER / "example.yaml")
        sandbox.start(CONTROLLER)
        sandbox.wait(5)
        assert sandbox.server.get(CONFIGMAPS, "example")["data"] == {"text": "Hello!"}

Its time is virtual and passes only in `wait` and `play`, at once. Without pytest, use it in a `with` statement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import VirtualRunner
from kubectl_ctrl.testing.stage import Running, Stage

T = TypeVar("T")


class Sandbox(Stage):
    """A stage with an event loop of its own; its coroutine functions run in `play`.

    `server` reads and writes objects as another user would, and `server.faults` scripts faults.
    """

    def __init__(self, *, seed: int = 1, whole: bool = True) -> None:
        self._runner = VirtualRunner()
        self._runs: list[Running] = []
        super().__init__(seed=seed, whole=whole, clock=FakeClock(self._runner.loop))

    def start(self, *specs: ControllerSpec, **options: Any) -> None:
        """Run controllers until `stop` or the end of the test; `options` are those of `Stage.running`."""

        async def begin() -> None:
            self._runs.append(Running(self.manager(*specs, **options)))

        self.play(begin())
        self.wait()

    def wait(self, seconds: float = 0.0) -> None:
        """Let this time pass, and then run everything that can run at that moment. Raises the error of a failed run."""
        self.play(self.rest(seconds))
        ended = [run for run in self._runs if run.task.done()]
        self._runs = [run for run in self._runs if run not in ended]
        for run in ended:
            if (problem := run.task.result().problem()) is not None:
                raise problem

    def play(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, which runs beside the controllers."""
        if asyncio._get_running_loop() is not None:
            coroutine.close()
            raise RuntimeError(
                "A sandbox has its own event loop, so its test is a plain function: remove `async`. "
                "A coroutine can use kubectl_ctrl.testing.stage.Stage, inside kubectl_ctrl.testing.loop.run_virtual."
            )
        return self._runner.run(self._within(coroutine))

    async def _within(self, coroutine: Coroutine[Any, Any, T]) -> T:
        self.server.settle()  # the loop does not know the timers of what the test did since the last call
        return await coroutine

    def stop(self) -> None:
        """Stop the controllers, and wait for their end."""
        runs, self._runs = self._runs, []
        for run in runs:
            self.play(run.stopped())

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the controllers; fails if anything else still runs, or an error was lost."""
        try:
            self.stop()
        finally:
            self._runner.close()
