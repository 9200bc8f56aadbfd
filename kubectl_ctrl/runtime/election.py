"""Leader election on a Lease: at most one process acts for a controller, also under pauses, partitions and clock jumps.

No decision depends on a wall clock. A candidate measures, on its own clock that counts suspend, how long the Lease
stays unchanged, and takes it over only after the duration in the Lease. A leader may act until `renew_deadline` after
the *start* of its last successful renewal, which is before any other candidate may take over. `gate` gives the time
left and is called before every send: a process that was paused sends nothing after its time. A request that was already
on the wire may still arrive late; preconditions on writes limit its effect.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from random import Random

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.clock import Clock, rfc3339_micro
from kubectl_ctrl.errors import (
    AlreadyExists,
    CallError,
    CallSite,
    ConfigError,
    Conflict,
    ControllerError,
    Forbidden,
    NotFound,
    NotLeading,
    Refused,
)
from kubectl_ctrl.model.attempt import BackgroundCall, Call
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.value import Value, field, replace

_log = logging.getLogger(__name__)

_JITTER = 1.2
_RELEASED_DURATION = 1
_RELEASE_TRIES = 3
_SHORTEST_CALL = 1.0

# Errors that may be gone at the next try: of the server, the network and the credentials.
_PASSING = (CallError, ConfigError)


class Durations(Value, kw_only=True):
    """Seconds. The lease is longer than the deadline, since clocks drift; the deadline allows several tries."""

    lease: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew_deadline > self.retry * _JITTER > 0:
            raise ControllerError(
                f"Leader election cannot work with {self!r}.",
                next_step=f"Keep lease > renew_deadline > retry * {_JITTER} > 0.",
            )


_CLIENT_GO = Durations()


class Candidate(Value, kw_only=True):
    """A candidate for the Lease, and its behavior towards another holder."""

    identity: str
    is_dead: Callable[[str], bool] = lambda _holder: False  # the holder certainly does not run any more
    patient: bool = False  # wait behind an active holder; otherwise raise Refused
    required: bool = True  # without permission to use Leases: fail; otherwise run without election
    labels: Mapping[str, str] = field(default_factory=dict)  # of a Lease that it creates


class _Seen(Value, kw_only=True):
    """The Lease as last read, and when, on the own clock, its spec last changed."""

    lease: Obj
    since: float

    @property
    def spec(self) -> Obj:
        return self.lease.get("spec") or {}

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity") or "")

    @property
    def expires(self) -> float:
        return self.since + float(self.spec.get("leaseDurationSeconds") or 0)


class LeaseElector:
    """One candidate for one Lease. Invariant: `leading` implies that this process held the Lease at `_renewed`."""

    def __init__(
        self,
        client: Client,
        lease: ObjectRef,
        candidate: Candidate,
        *,
        clock: Clock,
        rng: Random,
        tell: Callable[[BackgroundCall], None],
        durations: Durations = _CLIENT_GO,
    ) -> None:
        def note(call: Call, answered: bool) -> None:
            if answered:
                tell(BackgroundCall(attempt="", call=call))

        self._client = client.scoped(Scope(note=note, timeout=max(_SHORTEST_CALL, durations.renew_deadline / 2)))
        self._lease = lease
        self._candidate = candidate
        self._clock = clock
        self._rng = rng
        self._durations = durations
        self._seen: _Seen | None = None
        self._renewed: float | None = None  # the time just before the last successful renewal was sent
        self._was_ours = False  # so it had the permission to use Leases, and another process may lead now
        self._unelected = False  # running without a Lease, for lack of permission

    def __repr__(self) -> str:
        holder = self._seen.holder if self._seen else ""
        return f"LeaseElector({self._lease.key}, leading={self.leading}, holder={holder!r})"

    @property
    def leading(self) -> bool:
        return self._unelected or self._left() > 0

    def gate(self) -> float | None:
        if self._unelected:
            return None
        left = self._left()
        if left <= 0:
            raise NotLeading(
                f"Another process may hold the Lease {self._lease.key} by now.",
                site=CallSite("lead", str(self._lease)),
            )
        return left

    def _left(self) -> float:
        if self._renewed is None:
            return 0.0
        return self._renewed + self._durations.renew_deadline - self._clock.elapsed()

    async def run(self, on_lead: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Acquire and hold the Lease until cancelled; raises Refused or Forbidden as the candidate is configured."""
        try:
            while True:
                await self._acquire()
                on_lead()
                try:
                    await self._hold()
                finally:
                    on_lost()
                _log.warning(
                    "Leadership is lost: the Lease could not be renewed in time.",
                    extra={"action": "election.lost", "lease": str(self._lease.key)},
                )
        finally:
            await self._release()

    async def _acquire(self) -> None:
        """Return once this process leads."""
        while not self._unelected:
            try:
                if await self._try():
                    return
            except Forbidden as error:
                if self._candidate.required:
                    raise
                if not self._was_ours:
                    self._go_unelected(error)
                    return
            except _PASSING as error:
                _log.debug("The Lease could not be read or taken: %s", error.message)
            await self._clock.sleep(self._jittered())

    def _go_unelected(self, error: Forbidden) -> None:
        self._unelected = True
        _log.warning(
            "No permission to use Leases; running without leader election: %s",
            error.message,
            extra={"action": "election.skipped", "lease": str(self._lease.key)},
        )

    async def _hold(self) -> None:
        """Return when the deadline has passed without a renewal, or another process holds the Lease."""
        while self._unelected:
            await self._clock.sleep(self._durations.lease)
        while (left := self._left()) > 0:
            await self._clock.sleep(min(self._jittered(), left))
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(max(self._left(), 0)):
                    if not await self._renew():
                        break
        self._renewed = None

    async def _renew(self) -> bool:
        """Returns False only if another process holds the Lease; a failed call leaves the remaining time."""
        try:
            return await self._try(renewing=True)
        except _PASSING as error:
            _log.warning(
                "The Lease could not be renewed: %s",
                error.message,
                extra={"action": "election.renew", "left": self._left()},
            )
            return True

    async def _try(self, *, renewing: bool = False) -> bool:
        """Try once to take or renew: one PUT with the last known version, else a GET and a PUT."""
        if renewing and self._seen is not None:
            try:
                return await self._put(self._seen.lease, self._clock.elapsed())
            except (Conflict, NotFound):
                self._seen = None  # another client changed it: read it before deciding
        try:
            self._note(await self._client.get(self._lease))
        except NotFound:
            return await self._create()
        assert self._seen is not None
        holder = self._seen.holder
        if holder not in ("", self._candidate.identity):
            # The Lease of another is free once it was unchanged for its own duration, or its holder is surely gone.
            expired = self._clock.elapsed() >= self._seen.expires or self._candidate.is_dead(holder)
            if renewing or not expired:
                return False
        try:
            return await self._put(self._seen.lease, self._clock.elapsed())
        except (Conflict, NotFound):
            return False

    def _note(self, lease: Obj) -> None:
        """Note the Lease that was read; an unchanged one keeps the time at which it was first seen."""
        before = self._seen
        if before is not None and before.spec == (lease.get("spec") or {}):
            self._seen = replace(before, lease=lease)
            return
        self._seen = _Seen(lease=lease, since=self._clock.elapsed())
        if self._seen.holder not in ("", self._candidate.identity, before.holder if before else ""):
            _log.info(
                "Waiting for the Lease, which is held by %s.",
                self._seen.holder,
                extra={"action": "election.wait", "lease": str(self._lease.key)},
            )
        if before is None or before.holder != self._seen.holder or not self._seen.holder:
            return
        if self._seen.holder != self._candidate.identity and not self._candidate.patient:
            raise Refused(
                f"Another process holds the Lease {str(self._lease.key)!r} and renews it: {self._seen.holder}.",
                next_step="stop that process first, or use --leader-elect=false if two active controllers do no harm",
            )

    async def _create(self) -> bool:
        started = self._clock.elapsed()
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self._lease.name,
                "namespace": self._lease.namespace,
                "labels": dict(self._candidate.labels),
            },
            "spec": self._spec({}),
        }
        try:
            return self._accept(await self._client.create(self._lease.resource, body), started)
        except AlreadyExists:
            return False

    async def _put(self, lease: Obj, started: float) -> bool:
        body = {**lease, "spec": self._spec(lease.get("spec") or {})}
        return self._accept(await self._client.replace(self._lease, body), started)

    def _accept(self, lease: Obj, started: float) -> bool:
        """Note the answer to an own write. Its content counts: after a lost answer it is a read, maybe of another's."""
        self._seen = _Seen(lease=lease, since=self._clock.elapsed())
        if self._seen.holder != self._candidate.identity:
            return False
        self._renewed, self._was_ours = started, True
        return True

    def _spec(self, before: Obj) -> Obj:
        now = rfc3339_micro(self._clock.now())
        kept = before.get("holderIdentity") == self._candidate.identity
        return {
            **before,
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": max(1, round(self._durations.lease)),
            "acquireTime": before.get("acquireTime", now) if kept else now,
            "renewTime": now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if kept or not before else 1),
        }

    async def _release(self) -> None:
        """Release the Lease, so that the next candidate need not wait for its duration."""
        held, self._renewed = self._renewed is not None and self._left() > 0, None
        if not held or self._seen is None:
            return
        lease = self._seen.lease
        for _ in range(_RELEASE_TRIES):
            try:
                await self._client.replace(self._lease, self._emptied(lease))
                return
            except Conflict:
                with contextlib.suppress(*_PASSING):
                    lease = await self._client.get(self._lease)
                if (lease.get("spec") or {}).get("holderIdentity") != self._candidate.identity:
                    return
            except _PASSING as error:
                _log.debug("The Lease could not be released: %s", error.message)
                return

    def _emptied(self, lease: Obj) -> Obj:
        now = rfc3339_micro(self._clock.now())
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": _RELEASED_DURATION}
        return {**lease, "spec": {**spec, "renewTime": now, "acquireTime": now}}

    def _jittered(self) -> float:
        return self._durations.retry * (1 + self._rng.random() * (_JITTER - 1))
