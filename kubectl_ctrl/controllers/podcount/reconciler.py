"""What a ReplicaSet's label says: which pods count, and when the label is written."""

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

# A pod that has ended counts no more, and is as good as gone.
_COUNTED = "status.phase!=Succeeded,status.phase!=Failed"
# Seconds between two writes for one ReplicaSet; its first one comes at once.
_PAUSE = 3.0


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Make one ReplicaSet's label say how many pods it has."""
    replicaset = await ctx.read.get(REPLICASETS, request.name)
    if replicaset is None or is_deleting(replicaset):
        return None
    pods = await ctx.read.children(replicaset, PODS)
    count = str(sum(not is_deleting(pod) for pod in pods))
    if labels_of(replicaset).get(LABEL) == count:
        return None
    if wait := _left_to_wait(replicaset, ctx.now()):
        return Result(wait, waiting_for="its pods to come to rest")
    await _label(ctx, replicaset, count)
    return None


async def undo(ctx: Context, request: Request) -> Result | None:
    """Take the label away."""
    replicaset = await ctx.read.get(REPLICASETS, request.name)
    if replicaset is not None and LABEL in labels_of(replicaset):
        await _label(ctx, replicaset, None)
    return None


async def _label(ctx: Context, replicaset: Obj, value: str | None) -> None:
    # Of any version: its own controller writes it with every pod, and the number depends on none of that.
    change = {"metadata": {"labels": {LABEL: value}}}
    await ctx.write.patch(replicaset, change, resource=REPLICASETS, any_version=True)


def _left_to_wait(replicaset: Obj, now: float) -> float:
    """Seconds until the label may be written again; 0.0 when it may be.

    When it was written last is what the server noted, so a restart does not forget it. Its clock may differ from ours:
    the wait is at most twice the pause, and none when the clocks are further apart than that.
    """
    noted = _written_at(replicaset)
    if noted is None or abs(now - noted) >= _PAUSE:
        return 0.0
    return _PAUSE - (now - noted)


def _written_at(replicaset: Obj) -> float | None:
    """When this controller last wrote the ReplicaSet, in the server's time and to the second."""
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
