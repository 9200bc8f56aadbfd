"""Raw Kubernetes objects: the alias everything uses, and the few questions that everyone asks of metadata."""

from __future__ import annotations

from typing import Any, NamedTuple

# A decoded JSON object. Objects that came out of a cache are shared: nobody changes one in place.
Obj = dict[str, Any]


class Key(NamedTuple):
    """Where an object lives within its resource; namespace is "" for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Obj) -> Key:
    """The namespace and name of an object."""
    meta = obj["metadata"]
    return Key(meta.get("namespace") or "", meta["name"])


def name_of(obj: Obj) -> str:
    return str(obj["metadata"].get("name") or "")


def namespace_of(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace") or "")


def uid_of(obj: Obj) -> str:
    return str(obj["metadata"].get("uid") or "")


def version_of(obj: Obj) -> str:
    """The object's resourceVersion, "" when it has none."""
    return str(obj["metadata"].get("resourceVersion") or "")


def generation_of(obj: Obj) -> int:
    return int(obj["metadata"].get("generation") or 0)


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def is_deleting(obj: Obj) -> bool:
    """Whether deletion was asked for; the object stays until its finalizers are gone."""
    return bool(obj["metadata"].get("deletionTimestamp"))
