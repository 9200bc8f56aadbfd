"""How a value is declared: `class Call(Value, kw_only=True)` and its fields; it is frozen, and its fields compare it.

Values are msgspec's structs rather than dataclasses: their classes are made in an eighth of the time, which every verb
pays for at its start, and an instance in a seventh, which a run pays for with every event. They differ in three points.
`kw_only` is about the fields of one class and is not inherited. A field that is left out of the repr has the type
`Unshown[...]`. Every field counts in a comparison; a class that wants otherwise says `eq=False` and has its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeVar, dataclass_transform

from msgspec import Struct, field
from msgspec.structs import asdict

if TYPE_CHECKING:
    from dataclasses import replace  # the same; type checkers know which fields it takes
else:
    from msgspec.structs import replace

__all__ = ["Struct", "Unshown", "Value", "asdict", "field", "replace"]

T = TypeVar("T")

# The type of a field that is too long for a repr, or a secret.
Unshown = Annotated[T, "unshown"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, omit_defaults=True):
    """Base of all values. State that changes in place is a `Struct`."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _shown(type(self)))
        return f"{type(self).__qualname__}({shown})"


@cache
def _shown(kind: type[Value]) -> tuple[str, ...]:
    # Annotations are text in every module of ours, and some name types that exist for type checkers alone.
    hints: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        hints |= getattr(base, "__annotations__", {})
    return tuple(name for name in kind.__struct_fields__ if not hints[name].startswith("Unshown["))
