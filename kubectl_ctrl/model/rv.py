"""Comparing resourceVersions. No other module interprets them."""

from __future__ import annotations

from enum import StrEnum


class VersionOrder(StrEnum):
    OLDER = "older"
    EQUAL = "equal"
    NEWER = "newer"
    UNKNOWN = "unknown"


def compare(a: str, b: str) -> VersionOrder:
    """The order of `a` relative to `b`. Only decimal numbers are ordered; a missing version is UNKNOWN."""
    if not a or not b:
        return VersionOrder.UNKNOWN
    if a == b:
        return VersionOrder.EQUAL
    if not (_comparable(a) and _comparable(b)):
        return VersionOrder.UNKNOWN
    return VersionOrder.OLDER if (len(a), a) < (len(b), b) else VersionOrder.NEWER


def _comparable(version: str) -> bool:
    # Not a leading zero, with which a longer text might be a smaller number; no other digits of Unicode.
    return version.isascii() and version.isdecimal() and (version[0] != "0" or version == "0")
