"""get and list: formats, selectors, versions, pages, and paths that do not exist."""

from __future__ import annotations

from e2e.parity import gaps
from e2e.parity.asks import (
    CRDS,
    DEPLOYMENTS,
    FOOS,
    GROUP,
    LEASES,
    MAPS,
    METADATA,
    METADATA_LIST,
    SECRETS,
    Ask,
    config_map,
    foo,
    get,
    lease,
    patch,
    post,
    scenario,
)

_THREE = (
    post(FOOS, foo("a", {"name": "a", "mode": "fast"}, labels={"app": "x", "tier": "1"})),
    post(FOOS, foo("b", {"name": "b", "mode": "slow"}, labels={"app": "y"})),
    post(FOOS, foo("c", {"name": "c"}, labels={"app": "x"})),
)
_LABELS = {
    "equal": "app=x",
    "equal twice": "app==x,tier=1",
    "unequal": "app!=x",
    "in": "app in (x,y),tier",
    "notin": "app notin (y),!tier",
    "greater": "tier>0",
    "nobody": "app=z",
    "empty value": "app=",
}
_BROKEN = {"open": "app in (x", "no values": "app in", "bad key": "a b=c", "bad value": "app=-x", "number": "tier>x"}
_FIELDS = {
    "name": "metadata.name=a",
    "not the name": "metadata.name!=a",
    "two": "metadata.name!=a,metadata.namespace={ns}",
    "of the CRD": "spec.mode=fast",
    "empty": "spec.mode=",
}
_NO_FIELDS = {"unknown": "spec.name=a", "no operator": "metadata.name"}


def _listing(**query: str) -> tuple[Ask, ...]:
    return (*_THREE, get(FOOS, **query))


SCENARIOS = (
    scenario("get", post(MAPS, config_map("one", {"a": "1"})), get(f"{MAPS}/one")),
    scenario("get what is not there", get(f"{MAPS}/none"), get(f"{FOOS}/none"), get(f"{CRDS}/none.example.com")),
    scenario("get in a namespace that is not there", get("/api/v1/namespaces/nowhere/configmaps/one")),
    scenario("list in a namespace that is not there", get("/apis/apps/v1/namespaces/nowhere/deployments")),
    scenario("no group", get("/apis/none.example.com/v1/namespaces/{ns}/things"), get("/apis/none.example.com/v1")),
    scenario("no version", get(f"/apis/{GROUP}/v7/namespaces/{{ns}}/foos"), get("/apis/apps/v7/deployments")),
    scenario("no resource", get("/api/v1/nothings"), get("/apis/apps/v1/namespaces/{ns}/nothings/one")),
    scenario("no custom resource", get(f"/apis/{GROUP}/v1/namespaces/{{ns}}/nothings/one")),
    scenario("no subresource", post(MAPS, config_map("one")), get(f"{MAPS}/one/status"), get(f"{MAPS}/one/scale")),
    scenario(
        "no path",
        get("/nowhere"),
        get("/api/v7"),
        get("/apis/apps/v7"),
        get("/apis/none"),
        get("/apis/apps/v1/namespaces"),
    ),
    scenario("no custom subresource", get(f"/apis/{GROUP}/v1beta1/namespaces/{{ns}}/foos/one/status")),
    scenario("no method", Ask(method="POST", path=f"{MAPS}/one", body={}), Ask(method="PUT", path=MAPS, body={})),
    scenario(
        "a namespaced object outside of namespaces", get("/api/v1/configmaps/one"), get("/apis/apps/v1/deployments/x")
    ),
    scenario("the metadata alone", post(FOOS, foo("a", {"name": "a"})), get(f"{FOOS}/a", accept=METADATA)),
    scenario("the metadata of all", *_THREE, get(FOOS, accept=METADATA_LIST)),
    scenario(
        "the metadata of an answer to a write", Ask(method="POST", path=MAPS, body=config_map("a"), accept=METADATA)
    ),
    scenario("a list of a built-in type", post(LEASES, lease("a", "x")), post(LEASES, lease("b", "y")), get(LEASES)),
    scenario("a list of nothing", get(LEASES), get(FOOS), get(DEPLOYMENTS)),
    scenario("a list of a custom type", *_listing()),
    scenario("another version", *_THREE[:1], get(f"/apis/{GROUP}/v1beta1/namespaces/{{ns}}/foos")),
    *(scenario(f"labels: {name}", *_listing(labelSelector=text)) for name, text in _LABELS.items()),
    *(
        scenario(f"broken labels: {name}", get(MAPS, labelSelector=text), gap=gaps.UNREADABLE)
        for name, text in _BROKEN.items()
    ),
    *(scenario(f"fields: {name}", *_listing(fieldSelector=text)) for name, text in _FIELDS.items()),
    *(scenario(f"broken fields: {name}", get(FOOS, fieldSelector=text)) for name, text in _NO_FIELDS.items()),
    scenario("an unknown field of a built-in type", get(MAPS, fieldSelector="data.a=b")),
    scenario("both selectors", *_listing(labelSelector="app=x", fieldSelector="metadata.name=a")),
    scenario(
        "secrets by their type",
        post(SECRETS, {"metadata": {"name": "a"}, "type": "x/y"}),
        get(SECRETS, fieldSelector="type=x/y"),
    ),
    scenario(
        "one page after the other", *_listing(limit="2"), get(FOOS, limit="2", **{"continue": "$3.metadata.continue"})
    ),
    scenario("a page of a selection", *_listing(limit="1", labelSelector="app=x")),
    scenario("a page that holds all", *_listing(limit="3")),
    scenario(
        "later pages show the past",
        *_listing(limit="1"),
        patch(f"{FOOS}/b", {"spec": {"name": "changed"}}),
        get(FOOS, **{"continue": "$3.metadata.continue"}),
    ),
    scenario(
        "a page and a version",
        *_listing(limit="1"),
        get(FOOS, resourceVersion="5", **{"continue": "$3.metadata.continue"}),
    ),
    scenario("no token", get(FOOS, **{"continue": "garbage"}), gap=gaps.UNREADABLE),
    scenario(
        "at a version", *_THREE, get(FOOS, resourceVersion="$0.metadata.resourceVersion", resourceVersionMatch="Exact")
    ),
    # At the version of the last: at that of the first, the others may be missing, as in the real server's cache.
    scenario("not older than a version", *_THREE, get(FOOS, resourceVersion="$2.metadata.resourceVersion")),
    scenario("any version", get(f"{MAPS}/none", resourceVersion="0"), get(LEASES, resourceVersion="0")),
    scenario("at no version", get(MAPS, resourceVersion="x"), get(f"{MAPS}/one", resourceVersion="x")),
    scenario(
        "a match without a version", get(MAPS, resourceVersionMatch="Exact"), get(FOOS, resourceVersionMatch="Exact")
    ),
    scenario("a match of version 0", get(MAPS, resourceVersion="0", resourceVersionMatch="Exact")),
    scenario("an unknown match", get(MAPS, resourceVersion="1", resourceVersionMatch="Odd")),
    scenario("a list with initial events", get(MAPS, sendInitialEvents="true")),
    scenario("no number of items", get(MAPS, limit="x"), get(FOOS, limit="x")),
    scenario("without any form", get(MAPS, accept="text/html")),
)
