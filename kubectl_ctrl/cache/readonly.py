"""Objects that cannot be changed in place: they raise at the line that tries.

Cached objects are shared. A reconciler that changes one changes it for all readers, and its own write is skipped,
because nothing would change any more. Code under development gets these classes in place of dict and list; they read,
compare, encode and copy like them. A copy is an ordinary dict or list, which may be changed.
"""

from __future__ import annotations

import copy
import os
import sys
from pathlib import PurePath
from types import FrameType
from typing import Any, NoReturn

from yaml.representer import Representer, SafeRepresenter

from kubectl_ctrl.errors import ReadOnlyObject
from kubectl_ctrl.model.objects import Obj

_PACKAGE = PurePath(__file__).parents[1]
_STDLIB = PurePath(os.__file__).parent
_INSTALLED = frozenset({"site-packages", "dist-packages"})


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ReadOnlyObject(f"{_line_of_caller()} changes an object of the cache in place. Other readers share it.")


class ReadOnlyDict(dict[str, Any]):
    """A dict that raises ReadOnlyObject instead of changing."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    setdefault = update = pop = popitem = clear = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(item, memo) for key, item in self.items()}

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that raises ReadOnlyObject instead of changing."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(item, memo) for item in self]

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return list, (list(self),)


def read_only(obj: Obj) -> Obj:
    """A read-only copy; parts that are read-only already are shared."""
    frozen: Obj = _frozen(obj)
    return frozen


def _frozen(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return ReadOnlyDict({key: _frozen(item) for key, item in value.items()})
    if kind is list:
        return ReadOnlyList(map(_frozen, value))
    return value


def _line_of_caller() -> str:
    """`folder/file.py:line` of the line that tried to change it, or that called the library which tried."""
    caller = frame = sys._getframe(2)  # noqa: SLF001  # there is no other way to the caller
    while frame.f_back is not None and _is_library(frame):
        frame = frame.f_back
    if _is_library(frame) or _is_runtime(frame):
        frame = caller  # the controller is installed as a library itself
    path = PurePath(frame.f_code.co_filename)
    return f"{path.parent.name}/{path.name}:{frame.f_lineno}"


def _is_library(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    path = PurePath(name)
    return name.startswith("<frozen ") or not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(_STDLIB)


def _is_runtime(frame: FrameType) -> bool:
    path = PurePath(frame.f_code.co_filename)
    return path.is_relative_to(_PACKAGE) and not path.is_relative_to(_PACKAGE / "controllers")


# PyYAML goes by exact types.
for _representer in (SafeRepresenter, Representer):
    _representer.add_representer(ReadOnlyDict, SafeRepresenter.represent_dict)
    _representer.add_representer(ReadOnlyList, SafeRepresenter.represent_list)
