"""Lists in the output formats of `kubectl get -o`: json, yaml, name, jsonpath and custom-columns.

Templates and columns print the same as kubectl's, with one exception: control characters in values are escaped, because
data from a cluster must not control a terminal. Templates keep newlines and tabs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, TypeVar

import yaml

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.jsonpath import JsonPath
from kubectl_ctrl.text import Text, escaped, table
from kubectl_ctrl.value import Value

# The formats that take an argument.
TEMPLATES = ("jsonpath", "jsonpath-as-json", "jsonpath-file", "custom-columns", "custom-columns-file")
_GO = ("go-template", "go-template-file", "template", "templatefile")

# kubectl's columns: the width of the widest cell and three blanks, and at least this.
_LEAST, _GAP = 6, 3
# Above this width, our own tables have two blanks between columns.
_COLUMNS = 80
_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{prefix}i": 2 ** (10 * (at + 1)) for at, prefix in enumerate("KMGTPE")}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<power>[+-]?\d{1,2}))?"
)

_FIELDS = "-o yaml shows the fields"

Row = TypeVar("Row")


class Column(Value):
    """One of custom-columns."""

    header: str
    path: JsonPath


class Printer(Value, kw_only=True):
    """-o, --no-headers and --sort-by, validated before any request is sent."""

    form: str  # the part before the "="
    template: JsonPath | None = None
    columns: tuple[Column, ...] = ()
    headers: bool = True
    sort_by: JsonPath | None = None

    def ordered(self, rows: Sequence[Row], fields: Callable[[Row], Mapping[str, Any]]) -> list[Row]:
        """The rows in the order of --sort-by, those without the field first."""
        if self.sort_by is None or not rows:
            return list(rows)
        keys = [next((value for found in self.sort_by.find(fields(row)) for value in found), None) for row in rows]
        if all(key is None for key in keys):
            raise UsageError(f"No row has the --sort-by field {self.sort_by.source!r}.", next_step=_FIELDS)
        by = cmp_to_key(_compared)
        order = sorted(range(len(rows)), key=lambda at: by(keys[at]))
        return [rows[at] for at in order]

    def table(self, rows: Sequence[Sequence[str]], header: Sequence[str]) -> Text:
        """A table with our own columns."""
        return self.beheaded(table(rows, header=header, width=_COLUMNS))

    def beheaded(self, text: Text) -> Text:
        """The table without its first line if --no-headers is set."""
        return text if self.headers else Text(text.partition("\n")[2])

    def text(self, document: Mapping[str, Any], items: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
        """The output with its last newline; a template adds none of its own."""
        match self.form:
            case "json":
                return json.dumps(document, indent=2) + "\n"
            case "yaml":
                # Through JSON, which turns members of an enumeration into strings.
                return str(yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False))
            case "name":
                return "".join(f"{escaped(name)}\n" for name in names)
            case "jsonpath" | "jsonpath-file":
                assert self.template is not None
                return self.template.text(document, _value)
            case "jsonpath-as-json":
                assert self.template is not None
                return "".join(f"{_json(found, indent=4)}\n" for found in self.template.lists(document))
            case _:
                return self._columns(items)

    def _columns(self, items: Sequence[Mapping[str, Any]]) -> str:
        lines = [[column.header for column in self.columns]] if self.headers else []
        lines += [[_cell(column.path.find(item)) for column in self.columns] for item in items]
        widths = [max([_LEAST, *(len(line[at]) + _GAP for line in lines)]) for at in range(len(self.columns) - 1)]
        return "".join(
            "".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)) + "\n" for line in lines
        )


def printer(
    output: str, words: Sequence[str], *, read: Callable[[str], str], headers: bool = True, sort_by: str = ""
) -> Printer:
    """The printer for the value of -o: one of `words`, or a template; `read` returns the content of a file."""
    form, equals, argument = output.partition("=")
    by = JsonPath.column(sort_by) if sort_by else None
    if form in _GO:
        raise UsageError(
            f"-o {form} is not supported: only programs written in Go can execute such templates.",
            next_step="use -o jsonpath=... or -o custom-columns=...",
        )
    if form not in TEMPLATES or form in words:
        word = output if output in words else output.lower()  # like kubectl, which accepts JSON for json
        if word not in words:
            choice = [*filter(None, words), *(f"{one}=..." for one in TEMPLATES)]
            raise UsageError(f"Invalid value for --output: {output!r}.", next_step=f"use one of: {', '.join(choice)}")
        return Printer(form=word, headers=headers, sort_by=by)
    if not argument:
        example = "custom-columns=NAME:.name" if form.startswith("custom") else "jsonpath='{..name}'"
        raise UsageError(f"-o {form}{equals} lacks its argument.", next_step=f"for example -o {example}")
    match form:
        case "custom-columns":
            return Printer(form=form, columns=_spec(argument), headers=headers, sort_by=by)
        case "custom-columns-file":
            return Printer(form=form, columns=_two_lines(read(argument)), headers=headers, sort_by=by)
    template = read(argument) if form == "jsonpath-file" else argument
    return Printer(form=form, template=JsonPath.parse(template), headers=headers, sort_by=by)


def _spec(spec: str) -> tuple[Column, ...]:
    """`NAME:.metadata.name,READY:.status.ready`."""
    parts = [part.partition(":") for part in spec.split(",")]
    for header, colon, _ in parts:
        if not colon:
            next_step = "for example NAME:.name; commas separate columns"
            raise UsageError(f"The custom column {header!r} has no path.", next_step=next_step)
    return tuple(Column(header, JsonPath.column(path)) for header, _, path in parts)


def _two_lines(content: str) -> tuple[Column, ...]:
    """A line of headers above a line of paths."""
    headers, paths = ([*map(str.split, content.splitlines()), [], []])[:2]
    if not headers or len(headers) != len(paths):
        raise UsageError(
            f"A custom-columns file has a line of headers and a line of paths, here {len(headers)} and {len(paths)}.",
            next_step="for example NAME STATE, and on the next line .name .state",
        )
    return tuple(Column(header, JsonPath.column(path)) for header, path in zip(headers, paths, strict=True))


def _cell(found: Sequence[Sequence[Any]]) -> str:
    values = [value for values in found for value in values]
    return ",".join(escaped(_go(value)) for value in values) if found and found[0] else "<none>"


def _go(value: Any) -> str:
    """A value in a column, as Go prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case dict():
            return f"map[{' '.join(f'{key}:{_go(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(_go, value))}]"
        case _:
            return str(value)


def _value(value: Any) -> str:
    """A value in the text of a template; scripts rely on newlines and tabs."""
    if isinstance(value, str):
        return re.sub(r"[^\n\t]+", lambda found: escaped(found[0]), value)
    return _json(value)


def _json(value: Any, indent: int | None = None) -> str:
    """JSON as Go writes it: sorted keys, and the special characters of HTML escaped."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, indent=indent, separators=separators, sort_keys=True, ensure_ascii=False)
    return re.sub(_UNWANTED, lambda found: f"\\u{ord(found[0]):04x}", text)


# Outside of strings, JSON has none of these.
_UNWANTED = "[<>&\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


def _compared(one: Any, other: Any) -> int:
    """kubectl's order: missing values first, strings that are quantities by amount."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    if isinstance(one, str) and isinstance(other, str):
        amounts = _amount(one), _amount(other)
        if None not in amounts:
            one, other = amounts
    elif isinstance(one, bool | dict | list) or isinstance(one, str) != isinstance(other, str):
        raise UsageError(
            "--sort-by: the values are neither all numbers nor all strings.",
            next_step=f"choose another field; {_FIELDS}",
        )
    return int(one > other) - int(one < other)


def _amount(text: str) -> float | None:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    suffix, power = found["suffix"] or "", int(found["power"] or 0)
    factor: float = _BINARY.get(suffix, 1) * 10.0 ** (power or _SUFFIXES.get(suffix, 0))
    return float(found["number"]) * factor
