"""CustomResourceDefinitions: checks, status, and what they mean for objects."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import FOOS, FOOS_PATH, MERGE, Caller, foo, foo_crd

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXT = {"type": "string"}


def _field(**schema: Any) -> Obj:
    whole = {"type": "object", "properties": {"x": schema}}
    return foo_crd(schema={"openAPIV3Schema": whole}, subresources={})


def _spec(**fields: Any) -> Obj:
    crd = foo_crd()
    crd["spec"] |= fields
    return crd


@pytest.mark.parametrize(
    ("crd", "field", "words"),
    [
        (_spec(scope="Odd"), "spec.scope", 'Unsupported value: "Odd": supported values: "Cluster", "Namespaced"'),
        (_spec(group="other.example.com"), "metadata.name", 'must be spec.names.plural+"."+spec.group'),
        (foo_crd(storage=False), "spec.versions", "must have exactly one version marked as storage version"),
        (foo_crd(schema=None), "spec.versions[0].schema.openAPIV3Schema", "Required value"),
        (foo_crd(name="V1"), "spec.versions[0].name", "a DNS-1035 label must consist of lower case"),
        (
            foo_crd(additionalPrinterColumns=[{"name": "A", "type": "odd", "jsonPath": ".x"}]),
            "spec.additionalPrinterColumns[0].type",
            "must be one of boolean,date,integer,number,string",
        ),
        (
            foo_crd(subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.x"}}),
            "spec.subresources.scale.specReplicasPath",
            "should be a json path under .spec",
        ),
        (
            foo_crd(selectableFields=[{"jsonPath": ".spec.odd"}]),
            "spec.selectableFields[0].jsonPath",
            "is an invalid path",
        ),
        (
            _field(description="a"),
            "spec.validation.openAPIV3Schema.properties[x].type",
            "must not be empty for specified",
        ),
        (_field(type="array"), "spec.validation.openAPIV3Schema.properties[x].items", "must be specified"),
        (
            _field(type="string", pattern="("),
            "spec.validation.openAPIV3Schema.properties[x].pattern",
            "missing closing )",
        ),
        (
            _field(type="integer", default="a"),
            "spec.validation.openAPIV3Schema.properties[x].default",
            "of type integer",
        ),
        (
            _field(type="object", default={"a": 1}),
            "spec.validation.openAPIV3Schema.properties[x].default",
            "unknown fields",
        ),
        (
            _field(type="array", items=TEXT, uniqueItems=True),
            "spec.validation.openAPIV3Schema.properties[x].uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            _field(type="string", anyOf=[{"type": "string"}]),
            "spec.validation.openAPIV3Schema.properties[x].anyOf[0].type",
            "must be empty to be structural",
        ),
        (_spec(conversion={"strategy": "Webhook"}), "spec.conversion.webhookClientConfig", "required when strategy"),
    ],
)
async def test_a_definition_is_checked(crd: Obj, field: str, words: str, server: ScriptedServer, call: Caller) -> None:
    code, status = await call("POST", PATH, crd)
    assert code == 422
    messages = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert words in messages[field]
    assert server.objects(CRDS) == []


async def test_a_definition_is_served_at_once_and_keeps_its_status(server: ScriptedServer, call: Caller) -> None:
    made = server.create(foo_crd())
    assert [(one["type"], one["status"]) for one in made["status"]["conditions"]] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    again = server.change(CRDS, "foos.example.com", {"metadata": {"labels": {"a": "b"}}})
    assert again["status"] == made["status"]
    code, status = await call("PATCH", f"{PATH}/foos.example.com", {"spec": {"scope": "Cluster"}}, kind=MERGE)
    assert (code, status["details"]["causes"][0]["message"]) == (422, 'Invalid value: "Cluster": field is immutable')


async def test_the_names_of_another_definition_are_refused_until_it_goes(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    other = foo_crd()
    other["metadata"] = {"name": "bars.example.com"}
    other["spec"]["names"] = {"plural": "bars", "singular": "bar", "kind": "Foo"}
    made = server.create(other)
    told = present(find(made, "NamesAccepted"))
    assert (told["status"], told["reason"], told["message"]) == (
        "False",
        "ListKindConflict",
        '"FooList" is already in use',
    )
    assert present(find(made, "Established"))["status"] == "False"
    assert (await call.respond("GET", "/apis/example.com/v1/namespaces/default/bars")).status == 404
    server.delete(CRDS, "foos.example.com")
    served = present(server.get(CRDS, "bars.example.com"))
    assert [present(find(served, kind))["status"] for kind in ("NamesAccepted", "Established")] == ["True", "True"]
    assert (await call.respond("GET", "/apis/example.com/v1/namespaces/default/bars")).status == 200


def _two_versions(*, storage: str, names: tuple[str, ...] = ("v1", "v2")) -> Obj:
    crd = foo_crd()
    first = crd["spec"]["versions"][0]
    crd["spec"]["versions"] = [{**first, "name": name, "storage": name == storage} for name in names]
    return crd


async def test_stored_versions_stay(server: ScriptedServer, call: Caller) -> None:
    server.create(_two_versions(storage="v1"))
    changed = server.change(CRDS, "foos.example.com", {"spec": _two_versions(storage="v2")["spec"]})
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    body = {"spec": {"versions": _two_versions(storage="v2", names=("v2",))["spec"]["versions"]}}
    code, status = await call("PATCH", f"{PATH}/foos.example.com", body, kind=MERGE)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "status.storedVersions[0]")


async def test_rules_and_unknown_formats_are_warned_about(call: Caller) -> None:
    crd = _field(type="string", format="odd", **{"x-kubernetes-validations": [{"rule": "self != ''"}]})
    response = await call.respond("POST", PATH, crd)
    assert response.status == 201
    assert "unrecognized format" in response.headers["warning"]
    assert "x-kubernetes-validations" in response.headers["warning"]


async def test_unchanged_values_may_violate_a_stricter_schema(server: ScriptedServer, call: Caller) -> None:
    server.create(_field(type="object", properties={"a": TEXT, "b": TEXT}))
    body = {**foo("one"), "x": {"a": "long", "b": "1"}}
    server.create(body)
    strict = _field(type="object", properties={"a": {**TEXT, "maxLength": 2}, "b": {**TEXT, "maxLength": 2}})
    server.change(CRDS, "foos.example.com", {"spec": strict["spec"]})
    assert (await call("PATCH", f"{FOOS_PATH}/one", {"x": {"b": "2"}}, kind=MERGE))[0] == 200
    code, status = await call("PATCH", f"{FOOS_PATH}/one", {"x": {"a": "longer"}}, kind=MERGE)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "x.a")


async def test_nulls_stay_only_where_the_schema_allows_them(server: ScriptedServer) -> None:
    properties = {"a": {**TEXT, "nullable": True}, "b": TEXT, "c": {**TEXT, "default": "c"}}
    server.create(_field(type="object", properties=properties))
    server.create({**foo("one"), "x": {"a": None, "b": None, "c": None}})
    assert present(server.get(FOOS, "one"))["x"] == {"a": None, "c": "c"}


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (
            {**TEXT, "anyOf": [{"minLength": 3}, {"pattern": "^a"}]},
            "b",
            '"x" must validate at least one schema (anyOf)',
        ),
        (
            {**TEXT, "oneOf": [{"minLength": 1}, {"pattern": "^a"}]},
            "a",
            '"x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        ({**TEXT, "allOf": [{"minLength": 3}]}, "a", '"x" must validate all the schemas (allOf). None validated'),
        ({**TEXT, "not": {"pattern": "^a"}}, "a", '"x" must not validate the schema (not)'),
        ({"type": "integer", "format": "int32"}, 2**31, "Checked value must be of type integer with format int32 in x"),
        ({**TEXT, "format": "date"}, "soon", 'x in body must be of type date: "soon"'),
        ({"type": "object", "minProperties": 1}, {}, "x in body should have at least 1 properties"),
        ({"type": "integer", "enum": [1, 2]}, 3, 'Unsupported value: 3: supported values: "1", "2"'),
    ],
)
async def test_values(schema: Obj, value: Any, message: str, server: ScriptedServer, call: Caller) -> None:
    server.create(_field(**schema))
    code, status = await call("POST", FOOS_PATH, {**foo("one"), "x": value})
    assert code == 422
    assert any(message in cause["message"] for cause in status["details"]["causes"])


async def test_later_defaults_appear_in_stored_objects(server: ScriptedServer, call: Caller) -> None:
    server.create(_field(type="object", properties={"a": TEXT, "b": TEXT}))
    made = server.create({**foo("one"), "x": {"a": "1", "b": "2"}})
    later = _field(type="object", properties={"a": TEXT, "c": {**TEXT, "default": "3"}})
    server.change(CRDS, "foos.example.com", {"spec": later["spec"]})
    _, read = await call("GET", f"{FOOS_PATH}/one")
    assert (read["x"], read["metadata"]) == ({"a": "1", "c": "3"}, made["metadata"])
    _, listed = await call("GET", FOOS_PATH)
    assert [one["x"] for one in listed["items"]] == [{"a": "1", "c": "3"}]


async def test_versions_have_their_own_schemas(server: ScriptedServer, call: Caller) -> None:
    crd = _two_versions(storage="v1")
    for version, name in zip(crd["spec"]["versions"], ("a", "b"), strict=True):
        properties = {"x": {"type": "object", "properties": {"both": TEXT, name: {**TEXT, "default": name}}}}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    server.create(crd)
    server.create({**foo("one"), "x": {"both": "1"}})
    _, old = await call("GET", f"{FOOS_PATH}/one")
    _, new = await call("GET", FOOS_PATH.replace("/v1/", "/v2/") + "/one")
    assert (old["apiVersion"], old["x"]) == ("example.com/v1", {"both": "1", "a": "a"})
    assert (new["apiVersion"], new["x"]) == ("example.com/v2", {"both": "1", "b": "b"})


@pytest.mark.parametrize(("schema", "default"), [({"type": "boolean"}, False), ({"type": "integer"}, 0), (TEXT, "")])
async def test_an_empty_default_of_a_schema_is_kept(schema: Obj, default: Any, call: Caller) -> None:
    code, crd = await call("POST", PATH, _field(**schema, default=default))
    kept = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["x"]
    assert (code, kept["default"]) == (201, default)
    _, obj = await call("POST", FOOS_PATH, foo("one"))
    assert obj["x"] == default
