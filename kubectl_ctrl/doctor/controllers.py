"""`doctor` about the controllers that are installed on the cluster: missing parts and rights, and stored versions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import ListQuery
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.doctor.checks import CheckInput, ConnectedCluster, fail, info, ok, review_of, warn
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import CallError, Forbidden, NotFound
from kubectl_ctrl.install.crds import served
from kubectl_ctrl.install.kinds import CLUSTERROLES, ROLES, ref_of, shown
from kubectl_ctrl.install.marks import MANAGED_BY, US
from kubectl_ctrl.install.parts import read_parts
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.conditions import is_true
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import CRDS, NAMESPACES, Resource
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.rbac.rights import Right, allows, rights_in
from kubectl_ctrl.target.choice import kubectl_at
from kubectl_ctrl.value import Unshown, Value

_REVIEWS = "/apis/authorization.k8s.io/v1"
_SHOWN = 4


class _Part(Value, kw_only=True):
    """An object that install creates, and the one in the cluster: None if it is missing, or may not be read."""

    desired: Unshown[Obj]
    live: Unshown[Obj | None] = None
    seen: bool = True  # we may read it

    @property
    def missing(self) -> bool:
        return self.seen and self.live is None


async def controllers(bench: CheckInput) -> Sequence[Line]:
    """One line or more for each bundled controller that is installed, and one for all others."""
    there = await bench.reach.reached()
    found, granted = await asyncio.gather(
        asyncio.gather(*(_parts(there.client, name) for name in BUNDLED)), _granted(there)
    )
    lines: list[Line] = []
    absent: list[str] = []
    for name, parts in zip(BUNDLED, found, strict=True):
        if any(part.live is not None for part in parts):
            lines += await _installed(there, name, parts, granted)
        elif all(part.missing for part in parts):
            absent.append(name)
    if absent:
        command = " ".join(["kubectl ctrl install", *(absent if lines else ())])
        lines.append(info("installed", f"not installed: {', '.join(absent)}", command=command))
    return lines


async def _parts(client: Client, name: str) -> list[_Part]:
    """The objects that install creates for a controller, without the namespace, which may have other uses."""
    wanted = [obj for obj in needs(read_parts(bundled.folder(name), name)) if obj["kind"] != NAMESPACES.kind]
    return list(await asyncio.gather(*(_part(client, obj) for obj in wanted)))


async def _part(client: Client, desired: Obj) -> _Part:
    try:
        return _Part(desired=desired, live=await client.get(ref_of(desired)))
    except NotFound:
        return _Part(desired=desired)
    except Forbidden:
        # Every user may read the served resource types, which include that of a CRD.
        if desired["kind"] == CRDS.kind and all(
            [await client.discovery.serves(one) is not None for one in served(desired)]
        ):
            return _Part(desired=desired, live=desired, seen=False)
        return _Part(desired=desired, seen=False)


async def _installed(there: ConnectedCluster, name: str, parts: Sequence[_Part], granted: _Granted) -> list[Line]:
    lines = [*_incomplete(name, parts), *_account_lacks(name, parts), *await _user_lacks(there, name, granted)]
    return lines or [
        ok(name, f"{name} is installed, and you have all its rights in namespace {there.resolved.namespace}")
    ]


def _incomplete(name: str, parts: Iterable[_Part]) -> list[Line]:
    missing = [shown(ref_of(part.desired)) for part in parts if part.missing]
    if not missing:
        return []
    command = str(ctrl("install", name))
    if all(part.missing != (part.desired["kind"] == CRDS.kind) for part in parts):
        # As `uninstall` and `install --crds-only` leave it.
        return [info(name, f"only the CRD of {name} is installed, so it runs with your own rights", command=command)]
    text = f"{name} is only partly installed; missing: {_listed(missing)}"
    return [fail(name, text, code=8, command=command)]


def _account_lacks(name: str, parts: Iterable[_Part]) -> list[Line]:
    """The rights that the roles of its ServiceAccount no longer grant."""
    roles = [part for part in parts if part.desired["kind"] in (CLUSTERROLES.kind, ROLES.kind) and part.live]
    lacking = [right for part in roles for right in _lacking(rights_in(part.desired), rights_in(part.live or {}))]
    if not lacking:
        return []
    text = f"the ServiceAccount of {name} lacks rights: {_listed(map(str, lacking))}"
    advice = "its roles were changed; this restores them:"
    return [fail(name, text, code=7, advice=advice, command=str(ctrl("install", name, "--force-conflicts")))]


def _lacking(wanted: Iterable[Right], granted: Iterable[Right]) -> list[Right]:
    held = list(granted)
    return [right for right in sorted(wanted) if not any(allows(one, right) for one in held)]


# The rights of the user.


class _Granted(Value, kw_only=True):
    """The rights of our user in one namespace; without `whole` there may be more that the server does not list."""

    rights: Unshown[frozenset[Right]]
    whole: bool


async def _granted(there: ConnectedCluster) -> _Granted:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": there.resolved.namespace},
    }
    answer = await review_of(there.client, f"{_REVIEWS}/selfsubjectrulesreviews", review)
    status = answer.get("status") or {}
    rights = rights_in({"metadata": {}, "rules": status.get("resourceRules")})
    return _Granted(rights=rights, whole=not status.get("incomplete"))


async def _user_lacks(there: ConnectedCluster, name: str, granted: _Granted) -> list[Line]:
    wanted = {right for role in read_parts(bundled.folder(name), name).rbac for right in rights_in(role)}
    lacking = _lacking(wanted, granted.rights)
    if lacking and not granted.whole:
        allowed = await asyncio.gather(*(_allowed(there, right) for right in lacking))
        lacking = [right for right, may in zip(lacking, allowed, strict=True) if not may]
    if not lacking:
        return []
    who = there.user or "this user"
    where = f"in namespace {there.resolved.namespace}"
    text = f"{name} run by {who} lacks rights {where}: {_listed(map(str, lacking))}"
    advice = "ask for these rights, or run it as its ServiceAccount (run --as-installed); all that it needs:"
    return [fail(name, text, code=7, advice=advice, command=str(ctrl("rbac", name)))]


async def _allowed(there: ConnectedCluster, right: Right) -> bool:
    resource, _, sub = right.resource.partition("/")
    attributes = {
        "namespace": right.namespace or there.resolved.namespace,
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": sub,
        "name": right.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await review_of(there.client, f"{_REVIEWS}/selfsubjectaccessreviews", review)
    return bool((answer.get("status") or {}).get("allowed"))


# CRDs.


async def stored(bench: CheckInput) -> Sequence[Line]:
    """The managed CRDs whose objects may be stored in a version that is old, or no longer served."""
    there = await bench.reach.reached()
    try:
        found = await there.client.list(CRDS, ListQuery(labels=f"{MANAGED_BY}={US}"))
    except Forbidden:
        return (info("crds", "CustomResourceDefinitions cannot be checked with these credentials"),)
    lines = [line for crd in found.items for line in await _stored(there, crd)]
    names = _listed(map(name_of, found.items))
    return lines or ([ok("crds", f"all objects of these CRDs are stored in one version: {names}")] if names else ())


async def _stored(there: ConnectedCluster, crd: Obj) -> list[Line]:
    name, spec = name_of(crd), crd["spec"]
    if not is_true(crd, "Established"):
        text = f"the CRD {name} is not Established, so its resource cannot be used"
        return [fail("crds", text, code=8, command=str(command(*kubectl_at(there.resolved), "describe", "crd", name)))]
    kept = next(str(one["name"]) for one in spec["versions"] if one.get("storage"))
    used = {str(one["name"]) for one in spec["versions"] if one.get("served")}
    old = [version for version in (crd.get("status") or {}).get("storedVersions") or () if version != kept]
    if not old:
        return []
    dead = [version for version in old if version not in used]
    which = f"{', '.join(dead or old)}, which {'is no longer served' if dead else f'is not {kept}'}"
    text = f"objects of the CRD {name} may be stored in {which}"
    advice = f"rewrite them, then set storedVersions to {kept}:"
    return [warn("crds", text, advice=advice, command=await _migration(there, crd, kept))]


async def _migration(there: ConnectedCluster, crd: Obj, kept: str) -> str:
    """The command that rewrites all objects, if there are any, and then removes the old versions from the status."""
    name, spec = name_of(crd), crd["spec"]
    kubectl = kubectl_at(there.resolved)
    patch = json.dumps({"status": {"storedVersions": [kept]}}, separators=(",", ":"))
    patched = command(*kubectl, "patch", "crd", name, "--subresource=status", "--type=merge", "--patch", patch)
    resource = Resource(spec["group"], kept, spec["names"]["plural"], spec["names"]["kind"])
    try:
        if not (await there.client.list(resource, ListQuery(limit=1, metadata_only=True))).items:
            return str(patched)
    except CallError:
        pass  # unknown, so rewrite them
    got = command(*kubectl, "get", name, "--all-namespaces", "--output=json")
    return f"{got} | {command(*kubectl, 'replace', '--filename=-')} && {patched}"


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
