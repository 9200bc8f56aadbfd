"""Loopback ports for servers: free now, and not reserved for another managed cluster, even if that one is stopped."""

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
_LOCK = ".ports.lock"  # not a valid name of a cluster
# Below the ephemeral ports of all systems, and below those of NodePort services.
_FIRST, COUNT = 20_000, 10_000
_PACE = 0.05


async def reserved(folder: Path, names: Iterable[str], clock: Clock, *, start: int | None = None) -> Mapping[str, int]:
    """A port for each name, recorded in the cluster's folder.

    Without `start`, the search begins at a place that depends on the folder: users of one machine seldom collide.

    Under a lock: two processes that search at the same time would find the same ports.
    """
    clusters = folder.parent
    while True:
        with locked_file(clusters / _LOCK) as locked:
            if locked:
                known: set[int] = set()
                for file in clusters.glob(f"*/{FILE}"):
                    known.update(recorded(file.parent).values())
                begin = zlib.crc32(str(folder).encode()) % COUNT if start is None else start
                chosen = _chosen(tuple(names), known, begin)
                files.replace(folder / FILE, json.dumps(chosen).encode(), sync=False)
                return chosen
        await clock.sleep(_PACE)


def recorded(folder: Path) -> Mapping[str, int]:
    """The ports in the cluster's folder; none if they cannot be read."""
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads((folder / FILE).read_bytes())
        return {name: port for name, port in found.items() if isinstance(port, int)}
    return {}


def forget(folder: Path) -> None:
    """Release the cluster's ports, and delete a lock file that a killed process left."""
    (folder / FILE).unlink(missing_ok=True)
    lock = folder.parent / _LOCK
    if lock.exists():
        with locked_file(lock):
            pass  # it is deleted when it is released


def taken(ports: Iterable[int]) -> tuple[int, ...]:
    """The ports on which a program listens."""
    return tuple(port for port in ports if not _is_free(port))


def _chosen(names: tuple[str, ...], known: set[int], start: int) -> dict[str, int]:
    turn = (_FIRST + (start + step) % COUNT for step in range(COUNT))
    free = (port for port in turn if port not in known and _is_free(port))
    chosen = dict(zip(names, free, strict=False))
    if len(chosen) < len(names):
        raise ClusterError(f"No port between {_FIRST} and {_FIRST + COUNT - 1} is free.")
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # A connection that was closed a moment ago (TIME_WAIT) does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
