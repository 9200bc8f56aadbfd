"""What a Deployment's ReplicaSets say about its history: templates, revisions, and the numbers of a rollout."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from kubectl_ctrl.model.objects import Obj, annotations_of, name_of, namespace_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import REPLICASETS
from kubectl_ctrl.sandbox.answers import encode

HASH = "pod-template-hash"
_PREFIX = "deployment.kubernetes.io/"
REVISION = f"{_PREFIX}revision"
_HISTORY = f"{_PREFIX}revision-history"
_DESIRED = f"{_PREFIX}desired-replicas"
_MOST = f"{_PREFIX}max-replicas"
_NOT_COPIED = frozenset(
    {
        *(REVISION, _HISTORY, _DESIRED, _MOST),
        *("kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to"),
    }
)
_LONGEST_HISTORY = 2000  # characters
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # they form no words


def replicas_of(obj: Obj) -> int:
    """The requested number."""
    return int(obj["spec"].get("replicas", 1))


def counted(objects: list[Obj], name: str) -> int:
    """The sum of a number in the status of each object."""
    return sum(int((obj.get("status") or {}).get(name) or 0) for obj in objects)


def requested(objects: list[Obj]) -> int:
    return sum(map(replicas_of, objects))


# -- templates


def is_of_template(replicaset: Obj, template: Obj) -> bool:
    return same(_without_hash(replicaset["spec"]["template"]), _without_hash(template))


def _without_hash(template: Obj) -> Obj:
    meta = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (meta.pop("labels", None) or {}).items() if key != HASH}
    return {**template, "metadata": {**meta, "labels": labels}}


def template_hash(template: Obj, collisions: int) -> str:
    text = encode(template) + (str(collisions).encode() if collisions else b"")
    digest = hashlib.sha256(text).digest()[:10]
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)


def replicaset_of(deployment: Obj, collisions: int) -> Obj:
    """The ReplicaSet of the current template, without replicas and annotations."""
    template, selector = deployment["spec"]["template"], deployment["spec"]["selector"]
    hashed = {HASH: template_hash(template, collisions)}
    labels = {**((template.get("metadata") or {}).get("labels") or {}), **hashed}
    min_ready = deployment["spec"].get("minReadySeconds")
    return {
        "apiVersion": REPLICASETS.api_version,
        "kind": REPLICASETS.kind,
        "metadata": {
            "name": f"{name_of(deployment)}-{hashed[HASH]}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            **({"minReadySeconds": min_ready} if min_ready else {}),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **hashed}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


# -- annotations


def revision_of(obj: Obj) -> int:
    return _number(annotations_of(obj).get(REVISION)) or 0


def desired_before(replicaset: Obj) -> int | None:
    """The Deployment's replicas when this ReplicaSet was last scaled."""
    return _number(annotations_of(replicaset).get(_DESIRED))


def most_before(replicaset: Obj) -> int | None:
    return _number(annotations_of(replicaset).get(_MOST))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def size_annotations(deployment: Obj) -> dict[str, str]:
    replicas = replicas_of(deployment)
    return {_DESIRED: str(replicas), _MOST: str(replicas + max_surge(deployment))}


def new_annotations(deployment: Obj, replicaset: Obj, revision: int) -> dict[str, str]:
    """The changed annotations of the current ReplicaSet: those of the Deployment, and a newer revision."""
    before = annotations_of(replicaset)
    changed = {
        key: value
        for key, value in annotations_of(deployment).items()
        if key not in _NOT_COPIED and before.get(key) != value
    }
    if revision_of(replicaset) < revision:
        changed[REVISION] = str(revision)
        if REVISION in before:
            changed[_HISTORY] = _longer(before.get(_HISTORY) or "", before[REVISION])
    return changed


def _longer(history: str, revision: str) -> str:
    revisions = [*filter(None, history.split(",")), revision]
    while len(",".join(revisions)) > _LONGEST_HISTORY:
        revisions.pop(0)
    return ",".join(revisions)


# -- the numbers of a rollout


def is_rolling(deployment: Obj) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def max_surge(deployment: Obj) -> int:
    return _limits(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Obj) -> int:
    if not is_rolling(deployment) or not replicas_of(deployment):
        return 0
    return min(_limits(deployment)[1], replicas_of(deployment))


def _limits(deployment: Obj) -> tuple[int, int]:
    rolling, replicas = deployment["spec"]["strategy"].get("rollingUpdate") or {}, replicas_of(deployment)
    surge = share(rolling.get("maxSurge", 0), replicas, up=True)
    unavailable = share(rolling.get("maxUnavailable", 0), replicas, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def share(amount: Any, total: int, *, up: bool) -> int:
    """A number, or a percentage of `total`, rounded."""
    if isinstance(amount, str):
        part = int(amount.removesuffix("%")) * total / 100
        return math.ceil(part) if up else math.floor(part)
    return int(amount)


def new_size(deployment: Obj, all_sets: list[Obj], newest: Obj) -> int:
    """The size of the current ReplicaSet that the limits of a rollout allow now."""
    wanted, size = replicas_of(deployment), replicas_of(newest)
    if not is_rolling(deployment):
        return wanted
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    room = wanted + share(rolling.get("maxSurge", 0), wanted, up=True) - requested(all_sets)
    return size + min(room, wanted - size) if room > 0 else size


def proportion(deployment: Obj, replicaset: Obj, to_add: int, added: int) -> int:
    """The part of one ReplicaSet in a change of the Deployment's size during a rollout."""
    size = replicas_of(replicaset)
    if not size or to_add in (0, added):
        return 0
    part = _fraction(deployment, replicaset, size)
    return min(part, to_add - added) if to_add > 0 else max(part, to_add - added)


def _fraction(deployment: Obj, replicaset: Obj, size: int) -> int:
    if not replicas_of(deployment):
        return -size
    before = most_before(replicaset) or counted([deployment], "replicas")
    if not before:
        return 0
    exact = size * (replicas_of(deployment) + max_surge(deployment)) / before
    return math.floor(exact + 0.5) - size
