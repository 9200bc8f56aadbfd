"""The reconciler of Foos: the desired Deployment, its ownership, renames, and the status."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl import (
    DEPLOYMENTS,
    HPAS,
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
    UsageError,
    by_scale_target,
    controlled_by,
    controller,
    controller_of,
    find_condition,
    generation_of,
    is_deleting,
    key_of,
    name_of,
    namespace_of,
    scale_target,
    uid_of,
    version_of,
)

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")

# A Foo's name becomes the value of a pod label; this is the limit of label values.
_LABEL_LIMIT = 63
# The Deployment's ReplicaSets append a dash and a hash of ten characters to its name.
_NAME_LIMIT = 253 - 11
_BY_DEPLOYMENT = "deploymentName"
_BY_TARGET = "target"
# The original's container with another pull policy. The default for `latest` is Always, which would pull the image even
# if it was loaded into the nodes of a local cluster.
_CONTAINER = {"name": "nginx", "image": "nginx:latest", "imagePullPolicy": "IfNotPresent"}
# Seconds; nothing is sent when an admission rule is removed.
_RETRY_AFTER = 30.0
# The fields of the status that are copied from the Deployment.
_COUNTS = ("availableReplicas", "replicas", "selector")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Make one Foo's Deployment and status match its spec."""
    foo = await ctx.read.get(FOOS, request.name, request.namespace)
    if foo is None or is_deleting(foo):
        return None  # the garbage collector removes the Deployment; under foreground deletion it must not come back
    if problem := _spec_error(foo):
        await _report(ctx, foo, _not_ready(*problem))
        return None
    wanted = foo["spec"]["deploymentName"]
    live = await ctx.read.get(DEPLOYMENTS, wanted, request.namespace)
    hpa = next(iter(await ctx.read.indexed(HPAS, _BY_TARGET, f"{request.namespace}/{wanted}")), None)
    try:
        ensured = await ctx.write.ensure(_deployment(foo, live), owner=foo, leave_out=("spec.replicas",) if hpa else ())
    except NamespaceTerminating:
        raise
    except UsageError as error:  # the name cannot be part of a URL path, so no request was sent
        await _report(ctx, foo, _not_ready("Invalid", error.message))
        raise
    except (Invalid, Forbidden, BadRequest) as error:
        # A broken rule of the kind comes with a cause for each field. Policies and webhooks choose their code freely.
        invalid = isinstance(error, Invalid) and bool(error.causes)
        reason = "Invalid" if invalid else "QuotaExceeded" if "exceeded quota" in error.message else "Denied"
        await _report(ctx, foo, _not_ready(reason, error.message))
        if invalid or isinstance(error, Forbidden):
            raise
        return Result(_RETRY_AFTER, waiting_for="admission to accept the Deployment")
    if not ensured.ours:
        return await _report_conflict(ctx, foo, ensured.obj)
    await _report(ctx, foo, _conditions(ensured.obj, hpa), _counts(ensured.obj))
    return await _delete_former(ctx, foo, ensured.obj)


def _spec_error(foo: Obj) -> tuple[str, str] | None:
    """An error in the Foo that no retry can solve, as reason and message."""
    if not foo.get("spec", {}).get("deploymentName"):
        return "DeploymentNameMissing", "spec.deploymentName is empty; set it to the name of the Deployment to create."
    if len(name_of(foo)) > _LABEL_LIMIT:
        return (
            "NameTooLong",
            f"The Foo's name has {len(name_of(foo))} characters; a pod label may have {_LABEL_LIMIT}.",
        )
    if (length := len(foo["spec"]["deploymentName"])) > _NAME_LIMIT:
        return (
            "DeploymentNameTooLong",
            f"spec.deploymentName has {length} characters; with the hash of its ReplicaSets at most {_NAME_LIMIT} fit.",
        )
    return None


def _deployment(foo: Obj, live: Obj | None) -> Obj:
    """The fields of the Deployment that this controller owns."""
    labels = {"app": "nginx", "controller": name_of(foo)}
    if live is not None and controlled_by(live, uid_of(foo)):
        # A selector is immutable: keep the existing one, whoever set it.
        labels = live["spec"]["selector"].get("matchLabels") or labels
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": foo["spec"]["deploymentName"], "namespace": namespace_of(foo)},
        "spec": {
            "replicas": _replicas(foo),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [_CONTAINER]},
            },
        },
    }


async def _report_conflict(ctx: Context, foo: Obj, deployment: Obj) -> Result | None:
    """The existing Deployment is not the Foo's: report it once, and wait for that Deployment to change."""
    name = name_of(deployment)
    owner = controller_of(deployment)
    if owner and owner["kind"] == "Foo" and owner["name"] == name_of(foo):
        # Owner references name a UID: this Deployment belongs to a deleted Foo of the same name.
        waiting = f"the garbage collector to delete Deployment {name!r} of a former Foo with this name"
        await _report(ctx, foo, _not_ready("WaitingForGarbageCollection", f"Waiting for {waiting}."))
        return Result(waiting_for=waiting)
    message = f'Resource "{name}" already exists and is not managed by Foo'
    known = find_condition(foo, "Ready")
    if not known or (known.get("reason"), known.get("message")) != ("ErrResourceExists", message):
        ctx.write.event(foo, type="Warning", reason="ErrResourceExists", message=message)
    await _report(ctx, foo, _not_ready("ErrResourceExists", message))
    return None


async def _delete_former(ctx: Context, foo: Obj, deployment: Obj) -> Result | None:
    """Delete Deployments of former names once the current one is available; until then, wait."""
    if not _is_available(deployment):
        return Result(waiting_for=f"rollout {_available(deployment)}/{_replicas(deployment)}")
    for child in await ctx.read.children(foo, DEPLOYMENTS):
        if name_of(child) != name_of(deployment) and not is_deleting(child):
            await ctx.write.delete(child)
            ctx.write.event(foo, reason="Deleted", message=f'Deleted deployment "{name_of(child)}"')
    return None


def _replicas(obj: Obj) -> int:
    """The wanted replicas of a Foo or a Deployment; both default to 1."""
    count = obj["spec"].get("replicas")
    return 1 if count is None else int(count)


def _available(deployment: Obj) -> int:
    return int(deployment.get("status", {}).get("availableReplicas") or 0)


def _counts(deployment: Obj) -> Obj:
    """The fields of the Foo's status that are copied from the Deployment; the scale subresource shows them."""
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    return {
        "availableReplicas": _available(deployment),
        "replicas": int(deployment.get("status", {}).get("replicas") or 0),
        "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
    }


def _is_available(deployment: Obj) -> bool:
    """Whether the Deployment controller has observed the latest spec and enough updated pods are available."""
    status = deployment.get("status", {})
    wanted = _replicas(deployment)
    seen = int(status.get("observedGeneration") or 0) >= generation_of(deployment)
    return seen and int(status.get("updatedReplicas") or 0) >= wanted and _available(deployment) >= wanted


def _conditions(deployment: Obj, hpa: Obj | None) -> tuple[Condition, ...]:
    name, wanted = name_of(deployment), _replicas(deployment)
    if _is_available(deployment):
        scaled_by = f"; their number is set by HorizontalPodAutoscaler {name_of(hpa)!r}" if hpa else ""
        return (
            Condition(
                "Ready",
                "True",
                reason="Available",
                message=f"Deployment {name!r} has {wanted} available replicas{scaled_by}.",
            ),
            Condition("Progressing", "False", reason="Complete", message=f"Deployment {name!r} is rolled out."),
        )
    stuck = find_condition(deployment, "Progressing")
    if stuck and stuck.get("reason") == "ProgressDeadlineExceeded":
        return (
            Condition(
                "Ready",
                "False",
                reason="ProgressDeadlineExceeded",
                message=f"Deployment {name!r} does not become available.",
            ),
            Condition(
                "Progressing",
                "False",
                reason="ProgressDeadlineExceeded",
                message=str(stuck.get("message") or "The progress deadline was exceeded."),
            ),
        )
    waiting = f"Deployment {name!r} is rolling out to {wanted} replicas."
    return (
        Condition("Ready", "False", reason="RollingOut", message=waiting),
        Condition("Progressing", "True", reason="RollingOut", message=waiting),
    )


def _not_ready(reason: str, message: str) -> tuple[Condition, ...]:
    return (
        Condition("Ready", "False", reason=reason, message=message),
        Condition("Progressing", "False", reason=reason, message=message),
    )


async def _report(ctx: Context, foo: Obj, conditions: tuple[Condition, ...], counts: Obj | None = None) -> None:
    """Write the conditions, and an event when they make the Foo ready. Without `counts` the last ones stay."""
    before = foo.get("status") or {}
    known = {name: before[name] for name in _COUNTS if name in before}
    after = await ctx.write.conditions(foo, *conditions, **(known if counts is None else counts))
    if conditions[0].status == "True" and version_of(after) != version_of(foo):
        ctx.write.event(foo, reason="Synced", message="Foo synced successfully")


def _deployment_key(foo: Obj) -> Iterable[str]:
    name = foo.get("spec", {}).get("deploymentName")
    return (f"{namespace_of(foo)}/{name}",) if name else ()


def _foos_naming(deployment: str, namespace: str, cached: Cached) -> Iterable[Request]:
    return map(key_of, cached.indexed(FOOS, _BY_DEPLOYMENT, f"{namespace}/{deployment}"))


def foos_naming_deployment(deployment: Obj, cached: Cached) -> Iterable[Request]:
    """The Foos that name this Deployment, whoever owns it."""
    return _foos_naming(name_of(deployment), namespace_of(deployment), cached)


def foos_of_hpa(hpa: Obj, cached: Cached) -> Iterable[Request]:
    """The Foos whose Deployment this autoscaler scales."""
    target = scale_target(hpa, DEPLOYMENTS)
    return _foos_naming(target, namespace_of(hpa), cached) if target else ()


CONTROLLER = (
    controller("foo", reconcile)
    .for_(FOOS)
    .owns(DEPLOYMENTS)
    .watches(DEPLOYMENTS, to=foos_naming_deployment)
    .watches(HPAS, to=foos_of_hpa)
    .index(FOOS, _BY_DEPLOYMENT, _deployment_key)
    .index(HPAS, _BY_TARGET, by_scale_target(DEPLOYMENTS))
)
