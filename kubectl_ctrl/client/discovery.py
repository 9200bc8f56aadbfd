"""Discovery of resource types: two requests (aggregated discovery), or one per group version from older servers.

The result is kept until a type is requested that it lacks. Then it is read again, at most every few seconds, by one
caller for all that wait. If a group does not answer, only that group is affected, and its known types stay.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from kubectl_ctrl.client.catalog import ApiResource, Catalog, NameMatch
from kubectl_ctrl.client.order import JSON
from kubectl_ctrl.client.responses import decoded
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import BadAnswer, CallSite, CtrlError, NotFound, NotServed, ServerError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.value import Value

REFRESH_EVERY = 5.0
_AT_ONCE = 8  # concurrent requests for group versions

_AGGREGATED = ",".join(
    [f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")]
    + [JSON]
)


class DiscoveryClient(Protocol):
    """The part of the client that discovery needs."""

    clock: Clock

    async def raw(self, method: str, path: str, *, accept: str = JSON) -> HttpResponse: ...


class Discovery:
    """One per client, shared by its scopes."""

    def __init__(self, client: DiscoveryClient) -> None:
        self._client = client
        self._catalog: Catalog | None = None
        self._error: CtrlError | None = None  # of the last refresh
        self._readings = 0  # completed or failed
        self._read_at = 0.0  # elapsed time
        self._outdated = True  # never read, or `forget` was called since
        self._reading = asyncio.Lock()

    async def find(self, text: str) -> ApiResource:
        """The type for TYPE, TYPE.GROUP or TYPE.VERSION.GROUP; TYPE is a plural, singular, short name or kind."""
        return (await self.match(text)).found

    async def match(self, text: str) -> NameMatch:
        """The same, with other types of that name."""
        match = (await self.catalog()).match(text) or (await self.refresh()).match(text)
        if match is None:
            raise _not_served(text, await self.catalog())
        return match

    async def serves(self, resource: Resource) -> ApiResource | None:
        """The served type, or None; ServerError if that is unknown because its group version does not answer."""
        found = (await self.catalog()).get(resource) or (await self.refresh()).get(resource)
        if found is None and resource.api_version in (await self.catalog()).failed:
            raise ServerError(
                f"Discovery of {resource.api_version!r} failed, so {resource} is unknown.",
                site=CallSite("get", resource.root),
                code=503,
                reason="DiscoveryFailed",
            )
        return found

    async def declared(self, api_version: str, kind: str) -> ApiResource | None:
        """The type for apiVersion and kind; None if the server does not serve it."""
        for read in (self.catalog, self.refresh):
            for api in (await read()).resources:
                if (api.resource.api_version, api.resource.kind) == (api_version, kind):
                    return api
        return None

    async def catalog(self) -> Catalog:
        """The known types; they are read if there are none."""
        return self._catalog or await self.refresh()

    async def refresh(self) -> Catalog:
        """The types read now, or at most a few seconds ago."""
        async with self._reading:
            if self._outdated or self._client.clock.elapsed() - self._read_at >= REFRESH_EVERY:
                await self._read()
        if self._error is not None:
            raise self._error.with_traceback(None)
        assert self._catalog is not None
        return self._catalog

    def forget(self) -> None:
        """Types were installed or removed: the next refresh reads, however soon it comes."""
        self._outdated = True

    async def _read(self) -> None:
        self._outdated = False
        try:
            self._catalog = await _Survey(self._client, self._catalog or Catalog([])).take()
        except CtrlError as exc:
            self._error = exc
        except BaseException:
            self._outdated = True  # cancelled: the next waiting caller reads
            raise
        else:
            self._error = None
        self._readings += 1
        self._read_at = self._client.clock.elapsed()

    def __repr__(self) -> str:
        return f"Discovery({self._catalog}, readings={self._readings})"


def _not_served(text: str, catalog: Catalog) -> NotServed:
    nearest = catalog.nearest(text)
    hint = f"Did you mean {' or '.join(nearest)}?" if nearest else "Install its CRD, or check the name."
    silent = f" These did not answer: {', '.join(catalog.failed)}." if catalog.failed else ""
    return NotServed(
        f"The server has no resource type {text!r}.{silent}", site=CallSite("get", text), code=404, next_step=hint
    )


class _Version(Value):
    """One group version; its resources are None if it did not answer."""

    name: str  # `apps/v1`, `v1`
    resources: list[ApiResource] | None


class _Survey:
    """One refresh of all types."""

    def __init__(self, client: DiscoveryClient, before: Catalog) -> None:
        self._client = client
        self._before = before
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def take(self) -> Catalog:
        core, groups = await asyncio.gather(self._half("/api"), self._half("/apis"))
        if isinstance(core, CtrlError) and isinstance(groups, CtrlError):
            raise core
        versions = [*self._versions(core, "/api"), *self._versions(groups, "/apis")]
        known = [api for version in versions for api in self._known(version)]
        return Catalog(known, [version.name for version in versions if version.resources is None])

    def _versions(self, half: list[_Version] | CtrlError, path: str) -> list[_Version]:
        """The versions of a half; if it did not answer, those known before."""
        if not isinstance(half, CtrlError):
            return half
        if isinstance(half, NotFound):  # some servers have no core group
            return []
        names = dict.fromkeys(
            api.resource.api_version for api in self._before.resources if (path == "/apis") == bool(api.resource.group)
        )
        return [_Version(name, None) for name in names or (path,)]

    def _known(self, version: _Version) -> list[ApiResource]:
        if version.resources is not None:
            return version.resources
        return [api for api in self._before.resources if api.resource.api_version == version.name]

    async def _half(self, path: str) -> list[_Version] | CtrlError:
        try:
            answer = await self._ask(path, _AGGREGATED)
            if answer.get("kind") == "APIGroupDiscoveryList":
                return _aggregated(answer)
            return await asyncio.gather(*(self._one(name) for name in _listed_versions(answer)))
        except CtrlError as exc:
            return exc

    async def _one(self, name: str) -> _Version:
        """One group version from a server without aggregated discovery."""
        path = f"/apis/{name}" if "/" in name else f"/api/{name}"
        try:
            async with self._at_once:
                return _Version(name, _of_list(name, await self._ask(path, JSON)))
        except CtrlError:
            return _Version(name, None)

    async def _ask(self, path: str, accept: str) -> Obj:
        response = await self._client.raw("GET", path, accept=accept)
        try:
            answer = decoded(response.body)
        except ValueError as exc:
            answer = exc
        if not isinstance(answer, dict):
            raise BadAnswer(f"The answer of {path} lists no resource types.", site=CallSite("get", path))
        return answer


def _aggregated(answer: Obj) -> list[_Version]:
    versions = []
    for group in _dicts(answer.get("items")):
        name = str((group.get("metadata") or {}).get("name") or "")
        for version in _dicts(group.get("versions")):
            gv = f"{name}/{version.get('version')}" if name else str(version.get("version"))
            entries = _dicts(version.get("resources"))
            # An entry without a kind has only subresources.
            usable = [entry for entry in entries if entry.get("resource") and _kind_of(entry)]
            # An aggregated API server that does not answer is Stale; entries are then its last answer, if there was
            # one.
            silent = version.get("freshness") == "Stale" and not entries
            versions.append(_Version(gv, None if silent else [_of_entry(gv, entry) for entry in usable]))
    return versions


def _kind_of(entry: Obj) -> str:
    kind = entry.get("responseKind")
    return str(kind.get("kind") or "") if isinstance(kind, dict) else ""


def _of_entry(gv: str, entry: Obj) -> ApiResource:
    kind = _kind_of(entry)
    return ApiResource(
        resource=_resource(gv, str(entry["resource"]), kind, entry.get("scope") != "Cluster"),
        singular=str(entry.get("singularResource") or kind.lower()),
        short_names=_texts(entry.get("shortNames")),
        categories=_texts(entry.get("categories")),
        verbs=_texts(entry.get("verbs")),
        subresources=tuple(str(sub.get("subresource")) for sub in _dicts(entry.get("subresources"))),
    )


def _listed_versions(answer: Obj) -> list[str]:
    """The group versions in an APIVersions or APIGroupList, the preferred version of each group first."""
    if answer.get("kind") == "APIVersions":
        return list(_texts(answer.get("versions")))
    names: dict[str, None] = {}
    for group in _dicts(answer.get("groups")):
        for version in [group.get("preferredVersion"), *_dicts(group.get("versions"))]:
            if isinstance(version, dict) and version.get("version"):
                names[f"{group.get('name')}/{version['version']}"] = None
    return list(names)


def _of_list(gv: str, answer: Obj) -> list[ApiResource]:
    entries = [entry for entry in _dicts(answer.get("resources")) if entry.get("name") and entry.get("kind")]
    subresources: dict[str, list[str]] = {}
    for entry in entries:
        parent, _, subresource = str(entry["name"]).partition("/")
        subresources.setdefault(parent, []).extend([subresource] if subresource else [])
    return [
        ApiResource(
            resource=_resource(gv, str(entry["name"]), str(entry["kind"]), bool(entry.get("namespaced"))),
            singular=str(entry.get("singularName") or str(entry["kind"]).lower()),
            short_names=_texts(entry.get("shortNames")),
            categories=_texts(entry.get("categories")),
            verbs=_texts(entry.get("verbs")),
            subresources=tuple(subresources[entry["name"]]),
        )
        for entry in entries
        if "/" not in str(entry["name"])
    ]


def _resource(gv: str, plural: str, kind: str, namespaced: bool) -> Resource:
    group, _, version = gv.rpartition("/")
    return Resource(group, version, plural, kind, namespaced)


def _dicts(value: Any) -> list[Obj]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
