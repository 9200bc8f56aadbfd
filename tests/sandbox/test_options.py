"""Options and bodies that a real API server refuses are refused; that the words are its own is seen in e2e."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import (
    APPLY,
    FOOS_PATH,
    JSON_PATCH,
    MAPS_PATH,
    MERGE,
    Caller,
    configmap,
    foo,
    foo_crd,
    owned_by,
)


@pytest.mark.parametrize(
    "query",
    [
        {"dryRun": "Some"},
        {"fieldManager": "m" * 129},
        {"fieldValidation": "Odd"},
    ],
)
async def test_a_write_takes_no_other_options(query: dict[str, str], server: ScriptedServer, call: Caller) -> None:
    code, refused = await call("POST", MAPS_PATH, configmap("one"), **query)
    assert (code, refused["details"]["kind"]) == (422, "CreateOptions")
    assert [cause["field"] for cause in refused["details"]["causes"]] == list(query)
    assert not server.writes


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, ["resourceVersionMatch"]),
        ({"resourceVersion": "1", "resourceVersionMatch": "Odd"}, ["resourceVersionMatch"]),
        ({"resourceVersionMatch": "Exact"}, ["resourceVersionMatch"]),
        ({"sendInitialEvents": "true"}, ["sendInitialEvents"]),
    ],
)
async def test_a_list_takes_no_other_options(query: dict[str, str], fields: list[str], call: Caller) -> None:
    code, refused = await call("GET", MAPS_PATH, **query)
    assert (code, [cause["field"] for cause in refused["details"]["causes"]]) == (422, fields)


async def test_a_deletion_takes_no_other_policy(server: ScriptedServer, call: Caller) -> None:
    made = server.create(configmap("one"))
    code, _ = await call("DELETE", f"{MAPS_PATH}/one", {"propagationPolicy": "Sideways"})
    assert (code, server.version) == (422, int(made["metadata"]["resourceVersion"]))


@pytest.mark.parametrize(("body", "kind"), [([1], MERGE), ({"op": "remove"}, JSON_PATCH)])
async def test_a_patch_has_the_form_of_its_type(body: Any, kind: str, server: ScriptedServer, call: Caller) -> None:
    server.create(configmap("one"))
    assert (await call("PATCH", f"{MAPS_PATH}/one", body, kind=kind))[0] == 400


async def test_a_whole_object_says_its_name(server: ScriptedServer, call: Caller) -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "2"}}
    assert (await call("PATCH", f"{MAPS_PATH}/one", nameless, kind=APPLY, fieldManager="me"))[0] == 400
    server.create(configmap("one", a="1"))
    assert (await call("PUT", f"{MAPS_PATH}/one", nameless))[0] == 400
    # An apply to what is there takes the name from it.
    assert (await call("PATCH", f"{MAPS_PATH}/one", nameless, kind=APPLY, fieldManager="me"))[0] == 409


@pytest.mark.parametrize(
    ("finalizer", "code"), [("hold", 422), ("a.example.com/b", 201), ("orphan", 201), ("a b/c", 422)]
)
async def test_a_finalizer_of_a_built_in_object_has_a_domain(finalizer: str, code: int, call: Caller) -> None:
    body = configmap("one")
    body["metadata"]["finalizers"] = [finalizer]
    assert (await call("POST", MAPS_PATH, body))[0] == code


async def test_a_finalizer_of_a_custom_resource_better_has_one(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    body = foo("one", name="a")
    body["metadata"]["finalizers"] = ["hold"]
    made = await call.respond("POST", FOOS_PATH, body)
    assert (made.status, '\\"hold\\": prefer a domain-qualified' in made.headers["warning"]) == (201, True)
    again = await call.respond("PATCH", f"{FOOS_PATH}/one", {"spec": {"name": "b"}}, kind=MERGE)
    assert (again.status, again.headers.get("warning")) == (200, None)


async def test_a_dependent_that_names_its_owner_wrongly_is_collected(server: ScriptedServer, call: Caller) -> None:
    owner = server.create(configmap("owner"))
    for name, said in (("right", "owner"), ("wrong", "other")):
        child = configmap(name)
        child["metadata"]["ownerReferences"] = [{**owned_by(owner), "name": said}]
        assert (await call("POST", MAPS_PATH, child))[0] == 201
    assert (await call("GET", f"{MAPS_PATH}/right"))[0] == 200
    assert (await call("GET", f"{MAPS_PATH}/wrong"))[0] == 404


@pytest.mark.parametrize("body", [{"gracePeriodSeconds": "x"}, {"preconditions": "x"}, {"dryRun": {"a": 1}}])
async def test_delete_options_of_another_type_are_refused(call: Caller, body: Any) -> None:
    code, status = await call("DELETE", f"{MAPS_PATH}/one", body)
    assert code == 400
    assert "cannot be handled as a DeleteOptions: json: cannot unmarshal" in status["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/namespaces/default/pods/one/binding", {"target": "x"}),
        ("/api/v1/namespaces/default/serviceaccounts/one/token", {"spec": {"expirationSeconds": "x"}}),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": "x"}),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": 5}}),
    ],
)
async def test_a_body_that_is_not_stored_is_checked_too(call: Caller, path: str, body: Any) -> None:
    code, status = await call("POST", path, body)
    assert (code, "json: cannot unmarshal" in status["message"]) == (400, True)


async def test_a_strict_request_has_no_unknown_fields_in_a_body_that_is_not_stored(call: Caller) -> None:
    right = {"resourceAttributes": {"verb": "get", "resource": "pods"}, "x": 1}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": right}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    code, status = await call("POST", path, review, fieldValidation="Strict")
    assert (code, 'strict decoding error: unknown field "spec.x"' in status["message"]) == (400, True)
    code, answer = await call("POST", path, {**review, "metadata": None})
    assert (code, "x" in answer["spec"]) == (201, False)


async def test_a_strict_request_has_no_field_twice_in_a_body_that_is_not_stored(call: Caller) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = b'{"spec": {"resourceAttributes": {"verb": "get", "verb": "list", "resource": "pods"}}}'
    request = HttpRequest(method="POST", path=path, query=(("fieldValidation", "Strict"),), body=body)
    response = await call.server.send(request)
    assert (response.status, b'duplicate field \\"spec.resourceAttributes.verb\\"' in response.body) == (400, True)


async def test_no_request_deletes_the_objects_of_all_namespaces(call: Caller) -> None:
    assert (await call("DELETE", "/api/v1/configmaps"))[0] == 405


async def test_the_timeout_of_a_request_is_a_duration(call: Caller) -> None:
    code, status = await call("GET", "/version", timeout="soon")
    words = 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    assert (code, status["reason"], status["message"]) == (400, "BadRequest", words)
    for timeout in ("0s", "1m30s", ""):
        assert (await call("GET", MAPS_PATH, timeout=timeout))[0] == 200
