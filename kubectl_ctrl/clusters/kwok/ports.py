"""Ports for servers on loopback: free now, and of no other cluster of ours, not even of one that is stopped."""

from __future__ import annotations

import json
import socket
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl import files
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.registry import locked_file
from kubectl_ctrl.errors import ClusterError

FILE = "ports.json"
_LOCK = ".ports.lock"  # no cluster can be called that
# Below those that systems give to whoever asks for any, and below those of NodePort services.
_FIRST, _COUNT = 20_000, 10_000
_PACE = 0.05


async def reserved(folder: Path, names: Iterable[str], clock: Clock) -> Mapping[str, int]:
    """A port for each name, kept in the cluster's folder. One at a time: two who look at once find the same ones."""
    clusters = folder.parent
    while True:
        with locked_file(clusters / _LOCK) as ours:
            if ours:
                known = {port for file in clusters.glob(f"*/{FILE}") for port in _read(file)}
                chosen = _chosen(tuple(names), known, zlib.crc32(str(folder).encode()) % _COUNT)
                files.replace(folder / FILE, json.dumps(chosen).encode(), sync=False)
                return chosen
        await clock.sleep(_PACE)


def forget(folder: Path) -> None:
    """The cluster needs none any more; a lock that was left by who was killed while choosing some goes with them."""
    (folder / FILE).unlink(missing_ok=True)
    lock = folder.parent / _LOCK
    if lock.exists():
        with locked_file(lock):
            pass


def taken(ports: Iterable[int]) -> tuple[int, ...]:
    """Those that somebody listens on."""
    return tuple(port for port in ports if not _is_free(port))


def _chosen(names: tuple[str, ...], known: set[int], start: int) -> dict[str, int]:
    """Each folder begins to look elsewhere, so that several users of a machine seldom meet."""
    turn = (_FIRST + (start + step) % _COUNT for step in range(_COUNT))
    free = (port for port in turn if port not in known and _is_free(port))
    chosen = dict(zip(names, free, strict=False))
    if len(chosen) < len(names):
        raise ClusterError(f"No port between {_FIRST} and {_FIRST + _COUNT - 1} is free.")
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # What was closed a moment ago is not in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _read(file: Path) -> Iterable[int]:
    with suppress(OSError, ValueError, AttributeError):
        return [port for port in json.loads(file.read_bytes()).values() if isinstance(port, int)]
    return []
