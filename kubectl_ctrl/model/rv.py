"""Comparing resourceVersions: the one place that looks inside them."""

from __future__ import annotations

from enum import StrEnum


class Order(StrEnum):
    """How the first of two versions stands to the second."""

    OLDER = "older"
    EQUAL = "equal"
    NEWER = "newer"
    UNKNOWN = "unknown"


def compare(a: str, b: str) -> Order:
    """How `a` stands to `b`; only decimal numbers have an order, and a missing version equals nothing."""
    if not a or not b:
        return Order.UNKNOWN
    if a == b:
        return Order.EQUAL
    if not (_comparable(a) and _comparable(b)):
        return Order.UNKNOWN
    return Order.OLDER if (len(a), a) < (len(b), b) else Order.NEWER


def _comparable(version: str) -> bool:
    # A leading zero is never written by a server, and would break "longer is larger"; Unicode has digits of its own.
    return version.isascii() and version.isdecimal() and (version[0] != "0" or version == "0")
