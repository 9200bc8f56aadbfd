"""The reconciler of one name: the workloads of that name, and the autoscalers that target them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_ctrl import (
    DEPLOYMENTS,
    HPAS,
    NAMESPACES,
    STATEFULSETS,
    Cached,
    Change,
    Context,
    ControllerSpec,
    Forbidden,
    Invalid,
    NotFound,
    Obj,
    Request,
    Resource,
    Result,
    annotations_changed,
    any_of,
    controller,
    generation_changed,
    is_deleting,
    key_of,
    name_of,
    named,
    namespace_of,
    scale_target,
    uid_of,
)
from kubectl_ctrl.controllers.scaler.annotations import BadAnnotation, Names, Settings, normal_prefix, read_settings
from kubectl_ctrl.controllers.scaler.memory import Memory
from kubectl_ctrl.controllers.scaler.owners import gitops_problem, is_runner, owner_problem
from kubectl_ctrl.controllers.scaler.plan import ScalingPlan, plan, release

WORKLOADS = (DEPLOYMENTS, STATEFULSETS)

# A timer counts elapsed time, and an event has a wall time. If somebody sets the clock, that is noticed after this time
# at most. Such a reconcile reads the cache and makes no calls.
LONGEST_SLEEP = 3600.0

_BY_TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One workload with its autoscaler and namespace, from the cache or the API server."""

    resource: Resource
    target: Obj
    hpa: Obj | None
    namespace: Obj | None


class Scaler:
    """The controller under one annotation prefix."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._memory = Memory()

    def spec(self) -> ControllerSpec:
        names = self._names

        def has_any(change: Change) -> bool:
            return names.on(change.old) or names.on(change.new)

        annotated = named(f"has annotations under {names.prefix}", has_any)
        relevant = any_of(generation_changed, annotations_changed)
        return (
            controller("scaler", self.reconcile)
            .for_(*WORKLOADS, when=(annotated, relevant))
            .watches(DEPLOYMENTS, to=self.with_defaults, when=relevant)
            .watches(STATEFULSETS, to=self.with_defaults, when=relevant)
            .watches(HPAS, to=self.targets, when=named("autoscaler's spec or annotations changed", _hpa_changed))
            .watches(NAMESPACES, to=self.workloads_in, when=annotations_changed)
            .index(HPAS, _BY_TARGET, _target_keys)
            .cleanup(self.undo)
        )

    def with_defaults(self, workload: Obj, cached: Cached) -> Iterable[Request]:
        """A workload without annotations in a namespace with some."""
        if not self._names.on(workload) and self._names.on(cached.get(NAMESPACES, namespace_of(workload))):
            yield key_of(workload)

    def targets(self, hpa: Obj, cached: Cached) -> Iterable[Request]:
        """The target of an autoscaler, if the autoscaler, the target or the namespace has annotations."""
        place = namespace_of(hpa)
        for kind, name in targets_of(hpa):
            workloads = (cached.get(one, name, place) for one in WORKLOADS if one.kind == kind)
            if any(map(self._names.on, (hpa, *workloads, cached.get(NAMESPACES, place)))):
                yield Request(place, name)

    def workloads_in(self, namespace: Obj, cached: Cached) -> Iterable[Request]:
        """All workloads of a namespace that has or had defaults."""
        if self._names.on(namespace):
            for resource in WORKLOADS:
                yield from map(key_of, cached.list(resource, name_of(namespace)))

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        """Carry out the latest event of every workload of this name."""
        dues: list[float | None] = []
        errors: list[Exception] = []
        for seen in await self._seen(ctx, request):
            try:
                await self._settle(ctx, seen, dues)
            except Exception as error:  # noqa: BLE001  # it must not affect the other workload of this name
                errors.append(error)
        failed = errors[0] if len(errors) == 1 else ExceptionGroup("Both workloads failed.", errors) if errors else None
        soonest = min((due for due in dues if due is not None), default=None)
        if soonest is not None:
            return Result(after=max(0.001, min(soonest - ctx.now(), LONGEST_SLEEP)), failed=failed)
        if failed is not None:
            raise failed
        return None

    async def undo(self, ctx: Context, request: Request) -> Result | None:
        """Restore replicas and bounds that a stop or start set, and remove the annotations of the scaler."""
        for seen in await self._seen(ctx, request):
            if (live := await self._live(ctx, seen)) is not None:
                await self._write(ctx, live, release(live.target, live.hpa, self._names))
        return None

    async def _seen(self, ctx: Context, request: Request) -> list[_Seen]:
        found = []
        namespace = await ctx.read.get(NAMESPACES, request.namespace, "")
        for resource in WORKLOADS:
            target = await ctx.read.get(resource, request.name, request.namespace)
            if target is not None and not is_deleting(target):
                hpas = await ctx.read.indexed(HPAS, _BY_TARGET, _key(resource.kind, request.namespace, request.name))
                hpa = hpas[0] if hpas else None
                found.append(_Seen(resource=resource, target=target, hpa=hpa, namespace=namespace))
        return found

    async def _live(self, ctx: Context, seen: _Seen) -> _Seen | None:
        """The same from the API server, with managedFields; None when the name belongs to another object now."""
        target = await ctx.read.live(seen.resource, name_of(seen.target), namespace_of(seen.target))
        if target is None or uid_of(target) != uid_of(seen.target) or is_deleting(target):
            return None
        hpa = None
        if seen.hpa is not None:
            hpa = await ctx.read.live(HPAS, name_of(seen.hpa), namespace_of(seen.hpa))
            if hpa is not None and targets_of(hpa) != targets_of(seen.hpa):
                hpa = None
        return _Seen(resource=seen.resource, target=target, hpa=hpa, namespace=seen.namespace)

    async def _settle(self, ctx: Context, seen: _Seen, dues: list[float | None]) -> None:
        """Scale one workload if necessary; `dues` gets the time of the next check, also if this then fails."""
        settings = await self._settings(ctx, seen) if seen.namespace is not None else None
        if settings is None:  # also while the namespace is not in the cache yet: it may have the only annotations
            return
        planned = plan(seen.target, seen.hpa, settings, self._names, ctx.now())
        dues.append(planned.due)
        if not planned.changes:
            self._memory.forget(uid_of(seen.target))
            return
        # The cache may be behind, and a wrong count does harm: decide again on live objects.
        live = await self._live(ctx, seen)
        settings = await self._settings(ctx, live) if live is not None else None
        if live is None or settings is None:
            return
        planned = plan(live.target, live.hpa, settings, self._names, ctx.now())
        dues.append(planned.due)
        if problem := gitops_problem(live.target, live.hpa, planned, settings):
            await self._complain(ctx, live.target, "OwnedByGitOps", problem)
        elif planned.reverts and (resumes := await self._resumes(ctx, uid_of(live.target))):
            dues.append(resumes)
            problem = "Somebody keeps changing the replicas that enforce reverts; reverting pauses for some minutes."
            await self._complain(ctx, live.target, "Fighting", problem)
        else:
            await self._write(ctx, live, planned)

    async def _resumes(self, ctx: Context, uid: str) -> float | None:
        now = ctx.now()

        async def recall() -> float | None:
            return self._memory.resumes(uid, now)

        return await ctx.outside("resumes", recall)

    async def _settings(self, ctx: Context, seen: _Seen) -> Settings | None:
        """The settings of a workload; None when it must not be scaled, or they are invalid, which is reported."""
        target, names = seen.target, self._names
        try:
            settings = read_settings(names.given(target), names.given(seen.namespace))
        except BadAnnotation as bad:
            about = seen.namespace if bad.inherited and seen.namespace is not None else target
            await self._complain(ctx, about, "BadAnnotation", f"{bad} Nothing is changed until this is corrected.")
            return None
        if seen.namespace is not None and self._memory.knows(uid_of(seen.namespace)):
            self._memory.forget(uid_of(seen.namespace))
        if is_runner(target):
            return None
        if problem := owner_problem(target, settings, names):
            if names.on(target):
                await self._complain(ctx, target, "OwnedByController", problem)
            return None
        return settings

    async def _write(self, ctx: Context, live: _Seen, planned: ScalingPlan) -> None:
        """Write the autoscaler first: the workload's annotation marks the event as carried out, so it comes last."""
        try:
            if planned.hpa and live.hpa is not None:
                await ctx.write.patch(live.hpa, planned.hpa)
            if planned.target:
                await ctx.write.patch(live.target, planned.target)
        except NotFound:
            return  # deleted meanwhile
        except (Forbidden, Invalid) as error:
            await self._complain(
                ctx, live.target, "ScaleFailed", f"The API server rejected the change: {error.message}"
            )
            raise
        self._memory.forget(uid_of(live.target))
        for note in planned.notes:
            ctx.write.event(
                live.target, type="Warning" if note.warning else "Normal", reason=note.reason, message=note.message
            )

    async def _complain(self, ctx: Context, about: Obj, reason: str, problem: str) -> None:
        async def recall() -> bool:
            return self._memory.is_news(uid_of(about), f"{reason} {problem}")

        if await ctx.outside("is news", recall):
            ctx.write.event(about, type="Warning", reason=reason, message=problem)


def configured(*, annotation_prefix: str) -> ControllerSpec:
    """The scaler for annotations under another prefix."""
    return Scaler(Names(normal_prefix(annotation_prefix))).spec()


def _hpa_changed(change: Change) -> bool:
    """Whether spec or annotations changed. Its status changes all the time, and an autoscaler has no generation."""
    old, new = change.old, change.new
    if old is None or new is None or change.old is change.new:
        return True
    return old.get("spec") != new.get("spec") or old["metadata"].get("annotations") != new["metadata"].get(
        "annotations"
    )


def _key(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _target_keys(hpa: Obj) -> tuple[str, ...]:
    """The index keys of its target."""
    return tuple(_key(kind, namespace_of(hpa), name) for kind, name in targets_of(hpa))


def targets_of(hpa: Obj) -> tuple[tuple[str, str], ...]:
    """Kind and name of the target of an autoscaler; empty when that is no Deployment or StatefulSet."""
    return tuple((one.kind, name) for one in WORKLOADS if (name := scale_target(hpa, one)))
