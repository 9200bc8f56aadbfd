"""What the tests of the cluster's controllers share: resource types, started controllers, the deeds of a kubelet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_ctrl.clock import rfc3339
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import EVENTS, PODS, Resource
from kubectl_ctrl.sandbox.controllers import resources
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.kinds.catalog import Generation, ServedKind
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present

_TYPES = (
    resources.DAEMONSETS,
    resources.CONTROLLER_REVISIONS,
    resources.JOBS,
    resources.CRONJOBS,
    resources.NODES,
    resources.CLAIMS,
    resources.ENDPOINTS,
    resources.SLICES,
    resources.BUDGETS,
    resources.QUOTAS,
)


def start(server: ScriptedServer, *kinds: type[Controller]) -> None:
    """Start these controllers alone."""
    served = {kind.table for kind in server.served.all()}
    for resource in _TYPES:
        if resource.full_name not in served:
            kind = ServedKind(
                resource=resource,
                singular=resource.kind.lower(),
                subresources={"status": ("get", "patch", "update")},
                generation=Generation.SPEC,
                storage_version=resource.version,
            )
            server.served.add(kind)
    access = server.access("kube-controller-manager")
    server.actors.start([kind(access) for kind in kinds], server.storage)


def workload(kind: str, name: str, /, api_version: str = "apps/v1", **spec: Any) -> Obj:
    """Selects and makes pods with the label `app`."""
    full = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": full}


def template(name: str, image: str = "nginx:1") -> Obj:
    containers = [{"name": "web", "image": image}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}


def new_image(image: str) -> Obj:
    return {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}


def pod(name: str, *, node: str = "", **labels: str) -> Obj:
    spec = {"containers": [{"name": "web", "image": "nginx:1"}], **({"nodeName": node} if node else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def names(server: ScriptedServer, resource: Resource = PODS) -> list[str]:
    return [obj["metadata"]["name"] for obj in server.objects(resource)]


def make_ready(server: ScriptedServer, *pods: str, ready: bool = True) -> None:
    for name in pods:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": rfc3339(server.clock.now()),
        }
        set_status(server, name, phase="Running", conditions=[condition])


def all_ready(server: ScriptedServer, rounds: int = 10) -> None:
    """As a kubelet: every new pod becomes ready, until no new one comes."""
    for _ in range(rounds):
        waiting = [one["metadata"]["name"] for one in server.objects(PODS) if phase(one) == "Pending"]
        make_ready(server, *waiting)


def phase(obj: Obj) -> str:
    return str(obj["status"].get("phase"))


def set_status(server: ScriptedServer, name: str, **status: Any) -> None:
    server.change(PODS, name, {"status": status}, subresource="status")


def end(server: ScriptedServer, *pods: str, how: str = "Succeeded", code: int = 0) -> None:
    terminated = {"exitCode": code, "finishedAt": rfc3339(server.clock.now())}
    for name in pods:
        statuses = [{"name": "web", "state": {"terminated": terminated}}]
        set_status(server, name, phase=how, containerStatuses=statuses)


def status_of(server: ScriptedServer, resource: Resource, name: str) -> Obj:
    status: Obj = present(server.get(resource, name)).get("status") or {}
    return status


def counts(status: Obj) -> dict[str, int]:
    """The numbers of a status."""
    return {key: value for key, value in status.items() if isinstance(value, int) and key != "observedGeneration"}


def reasons(server: ScriptedServer) -> list[str]:
    return [event["reason"] for event in sorted(server.objects(EVENTS), key=_version)]


def messages(server: ScriptedServer) -> list[str]:
    return [event["message"] for event in sorted(server.objects(EVENTS), key=_version)]


def _version(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])


def conditions(status: Obj) -> list[tuple[str, str]]:
    found: Iterable[Obj] = status.get("conditions") or ()
    return [(one["type"], one.get("reason", "")) for one in found if one["status"] == "True"]
