"""The types with metadata.generation, by their recorded objects: for others a predicate on it passes every change."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import Resource

# The number of versions of a type to try: not every version that triggered an attempt was read and stored.
_MOST = 20


def with_generation(recording: Recording, cluster: str, attempts: Sequence[RecordedAttempt]) -> frozenset[Resource]:
    """The types of the modifications that triggered these attempts, if a stored object has a generation."""
    tried: dict[Resource, int] = {}
    found: set[Resource] = set()
    for cause in (cause for one in reversed(attempts) for cause in one.causes):
        resource = cause.resource
        if resource is None or cause.kind is not CauseKind.MODIFIED or tried.get(resource, 0) >= _MOST:
            continue
        tried[resource] = tried.get(resource, 0) + 1
        obj = recording.body(cluster, cause.uid, cause.new_version)
        if obj is not None:
            tried[resource] = _MOST
            if "generation" in obj["metadata"]:
                found.add(resource)
    return frozenset(found)
