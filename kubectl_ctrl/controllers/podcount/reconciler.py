"""The reconciler of the label: which pods count, and when the label is written."""

from __future__ import annotations

from datetime import datetime

from kubectl_ctrl import (
    PODS,
    REPLICASETS,
    Context,
    Obj,
    Request,
    Result,
    controller,
    is_deleting,
    labels_changed,
    labels_of,
    owner_changed,
)

LABEL = "pod-count"

# A finished pod does not count.
_COUNTED = "status.phase!=Succeeded,status.phase!=Failed"
# Seconds between two writes of one ReplicaSet; the first is immediate.
_PAUSE = 3.0


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Make one ReplicaSet's label match its number of pods."""
    replicaset = await ctx.read.get(REPLICASETS, request.name)
    if replicaset is None or is_deleting(replicaset):
        return None
    pods = await ctx.read.children(replicaset, PODS)
    count = str(sum(not is_deleting(pod) for pod in pods))
    if labels_of(replicaset).get(LABEL) == count:
        return None
    if wait := _left_to_wait(replicaset, ctx.now()):
        return Result(wait, waiting_for="its pods to settle")
    await _label(ctx, replicaset, count)
    return None


async def undo(ctx: Context, request: Request) -> Result | None:
    """Remove the label."""
    replicaset = await ctx.read.get(REPLICASETS, request.name)
    if replicaset is not None and LABEL in labels_of(replicaset):
        await _label(ctx, replicaset, None)
    return None


async def _label(ctx: Context, replicaset: Obj, value: str | None) -> None:
    # Without a resourceVersion: the ReplicaSet controller writes the object with every pod, and none of that matters
    # here.
    change = {"metadata": {"labels": {LABEL: value}}}
    await ctx.write.patch(replicaset, change, resource=REPLICASETS, any_version=True)


def _left_to_wait(replicaset: Obj, now: float) -> float:
    """Seconds until the label may be written again; 0.0 when it may be written now.

    The time of the last write is the server's, from managedFields, so it survives a restart. The server's clock may
    differ from the local one: the wait is at most twice the pause, and 0 when they differ by more than the pause.
    """
    noted = _written_at(replicaset)
    if noted is None or abs(now - noted) >= _PAUSE:
        return 0.0
    return _PAUSE - (now - noted)


def _written_at(replicaset: Obj) -> float | None:
    """When this controller last wrote the ReplicaSet: the server's time, in whole seconds."""
    times = [
        entry["time"]
        for entry in replicaset["metadata"].get("managedFields") or ()
        if entry.get("manager") == CONTROLLER.field_manager and entry.get("time")
    ]
    return datetime.fromisoformat(max(times)).timestamp() if times else None


CONTROLLER = (
    controller("podcount", reconcile)
    .for_(REPLICASETS, when=labels_changed)
    .owns(PODS, when=owner_changed)
    .caching(REPLICASETS, metadata_only=True)
    .caching(PODS, fields=_COUNTED, metadata_only=True)
    .cleanup(undo)
)
