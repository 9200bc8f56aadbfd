"""Raw Kubernetes objects, and accessors of their metadata."""

from __future__ import annotations

from typing import Any, NamedTuple

# A decoded JSON object. Objects from a cache are shared, and must not be changed in place.
Obj = dict[str, Any]

# The form of an object with its metadata alone.
PARTIAL_KIND = "PartialObjectMetadata"
PARTIAL_VERSION = "meta.k8s.io/v1"


class Key(NamedTuple):
    """Namespace and name; the namespace is "" for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: Obj) -> Key:
    meta = obj["metadata"]
    return Key(meta.get("namespace") or "", meta["name"])


def name_of(obj: Obj) -> str:
    return str(obj["metadata"].get("name") or "")


def namespace_of(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace") or "")


def uid_of(obj: Obj) -> str:
    return str(obj["metadata"].get("uid") or "")


def version_of(obj: Obj) -> str:
    """The resourceVersion, or ""."""
    return str(obj["metadata"].get("resourceVersion") or "")


def generation_of(obj: Obj) -> int:
    return int(obj["metadata"].get("generation") or 0)


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def is_deleting(obj: Obj) -> bool:
    """Whether it has a deletionTimestamp: it exists until its finalizers are removed."""
    return bool(obj["metadata"].get("deletionTimestamp"))
