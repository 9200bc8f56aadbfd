"""A sandbox over HTTPS, for clients of any kind; the pytest fixture `sandbox_server` is one.

    def test_my_program(sandbox_server: ServedSandbox) -> None:
        sandbox_server.do(lambda server: server.create(config_map("a")))
        env = {**os.environ, **sandbox_server.variables}
        subprocess.run(["kubectl", "delete", "configmap", "a"], env=env, check=True)
        assert sandbox_server.do(lambda server: server.get(CONFIGMAPS, "a")) is None

Its time is real. Without pytest, use it in a `with` statement.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from random import SystemRandom
from typing import Any, TypeVar

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.sandbox import certificates
from kubectl_ctrl.sandbox.process import TOKEN, Serving, Settings, serve
from kubectl_ctrl.testing.server import ScriptedServer

T = TypeVar("T")


class ServedSandbox:
    """A whole cluster that a thread serves on a free port of loopback."""

    def __init__(self, folder: Path, *, nodes: int = 1) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._server: ScriptedServer
        self._stop: asyncio.Event
        begun: Future[Serving] = Future()
        settings = Settings(folder=folder, nodes=nodes)
        self._thread = threading.Thread(target=self._run, args=(settings, begun), name="sandbox", daemon=True)
        self._thread.start()
        serving = begun.result()
        self.url = serving.server
        self.kubeconfig = Path(serving.kubeconfig)
        self.ca = folder / certificates.AUTHORITY
        self.token = (folder / TOKEN).read_text()  # of an administrator

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of a client in another process. kubectl keeps what it discovers in a folder of its own."""
        return {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.kubeconfig.with_name("cache"))}

    def do(self, act: Callable[[ScriptedServer], T]) -> T:
        """The result of a function on the server: it reads or writes objects, or scripts faults.

        It runs in the thread of the server, between two requests.
        """

        async def act_on_server() -> T:
            return act(self._server)

        return self._play(act_on_server())

    def wait_for(self, act: Callable[[ScriptedServer], T], *, timeout: float = 30.0) -> T:
        """The first true value of a function on the server, which is called again after every change of an object."""

        async def act_until_true() -> T:
            changed = asyncio.Event()

            def heard(*_: object) -> None:
                changed.set()

            listeners = self._server.storage.listeners
            listeners.append(heard)
            try:
                async with self._server.clock.timeout(timeout):
                    while not (value := act(self._server)):
                        changed.clear()
                        await changed.wait()
                    return value
            except TimeoutError:
                raise TimeoutError(f"Not within {timeout:g} s; the last value is {value!r}.") from None
            finally:
                listeners.remove(heard)

        return self._play(act_until_true())

    def _play(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _run(self, settings: Settings, begun: Future[Serving]) -> None:
        def made(*arguments: Any, **options: Any) -> ScriptedServer:
            self._server = ScriptedServer(*arguments, **options)
            return self._server

        async def main() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            await serve(settings, SystemClock(), SystemRandom(), begun.set_result, self._stop, endpoint=made)

        try:
            asyncio.run(main())
        except Exception as error:
            if begun.done():
                raise
            begun.set_exception(error)

    def close(self) -> None:
        """Stop the server; requests without an answer and open watches break."""

        def end(server: ScriptedServer) -> None:
            server.down()
            self._stop.set()

        if self._thread.is_alive():
            self.do(end)
            self._thread.join()

    def __enter__(self) -> ServedSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ServedSandbox({self.url})"
