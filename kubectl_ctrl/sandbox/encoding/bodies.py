"""The bytes of a request become an object: JSON, YAML or protobuf, refused in the server's words."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from typing import Any

import orjson
import yaml

from kubectl_ctrl.model.manifests import Loader
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.encoding import protobuf, syntax
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MEDIA = (JSON, YAML, PROTOBUF)
LARGEST = 3 * 1024 * 1024
_DEEPEST = 200  # levels; a kube-apiserver takes 10,000

_SPACED = re.compile(rb'"\s+:')  # a key that is not counted below
_DIGITS = bytes(48 if chr(code).isdecimal() and code < 128 else 32 for code in range(256))  # any digit to a zero
_LONG = b"0" * 19
_FEW_ALIASED = 100  # nodes that may always be repeated by aliases
_MANY_NODES = 400_000  # from here on the share that may be repeated falls from 99 to 10 %
_LARGEST_INTEGER = 2**63 - 1
_META_ERROR = "couldn't get version/kind; json parse error: "
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_NAMES: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def decode(content_type: str, raw: bytes, kind: ServedKind, name: str = "") -> tuple[Obj, list[str]]:
    """The object, and the strict decoder's words about fields that occur twice: `duplicate field "spec.x"`.

    `name` is the kind of the body if it is not an object of `kind`, such as DeleteOptions.
    """
    _check_size(raw)
    media = content_type.partition(";")[0].strip().lower() or JSON
    if media not in MEDIA or (media == PROTOBUF and kind.custom and not name):
        raise answers.unsupported_media(list(MEDIA))
    name = name or kind.resource.kind
    try:
        if media == PROTOBUF:
            return protobuf.decode(raw, kind.resource.api_version, name), []
        body, duplicates = _from_yaml(raw) if media == YAML else _versioned(raw)
        return _checked(body, raw, typed=not kind.custom or name != kind.resource.kind), duplicates
    except protobuf.UnknownKind as error:
        message = f'{error.kind} in version "{error.version}" cannot be handled as a {name}: {error}'
        raise answers.bad_request(message) from error
    except ValueError as error:
        if name == "DeleteOptions":
            raise answers.bad_request(str(error)) from error
        message = f"the object provided is unrecognized (must be of type {name}): {error} ({_summary(raw)})"
        raise answers.bad_request(message) from error


def decode_patch(media: str, raw: bytes) -> tuple[Any, list[str]]:
    """The content of a patch; that of an apply is YAML, of which JSON is a part."""
    _check_size(raw)
    if not media.endswith("+yaml"):
        try:
            return _from_json(raw)
        except ValueError as error:
            raise answers.bad_request(f"error decoding patch: {error}") from error
    with suppress(ValueError):
        body, duplicates = _from_json(raw)
        if not duplicates:
            return body, []
    try:
        return _from_yaml(raw)
    except ValueError as error:
        raise answers.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error


def findings(kind: ServedKind, obj: Obj, duplicates: list[str], unknown: list[str]) -> list[str]:
    """Duplicate and unknown fields as the server lists them: of a built-in kind in the order of the body."""
    said = [f'unknown field "{path}"' for path in unknown]
    if kind.custom or not duplicates or not duplicates[0].startswith("duplicate"):
        return [*duplicates, *said]
    # The fields of an unknown field are unknown to the decoder, and so is whether they occur twice.
    known = [one for one in duplicates if not _is_inside(one.split('"')[1], unknown)]
    places = {path: place for place, path in enumerate(_paths(obj, ""))}
    return sorted([*known, *said], key=lambda one: places.get(one.split('"')[1], len(places)))


def strict_error(found: list[str]) -> str:
    """The error of a strict decoder about these findings."""
    lines = [one for one in found if one.startswith("line ")]
    whole = ["\n  ".join(["yaml: unmarshal errors:", *lines])] if lines else []
    return "strict decoding error: " + ", ".join([*whole, *found[len(lines) :]])


def _is_inside(path: str, unknown: list[str]) -> bool:
    return any(path == outer or path.startswith((f"{outer}.", f"{outer}[")) for outer in unknown)


def _paths(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        inner = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    elif isinstance(value, list):
        inner = [(f"{path}[{place}]", item) for place, item in enumerate(value)]
    else:
        return []
    return [found for where, item in inner for found in (where, *_paths(item, where))]


def _check_size(raw: bytes) -> None:
    if len(raw) > LARGEST:
        raise answers.too_large(f"limit is {LARGEST}")


def check_depth(value: Any) -> None:
    """Raises ValueError for a value with more levels than the server's functions can walk."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            item
            for one in level
            if isinstance(one, (dict, list))
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise ValueError("exceeded max depth")


def _versioned(raw: bytes) -> tuple[Any, list[str]]:
    """JSON in which the decoder looks for apiVersion and kind first."""
    try:
        return _from_json(raw)
    except ValueError as error:
        raise ValueError(f"{_META_ERROR}{error}") from error


def _from_json(raw: bytes) -> tuple[Any, list[str]]:
    try:
        body = orjson.loads(raw)
        encoded = orjson.dumps(body)
    except (ValueError, TypeError):
        return _from_odd_json(raw)
    if raw.count(b"{") + raw.count(b"[") > _DEEPEST:
        check_depth(body)
    if _LONG in raw.translate(_DIGITS):
        body = _go_value(body)
    # Equal numbers of keys before and after: none was lost.
    if raw.count(b'":') == encoded.count(b'":') and not _SPACED.search(raw):
        return body, []
    return body, _duplicates(raw.decode())


def _from_odd_json(raw: bytes) -> tuple[Any, list[str]]:
    """JSON that orjson refuses: invalid, or with characters that Go replaces."""
    if wrong := syntax.error_in(raw.decode("latin-1")):
        raise ValueError(wrong)
    text = raw.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except RecursionError as error:
        raise ValueError("exceeded max depth") from error
    check_depth(body)
    return _go_value(body), _duplicates(text)


def _go_value(value: Any) -> Any:
    """A value as Go reads it: an integer of more than 64 bits is a float, and half a surrogate pair is replaced.

    Raises ValueError for what JSON does not have, such as a date or a set in YAML.
    """
    if isinstance(value, dict):
        return {_go_value(_go_key(key)): _go_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_go_value(item) for item in value]
    if isinstance(value, int) and not -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
        return _go_float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("json: cannot unmarshal number into Go value of type float64")
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise ValueError(f"json: unsupported type: {type(value).__name__}")


def _go_key(key: Any) -> str:
    """The keys of YAML may be numbers and truth values."""
    if isinstance(key, (str, bool, int, float)):
        return key if isinstance(key, str) else json.dumps(key)
    raise ValueError(f"json: unsupported map key of type: {type(key).__name__}")


def _go_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError as error:
        raise ValueError(f"json: cannot unmarshal number {number} into Go value of type float64") from error


class _Pairs(list[tuple[str, Any]]):
    """The entries of an object, also those that occur twice."""


def _duplicates(text: str) -> list[str]:
    found: dict[str, None] = {}
    _find_duplicates(json.loads(text, object_pairs_hook=_Pairs), "", found)
    return [f'duplicate field "{path}"' for path in found]


def _find_duplicates(value: Any, path: str, found: dict[str, None]) -> None:
    if not isinstance(value, _Pairs):
        for place, item in enumerate(value if isinstance(value, list) else ()):
            _find_duplicates(item, f"{path}[{place}]", found)
        return
    seen = set[str]()
    for key, item in value:
        inside = f"{path}.{key}" if path else key
        if key in seen:
            found[inside] = None
        seen.add(key)
        _find_duplicates(item, inside, found)


def _from_yaml(raw: bytes) -> tuple[Any, list[str]]:
    loader = Loader(raw)
    try:
        node = loader.get_single_node()
        if node is not None:
            _check_aliases(node)
        body = None if node is None else loader.construct_document(node)
        duplicates = [] if node is None else _double_keys(node)
    except RecursionError as error:
        raise ValueError("yaml: exceeded max depth") from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None or not error.problem_mark.line else f"line {error.problem_mark.line}: "
        raise ValueError(f"yaml: {line}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"yaml: {error}") from error
    finally:
        loader.dispose()
    check_depth(body)
    return _go_value(body), duplicates


def _check_aliases(root: yaml.Node) -> None:
    """Refuses a document that is small only because its aliases repeat, by the limits of Go's decoder."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        """The number of nodes without aliases; zero while it is counted."""
        if (known := sizes.get(id(node))) is not None:
            if not known:
                raise ValueError("yaml: an anchor's value contains itself")
            return known
        sizes[id(node)] = 0
        parts = node.value if isinstance(node, yaml.CollectionNode) else ()
        inner = (item for part in parts for item in (part if isinstance(part, tuple) else (part,)))
        sizes[id(node)] = 1 + sum(map(size, inner))
        return sizes[id(node)]

    whole = size(root)
    repeated = whole - len(sizes)
    allowed = 0.99 - 0.89 * min(1.0, max(0, whole - _MANY_NODES) / (9 * _MANY_NODES))
    if repeated > _FEW_ALIASED and whole > 10 * _FEW_ALIASED and repeated > allowed * whole:
        raise ValueError("yaml: document contains excessive aliasing")


def _double_keys(node: yaml.Node) -> list[str]:
    if isinstance(node, yaml.SequenceNode):
        return [line for item in node.value for line in _double_keys(item)]
    if not isinstance(node, yaml.MappingNode):
        return []
    found, seen = list[str](), set[str]()
    for key, item in node.value:
        if key.value in seen:
            found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
        seen.add(str(key.value))
        found += _double_keys(item)
    return found


def _checked(body: Any, raw: bytes, *, typed: bool) -> Obj:
    """The object, whose kind only typed resources know without being told."""
    body = {} if body is None else body
    if not isinstance(body, dict):
        given = _NAMES[type(body)]
        raise ValueError(f"{_META_ERROR}json: cannot unmarshal {given} into Go value of type {_TYPE_META}")
    for name in ("apiVersion", "kind"):
        if not isinstance(body.get(name), str | None):
            given = _NAMES[type(body[name])]
            raise ValueError(f"{_META_ERROR}json: cannot unmarshal {given} into Go struct field .{name} of type string")
    if not typed and not body.get("kind"):
        raise ValueError(f"Object 'Kind' is missing in '{raw.decode('utf-8', 'replace')}'")
    return body


def _summary(raw: bytes) -> str:
    if not raw:
        return "<empty>"
    shown = raw[:30].decode("utf-8", "replace") if raw.startswith(b"{") else raw[:30].hex()
    return f"{shown} ..." if len(raw) > 30 else shown
