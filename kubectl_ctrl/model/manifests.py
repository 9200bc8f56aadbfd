"""Manifests in YAML or JSON, with one object or many, as kubectl reads them.

Every object has its file and line (`crd.yaml:12`), also for later errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import isfinite
from typing import Any

import yaml

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Unshown, Value

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# An API server accepts no object over 3 MiB; a much larger file is not a manifest.
_MOST_BYTES = 16 * 1024 * 1024
# Aliases can expand a small text enormously: nodes are counted as if each alias were written out.
_MOST_NODES = 1_000_000

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


class Loader(_Base):  # type: ignore[misc]
    """YAML as in kubectl: no dates and no sexagesimal numbers, so an unquoted 2026-01-01 or 12:30 is a string.

    If a mapping has a key and also merges it with `<<`, the later one counts; in the YAML standard, the explicit key.
    """

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        at = next((at for at, (key, _) in enumerate(node.value) if key.tag == _MERGE), 0)
        before, node.value = node.value[:at], node.value[at:]
        super().flatten_mapping(node)
        node.value = before + node.value


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "bool", "merge")]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


class _Dumper(yaml.SafeDumper):
    """Writes without aliases, and quotes strings that some YAML readers would take for other types."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# PyYAML reads these as strings, other readers do not.
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+$"), list("-+.0123456789")
)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?0o[0-7]+$"), list("-+0"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))


def text(objects: Iterable[Obj], *, sort_keys: bool = False) -> str:
    """Objects as YAML for `kubectl apply -f -`."""
    return "---\n".join(
        yaml.dump(obj, Dumper=_Dumper, sort_keys=sort_keys, allow_unicode=True, width=120) for obj in objects
    )


class Manifest(Value):
    """One object and its position."""

    obj: Unshown[Obj]
    where: str  # `crd.yaml:12`: file and line

    def wrong(self, why: str, next_step: str = "") -> ControllerError:
        return ControllerError(f"{self.where}: {why}", next_step=next_step)


def parse(raw: bytes, file: str) -> tuple[Manifest, ...]:
    """The objects of a file, including the items of Lists; ControllerError for anything that kubectl rejects.

    Empty documents are skipped. A file without objects is an error, as in kubectl.
    """
    found = tuple(manifest for document in _documents(_text(raw, file), file) for manifest in _objects(document))
    if not found:
        raise ControllerError(f"{file}: There is no object in this file.", next_step="write one, or remove the file")
    return found


def _text(raw: bytes, file: str) -> str:
    if len(raw) > _MOST_BYTES:
        size = f"{len(raw) / 2**20:.0f} MiB"
        raise ControllerError(f"{file}: The file is too large to be a manifest: {size}.", next_step="split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ControllerError(f"{file}:{line}: The text is not UTF-8.", next_step="save it as UTF-8") from None
    if (at := text.find("\0")) >= 0:
        raise ControllerError(f"{file}:{text.count(chr(10), 0, at) + 1}: There is a NUL character.")
    return text


def _documents(text: str, file: str) -> Iterator[Manifest]:
    """Each non-empty document."""
    if text.lstrip().startswith("{"):
        # JSON may contain tabs, an error in YAML. A duplicate key is left to the YAML parser, which knows its line.
        with suppress(ValueError):
            yield Manifest(json.loads(text, object_pairs_hook=_once_each), f"{file}:1")
            return
    loader = Loader(text)
    number = 1
    try:
        while loader.check_node():
            node = loader.get_node()
            _check(node, file, number)
            if (value := loader.construct_document(node)) is not None:
                yield Manifest(value, f"{file}:{node.start_mark.line + 1}")
            number += 1
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, file, number) from None
    except RecursionError:
        raise ControllerError(f"{file}: Document {number} is nested too deeply.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ControllerError(f"{file}: This is not YAML: {str(error).splitlines()[0]}.") from None
    finally:
        loader.dispose()


def _once_each(pairs: list[tuple[str, Any]]) -> Obj:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _syntax(error: yaml.MarkedYAMLError, file: str, number: int) -> ControllerError:
    mark = error.problem_mark or error.context_mark
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    problem = (error.problem or error.context or "it cannot be read").rstrip(".")
    hint = "indent with blanks" if "\\t" in problem else ""
    return ControllerError(f"{where}: Document {number} is not YAML: {problem}.", next_step=hint)


def _check(node: yaml.Node, file: str, number: int) -> None:
    """Reject duplicate keys and exploding aliases, which PyYAML accepts silently."""
    sizes: dict[int, int] = {}

    def size(one: yaml.Node, above: frozenset[int]) -> int:
        if isinstance(one, yaml.ScalarNode):
            return 1
        if id(one) in above:
            line = one.start_mark.line + 1
            raise ControllerError(f"{file}:{line}: Document {number} holds itself through an alias.")
        if id(one) not in sizes:
            if isinstance(one, yaml.MappingNode):
                _check_keys(one, file, number)
            inside = above | {id(one)}
            parts = [part for item in one.value for part in (item if isinstance(item, tuple) else (item,))]
            sizes[id(one)] = 1 + sum(size(part, inside) for part in parts)
        return sizes[id(one)]

    if size(node, frozenset()) > _MOST_NODES:
        where = f"{file}:{node.start_mark.line + 1}"
        raise ControllerError(
            f"{where}: Document {number} grows beyond {_MOST_NODES:,} values through aliases.",
            next_step="write it out, or leave the aliases away",
        )


def _check_keys(node: yaml.MappingNode, file: str, number: int) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ControllerError(f"{file}:{line}: Document {number} has a key that is not text.")
        if key.tag == _MERGE:
            continue
        key.tag = _TEXT  # `1:` and `on:` are strings here
        if key.value in seen:
            raise ControllerError(
                f"{file}:{line}: Document {number} has the key {key.value!r} twice; first in line {seen[key.value]}.",
                next_step="keep one of the two",
            )
        seen[key.value] = line


def _objects(document: Manifest) -> Iterator[Manifest]:
    """The objects of one document, each with apiVersion, kind and name."""
    obj: Any = document.obj
    if not isinstance(obj, dict):
        what = "a list" if isinstance(obj, list) else f"{type(obj).__name__} {str(obj)[:40]!r}"
        raise document.wrong(f"There is {what} where an object must be.", "separate objects by a line of ---")
    items = obj.get("items")
    if str(obj.get("kind") or "").endswith("List") and isinstance(items, list):
        for item in items:
            yield from _objects(Manifest(item, document.where))
        return
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name), str) or not obj[name]:
            raise document.wrong(f"The object has no {name}.", f"write {name}: at its top level")
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise document.wrong(f"The {obj['kind']} has no metadata.name.", "give it a name")
    if found := _odd_number(obj):
        raise document.wrong(f"{found}: numbers must be finite, and whole numbers within 64 bits.")
    yield document


def _odd_number(obj: Obj) -> str:
    """`spec.size is inf`: a number that JSON or the API server does not have."""
    left: list[tuple[str, Any]] = [("", obj)]
    while left:
        path, value = left.pop()
        if isinstance(value, dict):
            left += [(f"{path}.{key}" if path else key, part) for key, part in value.items()]
        elif isinstance(value, list):
            left += [(f"{path}[{at}]", part) for at, part in enumerate(value)]
        elif (isinstance(value, float) and not isfinite(value)) or (
            isinstance(value, int) and not -(2**63) <= value < 2**63
        ):
            return f"{path} is {value}"
    return ""
