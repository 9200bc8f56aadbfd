"""The package `clusters` as a program that tests can interrupt and kill: `python -m e2e.provider VERB ... < JSON`.

It creates, finds, starts, inspects and deletes one cluster with one provider, in a registry below a folder. Each line
on stdout is a JSON object: `note` for a step, then `entry`, `state`, `removed` or `error`, once.

With `stops_at` in the input it stops itself after a note with that text, as Ctrl-Z does. So a test that reads the note
late still finds the work in its middle.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import SystemRandom
from typing import Any

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters import lifecycle
from kubectl_ctrl.clusters.provider import ClusterSpec, Machine
from kubectl_ctrl.clusters.providers import providers
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.value import asdict


def report(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields, default=str) + "\n")
    sys.stdout.flush()


def noting(stops_at: str) -> Callable[[str], None]:
    def note(line: str) -> None:
        report(note=line)
        if stops_at and stops_at in line:
            os.kill(os.getpid(), signal.SIGSTOP)

    return note


async def main(verb: str, maker: str, name: str, root: Path, given: Mapping[str, Any]) -> None:
    spec = {key: value for key, value in given.items() if key != "stops_at"}
    note = noting(given.get("stops_at", ""))
    machine = Machine(clock=SystemClock(), rng=SystemRandom(), environ=os.environ, cache=root / "cache")
    registry, known = Registry(root / "clusters"), providers(machine)
    provider = known[maker]
    paths = {key: Path(spec[key]) for key in ("bin_dir", "config") if spec.get(key)}
    wanted = ClusterSpec(**{**spec, **paths})
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, _cancel, asyncio.current_task())
    async with lifecycle.lock(registry, name, machine.clock, note):
        if verb == "up":
            entry = await lifecycle.ensure(registry, known, maker, name, wanted, machine=machine, note=note)
            report(entry=asdict(entry))
        elif verb == "down":
            report(removed=await lifecycle.delete(registry, known, name, note=note))
            registry.remove(name)
        else:
            found = registry.find(name)
            assert found is not None
            if verb == "state":
                report(state=await provider.state(found))
            elif verb == "logs":
                await provider.logs(found, root / "logs")
            elif verb == "load":
                await provider.load(found, ["an-image:v1"])
            else:
                raise SystemExit(f"There is no verb {verb!r}.")


def _cancel(task: asyncio.Task[None] | None) -> None:
    assert task is not None
    task.cancel()


if __name__ == "__main__":
    try:
        verb, maker, name, root = sys.argv[1:]
        asyncio.run(main(verb, maker, name, Path(root), json.load(sys.stdin)))
    except CtrlError as error:
        fields = {
            key: getattr(error, key, "") for key in ("id", "exit_code", "message", "tried", "next_step", "output")
        }
        report(error=fields)
        sys.exit(error.exit_code)
    except asyncio.CancelledError:
        sys.exit(130)
