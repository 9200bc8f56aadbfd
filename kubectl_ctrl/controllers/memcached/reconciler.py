"""What a Memcached means: its Deployment kept, its pods named, and the truth about both in its status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_ctrl import (
    DEPLOYMENTS,
    HPAS,
    PODS,
    REPLICASETS,
    ApiError,
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

# The name becomes the value of a pod label, and those end here; the Deployment's own name could be longer.
_LABEL_LIMIT = 63
_BY_TARGET = "target"
# An admission rule that is lifted tells nobody.
_LOOK_AGAIN = 30.0


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Bring one Memcached's Deployment and status to what its spec says."""
    memcached = await ctx.read.get(MEMCACHEDS, request.name, request.namespace)
    if memcached is None or is_deleting(memcached):
        return None  # the garbage collector removes the Deployment; under foreground deletion it must not come back
    if problem := _problem_of(memcached):
        await _report(ctx, memcached, _failed(*problem))
        return None
    live = await ctx.read.get(DEPLOYMENTS, request.name, request.namespace)
    hpa = await _hpa_of(ctx, request)
    try:
        ensured = await ctx.write.ensure(
            desired(memcached, live),
            owner=memcached,
            leave_out=("spec.replicas",) if hpa else (),
        )
    except NamespaceTerminating:
        raise
    except (Invalid, Forbidden, BadRequest) as error:
        return await _refused(ctx, memcached, error)
    if not ensured.ours:
        return await _taken(ctx, memcached, ensured.obj)
    return await _follow(ctx, memcached, ensured.obj, hpa)


def _problem_of(memcached: Obj) -> tuple[str, str] | None:
    """What in the Memcached itself can never work, as reason and message."""
    if memcached.get("spec", {}).get("size") is None:  # an older CRD allows that
        return "SizeMissing", "spec.size is missing; set it to the number of pods to run."
    if (length := len(name_of(memcached))) > _LABEL_LIMIT:
        return (
            "NameTooLong",
            f"The Memcached's name has {length} characters; a pod label may have {_LABEL_LIMIT}.",
        )
    return None


async def _refused(ctx: Context, memcached: Obj, error: ApiError) -> Result:
    """The server takes no such Deployment: say so in its words, and look again where only that can tell."""
    # What breaks a rule of the kind is told field by field. Policies and webhooks that say no choose their code.
    invalid = isinstance(error, Invalid) and any(cause.field for cause in error.causes)
    quota = "exceeded quota" in error.message
    reason = "Invalid" if invalid else "QuotaExceeded" if quota else "Denied"
    await _report(ctx, memcached, _failed(reason, error.message))
    if invalid or isinstance(error, Forbidden):
        raise error
    return Result(after=_LOOK_AGAIN, waiting_for="an admission rule to let the Deployment pass")


async def _taken(ctx: Context, memcached: Obj, deployment: Obj) -> Result | None:
    """The name is somebody else's: say so once, and wait for that Deployment to change."""
    name = name_of(deployment)
    owner = controller_of(deployment)
    if owner and owner["kind"] == MEMCACHEDS.kind and owner["name"] == name_of(memcached):
        # A Memcached of the same name was here before; what it owned is on its way out.
        waiting = f"Deployment {name!r} of the Memcached that had this name before to be deleted"
        await _report(ctx, memcached, _underway("WaitingForGarbageCollection", f"Waiting for {waiting}."))
        return Result(waiting_for=waiting)
    message = f'Resource "{name}" already exists and is not managed by Memcached'
    await _report(ctx, memcached, _failed("ErrResourceExists", message))
    return None


async def _follow(ctx: Context, memcached: Obj, deployment: Obj, hpa: Obj | None) -> Result | None:
    """Tell how far our Deployment is; its next step wakes us."""
    if is_deleting(deployment):
        waiting = f"Deployment {name_of(deployment)!r} to be deleted, to be made again"
        await _report(ctx, memcached, _underway("WaitingForDeletion", f"Waiting for {waiting}."))
        return Result(waiting_for=waiting)
    rollout = rollout_of(deployment)
    told = f"; their number is set by HorizontalPodAutoscaler {name_of(hpa)!r}" if hpa else ""
    kept = kept_selector(memcached, deployment)
    conditions = (
        _available(rollout, told),
        _progressing(rollout, name_of(deployment)),
        _degraded(rollout, "" if kept is None else _about_selector(memcached)),
    )
    await _report(ctx, memcached, conditions, ready=rollout.ready)
    return None if rollout.complete else Result(waiting_for=f"rollout {rollout.ready_of_latest}/{rollout.wanted}")


def _available(rollout: Rollout, told: str) -> Condition:
    counted = f"{rollout.ready_of_latest} of {rollout.wanted} pods of the latest spec are ready{told}."
    if not rollout.seen:
        words = f"Nothing is known yet of the {rollout.wanted} pods of the latest spec{told}."
        return Condition("Available", "False", reason="RollingOut", message=words)
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
        words = f"Deployment {name!r} is paused; `kubectl rollout resume deployment/{name}` lets it go on."
        return Condition("Progressing", "False", reason="DeploymentPaused", message=words)
    words = f"Deployment {name!r} is rolling out to {rollout.wanted} pods."
    return Condition("Progressing", "True", reason="RollingOut", message=words)


def _degraded(rollout: Rollout, note: str) -> Condition:
    if rollout.failure is not None:
        reason, message = rollout.failure
        return Condition("Degraded", "True", reason=reason, message=message)
    if rollout.stuck and not rollout.complete:
        return Condition("Degraded", "True", reason="ProgressDeadlineExceeded", message=rollout.stuck)
    return Condition("Degraded", "False", reason="SelectorKept" if note else "AsExpected", message=note)


def _about_selector(memcached: Obj) -> str:
    wanted = ",".join(f"{key}={value}" for key, value in own_labels(memcached).items())
    return f"The Deployment keeps its own selector: none can change. Delete it to have it made again with {wanted}."


def _failed(reason: str, message: str) -> tuple[Condition, ...]:
    return (
        Condition("Available", "False", reason=reason, message=message),
        Condition("Progressing", "False", reason=reason, message=message),
        Condition("Degraded", "True", reason=reason, message=message),
    )


def _underway(reason: str, message: str) -> tuple[Condition, ...]:
    return (
        Condition("Available", "False", reason=reason, message=message),
        Condition("Progressing", "True", reason=reason, message=message),
        Condition("Degraded", "False", reason="AsExpected"),
    )


async def _report(ctx: Context, memcached: Obj, conditions: tuple[Condition, ...], ready: int = 0) -> None:
    """Write the status where it says something new, and an event where that is what people wait for."""
    nodes = await _nodes(ctx, memcached)
    after = await ctx.write.conditions(memcached, *conditions, nodes=nodes, readyReplicas=ready)
    if version_of(after) != version_of(memcached):
        _tell(ctx, memcached, conditions)


def _tell(ctx: Context, memcached: Obj, conditions: tuple[Condition, ...]) -> None:
    available, _, degraded = conditions
    if available.status == "True" and not condition_is_true(memcached, "Available"):
        ctx.write.event(memcached, reason="Available", message=available.message)
    known = find_condition(memcached, "Degraded") or {}
    if degraded.status == "True" and (known.get("status"), known.get("reason")) != ("True", degraded.reason):
        ctx.write.event(memcached, type="Warning", reason=degraded.reason, message=degraded.message)


async def _nodes(ctx: Context, memcached: Obj) -> list[str]:
    """The pods at the end of the chain of owners, by UID at each link; what has finished is not in the cache."""
    pods: list[Obj] = []
    for deployment in await ctx.read.children(memcached, DEPLOYMENTS):
        for replicas in await ctx.read.children(deployment, REPLICASETS):
            pods += await ctx.read.children(replicas, PODS)
    return sorted(name_of(pod) for pod in pods if not is_deleting(pod))


async def _hpa_of(ctx: Context, request: Request) -> Obj | None:
    found: Sequence[Obj] = await ctx.read.indexed(HPAS, _BY_TARGET, f"{request.namespace}/{request.name}")
    return found[0] if found else None


def memcached_of_that_name(deployment: Obj, cached: Cached) -> Iterable[Request]:
    """The Memcached that wants this Deployment's name, whoever owns it."""
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
    .watches(DEPLOYMENTS, to=memcached_of_that_name)
    .watches(HPAS, to=memcached_of_hpa)
    .index(HPAS, _BY_TARGET, by_scale_target(DEPLOYMENTS))
    .caching(REPLICASETS, labels=CR_LABEL, metadata_only=True)
    .caching(PODS, labels=CR_LABEL, fields="status.phase!=Succeeded,status.phase!=Failed", metadata_only=True)
)
