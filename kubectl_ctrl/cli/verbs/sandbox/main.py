"""`sandbox`: a new cluster while a command runs, or until Ctrl-C."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress

from kubectl_ctrl import exec as programs
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.interrupts import interrupts
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.parsing.flags import KUBECTL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import variable
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.sandbox_server import TemporarySandbox
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.suggestions import command

_PORTS = range(2**16)
_CHECK = 0.5  # seconds between two checks that the server runs
# Variables of other programs that select a cluster: client libraries in a pod, helm and terraform.
_SELECTORS = re.compile(r"KUBERNETES_.*|HELM_KUBE.*|KUBE_(CONFIG_PATHS?|CTX.*|HOST|TOKEN|CLUSTER_CA.*)")
_OURS = {variable(name) for name in ("name", *(flag.long for flag in KUBECTL_FLAGS))}


def run(app: App, given: ParsedCommandLine) -> int:
    options = _options(given)
    sandbox = TemporarySandbox()
    try:
        asyncio.run(sandbox.start(*options, clock=SystemClock(), environ=app.user.environ))
        if not given.arguments:
            return asyncio.run(_serve(app, sandbox))
        return programs.foreground(given.arguments, env=environment(app.user.environ, sandbox.variables))
    finally:
        sandbox.end()


def _options(given: ParsedCommandLine) -> tuple[str, ...]:
    new_cluster.check_nodes(given["nodes"])
    if given["port"] not in _PORTS:
        raise UsageError(
            f"Invalid value for --port: it must be a whole number from 0 to {_PORTS[-1]}.",
            next_step="for instance: --port 8443",
        )
    port = ("--port", str(given["port"])) if given["port"] else ()
    return ("--nodes", str(given["nodes"]), *port)


def environment(environ: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The environment with these variables, and without those that select another cluster."""
    kept = {name: value for name, value in environ.items() if name not in _OURS and not _SELECTORS.fullmatch(name)}
    return {**kept, **variables}


async def _serve(app: App, sandbox: TemporarySandbox) -> int:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def heard() -> None:
        loop.call_soon_threadsafe(stop.set)

    with interrupts(heard):
        app.answer(" ".join(("export", *(f"{name}={command(value)}" for name, value in sandbox.variables.items()))))
        app.narrate("Ctrl-C deletes the sandbox.")
        while not stop.is_set():
            if sandbox.has_ended():
                raise sandbox.server.exited()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _CHECK)
    return 0
