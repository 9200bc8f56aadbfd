"""What the admission plugins and the allocators of a full cluster add to a new object.

| kind | added or refused |
|---|---|
| Pod | its ServiceAccount, with a token volume; its priority; tolerations of a lost node for five minutes |
| Service | cluster IP, IP families, node ports |
| PersistentVolumeClaim | the default class; the finalizer that keeps a used claim |
| PersistentVolume | the finalizer that keeps a bound volume |
| Node | the taint of a node that is not ready |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS, Resource
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.kinds.checks.words import invalid
from kubectl_ctrl.value import Value

_TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME_PREFIX = "kube-api-access-"
_NODE = "node.kubernetes.io/"
_ADDRESSES = ipaddress.IPv4Network("10.96.0.0/12")
_FIRST_ADDRESS = 2  # the first one is the API server's own
_NODE_PORTS = range(30000, 32768)
_SYSTEM = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_SERVICES = Resource("", "v1", "services", "Service")


class Lookups(Value):
    """The stored objects that admission reads, and a source of random letters for names."""

    one: Callable[[str, str, str], Obj | None]  # table, namespace, name
    all: Callable[[str], Iterable[Obj]]
    suffix: Callable[[], str]


def admitted(obj: Obj, lookups: Lookups, *, full: bool = False) -> Obj:
    """The object with everything that a full cluster adds; unchanged without `full`."""
    plugin = _PLUGINS.get((obj["apiVersion"], obj["kind"])) if full else None
    return obj if plugin is None else plugin(obj, lookups)


# -- pods


def _pod(pod: Obj, lookups: Lookups) -> Obj:
    spec = dict(pod.get("spec") or {})
    if "kubernetes.io/config.mirror" not in (pod["metadata"].get("annotations") or {}):
        spec = _with_account(pod, spec, lookups)
    spec = _with_priority(pod, spec, lookups)
    return {**pod, "spec": _tolerant(spec)}


def _refused(pod: Obj, why: str) -> answers.Refusal:
    return answers.forbidden(PODS, pod["metadata"]["name"], why)


def _with_account(pod: Obj, spec: Obj, lookups: Lookups) -> Obj:
    name, namespace = spec.get("serviceAccountName") or "default", pod["metadata"].get("namespace", "")
    account = lookups.one("serviceaccounts", namespace, name)
    if account is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise _refused(pod, why)
    spec |= {"serviceAccountName": name, "serviceAccount": name}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
    return _with_token(spec, lookups) if wanted else spec


def _with_token(spec: Obj, lookups: Lookups) -> Obj:
    """Every container gets the token, unless it mounts something else there."""
    volumes = spec.get("volumes") or []
    found = next((one["name"] for one in volumes if one.get("name", "").startswith(_VOLUME_PREFIX)), "")
    name = found or _VOLUME_PREFIX + lookups.suffix()
    mounted = {key: [_mounting(one, name) for one in spec[key]] for key in _CONTAINERS if spec.get(key)}
    if all(new is one for key, items in mounted.items() for new, one in zip(items, spec[key], strict=True)):
        return spec
    return {**spec, **mounted, "volumes": volumes if found else [*volumes, _token_volume(name)]}


_CONTAINERS = ("initContainers", "containers")


def _mounting(container: Obj, name: str) -> Obj:
    mounts = container.get("volumeMounts") or []
    if any(mount.get("mountPath") == _TOKENS for mount in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, {"name": name, "readOnly": True, "mountPath": _TOKENS}]}


def _token_volume(name: str) -> Obj:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}


def _with_priority(pod: Obj, spec: Obj, lookups: Lookups) -> Obj:
    name, value, policy = _priority(pod, spec.get("priorityClassName") or "", lookups)
    for field, shown, computed in (
        ("priority", "integer value of priority", value),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ):
        if spec.get(field) not in (None, computed):
            why = (
                f"the {shown} ({spec[field]}) must not be provided in pod spec; priority admission controller computed "
            )
            raise _refused(pod, f"{why}{computed} from the given PriorityClass name")
    spec |= {"priority": value, "preemptionPolicy": policy}
    return {**spec, "priorityClassName": name} if name else spec


def _priority(pod: Obj, name: str, lookups: Lookups) -> tuple[str, int, str]:
    """The name, value and policy of the pod's priority class, or of the default one."""
    lower = "PreemptLowerPriority"
    if not name:
        defaults = [one for one in lookups.all("priorityclasses.scheduling.k8s.io") if one.get("globalDefault")]
        found = min(defaults, key=lambda one: int(one["value"]), default=None)
    else:
        found = lookups.one("priorityclasses.scheduling.k8s.io", "", name)
        if found is None and name in _SYSTEM:
            return name, _SYSTEM[name], lower
        if found is None:
            raise _refused(pod, f"no PriorityClass with name {name} was found")
    if found is None:
        return "", 0, lower
    return found["metadata"]["name"], int(found["value"]), found.get("preemptionPolicy") or lower


def _tolerant(spec: Obj) -> Obj:
    """The pod stays for five minutes on a node that is not ready or cannot be reached."""
    given = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in (f"{_NODE}not-ready", f"{_NODE}unreachable")
        if not any(_tolerates(one, key) for one in given)
    ]
    return {**spec, "tolerations": [*given, *added]} if added else spec


def _tolerates(toleration: Obj, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


# -- services


def _service(service: Obj, lookups: Lookups) -> Obj:
    spec = dict(service.get("spec") or {})
    if spec.get("type") == "ExternalName":
        return service
    others = [one.get("spec") or {} for one in lookups.all("services")]
    spec |= _addressed(service, spec, {ip for one in others for ip in one.get("clusterIPs") or ()})
    used = {(port.get("protocol"), port.get("nodePort")) for one in others for port in one.get("ports") or ()}
    if spec["type"] == "NodePort" or (spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts")):
        spec["ports"] = _with_node_ports(service, spec.get("ports") or [], used)
    if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        taken = {*(number for _, number in used), *(port.get("nodePort") for port in spec.get("ports") or ())}
        free = next(number for number in _NODE_PORTS if number not in taken)
        spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or free
    return {**service, "spec": spec}


def _addressed(service: Obj, spec: Obj, used: set[str]) -> Obj:
    given = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
    if given == "None":
        if spec.get("selector"):
            families, policy = ["IPv4"], "SingleStack"
        else:
            families, policy = ["IPv4", "IPv6"], "RequireDualStack"
    else:
        families, policy = ["IPv4"], "SingleStack"
        given = _taken(service, given, used) if given else _free_address(used)
    return {
        "clusterIP": given,
        "clusterIPs": spec.get("clusterIPs") or [given],
        "ipFamilies": spec.get("ipFamilies") or families,
        "ipFamilyPolicy": spec.get("ipFamilyPolicy") or policy,
    }


def _free_address(used: set[str]) -> str:
    numbers = range(_FIRST_ADDRESS, _ADDRESSES.num_addresses - 1)
    return next(str(_ADDRESSES[number]) for number in numbers if str(_ADDRESSES[number]) not in used)


def _taken(service: Obj, wanted: str, used: set[str]) -> str:
    said = ""
    try:
        if ipaddress.ip_address(wanted) not in _ADDRESSES:
            said = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {_ADDRESSES}"
    except ValueError:
        return wanted  # the checks of the kind refuse it
    if wanted in used:
        said = "provided IP is already allocated"
    if said:
        _refuse(service, "spec.clusterIPs", [wanted], f"failed to allocate IP {wanted}: {said}")
    return wanted


def _with_node_ports(service: Obj, ports: list[Obj], used: set[tuple[Any, Any]]) -> list[Obj]:
    """One number serves all protocols of a port."""
    by_port: dict[Any, int] = {}
    result = []
    for place, port in enumerate(ports):
        number = port.get("nodePort") or by_port.get(port.get("port")) or _free_port(used)
        if port.get("nodePort"):
            _check_node_port(service, place, port, used)
        used.add((port.get("protocol"), number))
        by_port[port.get("port")] = number
        result.append({**port, "nodePort": number})
    return result


def _free_port(used: set[tuple[Any, Any]]) -> int:
    taken = {number for _, number in used}
    return next(number for number in _NODE_PORTS if number not in taken)


def _check_node_port(service: Obj, place: int, port: Obj, used: set[tuple[Any, Any]]) -> None:
    field, number = f"spec.ports[{place}].nodePort", port["nodePort"]
    if number not in _NODE_PORTS:
        words = "provided port is not in the valid range. The range of valid ports is 30000-32767"
        _refuse(service, field, number, words)
    if (port.get("protocol"), number) in used:
        _refuse(service, field, number, "provided port is already allocated")


def _refuse(service: Obj, field: str, value: Any, words: str) -> None:
    raise answers.invalid(_SERVICES, service["metadata"]["name"], [invalid(field, value, words)])


def kept(service: Obj, old: Obj) -> Obj:
    """A changed Service with the addresses and ports that its writer left out."""
    spec, before = dict(service["spec"]), old["spec"]
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return service
    address = spec.get("clusterIP") or before.get("clusterIP")
    if address and spec.get("clusterIPs", [""])[0] != address:
        spec["clusterIPs"] = [address] if address != before.get("clusterIP") else before["clusterIPs"]
    if address:
        spec["clusterIP"] = address
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if name in before and not spec.get(name):
            spec[name] = before[name]
    numbers = {(one.get("protocol"), one.get("port")): one.get("nodePort") for one in before.get("ports") or ()}
    if spec.get("type") in ("NodePort", "LoadBalancer") and spec.get("ports"):
        spec["ports"] = [
            {**one, "nodePort": number}
            if not one.get("nodePort") and (number := numbers.get((one.get("protocol"), one.get("port"))))
            else one
            for one in spec["ports"]
        ]
    return {**service, "spec": spec}


# -- the rest


def _claim(claim: Obj, lookups: Lookups) -> Obj:
    spec = dict(claim.get("spec") or {})
    if spec.get("storageClassName") is None:
        classes = lookups.all("storageclasses.storage.k8s.io")
        found = [one for one in classes if (one["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"]
        newest = max(
            found, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]), default=None
        )
        if newest is not None:
            spec["storageClassName"] = newest["metadata"]["name"]
    return _finalized({**claim, "spec": spec}, "kubernetes.io/pvc-protection")


def _volume(volume: Obj, _: Lookups) -> Obj:
    return _finalized(volume, "kubernetes.io/pv-protection")


def _finalized(obj: Obj, finalizer: str) -> Obj:
    meta = obj["metadata"]
    given = meta.get("finalizers") or []
    return obj if finalizer in given else {**obj, "metadata": {**meta, "finalizers": [*given, finalizer]}}


def _node(node: Obj, _: Lookups) -> Obj:
    spec = dict(node.get("spec") or {})
    taint = {"key": f"{_NODE}not-ready", "effect": "NoSchedule"}
    taints = spec.get("taints") or []
    return node if taint in taints else {**node, "spec": {**spec, "taints": [*taints, taint]}}


_PLUGINS: dict[tuple[str, str], Callable[[Obj, Lookups], Obj]] = {
    ("v1", "Node"): _node,
    ("v1", "PersistentVolume"): _volume,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "Pod"): _pod,
    ("v1", "Service"): _service,
}
