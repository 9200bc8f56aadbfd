"""The reconciler of Memcacheds: the Deployment, and its state and pods in the status."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl import (
    DEPLOYMENTS,
    HPAS,
    PODS,
    REPLICASETS,
    BadRequest,
    Cached,
    Condition,
    Context,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    Obj,
    Request,
    Resource,
    Result,
    by_scale_target,
    condition_is_true,
    controller,
    controller_of,
    find_condition,
    is_deleting,
    key_of,
    name_of,
    namespace_of,
    owner_changed,
    scale_target,
    version_of,
)
from kubectl_ctrl.controllers.memcached.deployment import (
    CR_LABEL,
    Rollout,
    desired,
    kept_selector,
    own_labels,
    rollout_of,
)

MEMCACHEDS = Resource("cache.example.com", "v1alpha1", "memcacheds", "Memcached")

# The name becomes the value of a pod label; the limit of label values is lower than that of Deployment names.
_LABEL_LIMIT = 63
_BY_TARGET = "target"
# Seconds; nothing is sent when an admission rule is removed.
_RETRY_AFTER = 30.0


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Make one Memcached's Deployment and status match its spec."""
    memcached = await ctx.read.get(MEMCACHEDS, request.name, request.namespace)
    if memcached is None or is_deleting(memcached):
        return None  # the garbage collector removes the Deployment; under foreground deletion it must not come back
    if problem := _spec_error(memcached):
        await _report(ctx, memcached, _failed(*problem))
        return None
    live = await ctx.read.get(DEPLOYMENTS, request.name, request.namespace)
    hpa = next(iter(await ctx.read.indexed(HPAS, _BY_TARGET, f"{request.namespace}/{request.name}")), None)
    try:
        ensured = await ctx.write.ensure(
            desired(memcached, live), owner=memcached, leave_out=("spec.replicas",) if hpa else ()
        )
    except NamespaceTerminating:
        raise
    except (Invalid, Forbidden, BadRequest) as error:
        # A broken rule of the kind comes with a cause for each field. Policies and webhooks choose their code freely.
        invalid = isinstance(error, Invalid) and any(cause.field for cause in error.causes)
        reason = "Invalid" if invalid else "QuotaExceeded" if "exceeded quota" in error.message else "Denied"
        await _report(ctx, memcached, _failed(reason, error.message))
        if invalid or isinstance(error, Forbidden):
            raise
        return Result(_RETRY_AFTER, waiting_for="admission to accept the Deployment")
    if not ensured.ours:
        return await _report_conflict(ctx, memcached, ensured.obj)
    return await _report_rollout(ctx, memcached, ensured.obj, hpa)


def _spec_error(memcached: Obj) -> tuple[str, str] | None:
    """An error in the Memcached that no retry can solve, as reason and message."""
    if memcached.get("spec", {}).get("size") is None:  # an older CRD does not require it
        return "SizeMissing", "spec.size is missing; set it to the number of pods to run."
    if (length := len(name_of(memcached))) > _LABEL_LIMIT:
        return "NameTooLong", f"The Memcached's name has {length} characters; a pod label may have {_LABEL_LIMIT}."
    return None


async def _report_conflict(ctx: Context, memcached: Obj, deployment: Obj) -> Result | None:
    """The existing Deployment is not the Memcached's: report it, and wait for that Deployment to change."""
    name = name_of(deployment)
    owner = controller_of(deployment)
    if owner and owner["kind"] == MEMCACHEDS.kind and owner["name"] == name_of(memcached):
        # Owner references name a UID: this Deployment belongs to a deleted Memcached of the same name.
        waiting = f"the garbage collector to delete Deployment {name!r} of a former Memcached with this name"
        await _report(ctx, memcached, _in_progress("WaitingForGarbageCollection", f"Waiting for {waiting}."))
        return Result(waiting_for=waiting)
    message = f'Resource "{name}" already exists and is not managed by Memcached'
    await _report(ctx, memcached, _failed("ErrResourceExists", message))
    return None


async def _report_rollout(ctx: Context, memcached: Obj, deployment: Obj, hpa: Obj | None) -> Result | None:
    """Report the state of the Deployment; each change of it triggers the next reconcile."""
    if is_deleting(deployment):
        waiting = f"the deletion of Deployment {name_of(deployment)!r}, which is then recreated"
        await _report(ctx, memcached, _in_progress("WaitingForDeletion", f"Waiting for {waiting}."))
        return Result(waiting_for=waiting)
    rollout = rollout_of(deployment)
    scaled_by = f"; their number is set by HorizontalPodAutoscaler {name_of(hpa)!r}" if hpa else ""
    conditions = (
        _available(rollout, scaled_by),
        _progressing(rollout, name_of(deployment)),
        _degraded(rollout, _selector_note(memcached, deployment)),
    )
    await _report(ctx, memcached, conditions, ready=rollout.ready)
    return None if rollout.complete else Result(waiting_for=f"rollout {rollout.ready_of_latest}/{rollout.wanted}")


def _available(rollout: Rollout, scaled_by: str) -> Condition:
    counted = f"{rollout.ready_of_latest} of {rollout.wanted} pods of the latest spec are ready{scaled_by}."
    if not rollout.seen:
        message = f"The Deployment controller has not observed the latest spec of {rollout.wanted} pods yet{scaled_by}."
        return Condition("Available", "False", reason="RollingOut", message=message)
    if rollout.available:
        return Condition("Available", "True", reason="MinimumReplicasReady", message=counted)
    reason = "ProgressDeadlineExceeded" if rollout.stuck else "RollingOut"
    return Condition("Available", "False", reason=reason, message=counted)


def _progressing(rollout: Rollout, name: str) -> Condition:
    if rollout.complete:
        return Condition("Progressing", "False", reason="Complete", message=f"Deployment {name!r} is rolled out.")
    if rollout.stuck:
        return Condition("Progressing", "False", reason="ProgressDeadlineExceeded", message=rollout.stuck)
    if rollout.paused:
        message = f"Deployment {name!r} is paused; `kubectl rollout resume deployment/{name}` resumes it."
        return Condition("Progressing", "False", reason="DeploymentPaused", message=message)
    message = f"Deployment {name!r} is rolling out to {rollout.wanted} pods."
    return Condition("Progressing", "True", reason="RollingOut", message=message)


def _degraded(rollout: Rollout, note: str) -> Condition:
    if rollout.failure is not None:
        reason, message = rollout.failure
        return Condition("Degraded", "True", reason=reason, message=message)
    if rollout.stuck and not rollout.complete:
        return Condition("Degraded", "True", reason="ProgressDeadlineExceeded", message=rollout.stuck)
    return Condition("Degraded", "False", reason="SelectorKept" if note else "AsExpected", message=note)


def _selector_note(memcached: Obj, deployment: Obj) -> str:
    if kept_selector(memcached, deployment) is None:
        return ""
    wanted = ",".join(f"{key}={value}" for key, value in own_labels(memcached).items())
    return f"The Deployment keeps its selector, which is immutable. Delete the Deployment to recreate it with {wanted}."


def _failed(reason: str, message: str) -> tuple[Condition, ...]:
    return (
        Condition("Available", "False", reason=reason, message=message),
        Condition("Progressing", "False", reason=reason, message=message),
        Condition("Degraded", "True", reason=reason, message=message),
    )


def _in_progress(reason: str, message: str) -> tuple[Condition, ...]:
    return (
        Condition("Available", "False", reason=reason, message=message),
        Condition("Progressing", "True", reason=reason, message=message),
        Condition("Degraded", "False", reason="AsExpected"),
    )


async def _report(ctx: Context, memcached: Obj, conditions: tuple[Condition, ...], ready: int = 0) -> None:
    """Write the status if it changed, and events when the Memcached becomes available or degraded."""
    nodes = await _nodes(ctx, memcached)
    after = await ctx.write.conditions(memcached, *conditions, nodes=nodes, readyReplicas=ready)
    if version_of(after) == version_of(memcached):
        return
    available, _, degraded = conditions
    if available.status == "True" and not condition_is_true(memcached, "Available"):
        ctx.write.event(memcached, reason="Available", message=available.message)
    known = find_condition(memcached, "Degraded") or {}
    if degraded.status == "True" and (known.get("status"), known.get("reason")) != ("True", degraded.reason):
        ctx.write.event(memcached, type="Warning", reason=degraded.reason, message=degraded.message)


async def _nodes(ctx: Context, memcached: Obj) -> list[str]:
    """The pods of the Memcached, followed by UID from owner to owner; finished pods are not in the cache."""
    pods: list[Obj] = []
    for deployment in await ctx.read.children(memcached, DEPLOYMENTS):
        for replicas in await ctx.read.children(deployment, REPLICASETS):
            pods += await ctx.read.children(replicas, PODS)
    return sorted(name_of(pod) for pod in pods if not is_deleting(pod))


def memcached_named_like(deployment: Obj, cached: Cached) -> Iterable[Request]:
    """The Memcached of this Deployment's name, whoever owns the Deployment."""
    found = cached.get(MEMCACHEDS, name_of(deployment), namespace_of(deployment))
    return () if found is None else (key_of(found),)


def memcached_of_hpa(hpa: Obj, cached: Cached) -> Iterable[Request]:
    """The Memcached whose Deployment this autoscaler scales."""
    target, namespace = scale_target(hpa, DEPLOYMENTS), namespace_of(hpa)
    if target and cached.get(MEMCACHEDS, target, namespace) is not None:
        yield Request(namespace, target)


CONTROLLER = (
    controller("memcached", reconcile)
    .for_(MEMCACHEDS)
    .owns(DEPLOYMENTS)
    .owns(REPLICASETS, through=(DEPLOYMENTS,), when=owner_changed)
    .owns(PODS, through=(REPLICASETS, DEPLOYMENTS), when=owner_changed)
    .watches(DEPLOYMENTS, to=memcached_named_like)
    .watches(HPAS, to=memcached_of_hpa)
    .index(HPAS, _BY_TARGET, by_scale_target(DEPLOYMENTS))
    .caching(REPLICASETS, labels=CR_LABEL, metadata_only=True)
    .caching(PODS, labels=CR_LABEL, fields="status.phase!=Succeeded,status.phase!=Failed", metadata_only=True)
)
