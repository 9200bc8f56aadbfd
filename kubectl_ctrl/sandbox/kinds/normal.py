"""The one form in which the server stores and returns an object of a built-in type.

Go's types decide it: a field of a plain type whose value is zero is left out, a struct that is not a pointer is always
there, quantities and times have one way of writing. `data/types.json.xz` has the fields of every type.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds import quantities
from kubectl_ctrl.value import Value

Shape = Callable[[Any], Any]
Rule = Callable[[Obj], None]

_ZEROS: dict[str, Any] = {"string": "", "int": 0, "float": 0, "bool": False, "quantity": "0", "intstr": 0}


class Field(Value):
    """One field of a Go struct: `form` is a scalar or a struct's name, after `[` for a list and `{` for a map."""

    form: str
    always: bool  # in the JSON even if it is zero
    pointer: bool  # zero differs from absence

    @property
    def zero(self) -> Any:
        return None if self.pointer else _ZEROS.get(self.form)

    @property
    def is_struct(self) -> bool:
        return self.form in _types()["types"]


@cache
def _types() -> Any:
    with resources.files(__package__).joinpath("data/types.json.xz").open("rb") as file:
        return json.loads(lzma.decompress(file.read()))


@cache
def type_of(api_version: str, kind: str) -> str:
    """The name of a kind's Go type; empty if it is not known."""
    return str(_types()["kinds"].get(f"{api_version}/{kind}", ""))


@cache
def fields_of(name: str) -> dict[str, Field]:
    found = {}
    for field, text in _types()["types"][name].items():
        form = text.lstrip("!*")
        marks = text[: len(text) - len(form)]
        found[field] = Field(form, "!" in marks, "*" in marks)
    return found


class Forms:
    """Writes objects in their stored form. `fills` adds the defaults of a type before its fields are shaped."""

    def __init__(self, fills: Callable[[str], Rule | None]) -> None:
        self._fills = fills
        self._shapes: dict[str, Shape] = {}

    def shaped(self, obj: Obj, name: str) -> Obj:
        result: Obj = self._shape(name)(obj)
        return result

    def _shape(self, form: str) -> Shape:
        if form not in self._shapes:
            self._shapes[form] = self._compiled(form)
        return self._shapes[form]

    def _compiled(self, form: str) -> Shape:
        if form[0] == "[":
            return _list_shape(self._shape(form[1:]))
        if form[0] == "{":
            return _map_shape(_milli if form == "{quantity" else self._shape(form[1:]))
        if form in _types()["types"]:
            return self._struct(form)
        return _SCALARS.get(form, _same)

    def _struct(self, name: str) -> Shape:
        fields, fill = fields_of(name), self._fills(name)
        always = [(key, field) for key, field in fields.items() if field.always]
        shapes: dict[str, tuple[Field, Shape]] = {}

        def shape(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            value = dict(value)
            if fill is not None:
                fill(value)
            if not shapes:  # not earlier: types contain themselves
                shapes.update({key: (field, self._shape(field.form)) for key, field in fields.items()})
            return _struct_value(value, shapes, always)

        return shape


def _struct_value(value: Obj, shapes: dict[str, tuple[Field, Shape]], always: list[tuple[str, Field]]) -> Obj:
    result = {}
    for key, item in value.items():
        known = shapes.get(key)
        if known is None:
            result[key] = item
        elif item is not None:
            field, shape = known
            shaped = shape(item)
            if shaped in ([], {}) and field.form[0] in "[{":
                shaped = None
            if shaped is not None and (field.pointer or field.always or _is_kept(shaped, field)):
                result[key] = shaped
    for key, field in always:
        if key not in result:
            result[key] = shapes[key][1]({}) if field.is_struct and not field.pointer else field.zero
    return result


def _is_kept(value: Any, field: Field) -> bool:
    return bool(value) or (field.form == "any") or (isinstance(value, dict) and field.form[0] != "{")


def _same(value: Any) -> Any:
    return value


def _list_shape(item: Shape) -> Shape:
    return lambda value: [item(one) for one in value] if isinstance(value, list) else value


def _map_shape(item: Shape) -> Shape:
    return lambda value: {key: item(one) for key, one in value.items()} if isinstance(value, dict) else value


def _is_amount(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _quantity(value: Any) -> Any:
    return quantities.canonical(str(value)) if _is_amount(value) else value


def _milli(value: Any) -> Any:
    return quantities.canonical(str(value), -3) if _is_amount(value) else value


@lru_cache(1024)
def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def _time(value: Any) -> Any:
    moment = _moment(value) if isinstance(value, str) else None
    return value if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: Any) -> Any:
    moment = _moment(value) if isinstance(value, str) else None
    return value if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_SCALARS: dict[str, Shape] = {"quantity": _quantity, "time": _time, "microtime": _micro_time}
