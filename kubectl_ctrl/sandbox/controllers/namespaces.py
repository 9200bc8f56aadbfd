"""What is left in a namespace that is being deleted, and how its status reports that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubectl_ctrl.model.objects import Obj

# For each condition: the reason and message of its absence.
_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def with_conditions(status: Obj, left: Iterable[tuple[str, Obj]], now: str) -> Obj:
    """The status with the conditions of a deletion; `left` has the table and state of each remaining object."""
    found = list(left)
    tables = Counter(table if "." in table else f"{table}." for table, _ in found)
    finalizers = Counter(name for _, obj in found for name in obj["metadata"].get("finalizers") or ())
    trouble: dict[str, tuple[str, str]] = {}
    if tables:
        listed = ", ".join(sorted(f"{table} has {count} resource instances" for table, count in tables.items()))
        trouble["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if finalizers:
        listed = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in finalizers.items()))
        words = f"Some content in the namespace has finalizers remaining: {listed}"
        trouble["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", words)
    before = {one["type"]: one for one in status.get("conditions") or ()}
    conditions = [_condition(kind, trouble.get(kind), before.pop(kind, None), now) for kind in _FINE]
    return {**status, "conditions": [*before.values(), *conditions]}


def _condition(kind: str, trouble: tuple[str, str] | None, before: Obj | None, now: str) -> Obj:
    reason, message = trouble or _FINE[kind]
    status = "True" if trouble else "False"
    since = before["lastTransitionTime"] if before is not None and before["status"] == status else now
    return {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
