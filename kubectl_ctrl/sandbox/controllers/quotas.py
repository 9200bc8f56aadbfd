"""The resource quota controller: how much of each limited resource a namespace uses."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from kubectl_ctrl.model.objects import Key, Obj, key_of, namespace_of
from kubectl_ctrl.model.resources import PODS, Resource
from kubectl_ctrl.sandbox.controllers.resources import CLAIMS, QUOTAS, SERVICES
from kubectl_ctrl.sandbox.controllers.workloads import WorkloadController, is_finished
from kubectl_ctrl.sandbox.kinds.quantities import amount, canonical
from kubectl_ctrl.sandbox.storage import StoredChange

_COUNTED = frozenset(
    {"pods", "services", "configmaps", "secrets", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"}
)
_COUNT = "count/"


class ResourceQuotas(WorkloadController):
    resource = QUOTAS
    source = "resourcequota-controller"

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == QUOTAS.full_name:
            yield change.key
        if namespace := change.key.namespace:
            yield from (key_of(quota) for quota in self.cluster.all(QUOTAS, namespace) if _limits(quota, table))

    def sync(self, key: Key) -> float | None:
        quota = self.cluster.get(QUOTAS, key)
        if quota is not None:
            hard = quota["spec"].get("hard") or {}
            used = {name: self._used(quota, name) for name in hard}
            self.write_status(quota, {"hard": dict(hard), "used": used})
        return None

    def _used(self, quota: Obj, name: str) -> str:
        namespace = namespace_of(quota)
        pods = [pod for pod in self.cluster.all(PODS, namespace) if not is_finished(pod) and _in_scopes(quota, pod)]
        if name in ("pods", f"{_COUNT}pods"):
            every = list(self.cluster.all(PODS, namespace))
            return str(len(pods) if name == "pods" else len(every))
        if name in _COUNTED or name.startswith(_COUNT):
            return str(sum(1 for _ in self.cluster.all(_resource(name.removeprefix(_COUNT)), namespace)))
        if name.startswith("services."):
            wanted = {"services.loadbalancers": "LoadBalancer", "services.nodeports": "NodePort"}.get(name)
            return str(sum(one["spec"].get("type") == wanted for one in self.cluster.all(SERVICES, namespace)))
        if name == "requests.storage":
            return total(_request(one["spec"], "requests", "storage") for one in self.cluster.all(CLAIMS, namespace))
        kind, _, resource = (
            name.rpartition(".") if name.split(".", maxsplit=1)[0] in ("requests", "limits") else ("requests", "", name)
        )
        return total(_of_pod(pod["spec"], kind, resource) for pod in pods)


def _limits(quota: Obj, table: str) -> bool:
    """Whether objects of that table count; pods count for most resources."""
    hard = quota["spec"].get("hard") or {}
    return table in (PODS.full_name, CLAIMS.full_name) or any(
        name.removeprefix(_COUNT).split(".")[0] == table.split(".", maxsplit=1)[0] for name in hard
    )


def _resource(table: str) -> Resource:
    """Enough of a resource type to find its table."""
    plural, _, group = table.partition(".")
    return Resource(group, "", plural, "")


def _in_scopes(quota: Obj, pod: Obj) -> bool:
    spec = pod["spec"]
    best_effort = not any(
        (one.get("resources") or {}).get(kind) for one in spec["containers"] for kind in ("requests", "limits")
    )
    truths = {
        "Terminating": "activeDeadlineSeconds" in spec,
        "NotTerminating": "activeDeadlineSeconds" not in spec,
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
    }
    return all(truths.get(scope, True) for scope in quota["spec"].get("scopes") or ())


def _of_pod(spec: Obj, kind: str, resource: str) -> str:
    """The sum of its containers, or more if a container of its start needs more."""
    main = [_request(one, kind, resource) for one in spec.get("containers") or ()]
    first = [_request(one, kind, resource) for one in spec.get("initContainers") or ()]
    return max([total(main), *first], key=amount)


def _request(spec: Obj, kind: str, resource: str) -> str:
    return str(((spec.get("resources") or {}).get(kind) or {}).get(resource, "0"))


def total(quantities: Iterable[str]) -> str:
    """The sum, in the form that the server returns; powers of 1024 if the first one has such a unit."""
    found = [one for one in quantities if amount(one)]
    value = sum(map(amount, found), Decimal(0))
    if found and found[0].endswith("i") and value % 1024 == 0:
        return canonical(f"{value // 1024}Ki")
    return canonical(f"{value:f}")
