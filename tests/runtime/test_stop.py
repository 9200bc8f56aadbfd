from __future__ import annotations

import threading

from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.testing.loop import settle


async def test_the_first_and_the_second_request_are_two_things() -> None:
    stop = Stop()
    stop.request()
    await stop.first()
    await settle()
    assert (stop.requests, stop._second.is_set()) == (1, False)
    stop.request()
    await stop.second()
    assert repr(stop) == "Stop(requests=2)"


async def test_it_may_be_asked_from_another_thread() -> None:
    stop = Stop()
    thread = threading.Thread(target=stop.request)
    thread.start()
    thread.join()
    await stop.first()
