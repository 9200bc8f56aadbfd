from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.sandbox.storage import Storage

_NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)
_MANY = 1_200  # more than the storage keeps decoded


def _thing(name: str, spec: Any) -> Obj:
    return {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@settings(max_examples=30)
@given(_VALUES)
def test_an_object_stays_the_same_after_many_writes_of_others(spec: Any) -> None:
    storage = Storage()
    storage.put("things", _thing("one", spec))
    first, version = storage.logs["things"][0].encoded, storage.version
    storage.put("things", _thing("one", "later"))
    for number in range(_MANY):
        storage.put("things", _thing("other", number))
    wanted = _thing("one", spec)
    wanted["metadata"]["resourceVersion"] = str(version)
    one = Key("default", "one")
    assert repr(storage.at("things", version)[one]) == repr(wanted)
    change = storage.logs["things"][0]
    assert (repr(change.new), change.encoded) == (repr(wanted), first)
    assert storage.rows("things")[one]["spec"] == "later"


def test_every_state_of_a_large_table_can_be_read() -> None:
    storage = Storage()
    for number in range(_MANY):
        storage.put("things", _thing(f"n{number}", number))
    full = storage.version
    for number in range(_MANY):
        storage.remove("things", Key("default", f"n{number}"))
    assert not storage.rows("things")
    rows = storage.at("things", full)
    assert [rows[Key("default", f"n{number}")]["spec"] for number in range(_MANY)] == list(range(_MANY))
    storage.restore(full)
    assert sorted(obj["spec"] for obj in storage.rows("things").values()) == list(range(_MANY))
