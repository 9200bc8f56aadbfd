"""`list`: the controllers, and where they are installed and run.

It works without a cluster, and does not wait long for one: values that are unknown after two seconds are `?`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output import answers
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import SystemClock, rfc3339
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CallError, CtrlError, NotFound, UsageError
from kubectl_ctrl.install.kinds import ref_of, shown
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.loader import bundled, sources
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import (
    CRDS,
    DEPLOYMENTS,
    HPAS,
    NAMESPACES,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from kubectl_ctrl.runs.instances import FoundInstances, Instance, look
from kubectl_ctrl.runs.takeover import UnrestoredDeployment, repairs
from kubectl_ctrl.runtime.builder import Via
from kubectl_ctrl.target.connection import cluster_id, credentials_from
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.value import Struct, field

_TIMEOUT = 2.0
# kubectl's short names, to fit the table into 80 columns.
_SHORT = {DEPLOYMENTS: "deploy", STATEFULSETS: "sts", REPLICASETS: "rs", PODS: "po", HPAS: "hpa", NAMESPACES: "ns"}
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class InstallState(StrEnum):
    """Whether a controller is installed in the cluster."""

    YES = "yes"
    NO = "no"
    PARTLY = "partly"
    UNKNOWN = "?"


class _Row(Struct, kw_only=True):
    """One controller: its declaration, and its state in the cluster if that is known."""

    sourced: SourcedController
    owns: tuple[Resource, ...]
    watches: tuple[Resource, ...]
    installed: InstallState = InstallState.UNKNOWN
    missing: tuple[str, ...] = ()
    found: FoundInstances | None = None
    repairs: list[UnrestoredDeployment] = field(default_factory=list)  # Deployments that a run has taken over
    rules: list[Obj] = field(default_factory=list)


def run(app: App, given: ParsedCommandLine) -> int:
    if given.arguments:
        raise UsageError("list takes no arguments.", next_step="kubectl ctrl list --help")
    form = answers.printer(given)
    if form.form == "name" and form.sort_by is None:
        app.answer_all(BUNDLED)
        return 0
    rows = [_declared(sourced) for sourced in sources.resolve(BUNDLED)]
    why = asyncio.run(_asked(app, given, rows))
    if why:
        app.narrate(f"INSTALLED and RUNNING are unknown: {why}")
    for repair in [repair for row in rows for repair in row.repairs]:
        how = "its next run, or --takeover, restores it" if repair.certain else "by a run that may still be active"
        app.narrate(f"{repair.taken.text} ({how})")
    rows = form.ordered(rows, _fields)
    if form.form in ("", "wide"):
        wide = form.form == "wide"
        header = ["NAME", "FOR", "OWNS", "WATCHES", "INSTALLED", "RUNNING", *(["NEEDS", "SUMMARY"] if wide else [])]
        app.answer(form.table([_cells(row, wide=wide) for row in rows], header))
    else:
        answers.printed(app, form, {"controllers": [_fields(row) for row in rows]}, "controllers")
    return 0


def _declared(sourced: SourcedController) -> _Row:
    spec = sourced.spec
    owns = tuple(dict.fromkeys(source.resource for source in spec.sources if source.via is Via.OWNER))
    watches = tuple(one for one in spec.resources if one not in spec.primaries and one not in owns)
    rules = [rule for role in sourced.parts().rbac for rule in role.get("rules") or ()]
    return _Row(sourced=sourced, owns=owns, watches=watches, rules=rules)


async def _asked(app: App, given: ParsedCommandLine, rows: Sequence[_Row]) -> str:
    """Fill the rows with the state in the cluster; returns the reason if some of it is unknown."""
    clock, asked = SystemClock(), ""
    try:
        async with clock.timeout(_TIMEOUT), AsyncExitStack() as held:
            resolved = app.meant(given, CommandEffect.READ)
            asked = credentials_from(resolved)
            client = await app.connected(resolved, clock=clock, rng=random.SystemRandom())
            held.push_async_callback(client.close)
            asked = "the cluster"
            cluster = await cluster_id(client, resolved)
            await asyncio.gather(*(_ask(app, client, cluster, row) for row in rows))
    except TimeoutError:
        return f"{asked} did not answer within {_TIMEOUT:g} s."
    except CtrlError as error:
        return app.briefly(error)
    if any(row.found and row.found.unseen for row in rows):
        return "Deployments or Leases cannot be read with these credentials; -o yaml names them."
    return ""


async def _ask(app: App, client: Client, cluster: str, row: _Row) -> None:
    name = row.sourced.spec.name

    async def running() -> None:
        row.found = await look(client, state_dir=app.user.state, cluster=cluster, name=name)

    async def installed() -> None:
        row.installed, row.missing = await _installed(client, row.sourced)

    async def taken_over() -> None:
        row.repairs = await repairs(client, [name])

    await asyncio.gather(running(), installed(), taken_over())


async def _installed(client: Client, sourced: SourcedController) -> tuple[InstallState, tuple[str, ...]]:
    """Whether all objects of install exist, and the missing ones."""
    objects = [obj for obj in needs(sourced.parts()) if obj["kind"] != NAMESPACES.kind]
    there = await asyncio.gather(*(_is_there(client, obj) for obj in objects))
    missing = tuple(shown(ref_of(obj)) for obj, found in zip(objects, there, strict=True) if found is False)
    if len(missing) == len(objects):
        return InstallState.NO, missing
    if missing:
        return InstallState.PARTLY, missing
    return (InstallState.UNKNOWN if None in there else InstallState.YES), ()


async def _is_there(client: Client, obj: Obj) -> bool | None:
    """None if it cannot be read. For a CRD: whether its type is served, since every user can read that."""
    try:
        if obj["kind"] == CRDS.kind:
            spec = obj["spec"]
            served = [one["name"] for one in spec["versions"] if one.get("served", True)]
            kind = spec["names"]["kind"]
            types = [Resource(spec["group"], version, spec["names"]["plural"], kind) for version in served]
            found = [await client.discovery.serves(one) for one in types]
            return all(one is not None for one in found)
        await client.get(ref_of(obj))
    except NotFound:
        return False
    except CallError:
        return None
    return True


def _cells(row: _Row, *, wide: bool) -> list[str]:
    spec = row.sourced.spec

    def named(resources: Sequence[Resource]) -> str:
        return ",".join(str(one) if wide else _SHORT.get(one, one.plural) for one in resources) or "-"

    cells = [spec.name, named(spec.primaries), named(row.owns), named(row.watches), row.installed.value, _running(row)]
    return [*cells, _account(row.rules), bundled.summary(spec.name)] if wide else cells


def _running(row: _Row) -> str:
    if row.found is None:
        return "?"
    text = ", ".join(place.short for place in row.found.places)
    return text or ("?" if row.found.unseen else "-")


def _account(rules: Sequence[Obj]) -> str:
    """A short form of rights, such as `write deployments,events; read foos`."""
    verbs: dict[str, set[str]] = {}
    for rule in rules:
        for resource in rule.get("resources") or ():
            verbs.setdefault(resource, set()).update(rule.get("verbs") or ())
    written = [name for name, may in verbs.items() if may & _WRITES]
    read = [name for name, may in verbs.items() if not may & _WRITES]
    return "; ".join(f"{verb} {','.join(names)}" for verb, names in (("write", written), ("read", read)) if names)


def _fields(row: _Row) -> dict[str, Any]:
    spec = row.sourced.spec
    return {
        "name": spec.name,
        "for": [str(one) for one in spec.primaries],
        "owns": [str(one) for one in row.owns],
        "watches": [str(one) for one in row.watches],
        "needs": row.rules,
        "installed": "unknown" if row.installed is InstallState.UNKNOWN else row.installed.value,
        "missing": list(row.missing),
        "running": None if row.found is None else [_place(place) for place in row.found.places],
        "takenOver": [str(repair.taken.ref) for repair in row.repairs],
        "unseen": list(row.found.unseen) if row.found else [],
        "summary": bundled.summary(spec.name),
    }


def _place(place: Instance) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": place.kind.value, "text": place.text, "namespace": place.scope}
    if runner := place.runner:
        known = not runner.unreadable
        fields |= {
            "pid": runner.pid if known else None,
            "run": runner.run,
            "context": runner.context,
            "since": rfc3339(runner.since) if known else None,
        }
    return fields
