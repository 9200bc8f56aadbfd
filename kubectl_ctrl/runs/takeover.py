"""Taking over from a Deployment of ours: scaled to zero for as long as a run here lasts, and restored after it.

An annotation on the Deployment says who did it, when, and what the count was; it is set and removed together with the
count, in one patch that insists on the version that was read. So whatever happens to this process, the next run or
`doctor` finds what there is to repair, and a count that somebody else set meanwhile is never overwritten.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Container, Sequence

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import ListQuery, PatchKind, WriteOptions
from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.errors import CallError, Conflict, CtrlError, Forbidden, NotFound, Refused
from kubectl_ctrl.model.objects import Obj, annotations_of, name_of, namespace_of, version_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, ObjectRef
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.runs import holder
from kubectl_ctrl.runs.instances import deployments_of, replicas_of
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

ANNOTATION = "kubectl-ctrl/taken-over"
_MANAGER = WriteOptions(manager="kubectl-ctrl-takeover")
_TRIES = 5
_ASK_AGAIN = 0.5
_LAST_WORDS = 5.0
_OVER = ("Succeeded", "Failed")


class Taken(Value, kw_only=True):
    """What the annotation of a Deployment says."""

    ref: ObjectRef
    holder: str
    replicas: int  # to be restored
    since: str

    @property
    def stale(self) -> bool:
        """Whether its holder is certainly gone."""
        return holder.is_dead(self.holder)

    @property
    def text(self) -> str:
        who = f"process {holder.pid_of(self.holder)} on this machine" if holder.is_here(self.holder) else self.holder
        return f"{self.ref} was scaled to zero by {who} at {self.since}, from {self.replicas}"


def taken_of(deployment: Obj) -> Taken | None:
    """What it says of a takeover; None where there is none, or nothing that could be read."""
    text = annotations_of(deployment).get(ANNOTATION)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return Taken(
            ref=ref_of(deployment),
            holder=str(fields["holder"]),
            replicas=int(fields["replicas"]),
            since=str(fields["since"]),
        )
    except (ValueError, KeyError, TypeError):
        _log.warning("The annotation %s of %s cannot be read.", ANNOTATION, ref_of(deployment))
        return None


def ref_of(deployment: Obj) -> ObjectRef:
    return DEPLOYMENTS.ref(name_of(deployment), namespace_of(deployment))


def by_hand(ref: ObjectRef, replicas: int, kubectl: Sequence[str]) -> str:
    """The kubectl line that undoes a takeover; `kubectl` is how it gets to the cluster."""
    patch = {"metadata": {"annotations": {ANNOTATION: None}}, "spec": {"replicas": replicas}}
    words = (*kubectl, "--namespace", ref.namespace, "patch", "deployment", ref.name)
    return str(command(*words, "--type=merge", "--patch", json.dumps(patch, separators=(",", ":"))))


class Repair(Value, kw_only=True):
    """A Deployment that a run took over and did not restore. `certain`: that run is gone for sure."""

    taken: Taken
    certain: bool

    def goes_on(self, running: Container[str]) -> bool:
        """Whether that run certainly goes on, as it is one of those of this machine; else a person has to know.

        That a process of its number lives tells nothing: after a crash the number may be another's.
        """
        return self.taken.holder in running

    @property
    def text(self) -> str:
        return f"{self.taken.text}, and not restored."

    async def restore(self, client: Client) -> int | None:
        """The count that it has now; None when it is gone, or somebody repaired it before."""
        return await give_back(client, self.taken)


async def repairs(client: Client, names: Sequence[str]) -> list[Repair]:
    """What takeovers of these controllers left behind, or still hold where it is not `certain`."""
    found = [one for name in names for one in (await deployments_of(client, name)).objects]
    return [repair for one in found if (repair := repair_of(one))]


def repair_of(deployment: Obj) -> Repair | None:
    """What there is to repair at this one; None for one that nobody has taken."""
    taken = taken_of(deployment)
    return Repair(taken=taken, certain=taken.stale) if taken else None


async def give_back(client: Client, taken: Taken) -> int | None:
    """Restore the count and remove the annotation, if it still is that holder's; a count that is not zero stays."""

    def change(found: Obj) -> Obj | None:
        now = taken_of(found)
        if now is None or now.holder != taken.holder:
            return None
        count = replicas_of(found) or now.replicas
        return {"metadata": {"annotations": {ANNOTATION: None}}, "spec": {"replicas": count}}

    answer = await _changed(client, taken.ref, change)
    return replicas_of(answer) if answer else None


async def _changed(client: Client, ref: ObjectRef, change: Callable[[Obj], Obj | None]) -> Obj | None:
    """Patch what is there now by what `change` makes of it; None when it makes nothing, or nothing is there."""
    for left in reversed(range(_TRIES)):
        try:
            found = await client.get(ref)
            body = change(found)
            if body is None:
                return None
            body["metadata"]["resourceVersion"] = version_of(found)
            return await client.patch(ref, body, PatchKind.MERGE, _MANAGER)
        except NotFound:
            return None
        except Conflict:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


class Takeover:
    """What one run has taken over. `give_all_back` is safe to call whatever came of `take`."""

    def __init__(self, client: Client, *, clock: Clock, identity: str, kubectl: Sequence[str]) -> None:
        self._client = client
        self._clock = clock
        self._identity = identity
        self._kubectl = kubectl
        self._taken: list[Taken] = []

    def __repr__(self) -> str:
        return f"Takeover(taken={len(self._taken)})"

    async def take(self, deployment: Obj) -> None:
        """Scale it to zero and wait until its pods are gone; goes on from the takeover that is seen here, if any."""
        ref, before = ref_of(deployment), taken_of(deployment)
        self._announce(ref, self._next(deployment).replicas)

        def change(found: Obj) -> Obj:
            now, mine = taken_of(found), self._next(found)
            if now and now.holder not in (self._identity, before.holder if before else ""):
                raise Refused(f"Somebody else was quicker: {now.text}.", next_step="stop that run first")
            # Before it is sent: who is cut here has to give it back as well.
            self._taken = [*(one for one in self._taken if one.ref != ref), mine]
            note = {"holder": mine.holder, "replicas": mine.replicas, "since": mine.since}
            return {"metadata": {"annotations": {ANNOTATION: json.dumps(note)}}, "spec": {"replicas": 0}}

        try:
            answer = await _changed(self._client, ref, change)
        except Forbidden as error:
            error.next_step = error.next_step or f"--takeover needs the right to patch {ref}"
            raise
        if answer is not None:
            await self._gone(answer)

    def _next(self, found: Obj) -> Taken:
        before = taken_of(found)
        replicas = replicas_of(found) or (before.replicas if before else 0)
        return Taken(ref=ref_of(found), holder=self._identity, replicas=replicas, since=rfc3339(self._clock.now()))

    def _announce(self, ref: ObjectRef, replicas: int) -> None:
        line = by_hand(ref, replicas, self._kubectl)
        _log.info(
            "Taking over: %s goes to zero until this run ends, and back to %d then. By hand: %s",
            ref,
            replicas,
            line,
            extra={"action": "takeover.begin", "deployment": str(ref), "replicas": replicas, "restore": line},
        )

    async def _gone(self, deployment: Obj) -> None:
        """Return once nothing of it runs any more: two must not act."""
        ref = ref_of(deployment)
        labels = str(from_label_selector(deployment["spec"]["selector"]))
        told = False
        while left := await self._pods(ref, labels):
            if not told:
                _log.info("Waiting until its pods are gone: %s", ", ".join(left), extra={"action": "takeover.wait"})
            told = True
            await self._clock.sleep(_ASK_AGAIN)

    async def _pods(self, ref: ObjectRef, labels: str) -> list[str]:
        try:
            pods = await self._client.list(PODS, ListQuery(namespace=ref.namespace, labels=labels))
        except Forbidden:
            # Who may not see pods still sees the Deployment's own count, which leaves out those that are ending.
            status = (await self._client.get(ref)).get("status") or {}
            return [f"{status['replicas']} of {ref}"] if status.get("replicas") else []
        return [name_of(pod) for pod in pods.items if (pod.get("status") or {}).get("phase") not in _OVER]

    async def give_all_back(self) -> None:
        """Restore what was taken; what cannot be restored is told with the line that does it."""
        for taken in self._taken:
            try:
                async with self._clock.timeout(_LAST_WORDS):
                    count = await self._restored(taken)
            except (CtrlError, TimeoutError) as error:
                line = by_hand(taken.ref, taken.replicas, self._kubectl)
                _log.error(
                    "%s could not be restored: %s By hand: %s",
                    taken.ref,
                    str(error) or "no answer in time.",
                    line,
                    extra={"action": "takeover.failed", "restore": line},
                )
                continue
            if count is not None:
                text = "%s is back at %d." if count == taken.replicas else "%s stays at %d, as somebody set it."
                _log.info(text, taken.ref, count, extra={"action": "takeover.end", "replicas": count})
        self._taken = []

    async def _restored(self, taken: Taken) -> int | None:
        while True:
            try:
                return await give_back(self._client, taken)
            except Forbidden:
                raise
            except CallError as error:
                _log.debug("%s could not be restored yet: %s", taken.ref, error.message)
            await self._clock.sleep(_ASK_AGAIN)
