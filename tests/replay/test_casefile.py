from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.errors import RecordingError, StatusCause
from kubectl_ctrl.model.attempt import Intent, ObjectRead, Outcome, OutsideResult, RaisedError, Verdict, WriteRequest
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import Changes, RecordedAttempt, RecordedCause, RecordedController, RecordedRun
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS, Resource
from kubectl_ctrl.replay.casefile import SCHEMA, ReplayCase, case_of, dumps, loads
from kubectl_ctrl.value import replace
from tests.render.schemas import check, schema

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")
BEAR = Key("default", "bear")


def obj(kind: str, name: str, version: str, **more: Any) -> Obj:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return {"kind": kind, "metadata": meta, **more}


FOO = obj("Foo", "bear", "7", spec={"replicas": 1})
WEB = obj("Deployment", "web", "9", spec={"replicas": 1}, status={})

WHY = RecordedCause(
    kind=CauseKind.MODIFIED,
    at=10.25,
    resource=FOOS,
    key=BEAR,
    uid="uid-bear",
    old_version="6",
    new_version="7",
    changes=Changes(
        shown=(
            Difference(path="spec.replicas", old=ABSENT, new=1),
            Difference(path="spec.token", old=HIDDEN, new=HIDDEN),
            Difference(path="spec.old", old=None, new=ABSENT),
        ),
        total=5,
    ),
    writers=("kubectl-edit",),
)
INVALID = RaisedError(
    error="Invalid",
    message="No.",
    code=422,
    reason="Invalid",
    causes=(StatusCause(reason="Required", message="must be there", field="spec.x"),),
    verb="apply",
    target="deployments.apps default/web",
    retry_after=1.5,
    next_step="Look.",
)
ATTEMPT = RecordedAttempt(
    id="r7f3-12",
    controller="foo",
    request=BEAR,
    uid="uid-bear",
    causes=(WHY, RecordedCause(kind=CauseKind.RETRY, at=11.0, attempt="r7f3-11", count=2, detail="No.")),
    causes_total=4,
    queued_at=10.0,
    started=10.5,
    waited=0.5,
    try_no=3,
    took=0.0625,
    verdict=Verdict(outcome=Outcome.WAITING, delay=5.0, message="rollout", where="foo/reconciler.py:9", last=True),
    reads=(
        ObjectRead(verb="get", resource=FOOS, query="default/bear", found=(("uid-bear", "7"),), objects=(FOO,)),
        ObjectRead(verb="list", resource=DEPLOYMENTS, query="all", found=(("uid-web", "9"),), objects=(WEB,), wishes=1),
        ObjectRead(verb="live", resource=DEPLOYMENTS, query="default/no", found=()),
        ObjectRead(verb="live", resource=SECRETS, query="default/key", found=(), raised=INVALID, wishes=2),
    ),
    wishes=(
        WriteRequest(
            verb="ensure",
            resource=DEPLOYMENTS,
            key=Key("default", "web"),
            body='{"metadata":{"name":"web"},"spec":{"replicas":1}}',
            options=(("owner", "uid-bear"), ("leave_out", "spec.paused")),
            how="applied",
            uid="uid-web",
            version="9",
            answer=WEB,
        ),
        WriteRequest(verb="status", resource=FOOS, key=BEAR, body="{}", how="given"),
        WriteRequest(verb="delete", resource=DEPLOYMENTS, key=Key("default", "web"), raised=INVALID),
        WriteRequest(verb="delete", resource=DEPLOYMENTS, key=Key("default", "old"), how="done"),
        WriteRequest(verb="create", resource=DEPLOYMENTS, key=Key("default", "cut"), body='{"a":"ä"}'),
    ),
    intents=(Intent(type="Normal", reason="Synced", message="ok", about=BEAR),),
    outside=(
        OutsideResult(name="price", value='{"of":["gold",1.5,null]}'),
        OutsideResult(name="stock", raised=INVALID),
        OutsideResult(name="cut"),
    ),
    seed=2**64 - 1,
    times=(10.5, 10.500001),
)
RUN = RecordedRun(
    id="r7f3",
    cluster="c",
    context="kind-ctrl",
    server="https://127.0.0.1",
    namespace="default",
    controllers=(
        RecordedController(
            name="foo",
            word="./foo.py",
            code="/home/me/foo.py",
            settings=(("annotation_prefix", "a/"),),
            primaries=(FOOS,),
            manager="kubectl-ctrl-foo",
        ),
    ),
    pid=1,
    host="laptop",
    program="0.5.0",
    began=1.0,
)
CASE = case_of(ATTEMPT, RUN)


def test_a_case_survives_a_round_trip() -> None:
    assert loads(dumps(CASE)) == CASE
    assert loads(dumps(CASE).encode()) == CASE
    assert dumps(loads(dumps(CASE))) == dumps(CASE)


def test_a_case_has_the_settings_of_the_controller() -> None:
    assert (CASE.word, CASE.code, CASE.program) == ("./foo.py", "/home/me/foo.py", "0.5.0")
    assert (CASE.settings, CASE.primaries) == ((("annotation_prefix", "a/"),), (FOOS,))
    assert case_of(ATTEMPT) == ReplayCase(controller="foo", attempt=ATTEMPT)


def test_each_object_is_listed_once_under_its_name() -> None:
    document = json.loads(dumps(CASE))
    assert document["objects"] == {"Foo default/bear @7": FOO, "Deployment default/web @9": WEB}
    assert document["reads"][1]["found"] == ["Deployment default/web @9"]
    assert document["wishes"][0]["answer"] == {"how": "applied", "object": "Deployment default/web @9"}
    assert document["types"]["deployments.v1.apps"]["kind"] == "Deployment"


def test_two_forms_of_one_version_have_two_names() -> None:
    bare = {**WEB, "kind": "PartialObjectMetadata", "spec": {}}
    read = replace(ATTEMPT.reads[1], verb="get", objects=(bare,))
    case = replace(CASE, attempt=replace(ATTEMPT, reads=(*ATTEMPT.reads, read)))
    assert "Deployment default/web @9 (2)" in json.loads(dumps(case))["objects"]
    assert loads(dumps(case)) == case


def test_deleted_objects_are_listed_by_uid_and_version() -> None:
    read = replace(ATTEMPT.reads[0], objects=())
    wish = replace(ATTEMPT.wishes[0], answer=None)
    case = replace(CASE, attempt=replace(ATTEMPT, reads=(read,), wishes=(wish,)))
    assert json.loads(dumps(case))["reads"][0]["found"] == [{"uid": "uid-bear", "version": "7"}]
    assert loads(dumps(case)) == case


def test_a_case_contains_no_secret() -> None:
    secret = obj("Secret", "key", "3", data={"password": "Y2FuYXJ5"}) | {"apiVersion": "v1"}
    read = ObjectRead(verb="get", resource=SECRETS, query="default/key", found=(("uid-key", "3"),), objects=(secret,))
    wish = replace(ATTEMPT.wishes[0], resource=SECRETS, body='{"stringData":{"a":"canary"}}', answer=secret)
    text = dumps(replace(CASE, attempt=replace(ATTEMPT, reads=(read,), wishes=(wish,))))
    assert "Y2FuYXJ5" not in text
    assert "canary" not in text
    assert '"password": "***"' in text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any) -> Iterator[tuple[str | int, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield (name,)
        yield from ((name, *rest) for rest in places(inner))


EVERY_PLACE = [place for place in places(json.loads(dumps(CASE))) if place != ("schema",)]


def taken(text: str) -> tuple[ReplayCase | None, RecordingError | None]:
    try:
        return loads(text, "x.json"), None
    except RecordingError as error:
        return None, error


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -1, 1.5, 10**30, "", "x", "a\nb", [], [""], {}, {"": 0}], ids=repr
)
def test_each_value_at_each_place_is_read_or_reported(value: Any) -> None:
    for place in EVERY_PLACE:
        assert_read_or_reported(place, value)


@given(place=st.sampled_from(EVERY_PLACE), value=json_values)
def test_an_invalid_value_anywhere_is_reported_in_one_sentence(place: tuple[str | int, ...], value: Any) -> None:
    assert_read_or_reported(place, value)


def assert_read_or_reported(place: tuple[str | int, ...], value: Any) -> None:
    document = json.loads(dumps(CASE))
    *way, last = place
    inside: Any = document
    for part in way:
        inside = inside[part]
    inside[last] = value
    case, error = taken(json.dumps(document))
    if error is None:
        assert case is not None
        assert loads(dumps(case)) == case
    else:
        assert error.message.startswith("x.json cannot be read: ")
        assert "\n" not in error.message
        assert error.next_step


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a case file: its schema is None"),
        ('{"schema": "x"}', "is not a case file: its schema is 'x'"),
        ('{"schema": "kubectl-ctrl.case/v2"}', "has the schema 'kubectl-ctrl.case/v2', and this version"),
        (json.dumps({"schema": SCHEMA}), "cannot be read: controller is missing"),
        (json.dumps({"schema": SCHEMA, "types": []}), "types is [], expected an object"),
        (b"\xff\xfe", "is not JSON"),
        (dumps(CASE).replace("0.0625", "NaN"), "is not JSON"),
        (dumps(CASE).replace("0.0625", "1" + "0" * 400), "took is 1000"),
        (dumps(CASE).replace("0.0625", "-1"), "took is -1, expected a time in seconds since 1970"),
        (dumps(CASE).replace("{}", '{"a":' * 300 + "1" + "}" * 300), "it is nested too deeply"),
    ],
)
def test_another_file_is_not_a_case_file(text: str | bytes, said: str) -> None:
    with pytest.raises(RecordingError) as caught:
        loads(text, "x.json")
    assert said in caught.value.message
    assert "record export" in caught.value.next_step


def test_an_unknown_name_is_reported_with_its_place() -> None:
    text = dumps(CASE).replace('"found": [\n        "Foo default/bear @7"', '"found": [\n        "Foo default/bare @7"')
    with pytest.raises(RecordingError, match=r'reads\[0\].found\[0\] is "Foo default/bare @7", expected a name among'):
        loads(text)


def test_a_case_matches_its_schema_and_uses_all_of_it() -> None:
    document = json.loads(dumps(CASE))
    check("case.v1", document)
    for name in schema("case.v1")["properties"]:
        assert name in document
    lost = replace(ATTEMPT, reads=(replace(ATTEMPT.reads[0], objects=()),))
    check("case.v1", json.loads(dumps(replace(CASE, attempt=lost))))
