"""A sample controller, as a user writes one: a folder with code and manifests, and its own CRD."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from e2e.ctrl import Ctrl
from e2e.kube import Kubectl, wait_until

_CODE = '''\
"""mine: protects every Thing with a finalizer until its deletion."""

from kubectl_ctrl import Context, Request, Resource, Result, controller, is_deleting

THINGS = Resource({group!r}, "v1", "things", "Thing")
GUARD = "guard.example.com/hold"


async def reconcile(ctx: Context, request: Request) -> Result | None:
    thing = await ctx.read.get(THINGS, request.name)
    if thing is None:
        return None
    if not is_deleting(thing):
        await ctx.write.add_finalizer(thing, GUARD)
    else:
        await ctx.write.remove_finalizer(thing, GUARD)
    return None


CONTROLLER = controller({name!r}, reconcile).for_(THINGS)
'''

Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The controller's folder and names."""

    folder: Path
    name: str
    group: str

    @property
    def path(self) -> str:
        return str(self.folder)

    @property
    def crd(self) -> str:
        return f"things.{self.group}"

    @property
    def system(self) -> str:
        return f"{self.name}-system"

    @property
    def account(self) -> str:
        return f"kubectl-ctrl-{self.name}"

    @property
    def selector(self) -> str:
        return f"app.kubernetes.io/managed-by=kubectl-ctrl,app.kubernetes.io/name={self.name}"

    @property
    def lines(self) -> list[str]:
        """The objects in the output of install, in its order."""
        rbac = "rbac.authorization.k8s.io"
        return [
            f"customresourcedefinition.apiextensions.k8s.io/{self.crd}",
            f"namespace/{self.system}",
            f"serviceaccount/{self.account}",
            f"clusterrole.{rbac}/{self.account}",
            f"role.{rbac}/{self.account}",
            f"clusterrolebinding.{rbac}/{self.account}",
            f"rolebinding.{rbac}/{self.account}",
        ]

    def manifest(self, part: str = "crd") -> dict[str, Any]:
        content: dict[str, Any] = yaml.safe_load((self.folder / f"{part}.yaml").read_text())
        return content

    def change(self, change: Change, part: str = "crd") -> None:
        content = self.manifest(part)
        change(content)
        (self.folder / f"{part}.yaml").write_text(yaml.safe_dump(content))

    def thing(self, name: str, *finalizers: str) -> dict[str, Any]:
        meta: dict[str, Any] = {"name": name}
        if finalizers:
            meta["finalizers"] = list(finalizers)
        return {"apiVersion": f"{self.group}/v1", "kind": "Thing", "metadata": meta, "spec": {"size": 1}}

    def remains(self, kubectl: Kubectl) -> list[str]:
        """The objects in the cluster with its labels, as kubectl prints them."""
        kinds = "clusterroles,clusterrolebindings,namespaces,customresourcedefinitions"
        wide = kubectl("get", kinds, f"--selector={self.selector}", "--output=name")
        inside = kubectl(
            "get", "serviceaccounts,roles,rolebindings", "-A", f"--selector={self.selector}", "--output=name"
        )
        return sorted((wide + inside).split())


def write_sample(folder: Path, number: str) -> Sample:
    """Write one; the number distinguishes it from those of other tests."""
    made = Sample(folder=folder, name=f"thing{number}", group=f"thing{number}.example.com")
    folder.mkdir()
    (folder / "controller.py").write_text(_CODE.format(name=made.name, group=made.group))
    (folder / "crd.yaml").write_text(json.dumps(_crd(made)))
    (folder / "rbac.yaml").write_text(json.dumps(_role(made)))
    return made


def _crd(made: Sample) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": made.crd},
        "spec": {
            "group": made.group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _role(made: Sample) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": made.account},
        "rules": [{"apiGroups": [made.group], "resources": ["things"], "verbs": ["get", "list", "watch", "patch"]}],
    }


def _things(made: Sample, kubectl: Kubectl) -> dict[str, Any]:
    """All objects of its kind; an AssertionError while its CRD is being created or deleted."""
    none: dict[str, Any] = {"items": []}
    return kubectl.json("get", made.crd, "--all-namespaces") if kubectl.find("crd", made.crd) else none


def delete_sample(made: Sample, kubectl: Kubectl, ctrl: Ctrl) -> None:
    """Remove all of it from the cluster."""
    for started in ctrl.all_started:
        started.kill()
    for item in wait_until(lambda: _things(made, kubectl), what=f"the objects of {made.crd}")["items"]:
        where = f"--namespace={item['metadata']['namespace']}"
        free = '{"metadata":{"finalizers":null}}'
        kubectl.try_("patch", made.crd, item["metadata"]["name"], where, "--type=merge", f"--patch={free}")
    kubectl.try_("delete", "crd", made.crd, "--ignore-not-found", "--timeout=100s")
    kinds = "clusterroles,clusterrolebindings"
    kubectl.try_("delete", kinds, f"--selector={made.selector}")
    kubectl.try_("delete", "namespace", made.system, "--ignore-not-found", "--wait=false")
