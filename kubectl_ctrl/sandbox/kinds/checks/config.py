"""ConfigMaps and Secrets.

| kind | checked |
|---|---|
| ConfigMap | keys; a key in both maps; 1 MiB; `immutable` |
| Secret | keys; 1 MiB; the keys that its type requires; type and `immutable` on a change |
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    config_key,
    forbidden,
    invalid,
    required,
    texts,
    too_long,
    unlike,
)

_MOST = 1 << 20
_TYPE = "kubernetes.io/"
_REQUIRED = {
    "ssh-auth": ("ssh-privatekey",),
    "tls": ("tls.crt", "tls.key"),
    "dockercfg": (".dockercfg",),
    "dockerconfigjson": (".dockerconfigjson",),
}
_ACCOUNT = "kubernetes.io/service-account.name"


def config_map(obj: Obj, old: Obj | None) -> Found:
    if old is not None:
        yield from _frozen(obj, old, "data", "binaryData")
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in data:
        yield from texts(f"data[{key}]", key, config_key)
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from texts(f"binaryData[{key}]", key, config_key)
    if sum(len(str(text).encode()) for text in data.values()) + sum(map(_size, binary.values())) > _MOST:
        yield too_long("[]", _MOST)


def secret(obj: Obj, old: Obj | None) -> Found:
    if old is not None:
        yield from unlike("type", obj.get("type"), old.get("type"))
        yield from _frozen(obj, old, "data")
    data = obj.get("data") or {}
    for key in data:
        yield from texts(f"data[{key}]", key, config_key)
    if sum(map(_size, data.values())) > _MOST:
        yield too_long("data", _MOST)
    yield from _by_type(obj, str(obj.get("type") or "").removeprefix(_TYPE), data)


def _by_type(obj: Obj, kind: str, data: Obj) -> Found:
    if not str(obj.get("type")).startswith(_TYPE):
        return
    if kind == "service-account-token" and not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if kind == "basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _REQUIRED.get(kind, ()):
        if key not in data or (kind == "ssh-auth" and not data[key]):
            yield required(f"data[{key}]")


def _frozen(obj: Obj, old: Obj, *fields: str) -> Found:
    if not old.get("immutable"):
        return
    words = "field is immutable when `immutable` is set"
    if not obj.get("immutable"):
        yield forbidden("immutable", words)
    for field in fields:
        if not same(obj.get(field), old.get(field)):
            yield forbidden(field, words)


def _size(encoded: Any) -> int:
    text = str(encoded)
    return len(text) * 3 // 4 - text[-2:].count("=")
