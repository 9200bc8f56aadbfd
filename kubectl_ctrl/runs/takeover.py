"""Takes over from the controller's Deployment: scales it to zero for the time of a run, and restores it afterwards.

An annotation on the Deployment names the holder, the time and the number of replicas. It is set and removed together
with the replicas, in one patch with the resourceVersion that was read. So if this process dies, the next run or
`doctor` finds the Deployment and repairs it, and replicas that somebody else set meanwhile are never overwritten.
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
_RETRY_AFTER = 0.5
_RESTORE_TIMEOUT = 5.0
_FINISHED = ("Succeeded", "Failed")


class TakenOverDeployment(Value, kw_only=True):
    """The annotation of a Deployment that was taken over."""

    ref: ObjectRef
    holder: str
    replicas: int  # to be restored
    since: str

    @property
    def text(self) -> str:
        who = f"process {holder.pid_of(self.holder)} on this machine" if holder.is_here(self.holder) else self.holder
        return f"{self.ref} was scaled to zero by {who} at {self.since}, from {self.replicas}"


def taken_of(deployment: Obj) -> TakenOverDeployment | None:
    """The annotation of a Deployment; None if it has none, or one that cannot be parsed."""
    text = annotations_of(deployment).get(ANNOTATION)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return TakenOverDeployment(
            ref=ref_of(deployment),
            holder=str(fields["holder"]),
            replicas=int(fields["replicas"]),
            since=str(fields["since"]),
        )
    except (ValueError, KeyError, TypeError):
        _log.warning("Cannot parse the annotation %s of %s.", ANNOTATION, ref_of(deployment))
        return None


def ref_of(deployment: Obj) -> ObjectRef:
    return DEPLOYMENTS.ref(name_of(deployment), namespace_of(deployment))


def by_hand(ref: ObjectRef, replicas: int, kubectl: Sequence[str]) -> str:
    """The kubectl command that undoes a takeover; `kubectl` is its beginning, with the flags of the cluster."""
    patch = {"metadata": {"annotations": {ANNOTATION: None}}, "spec": {"replicas": replicas}}
    words = (*kubectl, "--namespace", ref.namespace, "patch", "deployment", ref.name)
    return str(command(*words, "--type=merge", "--patch", json.dumps(patch, separators=(",", ":"))))


class UnrestoredDeployment(Value, kw_only=True):
    """A Deployment that a run took over and did not restore. `certain`: that run is certainly gone."""

    taken: TakenOverDeployment
    certain: bool

    def goes_on(self, running: Container[str]) -> bool:
        """Whether that run is still active on this machine. False means unknown, and the user has to confirm.

        A process with its pid proves nothing: after a crash another process may have that pid.
        """
        return self.taken.holder in running

    @property
    def text(self) -> str:
        return f"{self.taken.text}, and not restored."

    async def restore(self, client: Client) -> int | None:
        """The number of replicas after the restore; None if it is gone, or already repaired."""
        return await give_back(client, self.taken)


async def repairs(client: Client, names: Sequence[str]) -> list[UnrestoredDeployment]:
    """The takeovers of these controllers that a dead run left, or, if not `certain`, a run may still hold."""
    found = [one for name in names for one in (await deployments_of(client, name)).objects]
    return [repair for one in found if (repair := repair_of(one))]


def repair_of(deployment: Obj) -> UnrestoredDeployment | None:
    taken = taken_of(deployment)
    return UnrestoredDeployment(taken=taken, certain=holder.is_dead(taken.holder)) if taken else None


async def give_back(client: Client, taken: TakenOverDeployment) -> int | None:
    """Restore the replicas and remove the annotation if it is still that holder's. Non-zero replicas are kept."""

    def change(found: Obj) -> Obj | None:
        now = taken_of(found)
        if now is None or now.holder != taken.holder:
            return None
        count = replicas_of(found) or now.replicas
        return {"metadata": {"annotations": {ANNOTATION: None}}, "spec": {"replicas": count}}

    answer = await _patch(client, taken.ref, change)
    return replicas_of(answer) if answer else None


async def _patch(client: Client, ref: ObjectRef, change: Callable[[Obj], Obj | None]) -> Obj | None:
    """Read the object and send the patch that `change` returns for it; None if there is no patch or no object."""
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
    """The Deployments that one run has taken over. `give_all_back` is safe after a failed `take`."""

    def __init__(self, client: Client, *, clock: Clock, identity: str, kubectl: Sequence[str]) -> None:
        self._client = client
        self._clock = clock
        self._identity = identity
        self._kubectl = kubectl
        self._taken: list[TakenOverDeployment] = []

    def __repr__(self) -> str:
        return f"Takeover(taken={len(self._taken)})"

    async def take(self, deployment: Obj) -> None:
        """Scale it to zero and wait until its pods are gone. It may replace the takeover that `deployment` shows."""
        ref, before = ref_of(deployment), taken_of(deployment)
        replicas = self._next(deployment).replicas
        line = by_hand(ref, replicas, self._kubectl)
        _log.info(
            "Taking over: %s is scaled to zero until this run stops, and then back to %d. By hand: %s",
            ref,
            replicas,
            line,
            extra={"action": "takeover.begin", "deployment": str(ref), "replicas": replicas, "restore": line},
        )

        def change(found: Obj) -> Obj:
            now, mine = taken_of(found), self._next(found)
            if now and now.holder not in (self._identity, before.holder if before else ""):
                raise Refused(f"Another run took it over first: {now.text}.", next_step="stop that run first")
            # Before the request: a run that is cancelled during it must restore the Deployment too.
            self._taken = [*(one for one in self._taken if one.ref != ref), mine]
            note = {"holder": mine.holder, "replicas": mine.replicas, "since": mine.since}
            return {"metadata": {"annotations": {ANNOTATION: json.dumps(note)}}, "spec": {"replicas": 0}}

        try:
            answer = await _patch(self._client, ref, change)
        except Forbidden as error:
            error.next_step = error.next_step or f"--takeover needs the right to patch {ref}"
            raise
        if answer is not None:
            await self._wait_for_pods(answer)

    def _next(self, found: Obj) -> TakenOverDeployment:
        before = taken_of(found)
        replicas = replicas_of(found) or (before.replicas if before else 0)
        return TakenOverDeployment(
            ref=ref_of(found), holder=self._identity, replicas=replicas, since=rfc3339(self._clock.now())
        )

    async def _wait_for_pods(self, deployment: Obj) -> None:
        """Wait until none of its pods runs: two controllers must not act at once."""
        ref = ref_of(deployment)
        labels = str(from_label_selector(deployment["spec"]["selector"]))
        reported = False
        while left := await self._pods(ref, labels):
            if not reported:
                _log.info("Waiting until its pods are gone: %s", ", ".join(left), extra={"action": "takeover.wait"})
            reported = True
            await self._clock.sleep(_RETRY_AFTER)

    async def _pods(self, ref: ObjectRef, labels: str) -> list[str]:
        try:
            pods = await self._client.list(PODS, ListQuery(namespace=ref.namespace, labels=labels))
        except Forbidden:
            # Without the right to list pods, use the replicas in the status, which do not count terminating pods.
            status = (await self._client.get(ref)).get("status") or {}
            return [f"{status['replicas']} of {ref}"] if status.get("replicas") else []
        return [name_of(pod) for pod in pods.items if (pod.get("status") or {}).get("phase") not in _FINISHED]

    async def give_all_back(self) -> None:
        """Restore all Deployments; a failure is logged with the command that restores by hand."""
        for taken in self._taken:
            try:
                async with self._clock.timeout(_RESTORE_TIMEOUT):
                    count = await self._restored(taken)
            except (CtrlError, TimeoutError) as error:
                line = by_hand(taken.ref, taken.replicas, self._kubectl)
                _log.error(
                    "Cannot restore %s: %s By hand: %s",
                    taken.ref,
                    str(error) or "the server did not answer in time.",
                    line,
                    extra={"action": "takeover.failed", "restore": line},
                )
                continue
            if count is not None:
                same = count == taken.replicas
                text = "Restored %s; replicas: %d." if same else "%s keeps the replicas that somebody else set: %d."
                _log.info(text, taken.ref, count, extra={"action": "takeover.end", "replicas": count})
        self._taken = []

    async def _restored(self, taken: TakenOverDeployment) -> int | None:
        while True:
            try:
                return await give_back(self._client, taken)
            except Forbidden:
                raise
            except CallError as error:
                _log.debug("%s is not restored yet: %s", taken.ref, error.message)
            await self._clock.sleep(_RETRY_AFTER)
