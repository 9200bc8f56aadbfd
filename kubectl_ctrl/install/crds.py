"""Comparing CustomResourceDefinitions, their stored versions, and conflicts of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import WriteOptions
from kubectl_ctrl.errors import Forbidden, Invalid, Refused
from kubectl_ctrl.install.marks import MANAGER
from kubectl_ctrl.model.diffs import ABSENT, Difference, diff
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import CRDS, Resource
from kubectl_ctrl.model.suggestions import command


def served(crd: Obj) -> tuple[Resource, ...]:
    """The resource types that a CRD serves, one for each version."""
    spec = crd["spec"]
    return tuple(
        Resource(
            spec["group"],
            version["name"],
            spec["names"]["plural"],
            spec["names"]["kind"],
            spec.get("scope") != "Cluster",
        )
        for version in spec["versions"]
        if version.get("served")
    )


async def differences(client: Client, live: Obj, desired: Obj, *, ask: bool = True) -> tuple[Difference, ...]:
    """The differences between the specs of two CRDs, without those that only come from defaults of the server.

    Only the server knows its defaults, so if the specs differ, a dry run of a replacement adds them.
    """
    apparent = _between(_completed(desired["spec"]), live["spec"])
    if not apparent or not ask:
        return apparent
    body = {**live, "spec": desired["spec"]}
    try:
        answer = await client.replace(CRDS.ref(name_of(live)), body, WriteOptions(manager=MANAGER, dry_run=True))
    except (Forbidden, Invalid):
        return apparent
    return _between(answer["spec"], live["spec"])


def _between(wanted: Obj, there: Obj) -> tuple[Difference, ...]:
    return diff({"spec": wanted}, {"spec": there})


def _completed(spec: Obj) -> Obj:
    """With the default names and conversion, which every server adds."""
    kind = str(spec["names"]["kind"])
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **spec["names"]}
    return {"conversion": {"strategy": "None"}, **spec, "names": names}


def shown(differing: Sequence[Difference], most: int = 5) -> str:
    """The differences for a message."""
    parts = [f"{one.path} is {_value(one.new)} and would be {_value(one.old)}" for one in differing[:most]]
    more = f"; and {len(differing) - most} more" if len(differing) > most else ""
    return "; ".join(parts) + more


def _value(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_stored(live: Obj, desired: Obj) -> None:
    """Refuse to remove a version in which objects may be stored: the server could no longer read them."""
    stored = (live.get("status") or {}).get("storedVersions") or []
    kept = {version["name"] for version in desired["spec"]["versions"]}
    lost = [version for version in stored if version not in kept]
    if not lost:
        return
    name, left = name_of(live), [version for version in stored if version in kept]
    raise Refused(
        f"The CRD {name!r} would lose {', '.join(lost)}, but objects may be stored in it (status.storedVersions); "
        f"the new CRD has {', '.join(sorted(kept))}.",
        next_step=f"rewrite all objects in a version that is kept, then set status.storedVersions to {left} with "
        f"{command('kubectl', 'patch', 'crd', name, '--subresource=status', '--type=merge')}",
    )


async def namesakes(client: Client, crd: Obj) -> tuple[str, ...]:
    """Other CRDs of the group with one of its names."""
    wanted, group = _names(crd), crd["spec"]["group"]
    others = (await client.list(CRDS)).items
    return tuple(
        name_of(other)
        for other in others
        if other["spec"]["group"] == group and name_of(other) != name_of(crd) and not wanted.isdisjoint(_names(other))
    )


def _names(crd: Obj) -> set[str]:
    spec = _completed(crd["spec"])
    names = spec["names"]
    return {names["plural"], names["singular"], names["kind"], names["listKind"], *(names.get("shortNames") or ())}
