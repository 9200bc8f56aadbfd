"""Tables: their columns, rows and metadata. The rows in data/tables.json were made by the server's own printers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, PODS, Resource
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox.encoding import tables
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import FOOS_PATH, MAPS_PATH, configmap, foo, foo_crd

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
RECORDED: Any = json.loads((Path(__file__).parent / "data" / "tables.json").read_text())


async def ask(server: ScriptedServer, path: str, accept: str = TABLE, **query: str) -> Any:
    request = HttpRequest(
        method="GET", path=path, query=tuple(query.items()), headers={"Accept": accept}, body=None, deadline=30.0
    )
    return json.loads((await server.send(request)).body)


@pytest.mark.parametrize(
    "row", RECORDED["rows"], ids=lambda row: f"{row['object']['kind']}-{row['object']['metadata']['name']}"
)
def test_a_row_is_that_of_the_real_server(row: Any) -> None:
    obj: Obj = row["object"]
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = ServedKind(resource=Resource(group, version, "any", obj["kind"]), singular="any")
    table = tables.table(kind, [obj], RECORDED["now"])
    assert table["rows"][0]["cells"] == row["cells"]
    assert table["rows"][0].get("conditions") == row["conditions"]
    if obj["kind"] != "IPAddress":  # has more cells than columns
        assert len(table["columnDefinitions"]) == len(row["cells"])


async def test_a_list_is_a_table_with_its_metadata(server: ScriptedServer) -> None:
    for name in "abc":
        server.create(configmap(name, one="1"))
    table = await ask(server, MAPS_PATH, limit="2")
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["remainingItemCount"] == 1
    assert table["metadata"]["resourceVersion"] == str(server.version)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["columnDefinitions"][0]["format"] == "name"
    assert table["columnDefinitions"][0]["description"].startswith("Name must be unique within a namespace.")
    assert [row["cells"] for row in table["rows"]] == [["a", 1, "0s"], ["b", 1, "0s"]]
    rest = await ask(server, MAPS_PATH, limit="2", **{"continue": table["metadata"]["continue"]})
    assert [row["cells"][0] for row in rest["rows"]] == ["c"]


@pytest.mark.parametrize(
    ("include", "shown"),
    [
        ("", {"kind", "apiVersion", "metadata"}),
        ("Metadata", {"kind", "apiVersion", "metadata"}),
        ("Object", {"kind", "apiVersion", "metadata", "data"}),
        ("None", set()),
    ],
)
async def test_the_client_chooses_the_object_of_a_row(server: ScriptedServer, include: str, shown: set[str]) -> None:
    server.create(configmap("a", one="1"))
    table = await ask(server, f"{MAPS_PATH}/a", includeObject=include)
    assert set(table["rows"][0]["object"] or ()) == shown
    assert table["metadata"]["resourceVersion"] == str(server.version)


async def test_an_unknown_choice_is_refused(server: ScriptedServer) -> None:
    status = await ask(server, MAPS_PATH, includeObject="All")
    words = "includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', 'None', or empty"
    assert status["message"] == f"Unable to convert to Table as requested: {words}"


async def test_a_table_is_empty_and_still_has_columns(server: ScriptedServer) -> None:
    table = await ask(server, "/apis/apps/v1/deployments")
    assert table["rows"] == []
    names = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert names == ["Name", "Ready", "Up-to-date", "Available", "Age"]


async def test_kinds_without_columns_have_a_name_and_a_time(server: ScriptedServer) -> None:
    server.create(foo_crd())
    table = await ask(server, f"/apis/apiextensions.k8s.io/v1/{CRDS.plural}")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Created At"]
    (row,) = table["rows"]
    assert row["cells"] == ["foos.example.com", row["object"]["metadata"]["creationTimestamp"]]


async def test_a_new_object_is_shown_as_a_table(server: ScriptedServer) -> None:
    body = json.dumps(configmap("a")).encode()
    request = HttpRequest(method="POST", path=MAPS_PATH, query=(), headers={"Accept": TABLE}, body=body, deadline=30.0)
    response = await server.send(request)
    assert response.status == 201
    assert json.loads(response.body)["rows"][0]["cells"] == ["a", 0, "0s"]


COLUMNS = [
    ("string", ".spec.name", "x"),
    ("string", ".spec.replicas", "3"),
    ("string", ".spec.list", '["p","q"]'),
    ("string", ".spec.map", '{"k":"v"}'),
    ("string", ".spec.list[0]", "p"),
    ("string", ".spec.list[-1]", "q"),
    ("string", ".metadata.labels.a\\.b/c", "d"),
    ("string", '.spec.items[?(@.a=="y")].b', "2"),
    ("string", ".spec.yes", "true"),
    ("string", ".spec.none", None),
    ("integer", ".spec.replicas", 3),
    ("integer", ".spec.ratio", 1),
    ("integer", ".spec.name", None),
    ("number", ".spec.replicas", 3.0),
    ("number", ".spec.ratio", 1.5),
    ("boolean", ".spec.yes", True),
    ("boolean", ".spec.name", None),
    ("date", ".spec.name", "<invalid>"),
    ("date", ".metadata.creationTimestamp", "5m"),
    ("date", ".spec.replicas", None),
]


async def test_a_crd_chooses_its_columns(server: ScriptedServer) -> None:
    crd = foo_crd()
    version = crd["spec"]["versions"][0]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version["additionalPrinterColumns"] = [
        {"name": f"C{place}", "type": kind, "jsonPath": path} for place, (kind, path, _) in enumerate(COLUMNS)
    ]
    version["additionalPrinterColumns"][0] |= {"priority": 1, "description": "the name"}
    server.create(crd)
    spec = {"name": "x", "replicas": 3, "ratio": 1.5, "yes": True, "list": ["p", "q"], "map": {"k": "v"}}
    spec["items"] = [{"a": "x", "b": "1"}, {"a": "y", "b": "2"}]
    obj = foo("one", **spec)
    obj["metadata"]["labels"] = {"a.b/c": "d"}
    server.create(obj)
    await server.clock.sleep(300.0)
    table = await ask(server, FOOS_PATH)
    assert table["rows"][0]["cells"] == ["one", *(cell for _, _, cell in COLUMNS)]
    first, second = table["columnDefinitions"][1:3]
    assert first == {"name": "C0", "type": "string", "format": "", "description": "the name", "priority": 1}
    assert second["description"] == "Custom resource definition column (in JSONPath format): .spec.replicas"


async def test_a_custom_resource_has_an_age(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="x"))
    table = await ask(server, f"{FOOS_PATH}/one")
    assert [(column["name"], column["type"]) for column in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    assert table["rows"][0]["cells"] == ["one", "0s"]


AGES = [
    (0, "0s"),
    (119, "119s"),
    (120, "2m"),
    (185, "3m5s"),
    (600, "10m"),
    (3 * 3600 - 1, "179m"),
    (3 * 3600, "3h"),
    (5 * 3600 + 120, "5h2m"),
    (8 * 3600, "8h"),
    (47 * 3600, "47h"),
    (48 * 3600, "2d"),
    (51 * 3600, "2d3h"),
    (8 * 86400, "8d"),
    (729 * 86400, "729d"),
    (730 * 86400, "2y"),
    (800 * 86400, "2y70d"),
    (3000 * 86400, "8y"),
    (-1, "0s"),
    (-2, "<invalid>"),
]


@pytest.mark.parametrize(("seconds", "shown"), AGES)
async def test_an_age_has_two_or_three_digits(server: ScriptedServer, seconds: int, shown: str) -> None:
    server.create(configmap("a"))
    assert isinstance(server.clock, FakeClock)
    server.clock.step(seconds)
    assert (await ask(server, MAPS_PATH))["rows"][0]["cells"][2] == shown


async def test_only_the_first_event_of_a_watch_has_columns(server: ScriptedServer) -> None:
    server.create(configmap("a"))
    server.create(configmap("b"))
    request = HttpRequest(
        method="GET",
        path=MAPS_PATH,
        query=(("watch", "true"), ("allowWatchBookmarks", "true"), ("includeObject", "None")),
        headers={"Accept": TABLE},
        body=None,
        deadline=30.0,
    )
    stream = await server.open(request)
    lines = await anext(stream.batches())
    await stream.close()
    first, second, bookmark = (json.loads(line)["object"] for line in lines)
    assert len(first["columnDefinitions"]) == 3
    assert (second["columnDefinitions"], bookmark["columnDefinitions"]) == (None, None)
    assert [first["rows"][0]["object"], second["rows"][0]["object"]] == [None, None]
    assert bookmark["rows"][0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["metadata"]["resourceVersion"] == str(server.version)


def test_wide_columns_have_a_priority() -> None:
    kind = ServedKind(resource=PODS, singular="pod")
    wide = [column["name"] for column in tables.table(kind, [], 0.0)["columnDefinitions"] if column["priority"]]
    assert wide == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    kind = ServedKind(resource=DEPLOYMENTS, singular="deployment")
    wide = [column["name"] for column in tables.table(kind, [], 0.0)["columnDefinitions"] if column["priority"]]
    assert wide == ["Containers", "Images", "Selector"]
