"""The base class of values: `class Call(Value, kw_only=True)` and its fields. Values are frozen and compared by fields.

They are msgspec Structs instead of dataclasses: a class is created in an eighth of the time, which every verb spends at
its start, and an instance in a seventh, which a run spends on every event. There are three differences. `kw_only`
applies to the fields of one class and is not inherited. A field of type `Unshown[...]` is not part of the repr. All
fields are compared; a class that compares otherwise has `eq=False` and its own `__eq__`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, TypeVar, dataclass_transform

from msgspec import Struct, field
from msgspec.structs import asdict

if TYPE_CHECKING:
    from dataclasses import replace  # the same function, but type checkers know its fields
else:
    from msgspec.structs import replace

__all__ = ["Struct", "Unshown", "Value", "asdict", "field", "replace"]

T = TypeVar("T")

# The type of a field that is too long for a repr, or a secret.
Unshown = Annotated[T, "unshown"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True, omit_defaults=True):
    """Base of all values. Mutable state is a `Struct`."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _shown(type(self)))
        return f"{type(self).__qualname__}({shown})"


@cache
def _shown(kind: type[Value]) -> tuple[str, ...]:
    # Annotations are strings here, and some name types that exist only for type checkers.
    hints: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        hints |= getattr(base, "__annotations__", {})
    return tuple(name for name in kind.__struct_fields__ if not hints[name].startswith("Unshown["))
