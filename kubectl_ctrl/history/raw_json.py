"""Reads the JSON of a recording's documents, and names the error for one that is not intact."""

from __future__ import annotations

import json
from typing import Any

import orjson


class Damaged(Exception):
    """The document read is not the document written: the disk or another program changed it."""


def loaded(document: bytes | str) -> Any:
    """The JSON of a document, without the values of the model: completion has no time to load those."""
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        return json.loads(document)  # it also takes what orjson could not write
