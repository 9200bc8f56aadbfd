"""Goes through a reconcile without doing anything: the live doors over a snapshot, and a client that only tries.

Repeated until nothing more would be written, it tells where a controller comes to rest while all others stand still.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from random import Random

from kubectl_ctrl.client.options import PatchKind, WriteOptions
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError, NotFound, NotInstalled, NotServed, TimedOut
from kubectl_ctrl.model.attempt import Attempt, Outcome, Started, WriteRequest
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.masking import LAST_APPLIED, is_secret
from kubectl_ctrl.model.objects import Key, Obj, annotations_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.model.secrecy import secrets_in
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.plan.dry_run import PlanClient
from kubectl_ctrl.plan.snapshot import Snapshot, taken
from kubectl_ctrl.plan.steps import Effect, Fate, Pass, Plan, Step, alike
from kubectl_ctrl.runtime.access import Equipment
from kubectl_ctrl.runtime.attempts import Attempts, Cut, Ended
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.caches import Caches, selection_of
from kubectl_ctrl.runtime.contract import How
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.ids import AttemptIds, new_run
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.services import Mute
from kubectl_ctrl.runtime.status import Schemas
from kubectl_ctrl.runtime.verdict import describe
from kubectl_ctrl.value import Value

MOST_ROUNDS = 10

# As whom a file is applied.
_APPLIER = WriteOptions(manager="kubectl", force=True)


class PlanOptions(Value, kw_only=True):
    """What a person may say about a plan."""

    namespace: str  # "" is all of them
    word: str = ""  # what is typed for the controller, if not its name
    to_fixpoint: bool = False
    attempt_timeout: float = 60.0


class Planner:
    """One controller's plan; `client` is the controller's own, by its user agent."""

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
        """What would be done for these requests if the objects that are `given` had been applied before."""
        attempts = Attempts(self._spec, self._equipment(await self._snapshot()), self._client)
        for ref, obj in given:
            await self._apply(ref, obj)
        applied = tuple(fates(self._world.steps))
        passes: list[Pass] = []
        settled = not self._options.to_fixpoint
        for number in range(1, 1 + (MOST_ROUNDS if self._options.to_fixpoint else 1)):
            made = [await self._pass(attempts, number, request) for request in requests]
            passes += made
            if self._world.blocked is not None or not any(map(_goes_on, made)):
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
        """As `kubectl apply` would, on either side: what it applied before and does not say any more goes too."""
        before: Obj = {"metadata": {}}
        with suppress(NotFound):
            before = await self._client.get(ref)
        await self._client.patch(ref, obj, PatchKind.APPLY, _APPLIER)
        if patch := dropped(_last_applied(before), obj):
            await self._client.patch(ref, patch, PatchKind.MERGE, _APPLIER)

    async def _snapshot(self) -> Snapshot:
        place = self._options.namespace
        snapshot = await taken(
            {resource: selection_of(self._spec, resource, place, "") for resource in self._spec.resources},
            self._client,
            manager=self._spec.field_manager,
            clock=self._clock,
            rng=self._rng,
            missing=self._missing,
        )
        self._world.changed = snapshot.planned
        return snapshot

    def _missing(self, resource: Resource) -> NotInstalled:
        return NotInstalled(
            f"{resource} ({resource.api_version}) is not installed, and {self._spec.name} does nothing without it.",
            next_step=str(ctrl("install", self._word)),
        )

    def _equipment(self, snapshot: Snapshot) -> Equipment:
        return Equipment(
            manager=self._spec.field_manager,
            caches=Caches(self._spec, snapshot.replicas),
            overlays=snapshot,
            echoes=Echoes(self._spec.field_manager),
            settlements=Settlements(),
            schemas=Schemas(self._client, self._clock, self._word),
            recorder=Mute(),
            clock=self._clock,
        )

    async def _pass(self, attempts: Attempts, number: int, request: Request) -> Pass:
        notes = Notes(self._started(request), Observers(), seed=self._rng.getrandbits(64))
        self._world.steps.clear()
        running = attempts.start(notes, lambda: None)
        try:
            if not await running.wait(self._clock, self._options.attempt_timeout):
                raise TimedOut(f"The reconciler of {self._spec.name} keeps running although it was cancelled.")
        finally:
            running.cut(Cut.STOP)
        ended = running.ended(self._clock, self._options.attempt_timeout)
        attempt = notes.finished(ended.verdict, took=ended.took, echoes=0, traceback=ended.traceback)
        return Pass(
            round=number,
            request=request,
            attempt=attempt,
            steps=tuple(self._world.steps),
            error=self._world.blocked or _error(ended),
        )

    def _started(self, request: Request) -> Started:
        now = self._clock.now()
        return Started(
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

    def __repr__(self) -> str:
        return f"Planner({self._spec.name}, attempts={self._ids.given}, {self._world!r})"


def _goes_on(made: Pass) -> bool:
    return made.writes or made.attempt.verdict.outcome is Outcome.AGAIN


def _error(ended: Ended) -> CtrlError | None:
    """What a person is told who asked for the plan; what has to wait for something is no error."""
    error = ended.error
    if ended.cut is Cut.TIMEOUT:
        return TimedOut(ended.verdict.message)
    if error is None or not (ended.verdict.failed or isinstance(error, NotInstalled | NotServed)):
        return None
    if isinstance(error, CtrlError):
        return error
    return CtrlError(f"The reconciler raised {describe(error)}.", tried=ended.verdict.where)


def _last_applied(obj: Obj) -> Obj:
    """The object as kubectl apply without --server-side has noted it."""
    try:
        noted = json.loads(annotations_of(obj).get(LAST_APPLIED) or "{}")
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def dropped(before: Obj, now: Obj) -> Obj:
    """The merge patch that takes out every value that was said before and is not now; lists are one value."""
    patch: Obj = {}
    for key, value in before.items():
        said = now.get(key)
        if isinstance(value, dict):
            if inner := dropped(value, said if isinstance(said, dict) else {}):
                patch[key] = inner
        elif key not in now:
            patch[key] = None
    return patch


# What becomes of each object.


def _all_fates(passes: Sequence[Pass]) -> Iterator[Fate]:
    """Of everything that was written, and then of what was looked at to be written and left."""
    written = {(fate.resource, fate.key): fate for fate in fates([step for one in passes for step in one.steps])}
    wishes = [(one.attempt, wish) for one in passes for wish in one.attempt.wishes]
    for attempt, wish in wishes:
        written.setdefault((wish.resource, wish.key), _left(attempt, wish))
    yield from written.values()


def _secrets(passes: Iterable[Pass], given: Iterable[Fate]) -> Iterator[Obj | list[Obj]]:
    """Every state of a Secret that was seen or planned."""
    for one in passes:
        yield from secrets_in(one.attempt)
        for step in one.steps:
            yield from filter(None, (step.before, step.after) if is_secret(step.resource) else ())
    for fate in given:
        yield from filter(None, (fate.before, fate.after) if is_secret(fate.resource) else ())


def fates(steps: Sequence[Step]) -> Iterator[Fate]:
    by_object: dict[tuple[Resource, Key], list[Step]] = {}
    for step in steps:
        by_object.setdefault((step.resource, step.key), []).append(step)
    for (resource, key), of_it in by_object.items():
        before, after = of_it[0].before, of_it[-1].after
        unknown = [f"{step.verb} of its {step.subresource}" for step in of_it if not step.known]
        yield Fate(
            resource=resource,
            key=key,
            effect=Effect.CHANGED if unknown else _effect(before, after),
            before=before,
            after=after,
            checked=all(step.checked for step in of_it),
            note=", ".join(unknown),
        )


def _effect(before: Obj | None, after: Obj | None) -> Effect:
    if alike(before, after):
        return Effect.UNCHANGED
    if before is None:
        return Effect.CREATED
    return Effect.DELETED if after is None else Effect.CHANGED


def _left(attempt: Attempt, wish: WriteRequest) -> Fate:
    """Something that the reconciler asked for and that came to no write."""
    if wish.raised is not None:
        note = f"{wish.verb} refused: {wish.raised.message}"
    elif wish.how == How.FOREIGN:
        owner = controller_of(wish.answer) if wish.answer is not None else None
        held = f"{owner['kind']} {owner['name']!r}" if owner else "nobody"
        note = f"left alone: it is controlled by {held}"
    elif attempt.verdict.outcome is Outcome.WAITING and attempt.verdict.message:
        note = f"until {attempt.verdict.message}"
    else:
        note = ""
    effect = Effect.FOREIGN if wish.how == How.FOREIGN else Effect.UNCHANGED
    return Fate(resource=wish.resource, key=wish.key, effect=effect, before=wish.answer, after=wish.answer, note=note)
