"""Validation of the objects in a list or watch."""

from __future__ import annotations

import json
from typing import Any

from kubectl_ctrl.client.options import ListQuery, WatchQuery
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.words import excerpt, plain
from kubectl_ctrl.model.objects import PARTIAL_KIND, PARTIAL_VERSION, Obj
from kubectl_ctrl.value import Unshown, Value


class InvalidItem(Value):
    """An invalid item in the place of an object; it is skipped."""

    excerpt: Unshown[str]  # its first bytes, quoted and escaped
    why: str


class ExpectedType(Value, kw_only=True):
    """The type of the objects of one list or watch."""

    kind: str
    api_version: str
    metadata_only: bool
    sensitive: bool

    def poisoned(self, raw: Any, why: str) -> InvalidItem:
        if self.sensitive:
            return InvalidItem("(not shown)", plain(why, 300))
        text = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
        return InvalidItem(excerpt(text), plain(why, 300))


def expected_of(order: Order, query: ListQuery | WatchQuery) -> ExpectedType:
    assert order.resource is not None
    return ExpectedType(
        kind=order.resource.kind,
        api_version=order.resource.api_version,
        metadata_only=query.metadata_only,
        sensitive=order.sensitive,
    )


def flaw_of(obj: Any, expected: ExpectedType, *, bookmark: bool = False) -> str:
    """The error of an invalid object, or "". A bookmark has a resourceVersion and no name."""
    if not isinstance(obj, dict):
        return "it is not an object"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return "it has no metadata"
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    partial = expected.metadata_only and kind == PARTIAL_KIND
    if not partial and (kind, api_version) != (expected.kind, expected.api_version):
        return f"it is a {kind!r} of {api_version!r}"
    if not bookmark and not (isinstance(metadata.get("name"), str) and metadata["name"]):
        return "it has no name"
    if not isinstance(metadata.get("namespace", ""), str):
        return "its namespace is not a string"
    version = metadata.get("resourceVersion", None if bookmark else "")
    return "" if isinstance(version, str) else "its resourceVersion is not a string"


def projected(obj: Obj) -> Obj:
    """The metadata of the object; some servers send all of it despite the media type."""
    if obj.get("kind") == PARTIAL_KIND:
        return obj
    return {"kind": PARTIAL_KIND, "apiVersion": PARTIAL_VERSION, "metadata": obj["metadata"]}
