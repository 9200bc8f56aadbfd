"""Custom controllers that get into the states of explain; each reconciles the ConfigMaps of a test."""

from __future__ import annotations

from pathlib import Path

_HEAD = """\
import subprocess

from kubectl_ctrl import Context, Request, Resource, Result, controller, labels_changed, named

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
"""

# Reconciles a ConfigMap only when its labels change.
FILTERED = """
async def reconcile(ctx: Context, request: Request) -> Result | None:
    await ctx.read.get(CONFIGMAPS, request.name)
    return None


CONTROLLER = controller("filtered", reconcile).for_(CONFIGMAPS, when=labels_changed)
"""

# Counts in the ConfigMap itself, and writes with another client.
LOOPER = """
async def reconcile(ctx: Context, request: Request) -> Result | None:
    found = await ctx.read.get(CONFIGMAPS, request.name)
    if found is None or request.name != "counter":
        return None
    count = int(found.get("data", {}).get("count", "0")) + 1
    patch = '{"data":{"count":"%d"}}' % count
    command = ["kubectl", "patch", "configmap", request.name, "--patch", patch]
    await ctx.in_thread(subprocess.run, [*command, "--field-manager=kubectl-ctrl-looper"])
    return None


CONTROLLER = controller("looper", reconcile).for_(CONFIGMAPS)
"""

# Creates a Deployment with the replicas of the ConfigMap, even if an autoscaler sets them.
NAIVE = """
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    found = await ctx.read.get(CONFIGMAPS, request.name)
    if found is None or request.name != "web":
        return None
    labels = {"app": request.name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    spec = {"replicas": int(found["data"]["replicas"]), "selector": {"matchLabels": labels}, "template": template}
    child = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": request.name}, "spec": spec}
    await ctx.write.ensure(child, owner=found, resource=DEPLOYMENTS)
    return None


CONTROLLER = controller("naive", reconcile).for_(CONFIGMAPS).owns(DEPLOYMENTS)
"""

# For a type without a CRD.
HOMELESS = """
GHOSTS = Resource("ghosts.example.com", "v1", "ghosts", "Ghost")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


CONTROLLER = controller("homeless", reconcile).for_(GHOSTS)
"""


def written(folder: Path, name: str, code: str) -> str:
    """Write the file of a controller; returns its path."""
    path = folder / f"{name}.py"
    path.write_text(_HEAD + code)
    return str(path)
