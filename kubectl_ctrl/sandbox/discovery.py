"""Discovery: the version, and the API groups with their resources in both forms."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.sandbox import answers, openapi
from kubectl_ctrl.sandbox.kinds.catalog import GROUPS, ServedKind
from kubectl_ctrl.sandbox.requests import ServedKinds

_VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}

# Group to version to the entries of its resource list.
Groups = dict[str, dict[str, list[Obj]]]


def handle(served: ServedKinds, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> HttpResponse | None:
    """The answer to a discovery path, None for every other path. The names of headers are in lower case."""
    match path.strip("/").split("/"):
        case ["version"]:
            return answers.answer(_VERSION)
        case ["healthz" | "livez" | "readyz", *_]:
            return HttpResponse(status=200, headers={"content-type": "text/plain; charset=utf-8"}, body=b"ok")
        case ["api" | "apis" as root]:
            return _roots(served, root, headers)
        case ["apis", group]:
            return _group(served, group)
        case ["api", version]:
            return _resources(served, "", version)
        case ["apis", group, version]:
            return _resources(served, group, version)
        case ["openapi", "v2"]:
            return openapi.second(headers)
        case ["openapi", "v3", *root]:
            return openapi.handle(served, "/".join(root), headers, query)
    return None


def cached(headers: Mapping[str, str], body: bytes, media: str) -> HttpResponse:
    """An answer that the client may keep and ask for again by its ETag."""
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    kept = {"content-type": media, "etag": tag, "vary": "Accept", "cache-control": "public"}
    if tag in headers.get("if-none-match", ""):
        return HttpResponse(status=304, headers=kept)
    return HttpResponse(status=200, headers=kept, body=body)


def _groups(served: ServedKinds) -> Groups:
    """The built-in groups first, then those of CRDs by name, with their versions in the order of preference."""
    found: Groups = {
        group["name"]: {version["version"]: version["resources"] for version in group["versions"]} for group in GROUPS
    }
    added: Groups = {}
    for kind in served.all():
        if kind.custom:
            versions = added.setdefault(kind.resource.group, {})
            versions.setdefault(kind.resource.version, []).extend(_entries(kind))
    return found | {group: dict(sorted(added[group].items(), key=_rank)) for group in sorted(added)}


def _rank(item: tuple[str, Any]) -> tuple[int, list[int], str]:
    """v2 before v1 before v1beta2 before v1alpha1 before anything else."""
    text = item[0].removeprefix("v")
    for place, word in enumerate(("", "beta", "alpha")):
        major, _, minor = text.partition(word) if word else (text, "", "")
        if major.isdecimal() and (minor.isdecimal() or not word):
            return place, [-int(major), -int(minor or 0)], ""
    return 3, [], item[0]


def _entries(kind: ServedKind) -> list[Obj]:
    """A custom resource and its subresources in a resource list."""
    resource = kind.resource
    stored = f"{resource.group}/{kind.storage_version}/{resource.kind}".encode()
    entry: Obj = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "storageVersionHash": base64.b64encode(hashlib.sha256(stored).digest()[:8]).decode(),
    }
    return [{key: value for key, value in entry.items() if value != []}, *(_part(kind, n) for n in kind.subresources)]


def _part(kind: ServedKind, name: str) -> Obj:
    entry: Obj = {
        "name": f"{kind.resource.plural}/{name}",
        "singularName": "",
        "namespaced": kind.resource.namespaced,
        "kind": kind.resource.kind,
        "verbs": ["get", "patch", "update"],
    }
    if name == "scale":
        entry |= {"kind": "Scale", "group": "autoscaling", "version": "v1"}
    return entry


def _roots(served: ServedKinds, root: str, headers: Mapping[str, str]) -> HttpResponse:
    groups = {name: versions for name, versions in _groups(served).items() if (name == "") == (root == "api")}
    for wanted in headers.get("accept", "").replace(" ", "").split(","):
        parameters = wanted.split(";")[1:]
        if "as=APIGroupDiscoveryList" in parameters:
            form = "v2" if "v=v2" in parameters else "v2beta1"
            return _aggregated_roots(groups, form, headers)
    if root == "api":
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": headers.get("host", "")}]
        body = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
        return answers.answer(body)
    listed = [_group_entry(name, versions) for name, versions in groups.items()]
    return answers.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


def _aggregated_roots(groups: Groups, form: str, headers: Mapping[str, str]) -> HttpResponse:
    items = [_aggregated(name, versions) for name, versions in groups.items()]
    group = f"apidiscovery.k8s.io/{form}"
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": group, "metadata": {}, "items": items}
    media = f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"
    return cached(headers, answers.encode(body), media)


def _group_entry(name: str, versions: Mapping[str, Any]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _group(served: ServedKinds, group: str) -> HttpResponse | None:
    versions = _groups(served).get(group)
    if not group or versions is None:
        return None
    return answers.answer({"kind": "APIGroup", "apiVersion": "v1", **_group_entry(group, versions)})


def _resources(served: ServedKinds, group: str, version: str) -> HttpResponse | None:
    listed = _groups(served).get(group, {}).get(version)
    if listed is None:
        return None
    group_version = f"{group}/{version}" if group else version
    body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}
    return answers.answer(body)


def _aggregated(name: str, versions: dict[str, list[Obj]]) -> Obj:
    listed = [
        {"version": version, "resources": _discovered(name, version, entries), "freshness": "Current"}
        for version, entries in versions.items()
    ]
    return {"metadata": {"name": name} if name else {}, "versions": listed}


def _discovered(group: str, version: str, entries: list[Obj]) -> list[Obj]:
    if any(group == one["name"] for one in GROUPS):
        group = version = ""  # a built-in kind of the same group and version is listed without them
    found: dict[str, Obj] = {}
    for entry in entries:
        plural, _, part = entry["name"].partition("/")
        kind = {"group": entry.get("group", group), "version": entry.get("version", version), "kind": entry["kind"]}
        if part:
            shown = {"subresource": part, "responseKind": kind, "verbs": entry["verbs"]}
            found[plural].setdefault("subresources", []).append(shown)
            continue
        found[plural] = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if entry["namespaced"] else "Cluster",
            "singularResource": entry["singularName"],
            "verbs": entry["verbs"],
            **{key: entry[key] for key in ("shortNames", "categories") if key in entry},
        }
    return list(found.values())
