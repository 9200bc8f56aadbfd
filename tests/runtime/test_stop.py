from __future__ import annotations

import threading

from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.testing.loop import run_virtual, settle


def test_the_first_and_the_second_request_are_two_things() -> None:
    async def main() -> None:
        stop = Stop()
        stop.request()
        await stop.first()
        await settle()
        assert (stop.requests, stop._second.is_set()) == (1, False)
        stop.request()
        await stop.second()
        assert repr(stop) == "Stop(requests=2)"

    run_virtual(main())


def test_it_may_be_asked_from_another_thread() -> None:
    async def main() -> None:
        stop = Stop()
        thread = threading.Thread(target=stop.request)
        thread.start()
        thread.join()
        await stop.first()

    run_virtual(main())
