"""Discovery: version, API groups and resources in both forms, OpenAPI v3 documents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from kubectl_ctrl.client.transport import HttpResponse
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import NAMESPACES
from kubectl_ctrl.testing import answers, schemas
from kubectl_ctrl.testing.asks import ServedKinds
from kubectl_ctrl.testing.kinds import VERBS, ServedKind

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitTreeState": "clean", "platform": "linux/amd64"}


def handle(served: ServedKinds, path: str, accept: str) -> HttpResponse | None:
    """The answer to a discovery path, None for every other path."""
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return answers.answer(_VERSION)
        case ["healthz" | "livez" | "readyz", *_]:
            return HttpResponse(status=200, headers={"content-type": "text/plain; charset=utf-8"}, body=b"ok")
        case ["api" | "apis"]:
            return _roots(served, parts[0], accept)
        case ["apis", group]:
            return _group(served, group)
        case ["api", version]:
            return _resources(served, "", version)
        case ["apis", group, version]:
            return _resources(served, group, version)
        case ["openapi", "v3"]:
            return answers.answer({"paths": _index(served)})
        case ["openapi", "v3", *root]:
            return _document(served, "/".join(root))
    return None


def _groups(served: ServedKinds) -> dict[str, dict[str, list[ServedKind]]]:
    """Group to version to kinds, the versions in the order of preference."""
    groups: dict[str, dict[str, list[ServedKind]]] = {}
    for kind in served.all():
        groups.setdefault(kind.resource.group, {}).setdefault(kind.resource.version, []).append(kind)
    return {group: dict(sorted(versions.items(), key=_rank)) for group, versions in groups.items()}


def _rank(item: tuple[str, Any]) -> tuple[int, list[int], str]:
    """v2 before v1 before v1beta2 before v1alpha1 before anything else."""
    text = item[0].removeprefix("v")
    for place, word in enumerate(("", "beta", "alpha")):
        major, _, minor = text.partition(word) if word else (text, "", "")
        if major.isdecimal() and (minor.isdecimal() or not word):
            return place, [-int(major), -int(minor or 0)], ""
    return 3, [], item[0]


def _roots(served: ServedKinds, root: str, accept: str) -> HttpResponse:
    groups = {name: versions for name, versions in _groups(served).items() if (name == "") == (root == "api")}
    if "as=APIGroupDiscoveryList" in accept and "v=v2;" in accept.replace("; ", ";") + ";":
        items = [_aggregated(name, versions) for name, versions in groups.items()]
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        return HttpResponse(status=200, headers={"content-type": _AGGREGATED}, body=answers.encode(body))
    if root == "api":
        return answers.answer({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    listed = [_group_entry(name, versions) for name, versions in groups.items()]
    return answers.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


def _group_entry(name: str, versions: Mapping[str, Any]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _group(served: ServedKinds, group: str) -> HttpResponse | None:
    versions = _groups(served).get(group)
    if not group or versions is None:
        return None
    return answers.answer({"kind": "APIGroup", "apiVersion": "v1", **_group_entry(group, versions)})


def _aggregated(name: str, versions: dict[str, list[ServedKind]]) -> Obj:
    listed = [
        {"version": version, "freshness": "Current", "resources": [_discovered(kind) for kind in kinds]}
        for version, kinds in versions.items()
    ]
    return {"metadata": {"name": name} if name else {}, "versions": listed}


def _discovered(kind: ServedKind) -> Obj:
    resource = kind.resource
    response_kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": response_kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "subresources": [
            {"subresource": name, "responseKind": _sub_kind(kind, name), "verbs": _sub_verbs(name)}
            for name in sorted(kind.subresources)
        ],
    }
    return {key: value for key, value in entry.items() if value != []}


def _verbs(kind: ServedKind) -> list[str]:
    if kind.custom:
        return ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    return [verb for verb in VERBS if verb != "deletecollection" or kind.resource != NAMESPACES]


def _sub_verbs(name: str) -> list[str]:
    return ["update"] if name == "finalize" else ["get", "patch", "update"]


def _sub_kind(kind: ServedKind, subresource: str) -> Obj:
    resource = kind.resource
    if subresource == "scale":
        return {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resources(served: ServedKinds, group: str, version: str) -> HttpResponse | None:
    kinds = [kind for kind in served.all() if (kind.resource.group, kind.resource.version) == (group, version)]
    if not kinds:
        return None
    listed: list[Obj] = []
    for kind in kinds:
        listed.append(_listed(kind))
        listed += [_listed_sub(kind, name) for name in sorted(kind.subresources)]
    group_version = kinds[0].resource.api_version
    body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}
    return answers.answer(body)


def _listed(kind: ServedKind) -> Obj:
    resource = kind.resource
    entry: Obj = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(kind),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
    }
    return {key: value for key, value in entry.items() if value != []}


def _listed_sub(kind: ServedKind, name: str) -> Obj:
    entry: Obj = {
        "name": f"{kind.resource.plural}/{name}",
        "singularName": "",
        "namespaced": kind.resource.namespaced,
        "kind": kind.resource.kind,
        "verbs": _sub_verbs(name),
    }
    if name == "scale":
        entry |= {"kind": "Scale", "group": "autoscaling", "version": "v1"}
    return entry


def _index(served: ServedKinds) -> Obj:
    roots = sorted({kind.resource.root.strip("/") for kind in served.all()})
    return {root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={_hash(served, root)}"} for root in roots}


def _hash(served: ServedKinds, root: str) -> str:
    return hashlib.sha256(answers.encode(_openapi(served, root))).hexdigest()[:32].upper()


def _document(served: ServedKinds, root: str) -> HttpResponse | None:
    document = _openapi(served, root)
    return answers.answer(document) if document["components"]["schemas"] else None


def _openapi(served: ServedKinds, root: str) -> Obj:
    kinds = [kind for kind in served.all() if kind.resource.root.strip("/") == root]
    components = {_component(kind): _described(kind) for kind in kinds}
    paths = {_object_path(kind): {"patch": _patch_operation(kind)} for kind in kinds}
    info = {"title": "Kubernetes", "version": _VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": components}}


def _component(kind: ServedKind) -> str:
    """`io.k8s.samplecontroller.v1alpha1.Foo`: the labels of the group in reverse order."""
    group = ".".join(reversed((kind.resource.group or "core.api.k8s.io").split(".")))
    return f"{group}.{kind.resource.version}.{kind.resource.kind}"


def _described(kind: ServedKind) -> Obj:
    properties = {"apiVersion": schemas.STRING, "kind": schemas.STRING, **(kind.schema.get("properties") or {})}
    properties["metadata"] = {"type": "object"}
    described = {**kind.schema, "type": "object", "properties": properties}
    return {**_published(described), "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _published(schema: Any) -> Any:
    """The schema as clients expect it: types without a schema here keep unknown fields."""
    if isinstance(schema, list):
        return [_published(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    published = {key: _published(value) for key, value in schema.items() if key != "x-open"}
    if schema.get("x-open"):
        published["x-kubernetes-preserve-unknown-fields"] = True
    return published


def _gvk(kind: ServedKind) -> Obj:
    resource = kind.resource
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _object_path(kind: ServedKind) -> str:
    scope = "/namespaces/{namespace}" if kind.resource.namespaced else ""
    return f"{kind.resource.root}{scope}/{kind.resource.plural}/{{name}}"


def _patch_operation(kind: ServedKind) -> Obj:
    """Tells kubectl that the server validates fields."""
    parameter = {"name": "fieldValidation", "in": "query", "schema": schemas.STRING}
    return {"parameters": [parameter], "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": _gvk(kind)}
