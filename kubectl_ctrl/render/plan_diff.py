"""Two states of an object as YAML for a diff program, with Secrets and values that look secret masked.

As in `kubectl diff`: sorted keys, no managedFields, and a masked value only shows whether it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.masking import MASKED, is_secret, masked
from kubectl_ctrl.model.objects import Obj, version_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.secrecy import Secrecy
from kubectl_ctrl.plan.steps import Plan, PlannedObject
from kubectl_ctrl.text import Text, escaped
from kubectl_ctrl.value import Unshown, Value

_COLORS = {"+": "32", "-": "31", "@": "36"}


class Sides(Value, kw_only=True):
    """An object before and after, as YAML; "" if it does not exist."""

    name: str  # as kubectl diff names its files: apps.v1.Deployment.default.web
    live: Unshown[str]
    merged: Unshown[str]


def secrecy_of(plan: Plan) -> Secrecy:
    """The values to mask in all output of a plan."""
    secrecy = Secrecy()
    secrecy.learn(plan.secrets)
    return secrecy


def sides_of(fate: PlannedObject, secrecy: Secrecy) -> Sides:
    live, merged = shown_sides(fate, secrecy)
    resource, key = fate.resource, fate.key
    group = f"{resource.group}." if resource.group else ""
    name = f"{group}{resource.version}.{resource.kind}.{key.namespace}.{key.name}"
    return Sides(name=name.replace(":", "-"), live=_yaml(live), merged=_yaml(merged))


def shown_sides(fate: PlannedObject, secrecy: Secrecy) -> tuple[Obj | None, Obj | None]:
    """Both states, masked, without managedFields and the plan's own resourceVersions."""
    live, merged = _bare(fate.before), _bare(fate.after)
    if merged is not None:
        meta = dict(merged["metadata"])
        meta.pop("resourceVersion", None)
        if live is not None and version_of(live):
            meta["resourceVersion"] = version_of(live)
        merged = {**merged, "metadata": meta}
    pairs = ((live, merged, "before"), (merged, live, "after"))
    before, after = (_hidden(one, other, fate.resource, secrecy, which) for one, other, which in pairs)
    return before, after


def unified(sides: Sides, *, color: bool = False) -> Iterator[Text]:
    """The lines of a unified diff; none if both are equal."""
    lines = unified_diff(
        sides.live.splitlines(), sides.merged.splitlines(), f"LIVE/{sides.name}", f"MERGED/{sides.name}", lineterm=""
    )
    for line in map(escaped, lines):
        code = _COLORS.get(line[:1]) if color else None
        yield Text(f"\x1b[{code}m{line}\x1b[0m" if code else line)


def _yaml(obj: Obj | None) -> str:
    return "" if obj is None else manifests.text([obj], sort_keys=True)


def _bare(obj: Obj | None) -> Obj | None:
    if obj is None:
        return None
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _hidden(obj: Obj | None, other: Obj | None, resource: Resource, secrecy: Secrecy, which: str) -> Obj | None:
    if obj is None:
        return None
    kept = masked(obj, resource)[0] if is_secret(resource) else secrecy.kept(obj)
    meta = {key: value for key, value in kept["metadata"].items() if key != MASKED}
    shown: Obj = _marked({**kept, "metadata": meta}, obj, other, which)
    return shown


def _marked(shown: Any, value: Any, other: Any, which: str) -> Any:
    """Marks masked values that differ from the other side's: equal masks would hide the change."""
    if isinstance(shown, dict) and isinstance(value, dict):
        others = other if isinstance(other, dict) else {}
        return {key: _marked(part, value.get(key), others.get(key), which) for key, part in shown.items()}
    if isinstance(shown, list) and isinstance(value, list):
        peers = other if isinstance(other, list) and len(other) == len(shown) else [None] * len(shown)
        return [_marked(part, was, peer, which) for part, was, peer in zip(shown, value, peers, strict=True)]
    if shown == value or other is None or same(value, other):
        return shown
    return f"{shown} ({which})"
