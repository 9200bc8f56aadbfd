"""The objects of an informer, and the test of one object for it."""

from __future__ import annotations

import re

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj, labels_of, namespace_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.value import Value


class Selection(Value):
    """The watched objects, and how much of each is kept; equal selections share one watch."""

    resource: Resource
    namespace: str = ""  # "": all
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False

    @property
    def narrowed(self) -> bool:
        """An object can enter and leave the selection during its life."""
        return bool(self.labels or self.fields)

    def __str__(self) -> str:
        """`pods in team-a with app=web (metadata)`: for messages and logs."""
        parts = [str(self.resource)]
        parts += [f"in {self.namespace}"] if self.namespace else []
        parts += [f"with {text}" for text in (self.labels, self.fields) if text]
        parts += ["(metadata)"] if self.metadata_only else []
        return " ".join(parts)


class FieldRequirement(Value):
    """One requirement of a field selector."""

    path: tuple[str, ...]
    value: str
    wanted: bool  # False: must differ

    def matches(self, obj: Obj) -> bool:
        return (_field(obj, self.path) == self.value) is self.wanted


class ParsedSelection:
    def __init__(self, selection: Selection) -> None:
        self._namespace = selection.namespace
        self._labels = Selector.parse(selection.labels) if selection.labels else None
        self._fields = parse_fields(selection.fields)

    def reaches(self, namespace: str) -> bool:
        """Objects of that namespace can be in it."""
        return self._namespace in ("", namespace)

    def holds(self, obj: Obj) -> bool:
        return (
            self.reaches(namespace_of(obj))
            and (self._labels is None or self._labels.matches(labels_of(obj)))
            and all(term.matches(obj) for term in self._fields)
        )


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """A field selector as the API takes it: `spec.nodeName=a,status.phase!=Failed`; a backslash escapes.

    A name is the path to a value in the object. That is true for all but a few names of built-in types.
    """
    return tuple(_term(part, text) for part in re.findall(r"(?:\\.|[^,\\])+", text))


def _term(part: str, text: str) -> FieldRequirement:
    found = re.fullmatch(r"([^=!\\]+?)(!=|==?)((?:\\.|[^=\\])*)", part)
    if found is None:
        raise UsageError(f"Invalid field selector {text!r} at {part!r}: expected name=value or name!=value.")
    name, operator, value = found.groups()
    return FieldRequirement(tuple(name.split(".")), re.sub(r"\\(.)", r"\1", value), operator != "!=")


def _field(obj: Obj, path: tuple[str, ...]) -> str:
    """The value as the server compares it: a missing one is "", and a boolean is true or false."""
    value: object = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
