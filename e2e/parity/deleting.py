"""delete: preconditions, finalizers, propagation, whole collections, namespaces and CRDs."""

from __future__ import annotations

from typing import Any

from e2e.parity import gaps
from e2e.parity.asks import (
    CRDS,
    FOOS,
    MAPS,
    config_map,
    delete,
    foo,
    foo_crd,
    get,
    patch,
    post,
    put,
    scenario,
    settled,
)

_UID = "11111111-1111-4111-8111-111111111111"
_HOLD = "a.example.com/hold"
_ONE = f"{MAPS}/one"
_MADE = post(MAPS, config_map("one"))
_HELD = post(MAPS, config_map("one", finalizers=[_HOLD]))


def _child(name: str, *, block: bool = False, **metadata: Any) -> Any:
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "one",
        "uid": "$0.metadata.uid",
        "blockOwnerDeletion": block,
    }
    return post(MAPS, config_map(name, ownerReferences=[owner], **metadata))


_ALONE = (
    scenario("delete", _MADE, delete(_ONE), get(_ONE), delete(_ONE)),
    scenario("delete a Foo", post(FOOS, foo("one", {"name": "a"})), delete(f"{FOOS}/one"), delete(f"{FOOS}/one")),
    scenario("delete dry", _MADE, delete(_ONE, dryRun="All"), delete(_ONE, {"dryRun": ["All"]}), get(_ONE)),
    scenario("delete dry in an unknown way", _MADE, delete(_ONE, dryRun="Some")),
    scenario(
        "delete a UID",
        _MADE,
        delete(_ONE, {"preconditions": {"uid": _UID}}),
        delete(_ONE, {"preconditions": {"uid": "$0.metadata.uid"}}),
    ),
    scenario(
        "delete a version",
        _MADE,
        delete(_ONE, {"preconditions": {"resourceVersion": "1"}}),
        delete(_ONE, {"preconditions": {"resourceVersion": "$0.metadata.resourceVersion"}}),
    ),
    scenario(
        "delete a Foo by its UID",
        post(FOOS, foo("one", {"name": "a"})),
        delete(f"{FOOS}/one", {"preconditions": {"uid": _UID}}),
    ),
    scenario("delete what is held", _HELD, delete(_ONE), delete(_ONE), get(_ONE)),
    scenario("delete what is held, dry", _HELD, delete(_ONE, dryRun="All"), get(_ONE)),
    scenario("let go of what is held", _HELD, delete(_ONE), patch(_ONE, {"metadata": {"finalizers": None}}), get(_ONE)),
    scenario("let go by a replacement", _HELD, delete(_ONE), put(_ONE, config_map("one"))),
    scenario(
        "hold what is being deleted",
        _HELD,
        delete(_ONE),
        patch(_ONE, {"metadata": {"finalizers": [_HOLD, "a.example.com/b"]}}),
    ),
    scenario(
        "change what is being deleted",
        _HELD,
        delete(_ONE),
        patch(_ONE, {"data": {"a": "b"}}),
        patch(_ONE, {"metadata": {"deletionTimestamp": None}}),
    ),
    scenario("create what is being deleted", _HELD, delete(_ONE), _MADE),
    scenario(
        "delete a Foo that is held",
        post(FOOS, foo("one", {"name": "a"}, finalizers=[_HOLD])),
        delete(f"{FOOS}/one"),
        patch(f"{FOOS}/one", {"metadata": {"finalizers": []}}),
        get(f"{FOOS}/one"),
    ),
    scenario("delete at leisure", _MADE, delete(_ONE, {"gracePeriodSeconds": 30})),
    scenario("delete at once", _HELD, delete(_ONE, {"gracePeriodSeconds": 0})),
    scenario("delete in an unknown way", _MADE, delete(_ONE, {"propagationPolicy": "Sideways"})),
    scenario("delete in the background", _MADE, delete(_ONE, {"propagationPolicy": "Background"})),
    scenario(
        "delete many",
        post(FOOS, foo("a", {"name": "a"}, labels={"x": "1"})),
        post(FOOS, foo("b", {"name": "b"}, labels={"x": "1"})),
        post(FOOS, foo("c", {"name": "c"})),
        delete(FOOS, labelSelector="x=1"),
        get(FOOS),
    ),
    scenario(
        "delete many that are held",
        post(MAPS, config_map("a", labels={"x": "1"}, finalizers=[_HOLD])),
        delete(MAPS, labelSelector="x=1"),
        get(f"{MAPS}/a"),
    ),
)
_WITH_OTHERS = (
    scenario("an owner goes", _MADE, _child("two"), delete(_ONE), settled(get(f"{MAPS}/two"))),
    scenario(
        "an owner goes in the foreground",
        _MADE,
        _child("two", block=True),
        delete(_ONE, {"propagationPolicy": "Foreground"}),
        settled(get(f"{MAPS}/two")),
        settled(get(_ONE)),
    ),
    scenario(
        "nobody stops an owner",
        _MADE,
        _child("two", finalizers=[_HOLD]),
        delete(_ONE, propagationPolicy="Foreground"),
        settled(get(_ONE)),
        settled(get(f"{MAPS}/two")),
    ),
    scenario(
        "a dependent stops its owner",
        _MADE,
        _child("two", block=True, finalizers=[_HOLD]),
        delete(_ONE, {"propagationPolicy": "Foreground"}),
        settled(get(f"{MAPS}/two")),
        settled(get(_ONE)),
        patch(f"{MAPS}/two", {"metadata": {"finalizers": None}}),
        settled(get(_ONE)),
    ),
    scenario(
        "an owner leaves orphans",
        _MADE,
        _child("two"),
        delete(_ONE, {"propagationPolicy": "Orphan"}),
        settled(get(_ONE)),
        settled(get(f"{MAPS}/two")),
    ),
    scenario(
        "a dependent of nobody",
        post(
            MAPS,
            config_map("one", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": _UID}]),
        ),
        settled(get(_ONE)),
    ),
    scenario(
        "an owner by another name",
        _MADE,
        post(
            MAPS,
            config_map(
                "two",
                ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "$0.metadata.uid"}],
            ),
        ),
        settled(get(f"{MAPS}/two")),
    ),
)
_SPACE = "/api/v1/namespaces/{ns}-x"
_SPACES = (
    scenario("a namespace", post("/api/v1/namespaces", {"metadata": {"name": "{ns}-x"}}), get(_SPACE)),
    scenario(
        "a namespace goes",
        post("/api/v1/namespaces", {"metadata": {"name": "{ns}-x"}}),
        delete(_SPACE),
        settled(get(_SPACE)),
    ),
    scenario("a namespace with a dot", post("/api/v1/namespaces", {"metadata": {"name": "a.b"}})),
    scenario("a namespace twice", post("/api/v1/namespaces", {"metadata": {"name": "{ns}"}})),
    scenario(
        "a namespace that is held",
        post("/api/v1/namespaces", {"metadata": {"name": "{ns}-x"}}),
        post(f"{_SPACE}/configmaps", config_map("one", finalizers=[_HOLD])),
        delete(_SPACE),
        post(f"{_SPACE}/configmaps", config_map("two")),
        post(f"{_SPACE}/configmaps", config_map("one")),
        settled(get(f"{_SPACE}/configmaps/one")),
        patch(f"{_SPACE}/configmaps/one", {"metadata": {"finalizers": None}}),
    ),
    scenario("no namespaces at once", delete("/api/v1/namespaces")),
)
_BARS = "bars.{ns}.example.com"
_BAR = foo_crd("bars", "Bar", "{ns}.example.com")
_TYPES = (
    scenario(
        "a CRD goes",
        post(CRDS, _BAR),
        settled(get("/apis/{ns}.example.com/v1/namespaces/{ns}/bars")),
        delete(f"{CRDS}/{_BARS}"),
        settled(get(f"{CRDS}/{_BARS}")),
        settled(get("/apis/{ns}.example.com/v1/namespaces/{ns}/bars")),
        played=True,
    ),
    scenario("a CRD that is not there is replaced", put(f"{CRDS}/{_BARS}", _BAR)),
    scenario(
        "a CRD is served",
        post(CRDS, _BAR, dryRun="All"),
        gap=gaps.CRD_STATUS,
    ),
    scenario(
        "a CRD with another name",
        post(CRDS, {**_BAR, "metadata": {"name": "odd.example.com"}}),
    ),
)

SCENARIOS = (*_ALONE, *_WITH_OTHERS, *_SPACES, *_TYPES)
