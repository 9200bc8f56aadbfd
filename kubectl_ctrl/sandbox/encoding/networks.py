"""The cells of services, ingresses and endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding.facts import age, at, elided, labels

_MOST = 3


def _service(obj: Obj, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    address = next(iter(spec.get("clusterIPs") or ()), "<none>")
    ports = ",".join(map(_port, spec.get("ports") or ())) or "<none>"
    chosen = labels(spec.get("selector"))
    return [at(obj, "metadata.name"), spec.get("type", ""), address, _outside(obj), ports, age(obj, now), chosen]


def _port(port: Obj) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"


def _outside(obj: Obj) -> str:
    spec = obj.get("spec") or {}
    given = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or "<none>"
        case "LoadBalancer":
            return ",".join(filter(None, [_balancers(obj), *given])) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _balancers(obj: Obj) -> str:
    found = at(obj, "status.loadBalancer.ingress") or ()
    return ",".join(sorted({one.get("ip") or one.get("hostname") for one in found} - {None, ""}))


def _ingress(obj: Obj, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    ports = "80, 443" if spec.get("tls") else "80"
    kind = spec.get("ingressClassName", "<none>")
    return [at(obj, "metadata.name"), kind, _hosts(spec.get("rules") or []), _balancers(obj), ports, age(obj, now)]


def _hosts(rules: list[Obj]) -> str:
    """The server stops at the first rule after three hosts, and counts rules without a host as well."""
    found: list[str] = []
    for rule in rules:
        if len(found) == _MOST:
            return f"{','.join(found)} + {len(rules) - _MOST} more..."
        found += [rule["host"]] if rule.get("host") else []
    return ",".join(found) or "*"


def _ingress_class(obj: Obj, now: float) -> list[Any]:
    marks, parameters = at(obj, "metadata.annotations") or {}, at(obj, "spec.parameters")
    default = " (default)" if marks.get("ingressclass.kubernetes.io/is-default-class") == "true" else ""
    shown = "<none>"
    if parameters is not None:
        kind = ".".join(filter(None, (parameters.get("kind", ""), parameters.get("apiGroup"))))
        shown = f"{kind}/{parameters.get('name', '')}"
    return [f"{at(obj, 'metadata.name')}{default}", at(obj, "spec.controller") or "", shown, age(obj, now)]


def _endpoints(obj: Obj, now: float) -> list[Any]:
    found = list(_addresses(obj.get("subsets") or ()))
    more = f" + {len(found) - _MOST} more..." if len(found) > _MOST else ""
    shown = ",".join(found[:_MOST]) + more if found else "<none>"
    return [at(obj, "metadata.name"), shown, age(obj, now)]


def _addresses(subsets: Any) -> Iterator[str]:
    for subset in subsets:
        addresses = [one.get("ip", "") for one in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            for address in addresses:
                host = f"[{address}]" if ":" in address else address
                yield f"{host}:{port.get('port', 0)}"


def _slice(obj: Obj, now: float) -> list[Any]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()]
    kind = obj.get("addressType", "")
    return [at(obj, "metadata.name"), kind, elided(ports), elided(addresses), age(obj, now)]


CELLS: dict[str, Callable[[Obj, float], list[Any]]] = {
    "EndpointSlice.discovery.k8s.io": _slice,
    "Endpoints": _endpoints,
    "Ingress.networking.k8s.io": _ingress,
    "IngressClass.networking.k8s.io": _ingress_class,
    "Service": _service,
}
