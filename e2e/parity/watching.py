"""Watches: from a version, with the current state first, of a selection that objects leave, and refusals."""

from __future__ import annotations

from e2e.parity.asks import FOOS, LEASES, MAPS, METADATA, delete, foo, get, lease, patch, post, scenario, watch

_ONE = f"{FOOS}/one"
_MADE = post(FOOS, foo("one", {"name": "a"}, labels={"x": "1"}))
_LAST = post(FOOS, foo("last", {"name": "z"}, labels={"x": "1"}))
_FROM = {"resourceVersion": "$0.metadata.resourceVersion"}
# A watch may begin with any state that is at least as new as this: that of the last object has all of them.
_UP_TO_LAST = {"resourceVersion": "$1.metadata.resourceVersion"}
_INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
_LEAVING = (
    _MADE,
    patch(_ONE, {"spec": {"name": "b"}}),
    patch(_ONE, {"metadata": {"labels": {"x": "2"}}}),
    patch(_ONE, {"spec": {"name": "c"}}),
    patch(_ONE, {"metadata": {"labels": {"x": "1"}}}),
    delete(_ONE),
    _LAST,
)

SCENARIOS = (
    scenario("watch from a version", *_LEAVING, watch(FOOS, "last", **_FROM)),
    scenario("watch a selection", *_LEAVING, watch(FOOS, "last", labelSelector="x=1", **_FROM)),
    scenario(
        "watch what is outside",
        *_LEAVING,
        post(FOOS, foo("end", {"name": "a"})),
        watch(FOOS, "end", labelSelector="x!=1", **_FROM),
    ),
    scenario(
        "watch one name",
        *_LEAVING,
        post(FOOS, foo("one", {"name": "last"})),
        patch(_ONE, {"metadata": {"name": "one"}}),
        watch(FOOS, "DELETED", fieldSelector="metadata.name=one", **_FROM),
    ),
    scenario(
        "watch a field",
        _MADE,
        patch(_ONE, {"spec": {"mode": "fast"}}),
        patch(_ONE, {"spec": {"mode": "slow"}}),
        post(FOOS, foo("last", {"name": "z", "mode": "fast"})),
        watch(FOOS, "last", fieldSelector="spec.mode=fast", **_FROM),
    ),
    scenario("watch metadata alone", *_LEAVING, watch(FOOS, "last", accept=METADATA, labelSelector="x=1", **_FROM)),
    scenario("watch another version", *_LEAVING, watch(FOOS.replace("/v1/", "/v1beta1/"), "last", **_FROM)),
    scenario(
        "watch what is held",
        post(FOOS, foo("one", {"name": "a"}, finalizers=["a.example.com/x"])),
        delete(_ONE),
        patch(_ONE, {"metadata": {"finalizers": None}}),
        _LAST,
        watch(FOOS, "last", **_FROM),
    ),
    scenario(
        "watch what does not change",
        _MADE,
        patch(_ONE, {"spec": {"name": "a"}}),
        patch(_ONE, {"spec": {"name": "b"}}, dryRun="All"),
        _LAST,
        watch(FOOS, "last", **_FROM),
    ),
    scenario(
        "watch Leases",
        post(LEASES, lease("one", "a")),
        patch(f"{LEASES}/one", {"spec": {"holderIdentity": "b"}}),
        delete(f"{LEASES}/one"),
        post(LEASES, lease("last", "z")),
        watch(LEASES, "last", **_FROM),
    ),
    scenario(
        "watch from the beginning",
        _MADE,
        patch(_ONE, {"spec": {"name": "b"}}),
        get(FOOS, **_UP_TO_LAST),  # from here on the real server's cache has the change
        watch(FOOS, "one", fieldSelector="metadata.name=one", resourceVersion="0"),
    ),
    scenario("watch from anywhere", _MADE, _LAST, watch(FOOS, "one", fieldSelector="metadata.name=one")),
    scenario("watch from anywhere with bookmarks", _MADE, watch(FOOS, "BOOKMARK", allowWatchBookmarks="true")),
    scenario("watch with initial events", _MADE, _LAST, watch(FOOS, "BOOKMARK", **_INITIAL)),
    scenario(
        "watch with initial events of a version", _MADE, _LAST, watch(FOOS, "BOOKMARK", **_INITIAL, **_UP_TO_LAST)
    ),
    scenario(
        "watch with initial events of a selection",
        _MADE,
        post(FOOS, foo("two", {"name": "b"})),
        watch(FOOS, "BOOKMARK", labelSelector="x=1", **_INITIAL),
    ),
    scenario("watch with initial metadata", _MADE, watch(FOOS, "BOOKMARK", accept=METADATA, **_INITIAL)),
    scenario("watch with initial Leases", post(LEASES, lease("one", "a")), watch(LEASES, "BOOKMARK", **_INITIAL)),
    scenario(
        "watch without initial events",
        _MADE,
        _LAST,
        watch(FOOS, "last", sendInitialEvents="false", resourceVersionMatch="NotOlderThan", **_FROM),
    ),
    scenario(
        "watch with initial events of any age",
        watch(MAPS, "-", sendInitialEvents="true"),
        watch(FOOS, "-", sendInitialEvents="true", resourceVersionMatch="Exact"),
    ),
    scenario("watch with a match", watch(MAPS, "-", resourceVersion="1", resourceVersionMatch="Exact")),
    scenario("watch from no version", watch(MAPS, "-", resourceVersion="x"), watch(FOOS, "-", resourceVersion="x")),
    scenario("watch no such thing", watch("/api/v1/nothings", "-"), watch("/apis/none.example.com/v1/things", "-")),
    scenario("watch an unknown field", watch(MAPS, "-", fieldSelector="a=b"), watch(FOOS, "-", fieldSelector="a=b")),
    # Read to its end: long enough for a slow server to send the object.
    scenario("watch one object by its path", _MADE, get(_ONE, watch="true", timeoutSeconds="5")),
)
