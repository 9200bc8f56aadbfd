"""Read-only objects: whatever would change one raises at that line; what only reads takes it for a dict or list."""

from __future__ import annotations

import copy
import json
import operator
import pickle
from collections import ChainMap
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest
import yaml

from kubectl_ctrl.cache.readonly import read_only
from kubectl_ctrl.errors import ReadOnlyObject

PLAIN = {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"items": [{"n": 1}, [2, 3], "four", None, 5.5]}}


def given() -> Any:
    return read_only(copy.deepcopy(PLAIN))


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda obj: operator.setitem(obj["metadata"], "name", "y"),
    "delete": lambda obj: operator.delitem(obj["metadata"], "name"),
    "update": lambda obj: obj["metadata"].update(name="y"),
    "merge": lambda obj: obj["metadata"].__ior__({"name": "y"}),
    "setdefault": lambda obj: obj["metadata"].setdefault("annotations", {}),
    "pop": lambda obj: obj["metadata"].pop("labels", None),
    "popitem": lambda obj: obj.popitem(),
    "clear": lambda obj: obj["metadata"]["labels"].clear(),
    "list set": lambda obj: operator.setitem(obj["spec"]["items"], 0, None),
    "list delete": lambda obj: operator.delitem(obj["spec"]["items"], slice(0, 2)),
    "list append": lambda obj: obj["spec"]["items"].append(1),
    "list extend": lambda obj: obj["spec"]["items"].extend([1]),
    "list add": lambda obj: obj["spec"]["items"].__iadd__([1]),
    "list multiply": lambda obj: obj["spec"]["items"].__imul__(2),
    "list insert": lambda obj: obj["spec"]["items"].insert(0, 1),
    "list remove": lambda obj: obj["spec"]["items"].remove("four"),
    "list pop": lambda obj: obj["spec"]["items"].pop(),
    "list clear": lambda obj: obj["spec"]["items"][1].clear(),
    "list sort": lambda obj: obj["spec"]["items"][1].sort(),
    "list reverse": lambda obj: obj["spec"]["items"][1].reverse(),
    "deep": lambda obj: operator.setitem(obj["spec"]["items"][0], "n", 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_it_raises_at_that_line_and_changes_nothing(name: str) -> None:
    obj, change = given(), CHANGES[name]
    with pytest.raises(ReadOnlyObject) as caught:
        change(obj)
    assert obj == PLAIN
    line = f"cache/test_readonly.py:{change.__code__.co_firstlineno}"
    assert str(caught.value) == f"{line} changes an object of the cache in place. Other readers share it."
    assert caught.value.next_step == "change a copy: copy.deepcopy(obj)"
    assert isinstance(caught.value, TypeError)


def test_every_method_that_changes_a_dict_or_list_is_covered() -> None:
    obj = given()
    known = {
        dict: "copy fromkeys get items keys values",
        list: "copy count index",
    }
    for part, kind in ((obj, dict), (obj["spec"]["items"], list)):
        public = {name for name in dir(kind) if not name.startswith("_")}
        for name in public - set(known[kind].split()):
            with pytest.raises(ReadOnlyObject):
                getattr(part, name)()


@pytest.mark.parametrize(
    "change",
    [lambda view: operator.setitem(view, "a", 1), lambda view: view.setdefault("a", 1)],
    ids=["set", "default"],
)
def test_a_change_by_a_library_names_the_line_that_called_it(change: Callable[[Any], object]) -> None:
    with pytest.raises(ReadOnlyObject) as caught:
        change(ChainMap(given()))
    assert str(caught.value).startswith(f"cache/test_readonly.py:{change.__code__.co_firstlineno} ")


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "dict": dict,
    "method": lambda obj: obj.copy(),
    "unpacked": lambda obj: {**obj},
    "merged": lambda obj: obj | {},
    "pickle": lambda obj: pickle.loads(pickle.dumps(obj)),
    "json": lambda obj: json.loads(json.dumps(obj)),
    "orjson": lambda obj: orjson.loads(orjson.dumps(obj)),
    "msgspec": lambda obj: msgspec.json.decode(msgspec.json.encode(obj)),
    "msgspec, converted": msgspec.to_builtins,
    "yaml, safe": lambda obj: yaml.safe_load(yaml.safe_dump(obj)),
    "yaml": lambda obj: yaml.safe_load(yaml.dump(obj)),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_an_ordinary_dict(name: str) -> None:
    obj = given()
    made = COPIES[name](obj)
    assert type(made) is dict
    assert made == obj == PLAIN
    made["spec"] = 1
    assert obj == PLAIN


@pytest.mark.parametrize(
    "of",
    [copy.copy, list, sorted, operator.methodcaller("copy"), operator.itemgetter(slice(None))],
    ids=["copy", "list", "sorted", "method", "slice"],
)
def test_a_copy_of_a_list_is_an_ordinary_list(of: Callable[[Any], Any]) -> None:
    items = given()["spec"]["items"][1]
    made = of(items)
    assert type(made) is list
    assert made == items == [2, 3]
    made.append(4)


def test_a_deep_copy_can_be_changed_everywhere() -> None:
    made = copy.deepcopy(given())
    made["spec"]["items"][0]["n"] = 2
    made["spec"]["items"][1].append(4)
    assert made["spec"]["items"][:2] == [{"n": 2}, [2, 3, 4]]


def test_it_looks_as_what_it_stands_for() -> None:
    obj = given()
    assert repr(obj) == repr(PLAIN)
    assert isinstance(obj, dict)
    assert isinstance(obj["spec"]["items"], list)
    match obj:
        case {"spec": {"items": [dict(), list(), str(four), *_]}}:
            assert four == "four"
        case _:
            pytest.fail("it matches as a dict does")
