"""The containers of a pod or a pod template: names, images, ports, environment, mounts, resources, probes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds import quantities
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    config_key,
    duplicate,
    forbidden,
    in_range,
    invalid,
    label,
    not_found,
    not_negative,
    one_of,
    port,
    port_name,
    qualified,
    required,
    subdomain,
    texts,
    unsupported,
)

PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_FIELD_PATHS = tuple(
    f"{part}.{name}"
    for part, names in (
        ("metadata", ("name", "namespace", "uid")),
        ("spec", ("nodeName", "serviceAccountName")),
        ("status", ("hostIP", "hostIPs", "podIP", "podIPs")),
    )
    for name in names
)


def common(path: str, one: Obj, volumes: Collection[str]) -> Found:
    """The checks of containers of every kind."""
    if one.get("name"):
        yield from texts(f"{path}.name", one["name"], label)
    else:
        yield required(f"{path}.name")
    if not one.get("image"):
        yield required(f"{path}.image")
    policy = one.get("terminationMessagePolicy")
    yield from one_of(f"{path}.terminationMessagePolicy", policy, "File", "FallbackToLogsOnError")
    yield from _ports(f"{path}.ports", one.get("ports") or [])
    yield from _environment(path, one)
    yield from _mounts(f"{path}.volumeMounts", one.get("volumeMounts") or [], volumes)
    pull = one.get("imagePullPolicy")
    yield from one_of(f"{path}.imagePullPolicy", pull, "Always", "IfNotPresent", "Never")
    yield from resources(f"{path}.resources", one.get("resources") or {})


def _ports(path: str, ports: list[Obj]) -> Found:
    names: set[str] = set()
    for place, one in enumerate(ports):
        at, name = f"{path}[{place}]", one.get("name")
        if name and port_name(name):
            yield from texts(f"{at}.name", name, port_name)
        elif name in names:
            yield duplicate(f"{at}.name", name)
        elif name:
            names.add(name)
        if not one.get("containerPort"):
            yield required(f"{at}.containerPort")
        else:
            yield from port(f"{at}.containerPort", one["containerPort"])
        if one.get("hostPort"):
            yield from port(f"{at}.hostPort", one["hostPort"])
        yield from one_of(f"{at}.protocol", one.get("protocol"), *PROTOCOLS)


def _environment(path: str, one: Obj) -> Found:
    for place, variable in enumerate(one.get("env") or ()):
        at = f"{path}.env[{place}]"
        if variable.get("name"):
            yield from texts(f"{at}.name", variable["name"], _variable)
        else:
            yield required(f"{at}.name")
        if variable.get("valueFrom") is not None:
            yield from _source(f"{at}.valueFrom", variable["valueFrom"], variable.get("value"))
    for place, source in enumerate(one.get("envFrom") or ()):
        at, given = f"{path}.envFrom", [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            yield from _reference(f"{at}[{place}].{name}.name", source[name].get("name"))
        if len(given) != 1:
            words = "may not have more than one field specified at a time"
            yield invalid(at, "", words if given else "must specify one of: `configMapRef` or `secretRef`")


def _variable(text: str) -> list[str]:
    words = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return [] if text.isascii() and text.isprintable() and "=" not in text else [words]


def _reference(field: str, name: Any) -> Found:
    if name:
        yield from texts(field, name, subdomain)
    else:
        yield required(field)


def _source(path: str, source: Obj, value: Any) -> Found:
    if (ref := source.get("fieldRef")) is not None:
        yield from _field(f"{path}.fieldRef", ref)
    if (ref := source.get("resourceFieldRef")) is not None and not ref.get("resource"):
        yield required(f"{path}.resourceFieldRef.resource")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if (ref := source.get(name)) is not None:
            yield from texts(f"{path}.{name}.name", ref.get("name") or "", subdomain)
            if ref.get("key"):
                yield from texts(f"{path}.{name}.key", ref["key"], config_key)
            else:
                yield required(f"{path}.{name}.key")
    if not source:
        names = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", f"must specify one of: {names}")
    elif value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _field(path: str, ref: Obj) -> Found:
    wanted = ref.get("fieldPath")
    if not wanted:
        yield required(f"{path}.fieldPath")
    elif wanted.startswith(("metadata.labels['", "metadata.annotations['")):
        yield from texts(path, wanted.partition("['")[2].removesuffix("']"), qualified)
    elif wanted in ("metadata.labels", "metadata.annotations"):
        yield unsupported(f"{path}.fieldPath", wanted, *_FIELD_PATHS)
    elif wanted not in _FIELD_PATHS:
        words = f"error converting fieldPath: field label not supported: {wanted}"
        yield invalid(f"{path}.fieldPath", wanted, words)


def _mounts(path: str, mounts: list[Obj], volumes: Collection[str]) -> Found:
    seen: set[str] = set()
    for place, mount in enumerate(mounts):
        at, name, where = f"{path}[{place}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        if not where:
            yield required(f"{at}.mountPath")
        if where in seen:
            yield invalid(f"{at}.mountPath", where, "must be unique")
        seen.add(where)


# -- resources


def resources(path: str, given: Obj) -> Found:
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    for name, amount in limits.items():
        yield from _amount(f"{path}.limits[{name}]", name, amount)
    for name, amount in requests.items():
        yield from _amount(f"{path}.requests[{name}]", name, amount)
        yield from _within(path, name, amount, limits.get(name))


def _amount(field: str, name: str, amount: str) -> Found:
    yield from resource_name(field, name)
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid(field, name, "must be a standard resource for containers")
    yield from amount_of(field, amount, whole=not _is_divisible(name))


def resource_name(field: str, name: str) -> Found:
    if wrong := list(texts(field, name, qualified)):
        yield from wrong
    elif "/" not in name and name not in _STANDARD_NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
        yield invalid(field, name, "must be a standard resource type or fully qualified")


def amount_of(field: str, amount: str, *, whole: bool = False) -> Found:
    value = quantities.amount(amount)
    if value < 0:
        yield invalid(field, amount, "must be greater than or equal to 0")
    if whole and value != int(value):
        yield invalid(field, amount, "must be an integer")


COUNTED = (
    *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)
_STANDARD_NAMES = frozenset(
    {
        *(*_STANDARD, "storage", "requests.storage", *COUNTED),
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _STANDARD),
    }
)


def _is_divisible(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _within(path: str, name: str, amount: str, limit: str | None) -> Found:
    overcommit = _is_divisible(name) and not name.startswith("hugepages-")
    if limit is None:
        if not overcommit:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    value, most = quantities.amount(amount), quantities.amount(limit)
    if value != most and not overcommit:
        yield invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif value > most:
        yield invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")


# -- probes


def lifecycle(path: str, one: Obj) -> Found:
    for name in ("postStart", "preStop"):
        if (hook := (one.get("lifecycle") or {}).get(name)) is not None:
            yield from _handler(f"{path}.lifecycle.{name}", hook)
    for name in _PROBES:
        if one.get(name) is not None:
            yield from _probe(f"{path}.{name}", one[name], name)


def no_lifecycle(path: str, one: Obj) -> Found:
    for name in ("lifecycle", *_PROBES):
        if one.get(name) is not None:
            yield forbidden(f"{path}.{name}", "may not be set for init containers without restartPolicy=Always")


def _probe(path: str, probe: Obj, name: str) -> Found:
    yield from _handler(path, probe)
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    yield from not_negative(path, probe, *numbers)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if name == "readinessProbe":
        if grace is not None:
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
    elif probe.get("successThreshold") != 1:
        yield invalid(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1")


def _handler(path: str, given: Obj) -> Found:
    found = [name for name in _HANDLERS if given.get(name) is not None]
    if not found:
        yield required(path, "must specify a handler type")
    for name in found[:1]:
        yield from _action(f"{path}.{name}", name, given[name])
    for name in found[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _action(path: str, name: str, action: Obj) -> Found:
    if name == "exec" and not action.get("command"):
        yield required(f"{path}.command")
    if name in ("httpGet", "tcpSocket", "grpc"):
        yield from port(f"{path}.port", action.get("port", 0))
    if name == "httpGet" and action.get("scheme") not in ("HTTP", "HTTPS"):
        yield unsupported(f"{path}.scheme", action.get("scheme"), "HTTP", "HTTPS")
    if name == "sleep":
        yield from in_range(f"{path}.seconds", action.get("seconds", 0), 0, 2**31 - 1)
