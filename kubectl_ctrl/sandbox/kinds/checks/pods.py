"""Pods and pod templates.

| kind | checked |
|---|---|
| Pod | the pod spec; its volumes and containers; on a change only the fields that may change |
| PodTemplate | as the template of a workload |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.kinds.checks import containers
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    annotation_texts,
    duplicate,
    forbidden,
    in_range,
    invalid,
    label,
    label_value,
    labels,
    one_of,
    qualified,
    required,
    subdomain,
    texts,
    unsupported,
)

_MOST = 2**31 - 1
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SOURCES = {  # the field of a volume's source that must be set
    "configMap": "name",
    "secret": "secretName",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}
_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    yield from pod_spec("spec", spec, own=True)
    for name in ("containers", "initContainers"):
        for place, one in enumerate(spec.get(name) or ()):
            image = one.get("image") or ""
            if image != image.strip():
                words = "must not have leading or trailing whitespace"
                yield invalid(f"spec.{name}[{place}].image", image, words)
    if old is not None:
        yield from _change(spec, old.get("spec") or {})
        return
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def pod_template(obj: Obj, _old: Obj | None) -> Found:
    yield from template("template", obj.get("template") or {})


def template(path: str, given: Obj) -> Found:
    meta, spec = given.get("metadata") or {}, given.get("spec") or {}
    yield from labels(f"{path}.labels", meta.get("labels"))
    yield from annotation_texts(f"{path}.annotations", meta.get("annotations"))
    yield from pod_spec(f"{path}.spec", spec)
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_spec(path: str, spec: Obj, *, own: bool = False) -> Found:
    """`own`: of a pod, not of a template."""
    known: set[str] = set()
    yield from _volumes(f"{path}.volumes", spec.get("volumes") or (), known)
    yield from _containers(path, spec, known)
    yield from _init_containers(path, spec, known)
    if spec.get("hostNetwork"):
        yield from _host_ports(path, spec, own=own)
    yield from one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), "Always", "OnFailure", "Never")
    yield from one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), *_DNS)
    yield from labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from texts(f"{path}.{name}", spec[name], subdomain)
    if (deadline := spec.get("activeDeadlineSeconds")) is not None:
        yield from in_range(f"{path}.activeDeadlineSeconds", deadline, 1, _MOST)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from texts(f"{path}.{name}", spec[name], label)
    yield from _tolerations(f"{path}.tolerations", spec.get("tolerations") or ())
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name):
            yield from texts(f"{path}.{name}", spec[name], subdomain)
    if (policy := spec.get("preemptionPolicy")) is not None:
        yield from one_of(f"{path}.preemptionPolicy", policy, "PreemptLowerPriority", "Never")


def _volumes(path: str, volumes: Iterable[Obj], known: set[str]) -> Found:
    """Also collects the names of the sound ones."""
    for place, one in enumerate(volumes):
        at, name = f"{path}[{place}]", one.get("name") or ""
        found = list(_volume(at, one))
        found += list(texts(f"{at}.name", name, label)) if name else [required(f"{at}.name")]
        if name in known:
            found.append(duplicate(f"{at}.name", name))
        if not found:
            known.add(name)
        yield from found


def _volume(path: str, volume: Obj) -> Found:
    sources = sorted(volume.keys() - {"name"}, key=lambda name: (name != "emptyDir", name))
    for name in sources[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")
    for name in sources[:1]:
        if name in _SOURCES and not (volume[name] or {}).get(_SOURCES[name]):
            yield required(f"{path}.{name}.{_SOURCES[name]}")


def _containers(path: str, spec: Obj, volumes: set[str]) -> Found:
    given = spec.get("containers") or []
    if not given:
        yield required(f"{path}.containers")
    names: set[str] = set()
    for place, one in enumerate(given):
        at = f"{path}.containers[{place}]"
        yield from containers.common(at, one, volumes)
        if one.get("name") in names:
            yield duplicate(f"{at}.name", one.get("name"))
        names.add(one.get("name") or "")
        yield from containers.lifecycle(at, one)
    yield from _host_port_conflicts(f"{path}.containers", given)


def _init_containers(path: str, spec: Obj, volumes: set[str]) -> Found:
    names = {one.get("name") for one in spec.get("containers") or ()}
    for place, one in enumerate(spec.get("initContainers") or ()):
        at = f"{path}.initContainers[{place}]"
        yield from containers.common(at, one, volumes)
        if (policy := one.get("restartPolicy")) is not None:
            yield from one_of(f"{at}.restartPolicy", policy, "Always", "Never", "OnFailure")
        if one.get("name") in names:
            yield duplicate(f"{at}.name", one.get("name"))
        names.add(one.get("name") or None)
        yield from _host_port_conflicts(f"{path}.initContainers", [one])
        check = containers.lifecycle if one.get("restartPolicy") == "Always" else containers.no_lifecycle
        yield from check(at, one)


def _host_port_conflicts(path: str, given: list[Obj]) -> Found:
    seen: set[str] = set()
    for place, one in enumerate(given):
        for at, port in enumerate(one.get("ports") or ()):
            text = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{port.get('hostPort')}"
            if port.get("hostPort") and text in seen:
                yield duplicate(f"{path}[{place}].ports[{at}].hostPort", text)
            seen.add(text)


def _host_ports(path: str, spec: Obj, *, own: bool) -> Found:
    for place, one in enumerate(spec.get("containers") or ()):
        for at, port in enumerate(one.get("ports") or ()):
            number = port.get("hostPort") or 0
            if (own or number) and number != port.get("containerPort"):
                words = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{path}.containers[{place}].ports[{at}].hostPort", number, words)


def _tolerations(path: str, given: Iterable[Obj]) -> Found:
    for place, one in enumerate(given):
        yield from _toleration(f"{path}[{place}]", one)


def _toleration(path: str, one: Obj) -> Found:
    operator, value, effect = one.get("operator") or "", one.get("value") or "", one.get("effect") or ""
    if one.get("key"):
        yield from texts(f"{path}.key", one["key"], qualified)
    elif operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, words)
    if one.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        if wrong := label_value(value):
            yield invalid(f"{path}.operator", value, ";".join(wrong))
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield unsupported(f"{path}.operator", operator, "Equal", "Exists")
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, *_EFFECTS)


# -- changes


def _change(spec: Obj, old: Obj) -> Found:
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(old.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    new, before = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if new is None and before is not None:
        words = "must not update from a positive integer to nil value"
        yield invalid("spec.activeDeadlineSeconds", None, words)
    elif new is not None and before is not None and before < new:
        yield invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")
        return
    tolerations = [_timeless(one) for one in spec.get("tolerations") or ()]
    if not all(_timeless(one) in tolerations for one in old.get("tolerations") or ()):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    yield from _gates(spec, old)
    if not same(_rest(spec, old), old):
        yield forbidden("spec", f"pod updates may not change fields other than {_CHANGEABLE}\n")


def _gates(spec: Obj, old: Obj) -> Found:
    before = [one.get("name") for one in old.get("schedulingGates") or ()]
    for place, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in before:
            words = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden(f"spec.schedulingGates[{place}].name", words)


def _timeless(toleration: Obj) -> Obj:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _rest(spec: Obj, old: Obj) -> Obj:
    """The spec as if no changeable field had changed."""
    free = (*_FREE, *(_GATED if old.get("schedulingGates") else ()))
    result: Obj = {key: value for key, value in spec.items() if key not in free}
    result |= {key: old[key] for key in free if key in old}
    for name in ("containers", "initContainers"):
        if old.get(name):
            pairs = zip(spec[name], old[name], strict=True)
            result[name] = [_with_image(one, before.get("image")) for one, before in pairs]
    return result


_FREE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_GATED = ("nodeSelector", "affinity")  # where a pod may run is open until its gates are gone


def _with_image(one: Obj, image: Any) -> Obj:
    return {**{key: value for key, value in one.items() if key != "image"}, **({"image": image} if image else {})}
