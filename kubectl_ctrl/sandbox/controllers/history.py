"""ControllerRevisions: the former templates of StatefulSets and DaemonSets."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kubectl_ctrl.model.objects import Obj, annotations_of, labels_of, name_of, namespace_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess
from kubectl_ctrl.sandbox.controllers.resources import CONTROLLER_REVISIONS

# Hashes use letters that form no words.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def revisions_of(cluster: ClusterAccess, owner: Obj) -> list[Obj]:
    """Oldest first."""
    found = cluster.claim(CONTROLLER_REVISIONS, owner, from_label_selector(owner["spec"].get("selector")))
    return sorted(found, key=lambda one: (one["revision"], one["metadata"]["creationTimestamp"], name_of(one)))


def current_revision(cluster: ClusterAccess, owner: Obj, known: list[Obj], label: str) -> Obj:
    """The revision of the owner's template: the newest known one, an older one with a new number, or a new one."""
    data = _data_of(owner)
    last = known[-1]["revision"] if known else 0
    equal = next((one for one in reversed(known) if one["data"] == data), None)
    if equal is None:
        return cluster.create(_revision(owner, data, last + 1, label))
    if equal["revision"] == last:
        return equal
    return cluster.merge(CONTROLLER_REVISIONS, equal, {"revision": last + 1}) or equal


def template_of(revision: Obj) -> Obj:
    template: Obj = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def forget_revisions(cluster: ClusterAccess, owner: Obj, old: list[Obj], live: Iterable[str]) -> None:
    """Delete the oldest of the revisions without pods, those beyond the limit."""
    used = frozenset(live)
    unused = [one for one in old if name_of(one) not in used]
    limit = int(owner["spec"].get("revisionHistoryLimit", 10))
    for one in unused[: max(0, len(unused) - limit)]:
        cluster.delete(CONTROLLER_REVISIONS, one)


def _data_of(owner: Obj) -> Obj:
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def _revision(owner: Obj, data: Obj, number: int, label: str) -> Obj:
    collisions = int((owner.get("status") or {}).get("collisionCount") or 0)
    digest = _hash(data, collisions)
    metadata = {
        "name": f"{name_of(owner)[:223]}-{digest}",
        "namespace": namespace_of(owner),
        "labels": {**labels_of(owner["spec"]["template"]), label: digest},
        "annotations": annotations_of(owner),
        "ownerReferences": [owner_reference(owner)],
    }
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {key: value for key, value in metadata.items() if value},
        "data": data,
        "revision": number,
    }


def _hash(data: Obj, collisions: int) -> str:
    """FNV-1 with 32 bits over the text that Go writes for this JSON, then in letters."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "&<>":
        text = text.replace(character, f"\\u{ord(character):04x}")
    value = 2166136261
    for byte in f"{text}{collisions}".encode():
        value = (value * 16777619 % 2**32) ^ byte
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(value))
