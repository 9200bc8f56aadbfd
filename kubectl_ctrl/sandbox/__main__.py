"""`python -m kubectl_ctrl.sandbox`: serves a sandbox until SIGTERM or SIGINT.

With --temporary it also stops when standard input ends, and then deletes its folder. A parent that keeps a pipe open
leaves neither a process nor files, even if it is killed.

When it is ready, one line of JSON on standard output names the server, the kubeconfig and the process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import random
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl.clock import SystemClock, pause
from kubectl_ctrl.sandbox.journal import JournalError
from kubectl_ctrl.sandbox.process import ServeError, Serving, Settings, serve
from kubectl_ctrl.value import asdict

_CHUNK = 4096
_GRACE = 5.0  # seconds to stop after the end of standard input


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 after a signal, 1 if the server cannot start or fails."""
    gc.set_threshold(20_000, 20, 50)  # most of what a request makes lives shortly or for long, and has no cycles
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    try:
        given = _parsed(arguments)
        asyncio.run(_serve(_settings(given), temporary=given.temporary))
    except (ServeError, JournalError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except OSError as error:
        place = f"{str(error.filename)!r}: " if error.filename else ""
        sys.stderr.write(f"error: {place}{error.strerror or error}\n")
        return 1
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m kubectl_ctrl.sandbox", description=(__doc__ or "").split("\n\n")[1]
    )
    parser.add_argument("folder", type=Path, help="for credentials, kubeconfig and data; created if missing")
    parser.add_argument("--name", default="sandbox", help="cluster, user and context in the kubeconfig")
    parser.add_argument("--port", type=int, help="default: the last one of the folder, or a free one")
    parser.add_argument("--data", action="store_true", help="keep the objects in the folder")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of a new cluster")
    parser.add_argument("--audit-log", type=Path, help="a file for one line of JSON for each request")
    parser.add_argument("--temporary", action="store_true", help="delete the folder when standard input ends")
    return parser.parse_args(arguments)


def _settings(given: argparse.Namespace) -> Settings:
    return Settings(
        folder=given.folder.absolute(),
        name=given.name,
        port=given.port,
        data=given.data,
        nodes=given.nodes,
        audit_log=given.audit_log,
    )


async def _serve(settings: Settings, *, temporary: bool) -> None:
    stop, abandoned = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if temporary:
        # A thread, because it also works while the event loop is blocked, and with every kind of file.
        threading.Thread(target=_watch_input, args=(settings.folder, loop, stop, abandoned), daemon=True).start()
    try:
        await serve(settings, SystemClock(), random.SystemRandom(), _announce, stop)
    finally:
        if abandoned.is_set():
            _delete(settings.folder)


def _watch_input(
    folder: Path, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, abandoned: threading.Event
) -> None:
    """Wait for the end of standard input, then stop the server, at once if it does not stop in time."""
    while os.read(sys.stdin.fileno(), _CHUNK):
        pass
    abandoned.set()
    with suppress(RuntimeError):  # the event loop has ended meanwhile
        loop.call_soon_threadsafe(stop.set)
    pause(_GRACE)
    _delete(folder)
    os._exit(1)


def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _announce(serving: Serving) -> None:
    sys.stdout.write(json.dumps(asdict(serving)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
