"""Built-in objects on their way into the storage: defaults and stored form, the fields of a new object, checks."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.kinds import quantities, schemas, structs
from kubectl_ctrl.sandbox.kinds.checks.table import problems_of

_KEEPS_STATUS = frozenset({"Node"})  # its kubelet creates it with a status
_GENERATION = "deprecated.daemonset.template.generation"


def defaulted(obj: Obj) -> Obj:
    """A copy of the object in its stored form, with the defaults of its type."""
    schema = _schema(obj)
    known, _ = structs.read(obj, schema)
    return structs.complete(known, schema)


def _schema(obj: Obj) -> Obj:
    group, _, version = obj["apiVersion"].rpartition("/")
    return schemas.of(group, version, obj["kind"])


def prepared(obj: Obj) -> Obj:
    """A new object with the status and the fields that its kind starts with; it has its UID."""
    status = _schema(obj)["properties"].get("status")
    if status is not None and obj["kind"] not in _KEEPS_STATUS:
        obj = {**obj, "status": {**structs.complete({}, status), **_status(obj)}}
    match obj["kind"]:
        case "DaemonSet":
            return _numbered(obj, 1)
        case "PersistentVolumeClaim":
            return {**obj, "spec": _sourced(obj["spec"])}
    return obj


def completed(obj: Obj) -> Obj:
    """A new object with the fields of the server that nobody owns."""
    if obj["kind"] != "Job" or not obj["apiVersion"].startswith("batch/") or obj["spec"].get("manualSelector"):
        return obj
    job = _with_selector(obj)
    meta = job["metadata"]
    labels = meta.get("labels") or job["spec"]["template"]["metadata"]["labels"]
    return {**job, "metadata": {**meta, "labels": labels}}


def changed(obj: Obj, old: Obj) -> Obj:
    """A changed object with the fields that only the server counts."""
    if obj["kind"] != "DaemonSet":
        return obj
    number = int((old["metadata"].get("annotations") or {}).get(_GENERATION) or 0)
    return _numbered(obj, number if same(obj["spec"]["template"], old["spec"]["template"]) else number + 1)


def _numbered(obj: Obj, number: int) -> Obj:
    meta = obj["metadata"]
    return {
        **obj,
        "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), _GENERATION: str(number)}},
    }


def _with_selector(job: Obj) -> Obj:
    """A job selects its pods by its own UID; without labels it has those of its pods."""
    meta, spec = dict(job["metadata"]), dict(job["spec"])
    template = dict(spec["template"])
    labels = {
        **dict.fromkeys(("job-name", "batch.kubernetes.io/job-name"), meta["name"]),
        **dict.fromkeys(("controller-uid", "batch.kubernetes.io/controller-uid"), meta["uid"]),
        **(template["metadata"].get("labels") or {}),
    }
    selector = dict(spec.get("selector") or {})
    own = {"batch.kubernetes.io/controller-uid": meta["uid"]}
    spec["selector"] = {**selector, "matchLabels": {**own, **(selector.get("matchLabels") or {})}}
    spec["template"] = {**template, "metadata": {**template["metadata"], "labels": labels}}
    meta["labels"] = meta.get("labels") or labels
    return {**job, "metadata": meta, "spec": spec}


def _sourced(claim: Obj) -> Obj:
    """dataSource and dataSourceRef say the same, unless the source is in another namespace."""
    source, ref = claim.get("dataSource"), claim.get("dataSourceRef")
    if source and not ref:
        return {**claim, "dataSourceRef": source}
    return {**claim, "dataSource": ref} if ref and not source and not ref.get("namespace") else claim


def _status(obj: Obj) -> Obj:
    match obj["kind"]:
        case "Pod":
            return {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        case "PersistentVolume":
            return {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}
    return {}


def qos_class(spec: Obj) -> str:
    """Guaranteed if every container limits its cpu and memory to its requests, BestEffort if none requests any."""
    whole = spec.get("resources")
    parts = [whole] if whole else [one.get("resources") for one in _containers(spec)]
    pairs = [(_amounts(part, "requests"), _amounts(part, "limits")) for part in parts]
    if not any(requests or limits for requests, limits in pairs):
        return "BestEffort"
    alike = all(len(limits) == 2 and requests == limits for requests, limits in pairs)
    return "Guaranteed" if alike else "Burstable"


def _containers(spec: Obj) -> list[Obj]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _amounts(resources: Any, name: str) -> Obj:
    given = (resources or {}).get(name) or {}
    found = {key: quantities.amount(given[key]) for key in ("cpu", "memory") if key in given}
    return {key: value for key, value in found.items() if value > 0}


def problems(obj: Obj, old: Obj | None) -> list[Problem]:
    """The problems of a built-in object beyond its schema and metadata."""
    return list(problems_of(obj, old))
