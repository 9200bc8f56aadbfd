"""Protobuf bodies. The messages in data/messages.json are Kubernetes' own test data, with every field set."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.sandbox.encoding import bodies
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import CONFIGMAPS, FOOS_PATH, MAPS_PATH, foo_crd

PROTOBUF = "application/vnd.kubernetes.protobuf"
MESSAGES: Any = json.loads((Path(__file__).parent / "data" / "messages.json").read_text())
MAPS = ServedKind(resource=CONFIGMAPS, singular="configmap")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            encoded += varint(number << 3 | 2) + varint(len(raw)) + raw
    return encoded


def envelope(api_version: str, kind: str, content: bytes) -> bytes:
    return b"k8s\0" + message((1, message((1, api_version), (2, kind))), (2, content), (3, ""), (4, ""))


def decode(raw: bytes, kind: ServedKind = MAPS) -> Obj:
    return bodies.decode(PROTOBUF, raw, kind)[0]


async def send(server: ScriptedServer, method: str, path: str, body: bytes) -> HttpResponse:
    headers = {"Content-Type": PROTOBUF, "Accept": f"{PROTOBUF},application/json"}
    return await server.send(HttpRequest(method=method, path=path, query=(), headers=headers, body=body, deadline=30.0))


@pytest.mark.parametrize("sample", MESSAGES, ids=lambda sample: sample["name"])
def test_a_message_is_the_object_in_json(sample: Any) -> None:
    assert decode(base64.b64decode(sample["protobuf"])) == sample["json"]


async def test_a_client_creates_and_deletes(server: ScriptedServer) -> None:
    meta = message((1, "a"), (11, message((1, "app"), (2, "web"))))
    content = message((1, meta), (2, message((1, "key"), (2, "value"))))
    response = await send(server, "POST", MAPS_PATH, envelope("v1", "ConfigMap", content))
    obj = json.loads(response.body)
    assert (response.status, obj["data"], obj["metadata"]["labels"]) == (201, {"key": "value"}, {"app": "web"})
    options = envelope("v1", "DeleteOptions", message((2, message((1, "other"))), (4, "Background")))
    response = await send(server, "DELETE", f"{MAPS_PATH}/a", options)
    assert (response.status, json.loads(response.body)["reason"]) == (409, "Conflict")
    response = await send(server, "DELETE", f"{MAPS_PATH}/a", envelope("v1", "DeleteOptions", b""))
    assert json.loads(response.body)["status"] == "Success"


async def test_a_client_updates_a_scale(server: ScriptedServer) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    server.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    scale = envelope("autoscaling/v1", "Scale", message((1, message((1, "web"))), (2, message((1, 4)))))
    response = await send(server, "PUT", f"{path}/web/scale", scale)
    assert (response.status, json.loads(response.body)["spec"]) == (200, {"replicas": 4})
    found = server.get(DEPLOYMENTS, "web")
    assert found is not None
    assert found["spec"]["replicas"] == 4


def test_what_go_omits_is_omitted() -> None:
    """Zeros of optional fields are left out, zeros that were set through a pointer and empty structs are not."""
    kind = ServedKind(resource=DEPLOYMENTS, singular="deployment")
    spec = message((1, 0), (4, b""), (5, 0), (7, 0))
    meta = message((1, "web"), (2, ""), (7, 0), (8, b""))
    obj = decode(envelope("apps/v1", "Deployment", message((1, meta), (2, spec), (3, message((1, 0))))), kind)
    assert obj["spec"] == {"replicas": 0, "strategy": {}}
    assert obj["metadata"] == {"name": "web"}
    assert obj["status"] == {}


def test_forms_of_a_schema() -> None:
    """Three types of a CRD's schema have one of several forms in JSON."""
    kind = ServedKind(resource=CRDS, singular="crd")
    text = message((5, "string"))
    schema = message(
        (24, message((1, message((5, "integer"))))),  # items: a schema
        (29, message((1, "many"), (2, message((5, "array"), (24, message((2, text), (2, text))))))),
        (30, message((1, 0))),  # additionalProperties: false
        (32, message((1, "dep"), (2, message((2, "a"), (2, "b"))))),
        (8, message((1, b'{"x":[1,null]}'))),
    )
    found = decode(envelope("apiextensions.k8s.io/v1", CRDS.kind, crd(schema)), kind)
    made = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert made["items"] == {"type": "integer"}
    assert made["properties"]["many"]["items"] == [{"type": "string"}, {"type": "string"}]
    assert made["additionalProperties"] is False
    assert made["dependencies"] == {"dep": ["a", "b"]}
    assert made["default"] == {"x": [1, None]}


def crd(schema: bytes) -> bytes:
    version = message((1, "v1"), (2, 1), (3, 1), (4, message((1, schema))))
    return message((1, message((1, "foos.example.com"))), (2, message((1, "example.com"), (7, version))))


BROKEN = [
    (b"", "empty data (<empty>)"),
    (b"xx", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (7878)"),
    (b"k8s\0\x0a\xff", "unexpected EOF (6b3873000aff)"),
    (b"k8s\0\x0a\x05\x0a", "unexpected EOF (6b3873000a050a)"),
]


@pytest.mark.parametrize(("body", "message"), BROKEN)
async def test_broken_bodies_are_refused(server: ScriptedServer, body: bytes, message: str) -> None:
    response = await send(server, "POST", MAPS_PATH, body)
    words = f"the object provided is unrecognized (must be of type ConfigMap): {message}"
    assert (response.status, json.loads(response.body)["message"]) == (400, words)


async def test_an_unknown_kind_is_refused(server: ScriptedServer) -> None:
    response = await send(server, "POST", MAPS_PATH, envelope("v1", "Nope", b""))
    words = 'no kind "Nope" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'
    assert json.loads(response.body)["message"] == f'Nope in version "v1" cannot be handled as a ConfigMap: {words}'


async def test_custom_resources_have_no_messages(server: ScriptedServer) -> None:
    server.create(foo_crd())
    response = await send(server, "POST", FOOS_PATH, envelope("example.com/v1", "Foo", b""))
    assert response.status == 415
