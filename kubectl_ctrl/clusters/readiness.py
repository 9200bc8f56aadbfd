"""Waiting for a cluster: its API server answers through the cluster's own kubeconfig, and its nodes are ready."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.clusters.provider import Machine, Note
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import CallError, NotFound, ServerError, TimedOut
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, ca_fingerprint, load
from kubectl_ctrl.model.conditions import find, is_true
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj, name_of, uid_of
from kubectl_ctrl.model.resources import NAMESPACES, Resource
from kubectl_ctrl.value import Value
from kubectl_ctrl.version import VERSION

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client

_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_CALL = 5.0  # seconds for one request
_PACE = 0.2
_MOST_NODES = 3  # in a message


class ClusterIdentity(Value, kw_only=True):
    """The identity of a cluster and its version, as its API server reports them."""

    server: str
    ca: str
    uid: str
    version: str


async def answering(
    entry: ClusterEntry,
    machine: Machine,
    patience: float,
    note: Note,
    *,
    nodes: int | None = None,
    file: Path | None = None,
) -> ClusterIdentity:
    """Return when its API server is ready and, with a number, when it has at least so many nodes, all of them ready.

    After `patience` seconds, raises TimedOut with what is missing. `file` is a kubeconfig to use instead of the
    cluster's own, which does not exist before the cluster is created.
    """
    clock = machine.clock
    end, noted = clock.elapsed() + patience, ""
    async with _connected(entry, file or entry.kubeconfig, machine) as (client, resolved):
        while missing := await _missing(client, nodes):
            if clock.elapsed() >= end:
                raise TimedOut(f"Cluster {entry.name!r} is not ready after {format_duration(patience)}: {missing}.")
            if missing != noted:
                note(f"waiting: {missing}")
                noted = missing
            await clock.sleep(_PACE)
        version = json.loads((await client.raw("GET", "/version")).body)["gitVersion"]
        uid = uid_of(await client.get(NAMESPACES.ref("kube-system")))
        return ClusterIdentity(server=resolved.server, ca=ca_fingerprint(resolved), uid=uid, version=version)


@asynccontextmanager
async def _connected(entry: ClusterEntry, file: Path, machine: Machine) -> AsyncIterator[tuple[Client, Resolved]]:
    """A client of the cluster through that file alone, without the user's kubeconfig."""
    from kubectl_ctrl.client.connect import connect

    flags = ConfigFlags(kubeconfig=str(file), context=entry.context)
    resolved = load(flags, machine.environ, Path(machine.environ.get("HOME") or entry.folder))
    client = await connect(
        resolved,
        clock=machine.clock,
        rng=Random(entry.name),  # noqa: S311  # for the jitter of retries
        environ=machine.environ,
        user_agent=f"kubectl-ctrl/{VERSION}",
    )
    try:
        yield client.scoped(Scope(timeout=_CALL)), resolved
    finally:
        await client.close()


async def _missing(client: Client, nodes: int | None) -> str:
    """The first condition that is not met, as a clause, or ""."""
    try:
        await client.raw("GET", "/readyz")
        return "" if nodes is None else await _missing_nodes(client, nodes)
    except ServerError as error:
        failing = ", ".join(re.findall(r"\[-\](\S+)", error.message))
        return f"its API server has not passed {failing}" if failing else "its API server is not ready"
    except CallError as error:
        return error.message.splitlines()[0].rstrip(".")


async def _missing_nodes(client: Client, least: int) -> str:
    # Kubernetes creates the service account a moment after the namespace, and rejects pods until it exists.
    try:
        await client.get(_ACCOUNTS.ref("default", "default"))
    except NotFound:
        return "namespace default has no service account yet"
    found = (await client.list(_NODES)).items
    if len(found) < least:
        return f"{len(found)} of {least} nodes exist"
    waiting = [f"node {name_of(node)} is not Ready ({_why(node)})" for node in found if not is_true(node, "Ready")]
    more = f" and {len(waiting) - _MOST_NODES} more" if len(waiting) > _MOST_NODES else ""
    return ", ".join(waiting[:_MOST_NODES]) + more


def _why(node: Obj) -> str:
    ready = find(node, "Ready") or {}
    return str(ready.get("message") or ready.get("reason") or "it has not reported yet")
