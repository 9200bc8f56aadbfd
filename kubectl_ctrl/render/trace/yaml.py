"""The document of `-o json` as YAML, piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render.trace.json import fields

# libyaml's emitter is ten times as fast, where PyYAML was built with it.
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
# Lone surrogates, which JSON can contain as \ud800 and YAML cannot.
_HALVES = re.compile("[\ud800-\udfff]")


def document(story: Story) -> Iterator[str]:
    for name, value in fields(story):
        if not isinstance(value, Iterator):
            yield _dumped({name: value})
            continue
        empty = True
        for item in value:
            yield (f"{name}:\n" if empty else "") + _dumped([item])
            empty = False
        if empty:
            yield f"{name}: []\n"


def _dumped(value: Any) -> str:
    # ASCII, like the JSON: characters that reorder text or control a terminal are escaped.
    return str(yaml.dump(_whole(value), Dumper=_Dumper, sort_keys=False, width=4096))


def _whole(value: Any) -> Any:
    """A copy: the dumper writes anchors for shared parts. Lone surrogates are replaced."""
    match value:
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case str():
            return _HALVES.sub("\ufffd", value)
    return value
