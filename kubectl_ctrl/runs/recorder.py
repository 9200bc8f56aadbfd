"""The recording of a run: its file, the record of the run itself, and the names of its resource types."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.history import writer
from kubectl_ctrl.kubeconfig.resolution import ca_fingerprint
from kubectl_ctrl.model.record import RecordedController, RecordedRun, RecordedType
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.settings import Program, RunPlan
from kubectl_ctrl.runtime.builder import Via
from kubectl_ctrl.runtime.observers import Observer
from kubectl_ctrl.target import guard
from kubectl_ctrl.value import Value
from kubectl_ctrl.version import VERSION

_log = logging.getLogger(__name__)

# A type that is not served yet may be installed during the run.
_RETRY_AFTER = 30.0


class PreparedRecording(Value, kw_only=True):
    """The recording before the run starts."""

    text: str  # the file, or why there is no recording
    runs: frozenset[str] = frozenset()  # ids of runs that are already in the file
    clusters: tuple[str, ...] = ()  # recorded keys of the cluster, newest first


def prepared(plan: RunPlan) -> PreparedRecording:
    """Open the file, or create it. A problem with it is reported and does not stop the run."""
    if plan.record is None:
        return PreparedRecording(text="not recorded (--record off)")
    try:
        file = writer.prepare(plan.record)
    except CtrlError as error:
        return PreparedRecording(text=f"not recorded: {error.message} Next: {error.next_step}")
    if file.too_open:
        _log.warning("%s", file.too_open, extra={"action": "recording.open"})
    return PreparedRecording(
        text=f"recorded in {plan.record}",
        runs=file.runs,
        clusters=file.clusters.get((plan.resolved.server, _ca(plan)), ()),
    )


@asynccontextmanager
async def recorded(plan: RunPlan, cluster: str, client: Client) -> AsyncIterator[tuple[Observer, ...]]:
    """The observers that record, for the block; none with `--record off`."""
    if plan.record is None:
        yield ()
        return
    recorder = writer.Recorder(plan.record, run_of(plan, cluster), clock=plan.clock, caps=plan.caps)
    naming = asyncio.create_task(_name_types(plan, client, recorder), name="names for the recording")
    try:
        yield (recorder.observe,)
    finally:
        naming.cancel()
        await asyncio.wait([naming])
        recorder.close()


def run_of(plan: RunPlan, cluster: str) -> RecordedRun:
    return RecordedRun(
        id=plan.options.run_id,
        cluster=cluster,
        context=guard.context_name(plan.resolved),
        server=plan.resolved.server,
        ca=_ca(plan),
        namespace=plan.namespace,
        labels=plan.options.labels,
        controllers=tuple(map(_played, plan.controllers)),
        pid=os.getpid(),
        host=socket.gethostname(),
        holder=identity(plan.options.run_id),
        program=VERSION,
        began=plan.clock.now(),
    )


def _ca(plan: RunPlan) -> str:
    try:
        return ca_fingerprint(plan.resolved)
    except CtrlError:  # the file was readable when the run connected; losing it must not stop the run
        return ""


def _played(program: Program) -> RecordedController:
    spec = program.spec
    owned = [link for source in spec.sources if source.via is Via.OWNER for link in (*source.through, source.resource)]
    watched = [source.resource for source in spec.sources if source.via is Via.MAPPING]
    return RecordedController(
        name=spec.name,
        word=program.word,
        code=program.file,
        settings=tuple(sorted(program.settings.items())),
        primaries=spec.primaries,
        owns=tuple(dict.fromkeys(owned)),
        watches=tuple(dict.fromkeys(watched)),
        manager=spec.field_manager,
    )


async def _name_types(plan: RunPlan, client: Client, recorder: writer.Recorder) -> None:
    """Record the names under which the cluster serves the types of the controllers."""
    missing = list(dict.fromkeys(resource for spec in plan.specs for resource in spec.resources))
    while missing := [one for one in missing if not await _named(one, client, recorder)]:
        await plan.clock.sleep(_RETRY_AFTER)


async def _named(resource: Resource, client: Client, recorder: writer.Recorder) -> bool:
    try:
        api = await client.discovery.serves(resource)
    except CtrlError:
        return False
    if api is not None:
        recorder.know([RecordedType(resource=api.resource, singular=api.singular, short_names=api.short_names)])
    return api is not None
