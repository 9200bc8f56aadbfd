"""Clusters of ours that were never made: pages of the registry, and kubeconfigs to go with them."""

from __future__ import annotations

import base64
import os
from typing import Any

import yaml

from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, ca_fingerprint, load
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.value import replace
from tests.kubeconfig.kubeconfigs import certificate


def kubeconfig(current: str = "", **servers: str) -> str:
    """Context, cluster and user of one name for each server; the authority of each is made of its address."""
    content: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "contexts": [], "users": []}
    for name, server in servers.items():
        authority = base64.b64encode(f"authority of {server}".encode()).decode()
        cluster = {"server": server, "certificate-authority-data": authority}
        content["clusters"].append({"name": name, "cluster": cluster})
        content["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        content["users"].append({"name": name, "user": {"token": "not-a-token"}})
    return yaml.safe_dump(content | ({"current-context": current} if current else {}), sort_keys=False)


def made(
    registry: Registry, name: str, server: str, *, phase: Phase = Phase.READY, provider: str = "kind"
) -> ClusterEntry:
    """A cluster of ours, as it stands in the registry once it is made."""
    context = f"{provider}-{name}"
    place = registry.place(name)
    entry = ClusterEntry(
        name=name, provider=provider, phase=phase, began=1.0, folder=place, context=context, server=server
    )
    registry.write(entry)
    if phase is not Phase.CREATING:
        registry.write_kubeconfig(entry, kubeconfig(context, **{context: server}))
        resolved = load(ConfigFlags(kubeconfig=str(entry.kubeconfig)), {}, place)
        entry = replace(entry, ca=ca_fingerprint(resolved), uid=f"uid-of-{name}")
        registry.write(entry)
    return entry


def trusting_a_real_authority(entry: ClusterEntry) -> ClusterEntry:
    """The same, to be written, with an authority that TLS takes, in its kubeconfig too; nobody's server has it."""
    content = yaml.safe_load(entry.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(certificate("ca")).decode()
    entry.kubeconfig.write_text(yaml.safe_dump(content))
    resolved = load(ConfigFlags(kubeconfig=str(entry.kubeconfig)), {}, entry.folder)
    return replace(entry, ca=ca_fingerprint(resolved))


def runner_on(entry: ClusterEntry, run: str) -> Runner:
    """This process, as the runner of foo on that cluster."""
    return Runner(
        cluster=entry.uid,
        controller="foo",
        scope="default",
        pid=os.getpid(),
        run=run,
        controllers=("foo",),
        context=entry.context,
        since=1.0,
        holder=identity(run),
    )
