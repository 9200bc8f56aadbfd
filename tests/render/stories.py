"""Stories to tell: small ones by hand, long ones made up from a seed as a busy afternoon would have made them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from kubectl_ctrl.model.attempt import Call, ControllerState, Intent, ObjectRead, Outcome, Verdict, WaitingRequest
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.record import (
    Branch,
    Changes,
    Incarnation,
    RecordedAttempt,
    RecordedCall,
    RecordedCause,
    RecordedCluster,
    RecordedController,
    RecordedRun,
    RecordedState,
    Story,
)
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS, Resource
from kubectl_ctrl.value import replace
from tests.render.samples import FOOS, NOON

CLUSTER = RecordedCluster(
    key="c1a5-uid", servers=(("https://127.0.0.1:6443", "ab12"),), contexts=("kind-ctrl",), seen=NOON + 3600
)
PLAYED = RecordedController(name="foo", word="foo", primaries=(FOOS,), owns=(DEPLOYMENTS,), manager="kubectl-ctrl-foo")
RUN = RecordedRun(
    id="r7f3",
    cluster="c1a5-uid",
    context="kind-ctrl",
    server="https://127.0.0.1:6443",
    namespace="default",
    controllers=(PLAYED,),
    pid=4121,
    host="laptop",
    program="0.5.0",
    began=NOON - 60,
    seen=NOON + 3600,
)


def step(path: str, old: object, new: object) -> Changes:
    return Changes(shown=(Difference(path=path, old=old, new=new),), total=1)


def triggered(kind: CauseKind, at: float, **facts: object) -> RecordedCause:
    return replace(RecordedCause(kind=kind, at=at), **facts)  # type: ignore[arg-type]


def call(name: str, verb: str, resource: Resource, at: float, took: float, **facts: object) -> Call:
    """One call that was answered with 200; `name` is of the object."""
    made = Call(id="", verb=verb, resource=resource, namespace="default", name=name, started=at, took=took, code=200)
    return replace(made, **facts)  # type: ignore[arg-type]


@dataclass(slots=True)
class Busy:
    """Makes a run's attempts one after the other; every version is told only once."""

    rng: Random
    objects: int = 1
    workers: int = 2
    version: int = 1000
    made: list[RecordedAttempt] = field(default_factory=list)
    free: list[float] = field(default_factory=list)

    def next_version(self) -> str:
        self.version += self.rng.randint(1, 9)
        return str(self.version)

    def add(self, at: float, name: str, *causes: RecordedCause, failures: int = 0) -> RecordedAttempt:
        """One attempt as soon as a worker is free, and the object is not under way."""
        self.free = self.free or [NOON] * self.workers
        worker = min(range(len(self.free)), key=self.free.__getitem__)
        busy = max((one.started + (one.took or 0) for one in self.made if one.request.name == name), default=0.0)
        start = max(at, self.free[worker], busy) + self.rng.uniform(0.0004, 0.004)
        id_ = f"{RUN.id}-{len(self.made) + 1}"
        done = self.rng.random()
        calls: list[RecordedCall] = []
        took = self.rng.uniform(0.002, 0.006)
        if done < 0.55:
            sent = self.rng.uniform(0.006, 0.04)
            size = self.rng.randint(1, 9)
            write = call(name, "patch", DEPLOYMENTS, start + took, sent, id=f"{id_}.1", uid=f"uid-dep-{name}")
            write = replace(write, old_version=str(self.version), new_version=self.next_version())
            if done < 0.08:
                write = replace(write, code=403, new_version="", reason="Forbidden", error="patch is forbidden")
            calls.append(
                RecordedCall(
                    call=write, changes=step("spec.replicas", size, size + 2) if write.code == 200 else Changes()
                )
            )
            took += sent
            if done > 0.2:
                sent = self.rng.uniform(0.004, 0.02)
                status = call(name, "apply", FOOS, start + took, sent, id=f"{id_}.2", subresource="status")
                status = replace(status, uid=f"uid-{name}", new_version=self.next_version())
                calls.append(RecordedCall(call=status, changes=step("status.availableReplicas", size, size + 1)))
                took += sent
        verdict = self.verdict(done, failures)
        attempt = RecordedAttempt(
            id=id_,
            controller="foo",
            request=Request("default", name),
            uid=f"uid-{name}",
            causes=causes,
            causes_total=len(causes) + (3 if self.rng.random() < 0.1 else 0),
            queued_at=at,
            started=start,
            waited=start - at,
            try_no=failures + 1,
            took=took + 0.001,
            verdict=verdict,
            calls=tuple(calls),
            reads=(
                ObjectRead(
                    verb="get", resource=FOOS, query=f"default/{name}", found=((f"uid-{name}", str(self.version)),)
                ),
            ),
            skipped=() if calls else (f"Deployment/{name}",),
            echoes=len(calls) // 2,
        )
        self.free[worker] = start + took + 0.001
        self.made.append(attempt)
        return attempt

    def verdict(self, done: float, failures: int) -> Verdict:
        if done < 0.08:
            delay = 1.0 * 2**failures
            return Verdict(
                outcome=Outcome.RETRY,
                delay=delay,
                message='deployments.apps "web" is forbidden',
                error_id="CTRL-FORBIDDEN",
                where="controllers/foo/reconciler.py:88",
            )
        if done < 0.2:
            return Verdict(outcome=Outcome.WAITING, delay=5, message="rollout 1/3")
        return Verdict(outcome=Outcome.AFTER, delay=30) if done < 0.3 else Verdict(outcome=Outcome.DONE)

    def grow(self, count: int) -> None:
        """Edits at odd moments; each starts a chain of echoes of the cluster, retries and timers."""
        at = NOON
        for name in self.names():
            self.add(at, name, triggered(CauseKind.INITIAL, at, resource=FOOS, key=Request("default", name)))
        while len(self.made) < count:
            at += self.rng.choice((0.4, 3.0, 3.0, 40.0, 90.0, 600.0)) * self.rng.uniform(0.5, 1.5)
            name = self.rng.choice(self.names())
            at = max(at, self.chain(at, name, count))

    def names(self) -> list[str]:
        return ["web", *(f"shop-{place}" for place in range(1, self.objects))]

    def chain(self, at: float, name: str, count: int) -> float:
        edit = triggered(
            CauseKind.MODIFIED,
            at,
            resource=FOOS,
            key=Request("default", name),
            uid=f"uid-{name}",
            old_version=str(self.version),
            new_version=self.next_version(),
            changes=step("spec.replicas", 3, self.rng.randint(4, 9)),
            writers=("kubectl-edit",),
        )
        last = self.add(at, name, edit)
        failures = 0
        while len(self.made) < count:
            end = last.started + (last.took or 0.0)
            assert last.verdict
            match last.verdict.outcome:
                case Outcome.RETRY:
                    failures += 1
                    at = end + last.verdict.delay
                    cause = triggered(CauseKind.RETRY, at, attempt=last.id, count=failures, detail="Forbidden (403)")
                case Outcome.AFTER | Outcome.WAITING:
                    at, failures = end + last.verdict.delay, 0
                    cause = triggered(CauseKind.TIMER, at, attempt=last.id, detail="5s")
                case _:
                    return end
            causes = [cause]
            if last.writes and last.writes[0].call.new_version:
                write = last.writes[0].call
                causes.append(
                    triggered(
                        CauseKind.MODIFIED,
                        write.started + write.took + 0.001,
                        resource=DEPLOYMENTS,
                        key=Request("default", name),
                        uid=write.uid,
                        old_version=write.old_version,
                        new_version=write.new_version,
                        changes=step("status.observedGeneration", 3, 4),
                        writers=("kube-controller-manager", "kubectl-ctrl-foo"),
                    )
                )
            last = self.add(at, name, *causes, failures=failures)
        return at


def story(count: int, *, objects: int = 1, seed: int = 7) -> Story:
    """A run of foo with so many attempts."""
    busy = Busy(Random(seed), objects=objects)
    busy.grow(count)
    attempts = tuple(busy.made[:count])
    end = attempts[-1].started if attempts else NOON
    entries = (WaitingRequest(request=Request("default", "web"), state="timer", since=end, due=end + 30),)
    state = ControllerState(controller="foo", at=end + 1, leading=True, synced=True, entries=entries)
    owned = Branch(resource=DEPLOYMENTS, key=Request("default", "web"), uid="d", ready="True", at=end + 2, created=NOON)
    root = Branch(resource=FOOS, key=Request("default", "web"), uid="uid-web", at=end + 2, branches=(owned,))
    return Story(
        cluster=CLUSTER,
        runs=(replace(RUN, seen=end + 1),),
        resource=FOOS,
        key=Request("default", "web") if objects == 1 else None,
        uid="uid-web" if objects == 1 else "",
        older=(Incarnation(uid="uid-old", first=NOON - 900, last=NOON - 300, attempts=12),),
        attempts=attempts,
        moments=(RecordedState(run="r7f3", state=state),),
        tree=root,
        at=end + 2,
    )


# Everything that a cluster may put into a name or a message to leave its place.
NASTY = "</script><!--<b>\"'`\\ &amp; {{x}} \x00\x1b[2J\r\n\u2028\u202egpj.exe\u200f" + "n" * 300


def hostile() -> Story:
    """An attempt whose every text is an attack, and one about a Secret that was interrupted."""
    return Story(cluster=CLUSTER, runs=(RUN,), resource=FOOS, attempts=(_attacking(), _secretive()), at=NOON + 60)


def _attacking() -> RecordedAttempt:
    place = Request("default", NASTY)
    return RecordedAttempt(
        id="r7f3-1",
        controller="foo",
        request=place,
        uid=NASTY,
        causes=(
            triggered(
                CauseKind.MODIFIED,
                NOON,
                resource=FOOS,
                key=place,
                uid=NASTY,
                new_version="7",
                changes=step(f"metadata.labels[{NASTY}]", NASTY, {"a": [NASTY, None]}),
                writers=(NASTY, "</style>"),
            ),
        ),
        causes_total=9,
        queued_at=NOON,
        started=NOON + 0.001,
        waited=0.001,
        try_no=1,
        took=0.05,
        verdict=Verdict(outcome=Outcome.TERMINAL, message=NASTY, error_id="CTRL-ERROR", where="a.py:1"),
        calls=(
            RecordedCall(
                call=call(NASTY, "patch", DEPLOYMENTS, NOON + 0.002, 0.01, id="r7f3-1.1", error=NASTY, code=None)
            ),
        ),
        intents=(Intent(type="Warning", reason="Bad", message=NASTY, about=place),),
        skipped=(NASTY,),
        traceback="Traceback\n  " + NASTY,
    )


def _secretive() -> RecordedAttempt:
    return RecordedAttempt(
        id="r7f3-2",
        controller="foo",
        request=Request("default", "web"),
        causes=(
            triggered(
                CauseKind.MODIFIED,
                NOON + 1,
                resource=SECRETS,
                key=Request("default", "tls"),
                uid="s",
                old_version="8",
                new_version="9",
                changes=Changes(
                    shown=(
                        Difference(path="data.key", old=HIDDEN, new=HIDDEN),
                        Difference(path="data.crt", old=ABSENT, new=HIDDEN),
                    ),
                    total=2,
                ),
            ),
        ),
        causes_total=1,
        queued_at=NOON + 1,
        started=NOON + 1.5,
        waited=0.5,
        try_no=1,
        interrupted=True,
        calls=(
            RecordedCall(
                call=call("tls", "apply", SECRETS, NOON + 1.6, 0.01, id="r7f3-2.1", uid="s", new_version="10"),
                changes=step("data.key", HIDDEN, HIDDEN),
            ),
        ),
    )
