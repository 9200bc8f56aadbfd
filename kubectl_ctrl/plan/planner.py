"""Runs a reconcile without effects: the usual reader and writer over a snapshot, with a client that sends dry runs.

Repeated until nothing more would be written, it predicts the state in which the controller settles while all other
clients do nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from random import Random

from kubectl_ctrl.client.options import PatchKind, WriteOptions
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError, NotFound, NotInstalled, NotServed, TimedOut
from kubectl_ctrl.model.attempt import Attempt, AttemptStarted, Outcome, WriteRequest
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.masking import LAST_APPLIED, is_secret
from kubectl_ctrl.model.objects import Key, Obj, annotations_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.model.secrecy import secrets_in
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.plan.dry_run import PlanClient
from kubectl_ctrl.plan.snapshot import taken
from kubectl_ctrl.plan.steps import Plan, PlannedEffect, PlannedObject, PlannedReconcile, PlannedWrite, alike
from kubectl_ctrl.runtime.access import AccessParts
from kubectl_ctrl.runtime.attempts import AttemptEnd, Attempts, CancelReason
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.caches import Caches, selection_of
from kubectl_ctrl.runtime.contract import How
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.ids import AttemptIds, new_run
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.services import NoEvents
from kubectl_ctrl.runtime.status import Schemas
from kubectl_ctrl.runtime.verdict import describe
from kubectl_ctrl.value import Value

MOST_ROUNDS = 10

# The manager of a file given with --filename.
_APPLIER = WriteOptions(manager="kubectl", force=True)


class PlanOptions(Value, kw_only=True):
    namespace: str  # "" is all of them
    word: str = ""  # the controller as the user typed it, if not its name
    to_fixpoint: bool = False
    attempt_timeout: float = 60.0


class Planner:
    """One controller's plan; `client` has the user agent of the controller."""

    def __init__(
        self, spec: ControllerSpec, client: PlanClient, *, clock: Clock, rng: Random, options: PlanOptions
    ) -> None:
        self._spec = spec
        self._client = client
        self._world = client.world
        self._clock = clock
        self._rng = rng
        self._options = options
        self._ids = AttemptIds(new_run(rng))
        self._word = options.word or spec.name

    async def plan(self, requests: Sequence[Request], given: Iterable[tuple[ObjectRef, Obj]] = ()) -> Plan:
        """The writes for these requests if the `given` objects were applied before."""
        attempts = await self._attempts()
        for ref, obj in given:
            await self._apply(ref, obj)
        applied = tuple(fates(self._world.steps))
        passes: list[PlannedReconcile] = []
        settled = not self._options.to_fixpoint
        for number in range(1, 1 + (MOST_ROUNDS if self._options.to_fixpoint else 1)):
            made = [await self._pass(attempts, number, request) for request in requests]
            passes += made
            active = any(one.writes or one.attempt.verdict.outcome is Outcome.AGAIN for one in made)
            if self._world.blocked is not None or not active:
                settled = True
                break
        return Plan(
            controller=self._spec.name,
            primary=self._spec.primary,
            requests=tuple(requests),
            given=applied,
            passes=tuple(passes),
            fates=tuple(_all_fates(passes)),
            to_fixpoint=self._options.to_fixpoint,
            settled=settled,
            secrets=tuple(_secrets(passes, applied)),
        )

    async def _apply(self, ref: ObjectRef, obj: Obj) -> None:
        """As `kubectl apply` with or without --server-side: fields of the last apply that are missing now go."""
        before: Obj = {"metadata": {}}
        with suppress(NotFound):
            before = await self._client.get(ref)
        await self._client.patch(ref, obj, PatchKind.APPLY, _APPLIER)
        try:
            noted = json.loads(annotations_of(before).get(LAST_APPLIED) or "{}")
        except ValueError:
            noted = {}
        if patch := dropped(noted if isinstance(noted, dict) else {}, obj):
            await self._client.patch(ref, patch, PatchKind.MERGE, _APPLIER)

    async def _attempts(self) -> Attempts:
        """The attempts of the controller, with a snapshot of the cluster as their caches."""

        def missing(resource: Resource) -> NotInstalled:
            return NotInstalled(
                f"{resource} ({resource.api_version}) is not installed, and {self._spec.name} does nothing without it.",
                next_step=str(ctrl("install", self._word)),
            )

        place = self._options.namespace
        snapshot = await taken(
            {resource: selection_of(self._spec, resource, place, "") for resource in self._spec.resources},
            self._client,
            manager=self._spec.field_manager,
            clock=self._clock,
            rng=self._rng,
            missing=missing,
        )
        self._world.changed = snapshot.planned
        equipment = AccessParts(
            manager=self._spec.field_manager,
            caches=Caches(self._spec, snapshot.replicas),
            overlays=snapshot,
            echoes=Echoes(self._spec.field_manager),
            settlements=Settlements(),
            schemas=Schemas(self._client, self._clock, self._word),
            recorder=NoEvents(),
            clock=self._clock,
        )
        return Attempts(self._spec, equipment, self._client)

    async def _pass(self, attempts: Attempts, number: int, request: Request) -> PlannedReconcile:
        now = self._clock.now()
        start = AttemptStarted(
            id=self._ids.next(),
            controller=self._spec.name,
            request=request,
            causes=(Cause(kind=CauseKind.MANUAL, at=now, detail="plan"),),
            causes_total=1,
            queued_at=now,
            started=now,
            waited=0.0,
            try_no=1,
        )
        notes = Notes(start, Observers(), seed=self._rng.getrandbits(64))
        self._world.steps.clear()
        running = attempts.start(notes, lambda: None)
        try:
            if not await running.wait(self._clock, self._options.attempt_timeout):
                raise TimedOut(f"The reconciler of {self._spec.name} keeps running although it was canceled.")
        finally:
            running.cut(CancelReason.STOP)
        ended = running.ended(self._clock, self._options.attempt_timeout)
        attempt = notes.finished(ended.verdict, took=ended.took, echoes=0, traceback=ended.traceback)
        return PlannedReconcile(
            round=number,
            request=request,
            attempt=attempt,
            steps=tuple(self._world.steps),
            error=self._world.blocked or _error(ended),
        )

    def __repr__(self) -> str:
        return f"Planner({self._spec.name}, attempts={self._ids.given}, {self._world!r})"


def _error(ended: AttemptEnd) -> CtrlError | None:
    """The error to print; a reconcile that waits for something is not one."""
    error = ended.error
    if ended.cut is CancelReason.TIMEOUT:
        return TimedOut(ended.verdict.message)
    if error is None or not (ended.verdict.failed or isinstance(error, NotInstalled | NotServed)):
        return None
    if isinstance(error, CtrlError):
        return error
    return CtrlError(f"The reconciler raised {describe(error)}.", tried=ended.verdict.where)


def dropped(before: Obj, now: Obj) -> Obj:
    """The merge patch that removes every value of `before` that `now` lacks; a list is one value."""
    patch: Obj = {}
    for key, value in before.items():
        kept = now.get(key)
        if isinstance(value, dict):
            if inner := dropped(value, kept if isinstance(kept, dict) else {}):
                patch[key] = inner
        elif key not in now:
            patch[key] = None
    return patch


def _all_fates(passes: Sequence[PlannedReconcile]) -> Iterator[PlannedObject]:
    """The fates of written objects, then of those that needed no write or could not be written."""
    written = {(fate.resource, fate.key): fate for fate in fates([step for one in passes for step in one.steps])}
    wishes = [(one.attempt, wish) for one in passes for wish in one.attempt.wishes]
    for attempt, wish in wishes:
        written.setdefault((wish.resource, wish.key), _unwritten(attempt, wish))
    yield from written.values()


def _secrets(passes: Iterable[PlannedReconcile], given: Iterable[PlannedObject]) -> Iterator[Obj | list[Obj]]:
    """Every state of a Secret that was read or planned."""
    for one in passes:
        yield from secrets_in(one.attempt)
        for step in one.steps:
            yield from filter(None, (step.before, step.after) if is_secret(step.resource) else ())
    for fate in given:
        yield from filter(None, (fate.before, fate.after) if is_secret(fate.resource) else ())


def fates(steps: Sequence[PlannedWrite]) -> Iterator[PlannedObject]:
    by_object: dict[tuple[Resource, Key], list[PlannedWrite]] = {}
    for step in steps:
        by_object.setdefault((step.resource, step.key), []).append(step)
    for (resource, key), own in by_object.items():
        before, after = own[0].before, own[-1].after
        unknown = [f"{step.verb} of its {step.subresource}" for step in own if not step.known]
        if unknown:
            effect = PlannedEffect.CHANGED
        elif alike(before, after):
            effect = PlannedEffect.UNCHANGED
        else:
            effect = (
                PlannedEffect.CREATED
                if before is None
                else PlannedEffect.DELETED
                if after is None
                else PlannedEffect.CHANGED
            )
        yield PlannedObject(
            resource=resource,
            key=key,
            effect=effect,
            before=before,
            after=after,
            checked=all(step.checked for step in own),
            note=", ".join(unknown),
        )


def _unwritten(attempt: Attempt, wish: WriteRequest) -> PlannedObject:
    """The fate of a requested change that led to no write."""
    if wish.raised is not None:
        note = f"{wish.verb} refused: {wish.raised.message}"
    elif wish.how == How.FOREIGN:
        owner = controller_of(wish.answer) if wish.answer is not None else None
        holder = f"{owner['kind']} {owner['name']!r}" if owner else "nobody"
        note = f"left alone: it is controlled by {holder}"
    elif attempt.verdict.outcome is Outcome.WAITING and attempt.verdict.message:
        note = f"until {attempt.verdict.message}"
    else:
        note = ""
    effect = PlannedEffect.FOREIGN if wish.how == How.FOREIGN else PlannedEffect.UNCHANGED
    return PlannedObject(
        resource=wish.resource, key=wish.key, effect=effect, before=wish.answer, after=wish.answer, note=note
    )
