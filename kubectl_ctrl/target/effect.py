"""The effects that a verb can have on a cluster."""

from __future__ import annotations

from enum import StrEnum


class CommandEffect(StrEnum):
    """The guard checks write and destroy."""

    NONE = "none"
    READ = "read"
    DRY_RUN = "dry-run"
    WRITE = "write"
    DESTROY = "destroy"
