"""Controllers of a user's own that get into the states which explain tells apart; each is for the test's ConfigMaps."""

from __future__ import annotations

from pathlib import Path

_HEAD = """\
import subprocess

from kubectl_ctrl import Context, Request, Resource, Result, controller, labels_changed, named

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
"""

# Looks at a ConfigMap only when its labels change.
FILTERED = """
async def reconcile(ctx: Context, request: Request) -> Result | None:
    await ctx.read.get(CONFIGMAPS, request.name)
    return None


CONTROLLER = controller("filtered", reconcile).for_(CONFIGMAPS, when=labels_changed)
"""

# Counts in the ConfigMap itself, and writes with a client of its own.
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

# Makes a Deployment of a ConfigMap, and has its replicas as the ConfigMap says, whoever else may decide them.
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

# For a type that no CRD brings.
HOMELESS = """
GHOSTS = Resource("ghosts.example.com", "v1", "ghosts", "Ghost")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


CONTROLLER = controller("homeless", reconcile).for_(GHOSTS)
"""


def written(folder: Path, name: str, code: str) -> str:
    """The file of a controller, as it is named on a command line."""
    path = folder / f"{name}.py"
    path.write_text(_HEAD + code)
    return str(path)
