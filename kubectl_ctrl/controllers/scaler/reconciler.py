"""What is read, decided and written for one name: the workloads that have it, and the autoscalers that target them."""

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
from kubectl_ctrl.controllers.scaler.annotations import (
    BadAnnotation,
    Names,
    Settings,
    normal_prefix,
    read_settings,
)
from kubectl_ctrl.controllers.scaler.memory import Memory
from kubectl_ctrl.controllers.scaler.owners import gitops_problem, is_runner, owner_problem
from kubectl_ctrl.controllers.scaler.plan import Plan, plan, release

WORKLOADS = (DEPLOYMENTS, STATEFULSETS)

# A timer runs in elapsed time and an event comes in wall time. Should somebody set the clock meanwhile, this is the
# longest that it goes unnoticed; such a look reads the cache and calls nothing.
LONGEST_NAP = 3600.0

_BY_TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One workload and what goes with it, as the cache or the API server has it."""

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

        def said(change: Change) -> bool:
            return names.on(change.old) or names.on(change.new)

        annotated = named(f"has annotations under {names.prefix}", said)
        meant = any_of(generation_changed, annotations_changed)
        return (
            controller("scaler", self.reconcile)
            .for_(*WORKLOADS, when=(annotated, meant))
            .watches(DEPLOYMENTS, to=self.with_defaults, when=meant)
            .watches(STATEFULSETS, to=self.with_defaults, when=meant)
            .watches(HPAS, to=self.targets, when=named("autoscaler's spec or annotations changed", _hpa_changed))
            .watches(NAMESPACES, to=self.workloads_in, when=annotations_changed)
            .index(HPAS, _BY_TARGET, _target_keys)
            .cleanup(self.undo)
        )

    # From other objects to names.

    def with_defaults(self, workload: Obj, cached: Cached) -> Iterable[Request]:
        """A workload that says nothing itself, in a namespace that does."""
        if not self._names.on(workload) and self._names.on(cached.get(NAMESPACES, namespace_of(workload))):
            yield key_of(workload)

    def targets(self, hpa: Obj, cached: Cached) -> Iterable[Request]:
        """What an autoscaler scales, where any of the three has to do with us."""
        place = namespace_of(hpa)
        for kind, name in targets_of(hpa):
            workloads = (cached.get(one, name, place) for one in WORKLOADS if one.kind == kind)
            if any(map(self._names.on, (hpa, *workloads, cached.get(NAMESPACES, place)))):
                yield Request(place, name)

    def workloads_in(self, namespace: Obj, cached: Cached) -> Iterable[Request]:
        """All of a namespace that has or had defaults."""
        if self._names.on(namespace):
            for resource in WORKLOADS:
                yield from map(key_of, cached.list(resource, name_of(namespace)))

    # The reconcile.

    async def reconcile(self, ctx: Context, request: Request) -> Result | None:
        """Bring every workload of this name to what its latest event asks for."""
        looks: list[float | None] = []
        errors: list[Exception] = []
        for seen in await self._seen(ctx, request):
            try:
                await self._settle(ctx, seen, looks)
            except Exception as error:  # noqa: BLE001  # the other workload of this name is none the worse for it
                errors.append(error)
        failed = errors[0] if len(errors) == 1 else ExceptionGroup("Both workloads failed.", errors) if errors else None
        soonest = min((look for look in looks if look is not None), default=None)
        if soonest is not None:
            return Result(after=max(0.001, min(soonest - ctx.now(), LONGEST_NAP)), failed=failed)
        if failed is not None:
            raise failed
        return None

    async def undo(self, ctx: Context, request: Request) -> Result | None:
        """Give back every count and bound that is still as a stop or start left it, and remove what was remembered."""
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
        """The same as the API server has it now, managedFields and all; None when that is another object."""
        target = await ctx.read.live(seen.resource, name_of(seen.target), namespace_of(seen.target))
        if target is None or uid_of(target) != uid_of(seen.target) or is_deleting(target):
            return None
        hpa = None
        if seen.hpa is not None:
            hpa = await ctx.read.live(HPAS, name_of(seen.hpa), namespace_of(seen.hpa))
            if hpa is not None and targets_of(hpa) != targets_of(seen.hpa):
                hpa = None
        return _Seen(resource=seen.resource, target=target, hpa=hpa, namespace=seen.namespace)

    async def _settle(self, ctx: Context, seen: _Seen, looks: list[float | None]) -> None:
        """Do what is to be done about one workload; `looks` gets when to look at it again, also if this then fails."""
        settings = await self._settings(ctx, seen) if seen.namespace is not None else None
        if settings is None:  # also while it is not known what the namespace says: it may be all that there is
            return
        planned = plan(seen.target, seen.hpa, settings, self._names, ctx.now())
        looks.append(planned.look)
        if not planned.changes:
            self._memory.forget(uid_of(seen.target))
            return
        # From here on a cache that is behind would do harm: a count is lowered on what the API server has.
        live = await self._live(ctx, seen)
        settings = await self._settings(ctx, live) if live is not None else None
        if live is None or settings is None:
            return
        planned = plan(live.target, live.hpa, settings, self._names, ctx.now())
        looks.append(planned.look)
        if problem := gitops_problem(live.target, live.hpa, planned, settings):
            await self._complain(ctx, live.target, "OwnedByGitOps", problem)
        elif planned.reverts and (resumes := await self._resumes(ctx, uid_of(live.target))):
            looks.append(resumes)
            problem = "Somebody keeps changing the replicas that enforce reverts; it gives way for some minutes."
            await self._complain(ctx, live.target, "Fighting", problem)
        else:
            await self._write(ctx, live, planned)

    async def _resumes(self, ctx: Context, uid: str) -> float | None:
        now = ctx.now()

        async def recall() -> float | None:
            return self._memory.resumes(uid, now)

        return await ctx.outside("resumes", recall)

    async def _settings(self, ctx: Context, seen: _Seen) -> Settings | None:
        """What is asked for; None when it cannot be meant, which is told, or the workload is not ours to touch."""
        target, names = seen.target, self._names
        try:
            settings = read_settings(names.said(target), names.said(seen.namespace))
        except BadAnnotation as bad:
            about = seen.namespace if bad.inherited and seen.namespace is not None else target
            await self._complain(ctx, about, "BadAnnotation", f"{bad} Nothing is changed until this is mended.")
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

    async def _write(self, ctx: Context, live: _Seen, planned: Plan) -> None:
        """The autoscaler first: what was done counts as done once the workload says so."""
        try:
            if planned.hpa and live.hpa is not None:
                await ctx.write.patch(live.hpa, planned.hpa)
            if planned.target:
                await ctx.write.patch(live.target, planned.target)
        except NotFound:
            return  # gone meanwhile
        except (Forbidden, Invalid) as error:
            await self._complain(ctx, live.target, "ScaleFailed", f"The API server refused it: {error.message}")
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
    """Not its status, which changes all the time; an autoscaler has no generation."""
    old, new = change.old, change.new
    if old is None or new is None or change.old is change.new:
        return True
    return old.get("spec") != new.get("spec") or old["metadata"].get("annotations") != new["metadata"].get(
        "annotations"
    )


def _key(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _target_keys(hpa: Obj) -> tuple[str, ...]:
    """What it scales, as the key of the index."""
    return tuple(_key(kind, namespace_of(hpa), name) for kind, name in targets_of(hpa))


def targets_of(hpa: Obj) -> tuple[tuple[str, str], ...]:
    """Kind and name of the workload that an autoscaler scales; nothing when that is none of ours."""
    return tuple((one.kind, name) for one in WORKLOADS if (name := scale_target(hpa, one)))
