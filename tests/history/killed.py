"""Records attempts and prints their numbers until test_killed.py kills it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from random import Random

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.attempt import CallProgress
from kubectl_ctrl.value import replace
from tests.history.made import FOR_EVER, RUN, begun, done, owned, read_of, wrote


def main(path: str, name: str, seed: int) -> None:
    rng, pause = Random(seed), threading.Event()
    recorder = Recorder(Path(path), replace(RUN, id=name), clock=SystemClock(), caps=FOR_EVER)
    for number in range(1, 1_000_000):
        start, obj = (
            begun(number, run=name),
            owned("Foo", "web", f"u-{name}", str(number), text="x" * rng.randint(0, 3000)),
        )
        call = wrote(start, 1, obj)
        recorder.observe(start)
        recorder.observe(CallProgress(attempt=start.id, call=replace(call, code=None), answered=False))
        if rng.random() < 0.1 or len(recorder._waiting) > 2000:  # so that nothing is dropped
            pause.wait(rng.random() / 20)
        recorder.observe(CallProgress(attempt=start.id, call=call, answered=True))
        recorder.observe(done(start, call, reads=(read_of(obj),)))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
