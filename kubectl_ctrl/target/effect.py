"""What a verb can do to a cluster."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """What a verb can do to a cluster; write and destroy pass the guard."""

    NONE = "none"
    READ = "read"
    DRY_RUN = "dry-run"
    WRITE = "write"
    DESTROY = "destroy"
