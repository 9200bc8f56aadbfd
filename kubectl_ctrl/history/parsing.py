"""JSON out of a recording, and what it is called where it is none."""

from __future__ import annotations

import json
from typing import Any

import orjson


class Damaged(Exception):
    """What was read is not what was written: the disk's doing, or somebody's."""


def loaded(document: bytes | str) -> Any:
    """The JSON of a document, without the values of the model: completion has no time to load those."""
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        return json.loads(document)  # it also takes what orjson could not write
