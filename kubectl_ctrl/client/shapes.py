"""What an object in a list or a watch must look like, and what becomes of one that does not."""

from __future__ import annotations

import json
from typing import Any

from kubectl_ctrl.client.options import ListQuery, WatchQuery
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.words import excerpt, plain
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Unshown, Value

PARTIAL_KIND = "PartialObjectMetadata"
PARTIAL_VERSION = "meta.k8s.io/v1"


class Poisoned(Value):
    """Something that stood where an object should be; only this one is lost."""

    excerpt: Unshown[str]  # its first bytes, quoted and made safe to show
    why: str


class Expected(Value, kw_only=True):
    """What the objects of one list or watch are."""

    kind: str
    api_version: str
    metadata_only: bool
    sensitive: bool

    def poisoned(self, raw: Any, why: str) -> Poisoned:
        if self.sensitive:
            return Poisoned("(not shown)", plain(why, 300))
        text = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
        return Poisoned(excerpt(text), plain(why, 300))


def expected_of(order: Order, query: ListQuery | WatchQuery) -> Expected:
    assert order.resource is not None
    return Expected(
        kind=order.resource.kind,
        api_version=order.resource.api_version,
        metadata_only=query.metadata_only,
        sensitive=order.sensitive,
    )


def flaw_of(obj: Any, expected: Expected, *, bookmark: bool = False) -> str:
    """Why this cannot be an object of the expected kind; "" when it can. A bookmark has a version and no name."""
    if not isinstance(obj, dict):
        return "it is not an object"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return "it has no metadata"
    if not _kind_fits(obj, expected):
        return f"it is a {obj.get('kind')!r} of {obj.get('apiVersion')!r}"
    if not bookmark and not (isinstance(metadata.get("name"), str) and metadata["name"]):
        return "it has no name"
    if not isinstance(metadata.get("namespace", ""), str):
        return "its namespace is not a string"
    version = metadata.get("resourceVersion", None if bookmark else "")
    return "" if isinstance(version, str) else "its resourceVersion is not a string"


def projected(obj: Obj) -> Obj:
    """The object as a metadata-only one, also from a server that sent it whole."""
    if obj.get("kind") == PARTIAL_KIND:
        return obj
    return {"kind": PARTIAL_KIND, "apiVersion": PARTIAL_VERSION, "metadata": obj["metadata"]}


def _kind_fits(obj: Obj, expected: Expected) -> bool:
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if kind == expected.kind and version == expected.api_version:
        return True
    return expected.metadata_only and kind == PARTIAL_KIND
