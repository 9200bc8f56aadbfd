"""Tables: the columns and rows in which kubectl prints objects."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

import orjson

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.jsonpath import JsonPath
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding import ages, cells
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind

_FIELDS = ("name", "type", "format", "description", "priority")
_AGE: Obj = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_FINISHED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def table(kind: ServedKind, objects: list[Obj], now: float, *, headers: bool = True) -> Obj:
    """The columns, null without headers, and a row without its object for each object."""
    if kind.custom and not any(obj.get("kind") == "Scale" for obj in objects):
        columns = _custom_columns(kind)
        rows = [{"cells": list(_custom_cells(kind, obj, now))} for obj in objects]
    else:
        name = _name(objects[0]) if objects else _full_name(kind.resource.kind, kind.resource.group)
        name = name if name in cells.CELLS else ""
        columns = _built_in()[name]
        rows = [_row(name, obj, now) for obj in objects]
    return {"columnDefinitions": columns if headers else None, "rows": rows}


def _name(obj: Obj) -> str:
    return _full_name(str(obj.get("kind", "")), str(obj.get("apiVersion", "")).rpartition("/")[0])


def _full_name(kind: str, group: str) -> str:
    return f"{kind}.{group}" if group else kind


def _row(name: str, obj: Obj, now: float) -> Obj:
    row: Obj = {"cells": cells.CELLS[name](obj, now)}
    phase = (obj.get("status") or {}).get("phase")
    if name == "Pod" and phase in _FINISHED:
        done = {"type": "Completed", "status": "True", "reason": phase, "message": _FINISHED[phase]}
        row["conditions"] = [done]
    return row


@cache
def _built_in() -> dict[str, list[Obj]]:
    """The columns of each kind with a group; under "" those of a kind without columns of its own."""
    packed = resources.files("kubectl_ctrl.sandbox.kinds").joinpath("data/columns.json.xz").read_bytes()
    known = orjson.loads(lzma.decompress(packed))
    return {name: [dict(zip(_FIELDS, column, strict=True)) for column in columns] for name, columns in known.items()}


def _described(name: str) -> str:
    """The description of a column that all kinds share."""
    return str(next(column["description"] for column in _built_in()["Pod"] if column["name"] == name))


def _columns(kind: ServedKind) -> tuple[Obj, ...]:
    return kind.columns or ({**_AGE, "description": _described("Age")},)


def _custom_columns(kind: ServedKind) -> list[Obj]:
    found = [_built_in()["Pod"][0]]
    for column in _columns(kind):
        path = column.get("jsonPath", "")
        words = column.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        about = {"name": column["name"], "type": column["type"], "format": column.get("format", "")}
        found.append({**about, "description": words, "priority": column.get("priority", 0)})
    return found


def _custom_cells(kind: ServedKind, obj: Obj, now: float) -> Iterator[Any]:
    yield obj["metadata"].get("name", "")
    for column in _columns(kind):
        found = _path(column.get("jsonPath", "")).find(obj)
        yield _cell(column["type"], found[0][0], now) if found and found[0] else None


@cache
def _path(text: str) -> JsonPath:
    try:
        return JsonPath.column(text)
    except UsageError:
        return JsonPath.column("")


def _cell(form: str, value: Any, now: float) -> Any:
    """The value as a column of this type shows it; null if it is of another type."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match form:
        case "string":
            return _text(value)
        case "integer":
            return int(value) if number else None
        case "number":
            return float(value) if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            with suppress(ValueError):
                return ages.since(value, now)
            return "<invalid>"
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
