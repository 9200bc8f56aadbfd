"""The process of a controller in the background: it runs the controller, and limits the size of its log.

`runs.background` starts it as `python -m kubectl_ctrl.cli.background_main LOG run ...`, with its output in LOG.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clock import SystemClock, pause
from kubectl_ctrl.runs import background_notes
from kubectl_ctrl.runs.background_notes import BackgroundNote
from kubectl_ctrl.value import replace

# The maximum size of the log; one earlier file of the same size is kept beside it.
MOST = 10_000_000
_PACE = 10.0


def main(words: Sequence[str]) -> int:
    """Run until the process is asked to stop; returns its exit code."""
    from kubectl_ctrl.cli.main import main as verb

    app = App.of_this_process()
    app.end = "SIGTERM"  # kubectl ctrl stop sends it; there is no terminal for Ctrl-C
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log, clock = Path(words[0]), SystemClock()
    scope = next((word.partition("=")[2] for word in words if word.startswith("--namespace=")), "")
    note = BackgroundNote(word=words[2], scope=scope, pid=os.getpid(), began=clock.now())
    background_notes.write(log, note)
    threading.Thread(target=_keep_small, args=(log,), name="log", daemon=True).start()
    code = verb(words[1:], app)
    background_notes.write(log, replace(background_notes.read(log) or note, ended=clock.now(), code=code))
    return code


def _keep_small(log: Path) -> None:
    while True:
        pause(_PACE)
        with suppress(OSError):
            keep_small(log)


def keep_small(log: Path, most: int = MOST) -> bool:
    """Continue in a new file if the log is longer than that; returns whether it was."""
    if os.fstat(sys.stdout.fileno()).st_size <= most:
        return False
    with suppress(FileNotFoundError):
        log.replace(background_notes.older(log))
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(handle, stream.fileno())
    finally:
        os.close(handle)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
