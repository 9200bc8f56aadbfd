"""Endpoints and EndpointSlices: the addresses of the pods behind a Service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, labels_of, name_of, namespace_of, uid_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import PODS, Resource
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.controllers.pods import is_ready
from kubectl_ctrl.sandbox.controllers.resources import ENDPOINTS, NODES, SERVICES, SLICES
from kubectl_ctrl.sandbox.controllers.workloads import is_finished
from kubectl_ctrl.sandbox.storage import StoredChange

_HEADLESS = "service.kubernetes.io/headless"
_TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time"
_SERVICE = "kubernetes.io/service-name"
_MANAGER = "endpoints.kubernetes.io/managed-by"
_SLICE_MANAGER = "endpointslice.kubernetes.io/managed-by"
_OWN = "endpointslice-controller.k8s.io"
_ZONE = "topology.kubernetes.io/zone"
_MOST = 100  # endpoints of one slice


class ServicePods(Controller):
    """A controller of objects that describe the pods of a Service."""

    resource: Resource

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == SERVICES.full_name:
            yield change.key
        elif table == PODS.full_name:
            for pod in filter(None, (change.old, change.new)):
                yield from self._services(pod)
        elif table == self.resource.full_name:
            yield Key(change.key.namespace, labels_of(change.obj).get(_SERVICE) or change.key.name)

    def _services(self, pod: Obj) -> Iterator[Key]:
        labels = labels_of(pod)
        for service in self.cluster.all(SERVICES, namespace_of(pod)):
            selector = service["spec"].get("selector")
            if selector and all(labels.get(key) == value for key, value in selector.items()):
                yield key_of(service)

    def _pods(self, service: Obj) -> list[Obj]:
        selector: dict[str, str] = service["spec"]["selector"]
        pods = self.cluster.all(PODS, namespace_of(service))
        found = [pod for pod in pods if all(labels_of(pod).get(key) == value for key, value in selector.items())]
        return [pod for pod in found if (pod.get("status") or {}).get("podIP") and not is_finished(pod)]

    def _service(self, key: Key) -> Obj | None:
        """A Service whose pods the cluster finds."""
        service = self.cluster.get(SERVICES, key)
        if service is None or is_deleting(service) or service["spec"].get("type") == "ExternalName":
            return None
        return service if service["spec"].get("selector") else None

    def _labels(self, service: Obj, own: dict[str, str]) -> dict[str, str]:
        apart = (_HEADLESS, _SERVICE, _SLICE_MANAGER)
        labels = {key: value for key, value in labels_of(service).items() if key not in apart}
        headless = {_HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}
        return {**labels, **headless, **own}

    def _note(self) -> dict[str, str]:
        return {_TRIGGERED: self.cluster.now}

    def _write(self, found: Obj | None, metadata: Obj, content: Obj) -> None:
        """Create the object, or change it if something other than the time of the change differs."""
        if found is None:
            head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
            given = {field: value for field, value in content.items() if value is not None}
            self.cluster.create({**head, "metadata": {**metadata, "annotations": self._note()}, **given})
        elif not same(labels_of(found), metadata["labels"]) or any(
            not same(found.get(field) or [], value or []) for field, value in content.items()
        ):
            labels = {**dict.fromkeys(labels_of(found)), **metadata["labels"]}
            patch = {"metadata": {"labels": labels, "annotations": self._note()}, **content}
            self.cluster.merge(self.resource, found, patch)


class Endpoints(ServicePods):
    resource = ENDPOINTS

    def sync(self, key: Key) -> float | None:
        found = self.cluster.get(ENDPOINTS, key)
        if self.cluster.get(SERVICES, key) is None:
            if found is not None and _MANAGER in labels_of(found):
                self.cluster.delete(ENDPOINTS, found)
            return None
        service = self._service(key)
        if service is None:
            return None
        labels = self._labels(service, {_MANAGER: "endpoint-controller"})
        metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
        self._write(found, metadata, {"subsets": self._subsets(service) or None})
        return None

    def _subsets(self, service: Obj) -> list[Obj]:
        """One for each different list of ports."""
        unready = bool(service["spec"].get("publishNotReadyAddresses"))
        groups: dict[str, tuple[list[Obj], list[Obj], list[Obj]]] = {}
        for pod in self._pods(service):
            if is_deleting(pod) and not unready:
                continue
            ports = [{key: value for key, value in port.items() if value != ""} for port in _ports(service, pod)]
            if not ports and service["spec"].get("ports"):
                continue
            group = groups.setdefault(repr(ports), (ports, [], []))
            group[1 if unready or is_ready(pod) else 2].append(_address(service, pod))
        return [_subset(*group) for _, group in sorted(groups.items())]


def _subset(ports: list[Obj], ready: list[Obj], other: list[Obj]) -> Obj:
    parts = {"addresses": ready, "notReadyAddresses": other, "ports": ports}
    order = {"addresses": _ip, "notReadyAddresses": _ip, "ports": _port_name}
    return {name: sorted(value, key=order[name]) for name, value in parts.items() if value}


def _ip(address: Obj) -> str:
    return str(address["ip"])


def _port_name(port: Obj) -> str:
    return str(port.get("name", ""))


def _address(service: Obj, pod: Obj) -> Obj:
    node = pod["spec"].get("nodeName")
    return {
        "ip": pod["status"]["podIP"],
        **({"hostname": pod["spec"]["hostname"]} if _shows_hostname(service, pod) else {}),
        **({"nodeName": node} if node else {}),
        "targetRef": _reference(pod),
    }


def _reference(pod: Obj) -> Obj:
    return {"kind": PODS.kind, "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}


def _shows_hostname(service: Obj, pod: Obj) -> bool:
    return bool(pod["spec"].get("hostname")) and pod["spec"].get("subdomain") == name_of(service)


def _ports(service: Obj, pod: Obj) -> list[Obj]:
    """The Service's ports with the pod's numbers, without those that the pod does not have."""
    found = []
    for port in service["spec"].get("ports") or ():
        number, protocol = _number(port, pod), port.get("protocol", "TCP")
        if number:
            application = {"appProtocol": port["appProtocol"]} if "appProtocol" in port else {}
            found.append({"name": port.get("name", ""), "port": number, "protocol": protocol, **application})
    return found


def _number(port: Obj, pod: Obj) -> int:
    target: Any = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"].get("containers") or ():
        for one in container.get("ports") or ():
            if one.get("name") == target and one.get("protocol", "TCP") == port.get("protocol", "TCP"):
                return int(one["containerPort"])
    return 0


class EndpointSlices(ServicePods):
    resource = SLICES

    def sync(self, key: Key) -> float | None:
        service = self._service(key)
        if service is None:
            return None
        own = {_SERVICE: key.name, _SLICE_MANAGER: _OWN}
        metadata = {
            "generateName": f"{key.name}-",
            "namespace": key.namespace,
            "labels": self._labels(service, own),
            "ownerReferences": [owner_reference(service)],
        }
        found = [
            one
            for one in self.cluster.controlled(SLICES, service)
            if labels_of(one).get(_SLICE_MANAGER) == _OWN and not is_deleting(one)
        ]
        wanted = self._contents(service)
        for place, content in enumerate(wanted):
            before = found[place] if place < len(found) else None
            type_ = {} if before is not None else {"addressType": "IPv4"}
            self._write(before, metadata, {**content, **type_})
        for surplus in found[len(wanted) :]:
            self.cluster.delete(SLICES, surplus)
        return None

    def _contents(self, service: Obj) -> list[Obj]:
        groups: dict[str, tuple[list[Obj], list[Obj]]] = {}
        for pod in self._pods(service):
            ports = _ports(service, pod)
            if self._has_node(service, pod) and (ports or not service["spec"].get("ports")):
                groups.setdefault(repr(ports), (ports, []))[1].append(self._endpoint(service, pod))
        found = [
            {"endpoints": endpoints[start : start + _MOST], "ports": ports}
            for _, (ports, endpoints) in sorted(groups.items())
            for start in range(0, len(endpoints), _MOST)
        ]
        return found or [{"endpoints": [], "ports": []}]

    def _has_node(self, service: Obj, pod: Obj) -> bool:
        node = self.cluster.get(NODES, Key("", pod["spec"].get("nodeName") or ""))
        return node is not None or bool(service["spec"].get("publishNotReadyAddresses"))

    def _endpoint(self, service: Obj, pod: Obj) -> Obj:
        serving, node = is_ready(pod), pod["spec"].get("nodeName")
        ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not is_deleting(pod))
        zone = labels_of(self.cluster.get(NODES, Key("", node)) or {"metadata": {}}).get(_ZONE) if node else None
        return {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": ready, "serving": serving, "terminating": is_deleting(pod)},
            **({"hostname": pod["spec"]["hostname"]} if _shows_hostname(service, pod) else {}),
            **({"nodeName": node} if node else {}),
            "targetRef": _reference(pod),
            **({"zone": zone} if zone else {}),
        }
