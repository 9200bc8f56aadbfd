"""Whatever a client sends, the answer is one that a client can read."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.cluster import Cluster
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.sandbox.kinds import schemas, structs
from kubectl_ctrl.sandbox.server import ApiServer
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import (
    APPLY,
    DEPLOYMENTS_PATH,
    JSON_PATCH,
    MAPS_PATH,
    MERGE,
    STRATEGIC,
    Caller,
    configmap,
    deployment,
    foo,
    foo_crd,
)
from tests.sandbox.workloads import pod, workload

_GOLDENS = Path(__file__).with_name("goldens")
_OBJECTS: list[Obj] = [
    *(
        case["given"]
        for name in ("defaults", "problems")
        for case in json.loads((_GOLDENS / f"{name}.json").read_text())
    ),
    foo("one", name="a"),
    foo_crd() | {"metadata": {"name": "bars.example.com"}},  # for its own test: that of Foos must stay
]
_JSON, _YAML = "application/json", "application/yaml"
_PODS_PATH = "/api/v1/namespaces/default/pods"
_ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, -0.0, 1e300, 2**31, 2**63, 10**400),
    *(
        "",
        "a",
        "A_b",
        "x" * 300,
        "é",
        "\U0001f600",
        "a/b",
        "../x",
        "*",
        "-1",
        "25%",
        "100m",
        "1Gi",
        "2026-01-01T00:00:00Z",
    ),
    *("@yearly", "0 0 30 2 *", "10.0.0.1", "::1", "8.8.8.8/33", "^(", "(a|", ".spec.x", "{$.a}", "%zz", "None"),
    *([], [None], [{}], [[]], [1, "a"], {}, {"": None}, {"a": {}}, {"a": "b"}, {"key": "a", "operator": "In"}),
]
_RIGHT: Obj = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
_WHO: Obj = {"user": "a", "uid": "b", "groups": ["c"], "extra": {"d": ["e"]}}
_REVIEWS = "apis/authorization.k8s.io/v1"
_ACTIONS: list[tuple[str, str, Obj]] = [  # requests that act instead of storing their body: path, type, rest
    (
        "apis/authentication.k8s.io/v1/tokenreviews",
        "authentication.k8s.io/v1 TokenReview",
        {"spec": {"token": "a", "audiences": ["b"]}},
    ),
    ("apis/authentication.k8s.io/v1/selfsubjectreviews", "authentication.k8s.io/v1 SelfSubjectReview", {}),
    (f"{_REVIEWS}/subjectaccessreviews", "authorization.k8s.io/v1 SubjectAccessReview", {"spec": _WHO | _RIGHT}),
    (
        f"{_REVIEWS}/namespaces/default/localsubjectaccessreviews",
        "authorization.k8s.io/v1 LocalSubjectAccessReview",
        {"spec": _WHO | _RIGHT},
    ),
    (
        f"{_REVIEWS}/selfsubjectaccessreviews",
        "authorization.k8s.io/v1 SelfSubjectAccessReview",
        {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}},
    ),
    (
        f"{_REVIEWS}/selfsubjectrulesreviews",
        "authorization.k8s.io/v1 SelfSubjectRulesReview",
        {"spec": {"namespace": "default"}},
    ),
    (
        "api/v1/namespaces/default/serviceaccounts/default/token",
        "authentication.k8s.io/v1 TokenRequest",
        {
            "spec": {
                "audiences": ["a"],
                "expirationSeconds": 600,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "u"},
            }
        },
    ),
    (
        "api/v1/namespaces/default/pods/one/eviction",
        "policy/v1 Eviction",
        {"deleteOptions": {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "dryRun": ["All"]}},
    ),
    ("api/v1/namespaces/default/pods/one/binding", "v1 Binding", {"target": {"kind": "Node", "name": "n"}}),
    ("api/v1/namespaces/default/bindings", "v1 Binding", {"target": {"kind": "Node", "name": "n"}}),
    (
        "apis/apps/v1/namespaces/default/deployments/one/scale",
        "autoscaling/v1 Scale",
        {"metadata": {"name": "one", "resourceVersion": "1"}, "spec": {"replicas": 2}},
    ),
]
_KEYS = ["x", "", "spec", "name", "kind", "items", "metadata", "status", "type", "key", "$patch", "$retainKeys"]


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*place, key)
        yield from _places(item, (*place, key))


def _with(obj: Obj, place: tuple[Any, ...], value: Any) -> Obj:
    obj = copy.deepcopy(obj)
    holder: Any = obj
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return obj


def _broken(obj: Obj, random: Random) -> Obj:
    """The object with one to three changes that nobody would make."""
    obj = copy.deepcopy(obj)
    for _ in range(random.choice((1, 1, 2, 3))):
        *way, last = random.choice([*_places(obj)] or [("x",)])
        holder: Any = obj
        for key in way:
            holder = holder[key]
        odd = copy.deepcopy(random.choice(_ODD))
        match random.choice(("set", "set", "drop", "add")), holder:
            case "set", _:
                holder[last] = odd
            case "drop", _:
                holder.pop(last, None) if isinstance(holder, dict) else holder.pop()
            case _, list():
                holder.append(odd)
            case _, dict():
                holder[random.choice(_KEYS)] = odd
    return obj


def _operations(obj: Obj, random: Random) -> list[Obj]:
    pointers = ["".join(f"/{key}" for key in place) for place in _places(obj)]
    names = ("add", "remove", "replace", "move", "copy", "test", "x")
    return [
        {
            "op": random.choice(names),
            "path": random.choice(pointers) + random.choice(("", "", "/-", "/x", "/0", "~")),
            "from": random.choice(pointers),
            "value": random.choice(_ODD),
        }
        for _ in range(random.choice((1, 2)))
    ]


@pytest.fixture(scope="module")
def whole() -> ApiServer:
    server = Cluster(Endpoint(FakeClock(), rng=Random(1), full=True)).server
    server.create(foo_crd())
    return server


def _ask(server: ApiServer, method: str, path: str, media: str, body: bytes) -> tuple[int, Any]:
    query = (("fieldManager", "me"), ("force", "true")) if media == APPLY else ()
    answer = server.handle_now(
        HttpRequest(method=method, path=path, query=query, headers={"content-type": media}, body=body)
    )
    return answer.status, json.loads(answer.body)


def _paths(server: ApiServer, obj: Obj) -> tuple[str, str]:
    """Of its collection and of the object."""
    resource = server.served.of_object(obj).resource
    namespace = "/namespaces/default" if resource.namespaced else ""
    collection = f"{resource.root}{namespace}/{resource.plural}"
    return collection, f"{collection}/{obj['metadata'].setdefault('name', 'one')}"


@pytest.mark.parametrize(
    ("odd", "media"),
    [(None, _JSON), ("a", _JSON), ([None], _JSON), ({"a": {}}, _JSON), (10**400, APPLY)],
    ids=["null", "text", "list", "object", "number"],
)
def test_every_object_with_an_odd_value_gets_an_answer(odd: Any, media: str, whole: ApiServer) -> None:
    tried = set[tuple[Any, ...]]()
    for obj in _OBJECTS:
        collection, path = _paths(whole, obj)
        method, where = ("PATCH", path) if media == APPLY else ("POST", collection)
        for place in _places(obj):
            if (obj["kind"], place) in tried:
                continue
            tried.add((obj["kind"], place))
            code, answer = _ask(whole, method, where, media, json.dumps(_with(obj, place, odd)).encode())
            assert code < 400 or (answer["kind"], answer["code"]) == ("Status", code)
            if code < 400:
                _ask(whole, "DELETE", path, _JSON, b"")


@settings(max_examples=400)
@given(random=st.randoms(use_true_random=False))
def test_every_broken_object_gets_an_answer(random: Random, whole: ApiServer) -> None:
    obj = copy.deepcopy(random.choice(_OBJECTS))
    collection, path = _paths(whole, obj)
    _ask(whole, "POST", collection, _JSON, json.dumps(obj).encode())
    media = random.choice((_JSON, _JSON, _YAML, MERGE, JSON_PATCH, STRATEGIC, APPLY))
    body = _operations(obj, random) if media == JSON_PATCH else _broken(obj, random)
    raw = bytearray(json.dumps(body).encode())
    if random.random() < 0.1:
        raw[random.randrange(len(raw))] = random.randrange(256)
    if media in (_JSON, _YAML):
        method, path = random.choice((("POST", collection), ("PUT", path)))
    else:
        method, path = "PATCH", random.choice((path, f"{path}/status"))
    code, answer = _ask(whole, method, path, media, bytes(raw))
    assert code < 400 or (answer["kind"], answer["code"]) == ("Status", code)
    assert _ask(whole, "GET", collection, _JSON, b"")[0] == 200
    _ask(whole, "DELETE", f"{collection}/{obj['metadata']['name']}", _JSON, b"")


@pytest.mark.parametrize(("path", "declared", "rest"), _ACTIONS)
def test_every_broken_action_gets_an_answer(path: str, declared: str, rest: Obj, whole: ApiServer) -> None:
    version, kind = declared.split()
    body = {"apiVersion": version, "kind": kind, "metadata": {}, **rest}
    for place in _places(body):
        for odd in _ODD:
            for obj in (pod("one"), workload("Deployment", "one")):  # the action before may have deleted them
                with suppress(Refusal):
                    whole.create(obj)
            broken = json.dumps(_with(body, place, odd)).encode()
            code, answer = _ask(whole, "PUT" if kind == "Scale" else "POST", f"/{path}", _JSON, broken)
            assert code < 400 or (answer["kind"], answer["code"]) == ("Status", code)


@pytest.mark.parametrize("number", ["1e400", "1" + "0" * 400])
async def test_a_number_that_is_no_float_is_refused(number: str, call: Caller) -> None:
    request = HttpRequest(
        method="POST",
        path=MAPS_PATH,
        headers={"content-type": _JSON},
        body=b'{"x":%b}' % number.encode(),
        deadline=30.0,
    )
    response = await call.server.send(request)
    assert response.status == 400
    assert b"cannot unmarshal number" in response.body


def _laughs(levels: int) -> str:
    lines = ["data: &a0 {a: b}"]
    lines += [f"x{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: one}", *lines])


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (_laughs(3), 201, "one"),
        (_laughs(30), 400, "yaml: document contains excessive aliasing"),
        ("apiVersion: v1\nkind: ConfigMap\nx: &a [*a]", 400, "yaml: an anchor's value contains itself"),
    ],
)
async def test_yaml_that_grows_by_its_aliases_is_refused(text: str, code: int, words: str, call: Caller) -> None:
    headers = {"content-type": _YAML}
    request = HttpRequest(method="POST", path=MAPS_PATH, headers=headers, body=text.encode(), deadline=30.0)
    response = await call.server.send(request)
    assert (response.status, words in response.body.decode()) == (code, True)


async def test_continue_tokens_of_other_versions_are_refused(server: ScriptedServer, call: Caller) -> None:
    for name in ("a", "b", "c"):
        server.create(configmap(name))
    _, listed = await call("GET", MAPS_PATH, limit="1")
    server.storage.restore(server.version - 1)
    code, status = await call("GET", MAPS_PATH, limit="1", **{"continue": present(listed["metadata"]["continue"])})
    assert (code, status["reason"]) == (504, "Timeout")


async def test_a_watch_list_from_the_future_is_refused(server: ScriptedServer, call: Caller) -> None:
    wanted = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    query = (*wanted.items(), ("resourceVersion", str(server.version + 1)))
    stream = await server.open(HttpRequest(method="GET", path=MAPS_PATH, query=query))
    assert (stream.status, json.loads(await stream.read())["reason"]) == (504, "Timeout")


async def test_every_listener_hears_of_a_change_though_one_fails(server: ScriptedServer) -> None:
    heard: list[str] = []

    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    server.storage.listeners[:0] = [fail]
    server.storage.listeners.append(lambda table, _: heard.append(table))
    with pytest.raises(RuntimeError, match="no"):
        server.create(configmap("a"))
    assert heard == ["configmaps"]


async def _sent(call: Caller, method: str, path: str, body: str, media: str = _JSON) -> tuple[int, Any]:
    headers = {"content-type": media}
    request = HttpRequest(method=method, path=path, headers=headers, body=body.encode(), deadline=30.0)
    response = await call.server.send(request)
    return response.status, json.loads(response.body)


@pytest.mark.parametrize(
    "value", ["!!binary aGVsbG8=", "!!set {a}", "!!float .nan", "!!timestamp 2026-01-01", "{? : 1}"]
)
async def test_yaml_that_is_no_json_is_refused(value: str, call: Caller) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\nx: {value}"
    assert (await _sent(call, "POST", MAPS_PATH, text, _YAML))[0] == 400


async def test_the_body_is_judged_before_the_name_is_taken(call: Caller) -> None:
    await call("POST", MAPS_PATH, configmap("one"))
    assert (await call("POST", MAPS_PATH, configmap("one", **{"a b": "c"})))[0] == 422
    assert (await call("POST", MAPS_PATH, {**configmap("one"), "data": 5}))[0] == 400
    assert (await call("POST", MAPS_PATH, configmap("one")))[0] == 409


async def test_the_keys_of_yaml_become_text(call: Caller) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {2: a, b: c, 0.5: d, true: e}"
    code, made = await _sent(call, "POST", MAPS_PATH, text, _YAML)
    assert (code, made["data"]) == (201, {"2": "a", "b": "c", "0.5": "d", "true": "e"})


@pytest.mark.parametrize("fields", [{"f:data": 5}, [1], "text", {"f:data": None}, {"x": {}}])
async def test_owners_that_cannot_be_read_change_nothing(fields: Any, call: Caller) -> None:
    await call("POST", MAPS_PATH, configmap("one", a="b"))
    entry = {"manager": "me", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    path = f"{MAPS_PATH}/one"
    await _sent(call, "PATCH", path, json.dumps({"metadata": {"managedFields": [entry]}}), MERGE)
    code, changed = await _sent(call, "PATCH", path, '{"data": {"a": "c"}}', MERGE)
    assert (code, changed["data"]) == (200, {"a": "c"})
    assert [one["manager"] for one in changed["metadata"]["managedFields"]] == ["caller", "unknown"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("1e1000000", "9223372036854775807"),
        ("1" + "0" * 5000, "9223372036854775807"),
        ("1e-1000000", "1e-3"),
        ("1e99999999999999999999", None),
        ("\u0663", None),
    ],
    ids=["exponent", "digits", "small", "overflow", "arabic"],
)
async def test_quantities_have_limits(given: str, stored: str | None, call: Caller) -> None:
    limits = {"containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": given}}}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": limits}
    code, made = await call("POST", _PODS_PATH, body)
    assert code == (400 if stored is None else 201)
    assert stored is None or made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": stored}


@pytest.mark.parametrize("patch", [{"spec": {"replicas": "x"}}, {"spec": 5}, {"kind": 5}])
async def test_a_patched_scale_is_read_as_one(patch: Obj, call: Caller) -> None:
    await call("POST", DEPLOYMENTS_PATH, deployment("one"))
    code, status = await _sent(call, "PATCH", f"{DEPLOYMENTS_PATH}/one/scale", json.dumps(patch), MERGE)
    assert (code, "Scale in version" in status["message"]) == (400, True)


async def test_the_data_of_a_secret_may_have_line_ends(call: Caller) -> None:
    path = "/api/v1/namespaces/default/secrets"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}}
    code, made = await call("POST", path, {**secret, "data": {"a": "YWJj\nZGVm\n", "b": "YR=="}})
    assert (code, made["data"]) == (201, {"a": "YWJjZGVm", "b": "YQ=="})
    for wrong in ("====", "Y===", "YQ==YQ==", "é"):
        assert (await call("POST", path, {**secret, "data": {"a": wrong}}))[0] == 400


@pytest.mark.parametrize("zone", ["America", "a" * 300, "../x"])
async def test_a_schedule_in_no_known_zone_is_refused(zone: str, call: Caller) -> None:
    body = workload("CronJob", "one", "batch/v1")
    template = {"spec": {"template": body["spec"]["template"]}}
    template["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    body["spec"] = {"schedule": f"TZ={zone} * * * * *", "jobTemplate": template}
    code, status = await call("POST", "/apis/batch/v1/namespaces/default/cronjobs", body)
    assert (code, "spec.schedule" in status["message"]) == (422, True)


@pytest.mark.parametrize("token", ['{"rv": 1e999, "start": "a/b"}', "[" * 3000])
async def test_tokens_that_no_server_made_are_refused(token: str, call: Caller) -> None:
    assert (await call("GET", MAPS_PATH, **{"continue": base64.urlsafe_b64encode(token.encode()).decode()}))[0] == 400


async def test_a_grace_period_may_be_longer_than_time(server: ScriptedServer, call: Caller) -> None:
    server.create(pod("one", node="n"))
    code, gone = await call("DELETE", f"{_PODS_PATH}/one", {"gracePeriodSeconds": 2**62})
    assert (code, gone["metadata"]["deletionGracePeriodSeconds"]) == (200, 2**63 // 10**9)


def _nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


async def test_what_is_nested_too_deeply_is_refused(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    path = "/apis/example.com/v1/namespaces/default/foos"
    head = '{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "one"}, "spec": {"name": "a", "free": '
    assert (await _sent(call, "POST", path, f"{head}{_nested(900)}}}}}"))[0] == 400
    assert (await _sent(call, "POST", path, f"{head}{_nested(150)}}}}}"))[0] == 201
    deeper = [{"op": "add", "path": "/spec/free" + "/a" * 149, "value": json.loads(_nested(150))}]
    assert (await _sent(call, "PATCH", f"{path}/one", json.dumps(deeper), JSON_PATCH))[0] == 400
    for accept in ("application/json", "application/yaml"):
        response = await call.server.send(HttpRequest(method="GET", path=path, headers={"accept": accept}))
        assert response.status == 200


def test_two_null_structs_are_not_one() -> None:
    schema = schemas.of("", "v1", "Service")
    first, _ = structs.read({"spec": {"ports": [None, None]}}, schema)
    structs.complete(first, schema)["spec"]["ports"][0]["nodePort"] = 30001
    assert "nodePort" not in first["spec"]["ports"][1]
    assert structs.read({"spec": {"ports": [None]}}, schema)[0]["spec"]["ports"] == [{}]
