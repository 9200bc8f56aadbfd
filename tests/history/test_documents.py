"""Every value of a run is read as it was written."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields

from kubectl_ctrl.history.database import Damaged
from kubectl_ctrl.history.documents import decoded, encoded
from kubectl_ctrl.model.attempt import Call, ControllerState, DroppedEcho, ObjectRead, Tally, WriteRequest
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Changes, RecordedAttempt, RecordedCall, RecordedRun, RecordedType
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value

_TEXT = st.text(max_size=12)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(_TEXT, parts, max_size=3),
    max_leaves=6,
)
_SIDE = _JSON | st.sampled_from([ABSENT, HIDDEN])
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: _TEXT,
    int: st.integers(0, 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
}
_BY_REFERENCE: dict[type[Any], set[str]] = {
    Call: {"before", "sent", "answer"},
    ObjectRead: {"objects"},
    WriteRequest: {"answer"},
}


def any_of(hint: Any) -> st.SearchStrategy[Any]:
    if hint is Resource:
        word = st.text("abc.", max_size=5)
        return st.builds(Resource, word, word, word, word, st.booleans())
    if hint is Difference:
        return st.builds(Difference, path=_TEXT, old=_SIDE, new=_SIDE)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([st.none() if part is NoneType else any_of(part) for part in get_args(hint)])
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        if parts[-1] is Ellipsis:
            return st.lists(any_of(parts[0]), max_size=2).map(tuple)
        return st.tuples(*map(any_of, parts))
    if isinstance(hint, type) and issubclass(hint, Value):
        return whole(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and issubclass(hint, tuple):
        return st.builds(hint, *map(any_of, get_type_hints(hint).values()))
    return _PLAIN[hint]


def whole(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Each field has a value of its type, or its default."""
    hints, left_out = get_type_hints(kind), _BY_REFERENCE.get(kind, set())
    given_fields = {}
    for one in fields(kind):
        if one.name in left_out:
            continue
        value = any_of(hints[one.name])
        has_default = one.default is not NODEFAULT
        given_fields[one.name] = st.just(one.default) | value if has_default else value
    return st.builds(kind, **given_fields)


@pytest.mark.parametrize("kind", [RecordedAttempt, RecordedCall, RecordedRun, ControllerState, Tally, DroppedEcho])
@settings(max_examples=40)
@given(data=st.data())
def test_every_value_survives_a_round_trip(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(whole(kind))
    assert decoded(kind, encoded(value)) == value


def test_invalid_unicode_and_large_numbers_survive_a_round_trip() -> None:
    odd = Difference(path="\ud800", old=2**70, new=-(2**70))
    call = Call(id="r1-1.1", verb="get", resource=None, started=0.0)
    made = RecordedCall(call=call, changes=Changes(shown=(odd,), total=1))
    assert decoded(RecordedCall, encoded(made)) == made


def test_fields_of_a_later_version_are_ignored() -> None:
    document = encoded(DroppedEcho(attempt="r1-1", request=Key("a", "b"), uid="u", version="1", after=0.5))
    assert decoded(DroppedEcho, document[:-1] + b',"colour":"red"}').uid == "u"


def test_defaults_are_omitted() -> None:
    assert json.loads(encoded(Tally(controller="a", at=1.0, filtered=(), versions=()))) == {
        "controller": "a",
        "at": 1.0,
        "filtered": [],
        "versions": [],
    }


_KINDS: dict[str, type[Value]] = {
    "attempt": RecordedAttempt,
    "call": RecordedCall,
    "controller state": ControllerState,
    "echo": DroppedEcho,
    "filtered changes": Tally,
    "run": RecordedRun,
}


@pytest.mark.parametrize("line", (Path(__file__).parent / "documents.jsonl").read_text().splitlines())
def test_documents_of_version_0_1_0_are_read_and_written_alike(line: str) -> None:
    kind, document = json.loads(line)
    assert json.loads(encoded(decoded(_KINDS[kind], document))) == json.loads(document)


@pytest.mark.parametrize("document", ["{", "[]", "{}", '{"resource":5}', '{"resource":"a b"}', '{"resource":null}'])
def test_a_document_of_another_form_is_damaged(document: str) -> None:
    with pytest.raises(Damaged):
        decoded(RecordedType, document)
