"""The form of answers by the Accept header, and the media types of bodies, in the words of the real server."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import APPLY, FOOS_PATH, MAPS_PATH, MERGE, Caller, configmap, foo_crd

ALL = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
PARTIAL = "application/json;as={};v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ONLY = f"only the following media types are accepted: {ALL}"
AVAILABLE = f"406: Not Acceptable\n\nAvailable representations: {ALL}"
STREAMS = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]


async def send(
    server: ScriptedServer,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    query: Obj | None = None,
    **headers: str,
) -> HttpResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = tuple((query or {}).items())
    return await server.send(
        HttpRequest(method=method, path=path, query=pairs, headers=named, body=body, deadline=30.0)
    )


@pytest.fixture
async def filled(server: ScriptedServer) -> ScriptedServer:
    server.create(foo_crd())
    server.create(configmap("a", number="1", lines="x\ny\n", text="t"))
    return server


@pytest.mark.parametrize(
    "accept",
    [
        *("", "*/*", "application/json", "application/json;foo=bar", "application/json;stream=watch"),
        *("text/html;q=0.9,application/json;q=0.8", f"{PROTOBUF},application/json", "application/json;sv=,*/*"),
        PROTOBUF,
    ],
)
async def test_json_is_the_usual_form(filled: ScriptedServer, accept: str) -> None:
    response = await send(filled, "GET", f"{MAPS_PATH}/a", Accept=accept)
    assert response.headers["content-type"] == "application/json"
    assert json.loads(response.body)["kind"] == "ConfigMap"


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        (f"{MAPS_PATH}/a", "text/plain", AVAILABLE),
        (f"{MAPS_PATH}/a", "application/*", AVAILABLE),
        (MAPS_PATH, "text/plain", ", ".join([AVAILABLE, *STREAMS])),
        (FOOS_PATH, "text/plain", ONLY),
        (FOOS_PATH, PROTOBUF, ONLY),
        (MAPS_PATH, "application/json;as=Table;v=v9;g=meta.k8s.io", ONLY),
        (MAPS_PATH, "application/json;as=Chair;v=v1;g=meta.k8s.io", ONLY),
        (MAPS_PATH, f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io", ONLY),
        (
            MAPS_PATH,
            PARTIAL.format("PartialObjectMetadata"),
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (
            FOOS_PATH,
            PARTIAL.format("PartialObjectMetadata"),
            "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
        ),
        (
            f"{MAPS_PATH}/a",
            PARTIAL.format("PartialObjectMetadataList"),
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
    ],
)
async def test_other_forms_are_not_acceptable(filled: ScriptedServer, path: str, accept: str, message: str) -> None:
    response = await send(filled, "GET", path, Accept=accept)
    status = json.loads(response.body)
    assert (response.status, status["reason"], status["message"]) == (406, "NotAcceptable", message)


async def test_a_review_is_no_table(server: ScriptedServer) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = json.dumps({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}).encode()
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    refused = await send(server, "POST", path, body, Accept=table, Content_Type="application/json")
    assert (refused.status, json.loads(refused.body)["message"]) == (406, ONLY)
    either = await send(server, "POST", path, body, Accept=f"{table},application/json", Content_Type="application/json")
    assert json.loads(either.body)["kind"] == "SelfSubjectAccessReview"


async def test_a_watch_has_no_yaml(filled: ScriptedServer) -> None:
    request = HttpRequest(
        method="GET",
        path=MAPS_PATH,
        query=(("watch", "true"),),
        headers={"Accept": "application/yaml"},
        body=None,
        deadline=30.0,
    )
    stream = await filled.open(request)
    assert stream.status == 406
    words = f"only the following media types are accepted: {', '.join(STREAMS)}"
    assert json.loads(await stream.read())["message"] == words


async def test_metadata_alone(filled: ScriptedServer) -> None:
    response = await send(filled, "GET", f"{MAPS_PATH}/a", Accept=PARTIAL.format("PartialObjectMetadata"))
    obj = json.loads(response.body)
    assert (obj["kind"], obj["apiVersion"], sorted(obj)) == (
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        ["apiVersion", "kind", "metadata"],
    )
    accept = "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io,application/json"
    listed = json.loads((await send(filled, "GET", MAPS_PATH, Accept=accept)).body)
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1beta1")
    assert listed["items"][0]["apiVersion"] == "meta.k8s.io/v1beta1"


async def test_yaml_answers(filled: ScriptedServer) -> None:
    response = await send(filled, "GET", f"{MAPS_PATH}/a", Accept="application/yaml")
    assert response.headers["content-type"] == "application/yaml"
    text = response.body.decode()
    assert text.startswith(
        'apiVersion: v1\ndata:\n  lines: |\n    x\n    y\n  number: "1"\n  text: t\nkind: ConfigMap\n'
    )
    plain = await send(filled, "GET", f"{MAPS_PATH}/a")
    assert yaml.safe_load(text) == json.loads(plain.body)
    missing = await send(filled, "GET", f"{MAPS_PATH}/none", Accept="application/yaml")
    assert yaml.safe_load(missing.body)["message"] == 'configmaps "none" not found'


@pytest.mark.parametrize("headers", [{"Accept": "application/json;pretty=1"}, {"User_Agent": "curl/8"}, {}])
async def test_pretty_answers(filled: ScriptedServer, headers: dict[str, str]) -> None:
    query = {} if headers else {"pretty": "true"}
    for name in ("a", "none"):
        response = await send(filled, "GET", f"{MAPS_PATH}/{name}", None, query=query, **headers)
        assert response.body.startswith((b'{\n  "apiVersion"', b'{\n  "kind"'))
    plain = await send(filled, "GET", f"{MAPS_PATH}/a", query={"pretty": "false"}, User_Agent="curl/8")
    assert plain.body.startswith(b'{"')


@pytest.mark.parametrize("path", [MAPS_PATH, FOOS_PATH])
async def test_bodies_of_other_types_are_refused(filled: ScriptedServer, path: str) -> None:
    response = await send(filled, "POST", path, b"x", Content_Type="text/plain")
    status = json.loads(response.body)
    words = f"the body of the request was in an unknown format - accepted media types include: {ALL}"
    assert (response.status, status["reason"], status["message"]) == (415, "UnsupportedMediaType", words)


UNREADABLE = "the object provided is unrecognized (must be of type ConfigMap): "
JSON_ERROR = "couldn't get version/kind; json parse error: "
GO_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b'{"a"', 'unexpected end of JSON input ({"a")'),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string ({\"a\":1,})"),
        (b"[]", f"json: cannot unmarshal array into Go value of type {GO_TYPE} (5b5d)"),
        (b"12", f"json: cannot unmarshal number into Go value of type {GO_TYPE} (3132)"),
        (
            b'{"apiVersion":1}',
            'json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":1})',
        ),
        (
            b'{"apiVersion":"v1","kind":"ConfigMap"} x',
            'invalid character \'x\' after top-level value ({"apiVersion":"v1","kind":"Con ...)',
        ),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string ({a:1})"),
        (b"{'a':1}", "invalid character '\\'' looking for beginning of object key string ({'a':1})"),
        (b'{"a" 1}', "invalid character '1' after object key ({\"a\" 1})"),
        (b'{"a":[1 2]}', "invalid character '2' after array element ({\"a\":[1 2]})"),
        (b'{"a":tru}', "invalid character '}' in literal true (expecting 'e') ({\"a\":tru})"),
        (b'{"a":01}', "invalid character '1' after object key:value pair ({\"a\":01})"),
        (b'{"a":1.}', "invalid character '}' after decimal point in numeric literal ({\"a\":1.})"),
        (b'{"a":1e+}', "invalid character '}' in exponent of numeric literal ({\"a\":1e+})"),
        (b'{"a":-}', "invalid character '}' in numeric literal ({\"a\":-})"),
        (b'{"a":"\\x"}', 'invalid character \'x\' in string escape code ({"a":"\\x"})'),
        (b'{"a":"\\u12g4"}', 'invalid character \'g\' in \\u hexadecimal character escape ({"a":"\\u12g4"})'),
        (b'{"a":"\x01"}', 'invalid character \'\\x01\' in string literal ({"a":"\x01"})'),
        (b'{"a":\xc3\xa9}', "invalid character 'Ã' looking for beginning of value ({\"a\":é})"),
        (
            b'{"x":' + b"[" * 10001 + b"]" * 10001 + b"}",
            "invalid character '[' exceeded max depth ({\"x\":" + "[" * 25 + " ...)",
        ),
    ],
)
async def test_invalid_json_in_gos_words(filled: ScriptedServer, body: bytes, message: str) -> None:
    response = await send(filled, "POST", MAPS_PATH, body, Content_Type="application/json")
    assert (response.status, json.loads(response.body)["message"]) == (400, f"{UNREADABLE}{JSON_ERROR}{message}")


async def test_characters_that_go_replaces(filled: ScriptedServer) -> None:
    body = b'{"metadata":{"name":"z"},"data":{"bytes":"\xff","half":"\\ud800"}}'
    response = await send(filled, "POST", MAPS_PATH, body)
    assert json.loads(response.body)["data"] == {"bytes": "\ufffd", "half": "\ufffd"}


async def test_integers_beyond_64_bits_are_floats(server: ScriptedServer) -> None:
    crd = foo_crd()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    server.create(crd)
    body = b'{"apiVersion":"example.com/v1","kind":"Foo","metadata":{"name":"z"},"big":9223372036854775808}'
    obj = json.loads((await send(server, "POST", FOOS_PATH, body)).body)
    assert isinstance(obj["big"], float)


TWICE = b'{"metadata":{"name":"z","name":"z"},"data":{"a":"1","a":"2"},"immutable":true, "immutable" :false}'
DUPLICATES = ["metadata.name", "data.a", "immutable"]


async def test_fields_that_occur_twice(filled: ScriptedServer) -> None:
    def said(quote: str) -> list[str]:
        return [f"duplicate field {quote}{path}{quote}" for path in DUPLICATES]

    response = await send(filled, "POST", MAPS_PATH, TWICE, query={"fieldValidation": "Strict"})
    words = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
    assert json.loads(response.body)["message"] == words + ", ".join(said('"'))
    response = await send(filled, "POST", MAPS_PATH, TWICE, query={"dryRun": "All"})
    assert response.headers["warning"] == ", ".join(f'299 - "{one}"' for one in said('\\"'))
    response = await send(filled, "POST", MAPS_PATH, TWICE, query={"fieldValidation": "Ignore"})
    assert "warning" not in response.headers
    assert json.loads(response.body)["data"] == {"a": "2"}


async def test_a_custom_resource_lists_duplicates_first(filled: ScriptedServer) -> None:
    body = b'{"apiVersion":"example.com/v1","kind":"Foo",'
    body += b'"metadata":{"name":"z","odd":1,"odd":2},"spec":{"name":"a","name":"b"}}'
    response = await send(filled, "POST", FOOS_PATH, body, query={"fieldValidation": "Strict"})
    found = 'duplicate field "metadata.odd", duplicate field "spec.name", unknown field "metadata.odd"'
    assert json.loads(response.body)["message"].endswith(f"strict decoding error: {found}")


async def test_a_merge_patch_warns_as_well(filled: ScriptedServer) -> None:
    response = await send(filled, "PATCH", f"{MAPS_PATH}/a", b'{"data":{"a":"1","a":"2"}}', Content_Type=MERGE)
    assert response.headers["warning"] == '299 - "duplicate field \\"data.a\\""'


YAML = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}\ndata:\n  date: 2026-01-01\n  a: b\n  a: c\n"


async def test_yaml_bodies(filled: ScriptedServer) -> None:
    response = await send(filled, "POST", MAPS_PATH, YAML, Content_Type="application/yaml; charset=utf-8")
    assert response.status == 201
    assert json.loads(response.body)["data"] == {"a": "c", "date": "2026-01-01"}
    assert response.headers["warning"] == '299 - "line 7: key \\"a\\" already set in map"'
    body, query = YAML.replace(b"name: z", b"name: y"), {"fieldValidation": "Strict"}
    strict = await send(filled, "POST", MAPS_PATH, body, query=query, Content_Type="application/yaml")
    words = 'strict decoding error: yaml: unmarshal errors:\n  line 7: key "a" already set in map'
    assert json.loads(strict.body)["message"].endswith(words)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a: [\n", "yaml: line 1: did not find expected node content (613a205b0a)"),
        (b"a: b: c\n", "yaml: mapping values are not allowed in this context (613a20623a20630a)"),
    ],
)
async def test_invalid_yaml(filled: ScriptedServer, body: bytes, message: str) -> None:
    response = await send(filled, "POST", MAPS_PATH, body, Content_Type="application/yaml")
    assert (response.status, json.loads(response.body)["message"]) == (400, UNREADABLE + message)


async def test_an_apply_is_yaml(filled: ScriptedServer) -> None:
    path, query = f"{MAPS_PATH}/z", {"fieldManager": "m"}
    response = await send(filled, "PATCH", path, YAML, query=query, Content_Type=APPLY)
    assert (response.status, json.loads(response.body)["data"]["a"]) == (201, "c")
    assert response.headers["warning"] == '299 - "line 7: key \\"a\\" already set in map"'
    refused = await send(filled, "PATCH", path, b"{", query=query, Content_Type=APPLY)
    words = "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content"
    assert json.loads(refused.body)["message"] == words


@pytest.mark.parametrize(("body", "code"), [(b'{"foo":1}', 200), (b"{", 400)])
async def test_options_of_a_deletion(filled: ScriptedServer, body: bytes, code: int) -> None:
    response = await send(filled, "DELETE", f"{MAPS_PATH}/a", body, Content_Type="application/json")
    status: Any = json.loads(response.body)
    assert response.status == code
    assert code == 200 or status["message"] == f"{JSON_ERROR}unexpected end of JSON input"


async def test_deeply_nested_yaml_is_a_bad_request(call: Caller) -> None:
    raw = b"a: " + b"[" * 3000 + b"]" * 3000
    headers = {"Content-Type": "application/yaml"}
    path = "/api/v1/namespaces/default/configmaps"
    response = await call.server.send(HttpRequest(method="POST", path=path, headers=headers, body=raw))
    assert response.status == 400
    assert "exceeded max depth" in response.body.decode()
