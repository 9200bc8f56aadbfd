"""Services, Ingresses and NetworkPolicies.

| kind | checked |
|---|---|
| Service | ports, type, affinity, selector, policies, external name; the cluster IP never changes |
| Ingress | hosts, paths, backends, TLS |
| NetworkPolicy | selectors, ports, peers, types |
"""

from __future__ import annotations

import ipaddress
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds.checks.containers import PROTOCOLS
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    duplicate,
    forbidden,
    invalid,
    label,
    labels,
    one_of,
    port,
    port_name,
    required,
    selector,
    subdomain,
    texts,
    unsupported,
    wildcard,
)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_BAD_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS = ("/..", "/.")


def service(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    kind, ports, headless = spec.get("type"), spec.get("ports") or [], spec.get("clusterIP") == "None"
    if old is not None:
        yield from _same_address(spec, old.get("spec") or {})
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if headless and kind in ("LoadBalancer", "NodePort"):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    yield from _ports(ports)
    yield from labels("spec.selector", spec.get("selector"))
    yield from one_of("spec.sessionAffinity", spec.get("sessionAffinity"), "ClientIP", "None")
    yield from one_of("spec.type", kind, *_TYPES)
    yield from _numbers(ports, kind)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        yield forbidden("spec.allocateLoadBalancerNodePorts", "may only be used when `type` is 'LoadBalancer'")
    yield from _policies(spec, kind)


def _same_address(spec: Obj, old: Obj) -> Found:
    if "ExternalName" in (spec.get("type"), old.get("type")):
        return
    new, before = _addresses(spec), _addresses(old)
    if before and not new:
        yield invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
    elif before and new[0] != before[0]:
        yield invalid("spec.clusterIPs[0]", new, "may not change once set")


def _addresses(spec: Obj) -> list[Any]:
    return spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])


def _external_name(spec: Obj) -> Found:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden(f"spec.{name}", "may not be set for ExternalName services")
    if name := (spec.get("externalName") or "").removesuffix("."):
        yield from texts("spec.externalName", name, subdomain)
    else:
        yield required("spec.externalName")


def _ports(ports: list[Obj]) -> Found:
    names: set[str] = set()
    for place, one in enumerate(ports):
        at, name = f"spec.ports[{place}]", one.get("name") or ""
        if len(ports) > 1 and not name:
            yield required(f"{at}.name")
        elif name:
            yield from texts(f"{at}.name", name, label)
            if name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        yield from port(f"{at}.port", one.get("port", 0))
        yield from one_of(f"{at}.protocol", one.get("protocol"), *PROTOCOLS)
        yield from port(f"{at}.targetPort", one.get("targetPort", 0))


def _numbers(ports: list[Obj], kind: Any) -> Found:
    """No number is used twice."""
    if kind == "ClusterIP":
        for place, one in enumerate(ports):
            if one.get("nodePort"):
                yield forbidden(f"spec.ports[{place}].nodePort", "may not be used when `type` is 'ClusterIP'")
    nodes, numbers = set(), set()
    for place, one in enumerate(ports):
        key = (one.get("protocol"), one.get("nodePort"))
        if one.get("nodePort") and key in nodes:
            yield duplicate(f"spec.ports[{place}].nodePort", one["nodePort"])
        nodes.add(key)
    for place, one in enumerate(ports):
        protocol, number = one.get("protocol"), one.get("port")
        if (protocol, number) in numbers:
            whole = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
            yield duplicate(f"spec.ports[{place}]", {**whole, "TargetPort": 0, "NodePort": 0})
        numbers.add((protocol, number))


def _policies(spec: Obj, kind: Any) -> Found:
    outside = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    policy = spec.get("externalTrafficPolicy")
    if outside:
        yield from one_of("spec.externalTrafficPolicy", policy, "Cluster", "Local")
    elif policy:
        words = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", policy, words)
    if (policy := spec.get("internalTrafficPolicy")) is not None:
        yield from one_of("spec.internalTrafficPolicy", policy, "Cluster", "Local")


# -- Ingress


def ingress(obj: Obj, _old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend("spec.defaultBackend", spec["defaultBackend"])
    for place, rule in enumerate(spec.get("rules") or ()):
        yield from _rule(f"spec.rules[{place}]", rule)
    for place, tls in enumerate(spec.get("tls") or ()):
        for at, host in enumerate(tls.get("hosts") or ()):
            yield from texts(f"spec.tls[{place}].hosts[{at}]", host, wildcard if "*" in host else subdomain)
        if tls.get("secretName"):
            yield from texts(f"spec.tls[{place}].secretName", tls["secretName"], subdomain)
    if spec.get("ingressClassName") is not None:
        yield from texts("spec.ingressClassName", spec["ingressClassName"], subdomain)


def _rule(path: str, rule: Obj) -> Found:
    if host := rule.get("host"):
        if _is_address(host):
            yield invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
        yield from texts(f"{path}.host", host, wildcard if "*" in host else subdomain)
    if (http := rule.get("http")) is None:
        return
    if not http.get("paths"):
        yield required(f"{path}.http.paths")
    for place, one in enumerate(http.get("paths") or ()):
        yield from _path(f"{path}.http.paths[{place}]", one)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _path(path: str, one: Obj) -> Found:
    kind, given = one.get("pathType"), one.get("path") or ""
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    exact = kind in ("Exact", "Prefix")
    if not exact and kind != "ImplementationSpecific":
        yield unsupported(f"{path}.pathType", kind, "Exact", "ImplementationSpecific", "Prefix")
    elif not given.startswith("/") and (exact or given):
        yield invalid(f"{path}.path", given, "must be an absolute path")
    if exact:
        for part in _BAD_PARTS:
            if part in given:
                yield invalid(f"{path}.path", given, f"must not contain '{part}'")
        for end in _BAD_ENDS:
            if given.endswith(end):
                yield invalid(f"{path}.path", given, f"cannot end with '{end}'")
    yield from _backend(f"{path}.backend", one.get("backend") or {})


def _backend(path: str, backend: Obj) -> Found:
    found, resource = backend.get("service"), backend.get("resource")
    if found is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        for name in ("kind", "name"):
            if not resource.get(name):
                yield required(f"{path}.resource.{name}")
    elif found is None:
        yield invalid(path, "", "resource or service backend is required")
    else:
        yield from _target(path, found)


def _target(path: str, found: Obj) -> Found:
    if found.get("name"):
        yield from texts(f"{path}.service.name", found["name"], label)
    else:
        yield required(f"{path}.service.name")
    given = found.get("port") or {}
    if given.get("name") and given.get("number"):
        yield invalid(path, "", "cannot set both port name & port number")
    elif given.get("name"):
        yield from texts(f"{path}.service.port.name", given["name"], port_name)
    elif given.get("number"):
        yield from port(f"{path}.service.port.number", given["number"])
    else:
        yield required(path, "port name or number is required")


# -- NetworkPolicy


def network_policy(obj: Obj, _old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    yield from selector("spec.podSelector", spec.get("podSelector"))
    for way, peers in (("ingress", "from"), ("egress", "to")):
        for place, rule in enumerate(spec.get(way) or ()):
            for at, one in enumerate(rule.get("ports") or ()):
                yield from _policy_port(f"spec.{way}[{place}].ports[{at}]", one)
            for at, one in enumerate(rule.get(peers) or ()):
                yield from _peer(f"spec.{way}[{place}].{peers}[{at}]", one)
    for place, kind in enumerate(spec.get("policyTypes") or ()):
        if kind not in ("Ingress", "Egress"):
            yield unsupported(f"spec.policyTypes[{place}]", kind, "Ingress", "Egress")


def _policy_port(path: str, one: Obj) -> Found:
    if one.get("protocol") not in PROTOCOLS:
        yield unsupported(f"{path}.protocol", one.get("protocol"), "TCP", "UDP", "SCTP")
    number, end = one.get("port"), one.get("endPort")
    if number is not None:
        yield from port(f"{path}.port", number)
    if end is None:
        return
    if not isinstance(number, int):
        words = "non-numeric" if number is not None else "not specified"
        yield invalid(f"{path}.endPort", end, f"may not be specified when `port` is {words}")
    else:
        if end < number:
            yield invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
        yield from port(f"{path}.endPort", end)


def _peer(path: str, one: Obj) -> Found:
    for name in ("podSelector", "namespaceSelector"):
        yield from selector(f"{path}.{name}", one.get(name))
    if (block := one.get("ipBlock")) is not None and not block.get("cidr"):
        yield required(f"{path}.ipBlock.cidr")
    if not one:
        yield required(path, "must specify a peer")
    elif block is not None and len(one) > 1:
        yield forbidden(path, "may not specify both ipBlock and another peer")
