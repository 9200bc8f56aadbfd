"""What a Foo means: desired Deployment, ownership, rename, status."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl import (
    DEPLOYMENTS,
    HPAS,
    ApiError,
    BadRequest,
    Cached,
    Condition,
    Context,
    Ensured,
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

# A Foo's name becomes the value of a pod label, and those end here.
_LABEL_LIMIT = 63
# The names of its ReplicaSets add a dash and a hash of ten characters.
_NAME_LIMIT = 253 - 11
_BY_DEPLOYMENT = "deploymentName"
_BY_TARGET = "target"
# As the original's, but for the policy: of a `latest` it is Always unless it is said, and an image that was loaded into
# the nodes of a local cluster would be asked of a registry all the same.
_CONTAINER = {"name": "nginx", "image": "nginx:latest", "imagePullPolicy": "IfNotPresent"}
# Seconds; an admission rule that is lifted tells nobody.
_LOOK_AGAIN = 30.0
# Of a status: what is told in the Deployment's place.
_COUNTS = ("availableReplicas", "replicas", "selector")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Bring one Foo's Deployment and status to what its spec says."""
    foo = await ctx.read.get(FOOS, request.name, request.namespace)
    if foo is None or is_deleting(foo):
        return None  # the garbage collector removes the Deployment; under foreground deletion it must not come back
    if problem := _problem_of(foo):
        await _report(ctx, foo, _not_ready(*problem))
        return None
    wanted = foo["spec"]["deploymentName"]
    live = await ctx.read.get(DEPLOYMENTS, wanted, request.namespace)
    hpa = await _hpa_of(ctx, request.namespace, wanted)
    try:
        ensured = await ctx.write.ensure(_deployment(foo, live), owner=foo, leave_out=("spec.replicas",) if hpa else ())
    except NamespaceTerminating:
        raise
    except UsageError as error:  # a name that no path can hold is not even sent
        await _report(ctx, foo, _not_ready("Invalid", error.message))
        raise
    except (Invalid, Forbidden, BadRequest) as error:
        return await _refused(ctx, foo, error)
    if not ensured.ours:
        return await _taken(ctx, foo, ensured)
    await _report(ctx, foo, _conditions(ensured.obj, hpa), _counts(ensured.obj))
    return await _settle(ctx, foo, ensured.obj)


def _problem_of(foo: Obj) -> tuple[str, str] | None:
    """What in the Foo itself can never work, as reason and message."""
    if not foo.get("spec", {}).get("deploymentName"):
        return "DeploymentNameMissing", "spec.deploymentName is empty; set it to the name of the Deployment to run."
    if len(name_of(foo)) > _LABEL_LIMIT:
        return (
            "NameTooLong",
            f"The Foo's name has {len(name_of(foo))} characters; as a pod label it may have {_LABEL_LIMIT}.",
        )
    if (length := len(foo["spec"]["deploymentName"])) > _NAME_LIMIT:
        return (
            "DeploymentNameTooLong",
            f"spec.deploymentName has {length} characters; with the hash of its ReplicaSets it may have {_NAME_LIMIT}.",
        )
    return None


def _replicas(foo: Obj) -> int:
    count = foo["spec"].get("replicas")
    return 1 if count is None else int(count)


def _deployment(foo: Obj, live: Obj | None) -> Obj:
    """The part of the Deployment that is ours to say."""
    labels = {"app": "nginx", "controller": name_of(foo)}
    if live is not None and controlled_by(live, uid_of(foo)):
        # A selector cannot change once it is set; keep to the one that is there, whoever made it.
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


async def _refused(ctx: Context, foo: Obj, error: ApiError) -> Result:
    """The server takes no such Deployment: say so in its words, and look again where only that can tell."""
    # What breaks a rule of the kind is told field by field. Policies and webhooks that say no choose their code.
    invalid = isinstance(error, Invalid) and bool(error.causes)
    reason = "Invalid" if invalid else "QuotaExceeded" if "exceeded quota" in error.message else "Denied"
    await _report(ctx, foo, _not_ready(reason, error.message))
    if invalid or isinstance(error, Forbidden):
        raise error
    return Result(_LOOK_AGAIN, waiting_for="an admission rule to let the Deployment pass")


async def _taken(ctx: Context, foo: Obj, ensured: Ensured) -> Result | None:
    """The name is somebody else's: say so once, and wait for that Deployment to change."""
    name = foo["spec"]["deploymentName"]
    owner = controller_of(ensured.obj)
    if owner and owner["kind"] == "Foo" and owner["name"] == name_of(foo):
        # A Foo of the same name was here before; what it owned is on its way out.
        waiting = f"Deployment {name!r} of the Foo that had this name before to be deleted"
        await _report(ctx, foo, _not_ready("WaitingForGarbageCollection", f"Waiting for {waiting}."))
        return Result(waiting_for=waiting)
    message = f'Resource "{name}" already exists and is not managed by Foo'
    known = find_condition(foo, "Ready")
    if not known or (known.get("reason"), known.get("message")) != ("ErrResourceExists", message):
        ctx.write.event(foo, type="Warning", reason="ErrResourceExists", message=message)
    await _report(ctx, foo, _not_ready("ErrResourceExists", message))
    return None


async def _settle(ctx: Context, foo: Obj, deployment: Obj) -> Result | None:
    """Remove Deployments under former names once the present one is available; tell what is still awaited."""
    wanted = _replicas_of(deployment)
    if not _is_available(deployment):
        return Result(waiting_for=f"rollout {_available(deployment)}/{wanted}")
    for child in await ctx.read.children(foo, DEPLOYMENTS):
        if name_of(child) != name_of(deployment) and not is_deleting(child):
            await ctx.write.delete(child)
            ctx.write.event(foo, reason="Deleted", message=f'Deleted deployment "{name_of(child)}"')
    return None


def _replicas_of(deployment: Obj) -> int:
    count = deployment["spec"].get("replicas")
    return 1 if count is None else int(count)


def _available(deployment: Obj) -> int:
    return int(deployment.get("status", {}).get("availableReplicas") or 0)


def _counts(deployment: Obj) -> Obj:
    """What the Foo's status says in the Deployment's place; its scale subresource is made of it."""
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    return {
        "availableReplicas": _available(deployment),
        "replicas": int(deployment.get("status", {}).get("replicas") or 0),
        "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
    }


def _is_available(deployment: Obj) -> bool:
    """Whether the Deployment's own controller has seen the latest spec and enough updated pods are available."""
    status = deployment.get("status", {})
    wanted = _replicas_of(deployment)
    seen = int(status.get("observedGeneration") or 0) >= generation_of(deployment)
    return seen and int(status.get("updatedReplicas") or 0) >= wanted and _available(deployment) >= wanted


def _conditions(deployment: Obj, hpa: Obj | None) -> tuple[Condition, ...]:
    name, wanted = name_of(deployment), _replicas_of(deployment)
    if _is_available(deployment):
        told = f"; their number is set by HorizontalPodAutoscaler {name_of(hpa)!r}" if hpa else ""
        return (
            Condition(
                "Ready",
                "True",
                reason="Available",
                message=f"Deployment {name!r} has {wanted} available replicas{told}.",
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
                message=str(stuck.get("message") or "It takes too long."),
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
    """State the conditions, and record an event when they make the Foo ready. Without new counts the last ones stay."""
    before = foo.get("status") or {}
    known = {name: before[name] for name in _COUNTS if name in before}
    after = await ctx.write.conditions(foo, *conditions, **(known if counts is None else counts))
    if conditions[0].status == "True" and version_of(after) != version_of(foo):
        ctx.write.event(foo, reason="Synced", message="Foo synced successfully")


async def _hpa_of(ctx: Context, namespace: str, deployment: str) -> Obj | None:
    found = await ctx.read.indexed(HPAS, _BY_TARGET, f"{namespace}/{deployment}")
    return found[0] if found else None


def _names(foo: Obj) -> Iterable[str]:
    name = foo.get("spec", {}).get("deploymentName")
    return (f"{namespace_of(foo)}/{name}",) if name else ()


def _naming(cached: Cached, namespace: str, deployment: str) -> Iterable[Request]:
    found = cached.indexed(FOOS, _BY_DEPLOYMENT, f"{namespace}/{deployment}")
    return map(key_of, found)


def foos_naming_deployment(deployment: Obj, cached: Cached) -> Iterable[Request]:
    """The Foos that want this Deployment's name, whoever owns it."""
    return _naming(cached, namespace_of(deployment), name_of(deployment))


def foos_of_hpa(hpa: Obj, cached: Cached) -> Iterable[Request]:
    """The Foos whose Deployment this autoscaler scales."""
    target = scale_target(hpa, DEPLOYMENTS)
    return _naming(cached, namespace_of(hpa), target) if target else ()


CONTROLLER = (
    controller("foo", reconcile)
    .for_(FOOS)
    .owns(DEPLOYMENTS)
    .watches(DEPLOYMENTS, to=foos_naming_deployment)
    .watches(HPAS, to=foos_of_hpa)
    .index(FOOS, _BY_DEPLOYMENT, _names)
    .index(HPAS, _BY_TARGET, by_scale_target(DEPLOYMENTS))
)
