"""Which types count a generation, as their recorded objects show: a filter on it holds back nothing of any other."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.record import Recorded
from kubectl_ctrl.model.resources import Resource

# So many objects of a type are looked for: not every one that woke somebody was read, and kept.
_MOST = 20


def counted(recording: Recording, cluster: str, attempts: Sequence[Recorded]) -> frozenset[Resource]:
    """The types of what woke these attempts, as far as an object of theirs that was kept has a generation."""
    looked: dict[Resource, int] = {}
    found: set[Resource] = set()
    for cause in (cause for one in reversed(attempts) for cause in one.causes):
        resource = cause.resource
        if resource is None or cause.kind is not CauseKind.MODIFIED or looked.get(resource, 0) >= _MOST:
            continue
        looked[resource] = looked.get(resource, 0) + 1
        obj = recording.body(cluster, cause.uid, cause.new_version)
        if obj is not None:
            looked[resource] = _MOST
            if "generation" in obj["metadata"]:
                found.add(resource)
    return frozenset(found)
