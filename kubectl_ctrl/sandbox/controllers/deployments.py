"""Rolls Deployments out: one ReplicaSet for each template, scaled within the limits of the strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubectl_ctrl.model.objects import Key, Obj, generation_of, is_deleting, key_of, name_of, uid_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers import pods, progress, revisions
from kubectl_ctrl.sandbox.controllers.base import OwnerController
from kubectl_ctrl.sandbox.controllers.revisions import replicas_of
from kubectl_ctrl.sandbox.storage import StoredChange
from kubectl_ctrl.value import Struct

_SOURCE = "deployment-controller"
_NO_LIMIT = 2**31 - 1


class _Rollout(Struct):
    """One step of one Deployment. `deployment` and the ReplicaSets are replaced as the step writes them."""

    deployment: Obj
    newest: Obj | None  # the ReplicaSet of the current template
    older: list[Obj]

    @property
    def all(self) -> list[Obj]:
        return [*self.older, *([self.newest] if self.newest is not None else [])]

    @property
    def active(self) -> list[Obj]:
        return _active(self.all)

    def put(self, replicaset: Obj) -> None:
        """Use the state after a write."""
        self.older = [replicaset if uid_of(one) == uid_of(replicaset) else one for one in self.older]
        if self.newest is not None and uid_of(self.newest) == uid_of(replicaset):
            self.newest = replicaset


class DeploymentController(OwnerController):
    owner = DEPLOYMENTS
    owned = REPLICASETS

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == PODS.full_name and change.new is None:
            return self._waiting_for(change.obj)
        return super().concerns(table, change)

    def _waiting_for(self, pod: Obj) -> Iterable[Key]:
        """The Deployment that recreates its pods, which waits for the end of each old one."""
        above = controller_of(pod)
        replicaset = self.cluster.get(REPLICASETS, Key(key_of(pod).namespace, above["name"])) if above else None
        owner = controller_of(replicaset) if replicaset is not None else None
        if owner is not None:
            yield Key(key_of(pod).namespace, owner["name"])

    def sync(self, key: Key) -> float | None:
        deployment = self.cluster.get(DEPLOYMENTS, key)
        if deployment is None or not _selects(deployment):
            return None
        claimed = self.cluster.claim(REPLICASETS, deployment, self.selector(deployment))
        claimed.sort(key=_age)
        step = self._step_of(deployment, claimed)
        if is_deleting(deployment):
            return self._finish(self._revised(step), rolling=False)
        if (paused := progress.pause_condition(deployment, self.cluster.now)) is not None:
            self._set_status(step, {**(deployment.get("status") or {}), "conditions": paused})
        if deployment["spec"].get("paused") or self._is_scaled(self._revised(step)):
            return self._scale_only(self._revised(step))
        if revisions.is_rolling(deployment):
            return self._roll(self._revised(step, create=True))
        return self._recreate(self._revised(step))

    def _step_of(self, deployment: Obj, claimed: list[Obj]) -> _Rollout:
        template = deployment["spec"]["template"]
        newest = next((one for one in claimed if revisions.is_of_template(one, template)), None)
        return _Rollout(deployment, newest, [one for one in claimed if one is not newest])

    # -- the ReplicaSet of the current template

    def _revised(self, step: _Rollout, *, create: bool = False) -> _Rollout:
        """The step after the current ReplicaSet has its revision, and after its creation if wanted."""
        revision = max(map(revisions.revision_of, step.older), default=0) + 1
        if step.newest is not None:
            self._revise(step, step.newest, revision)
        elif create:
            self._create(step, revision)
        return step

    def _revise(self, step: _Rollout, newest: Obj, revision: int) -> None:
        changed = revisions.new_annotations(step.deployment, newest, revision)
        min_ready = int(step.deployment["spec"].get("minReadySeconds") or 0)
        if changed or min_ready != int(newest["spec"].get("minReadySeconds") or 0):
            patch = {"metadata": {"annotations": changed}, "spec": {"minReadySeconds": min_ready or None}}
            step.newest = newest = self.cluster.merge(REPLICASETS, newest, patch) or newest
        conditions = None
        if progress.has_deadline(step.deployment) and pods.condition_of(step.deployment, "Progressing") is None:
            message = f'Found new replica set "{name_of(newest)}"'
            conditions = self._progressing(step, "True", "FoundNewReplicaSet", message)
        self._note(step, revisions.revision_of(newest), conditions)

    def _create(self, step: _Rollout, revision: int) -> None:
        deployment = step.deployment
        draft = revisions.replicaset_of(deployment, revisions.counted([deployment], "collisionCount"))
        size = revisions.new_size(deployment, step.older, draft)
        annotations = revisions.new_annotations(deployment, draft, revision) | revisions.size_annotations(deployment)
        draft["spec"]["replicas"] = size
        draft["metadata"]["annotations"] = annotations
        try:
            step.newest = self.cluster.create(draft)
        except Refusal as refusal:
            self._not_created(step, draft, refusal)
            raise
        name = name_of(step.newest)
        if size:
            self._event(step, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
        conditions = None
        if progress.has_deadline(deployment):
            message = f'Created new replica set "{name}"'
            conditions = self._progressing(step, "True", "NewReplicaSetCreated", message)
        self._note(step, revision, conditions)

    def _not_created(self, step: _Rollout, draft: Obj, refusal: Refusal) -> None:
        if self.cluster.get(REPLICASETS, key_of(draft)) is not None:
            # The name belongs to another template or owner: the next try has another hash.
            status = step.deployment.get("status") or {}
            self._set_status(step, {**status, "collisionCount": int(status.get("collisionCount") or 0) + 1})
        elif not pods.is_namespace_terminating(refusal):
            message = f'Failed to create new replica set "{name_of(draft)}": {pods.refusal_message(refusal)}'
            if progress.has_deadline(step.deployment):
                self._note(step, None, self._progressing(step, "False", "ReplicaSetCreateError", message))
            self._event(step, "ReplicaSetCreateError", message, kind="Warning")

    def _note(self, step: _Rollout, revision: int | None, conditions: list[Obj] | None) -> None:
        """Write the revision and the conditions of a Deployment in one request, if they change."""
        patch: Obj = {} if conditions is None else {"status": {"conditions": conditions}}
        if revision not in (None, revisions.revision_of(step.deployment)):
            patch["metadata"] = {"annotations": {revisions.REVISION: str(revision)}}
        if patch:
            step.deployment = self.cluster.merge(DEPLOYMENTS, step.deployment, patch, "status") or step.deployment

    # -- scaling

    def _is_scaled(self, step: _Rollout) -> bool:
        """Whether the Deployment's size changed since its ReplicaSets were scaled."""
        wanted = replicas_of(step.deployment)
        return any(revisions.desired_before(one) not in (None, wanted) for one in step.active)

    def _scale_only(self, step: _Rollout) -> float | None:
        self._resize(step)
        if step.deployment["spec"].get("paused"):
            self._clean_up(step)
        return self._finish(step, rolling=False)

    def _resize(self, step: _Rollout) -> None:
        wanted, active = replicas_of(step.deployment), step.active
        latest = active[0] if len(active) == 1 else step.newest or (step.older[-1] if step.older else None)
        if len(active) <= 1:
            if latest is not None:
                self._scale(step, latest, wanted)
        elif _is_saturated(step):
            for one in _active(step.older):
                self._scale(step, one, 0)
        elif revisions.is_rolling(step.deployment):
            self._resize_in_proportion(step, active)

    def _resize_in_proportion(self, step: _Rollout, active: list[Obj]) -> None:
        wanted = replicas_of(step.deployment)
        to_add = (wanted + revisions.max_surge(step.deployment) if wanted else 0) - revisions.requested(active)
        # The largest first; of two equal ones the newer one grows first, and the older one shrinks first.
        ordered = sorted(active, key=_age, reverse=to_add > 0)
        ordered.sort(key=replicas_of, reverse=True)
        sizes: dict[str, int] = {}
        added = 0
        for one in ordered:
            part = revisions.proportion(step.deployment, one, to_add, added)
            sizes[name_of(one)] = replicas_of(one) + part
            added += part
        first = name_of(ordered[0])
        sizes[first] = max(0, sizes[first] + to_add - added)
        for one in ordered:
            self._scale(step, one, sizes[name_of(one)], note=True)

    def _scale(self, step: _Rollout, replicaset: Obj, size: int, *, note: bool = False) -> bool:
        """Whether the size had to change; `note` also updates the annotations of an unchanged size."""
        before = replicas_of(replicaset)
        annotations = revisions.size_annotations(step.deployment)
        noted = annotations.items() <= (replicaset["metadata"].get("annotations") or {}).items()
        if before == size and (noted or not note):
            return False
        patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
        step.put(self.cluster.merge(REPLICASETS, replicaset, patch) or replicaset)
        if before == size:
            return False
        way = "up" if before < size else "down"
        message = f"Scaled {way} replica set {name_of(replicaset)} from {before} to {size}"
        self._event(step, "ScalingReplicaSet", message)
        return True

    # -- strategies

    def _roll(self, step: _Rollout) -> float | None:
        if not self._grow(step) and not self._shrink(step) and progress.is_complete(step.deployment):
            self._clean_up(step)
        return self._finish(step)

    def _grow(self, step: _Rollout) -> bool:
        assert step.newest is not None
        wanted = replicas_of(step.deployment)
        if replicas_of(step.newest) >= wanted:
            return self._scale(step, step.newest, wanted)
        return self._scale(step, step.newest, revisions.new_size(step.deployment, step.all, step.newest))

    def _shrink(self, step: _Rollout) -> bool:
        """Scale down the older ReplicaSets: pods that are not available first, then as many as may be unavailable."""
        assert step.newest is not None
        least = replicas_of(step.deployment) - revisions.max_unavailable(step.deployment)
        starting = replicas_of(step.newest) - revisions.counted([step.newest], "availableReplicas")
        room = revisions.requested(step.all) - least - starting
        if room <= 0 or not revisions.requested(step.older):
            return False
        cleaned = self._remove(step, room, lambda one: replicas_of(one) - revisions.counted([one], "availableReplicas"))
        # A set that was just scaled down still counts pods that are about to end.
        available = sum(min(replicas_of(one), revisions.counted([one], "availableReplicas")) for one in step.active)
        removed = self._remove(step, available - least, replicas_of)
        return cleaned + removed > 0

    def _remove(self, step: _Rollout, room: int, removable: Callable[[Obj], int]) -> int:
        """Scale down the older ReplicaSets, the oldest first, by at most `room` pods in all."""
        removed = 0
        for one in _active(step.older):
            part = min(room - removed, removable(one))
            if part > 0:
                self._scale(step, one, replicas_of(one) - part)
                removed += part
        return removed

    def _recreate(self, step: _Rollout) -> float | None:
        shrunk = [self._scale(step, one, 0) for one in _active(step.older)]
        if any(shrunk) or self._has_old_pods(step):
            return self._finish(step)
        if step.newest is None:
            self._revised(step, create=True)
        assert step.newest is not None
        self._scale(step, step.newest, replicas_of(step.deployment))
        if progress.is_complete(step.deployment):
            self._clean_up(step)
        return self._finish(step)

    def _has_old_pods(self, step: _Rollout) -> bool:
        if revisions.counted(step.older, "replicas"):
            return True
        found = (pod for one in step.older for pod in self.cluster.controlled(PODS, one))
        return any(pods.phase_of(pod) not in ("Succeeded", "Failed") for pod in found)

    def _clean_up(self, step: _Rollout) -> None:
        """Delete the oldest ReplicaSets beyond the history limit, if they are empty."""
        limit = int(step.deployment["spec"].get("revisionHistoryLimit", 10))
        alive = sorted((one for one in step.older if not is_deleting(one)), key=revisions.revision_of)
        for one in alive[: max(0, len(alive) - limit)] if limit != _NO_LIMIT else ():
            status = one.get("status") or {}
            observed = int(status.get("observedGeneration") or 0) >= generation_of(one)
            if not status.get("replicas") and not replicas_of(one) and observed:
                self.cluster.delete(REPLICASETS, one)

    # -- status

    def _finish(self, step: _Rollout, *, rolling: bool = True) -> float | None:
        """Write the status; the seconds until the deadline of the rollout."""
        status = progress.status_of(step.deployment, step.newest, step.all, self.cluster.now)
        if rolling:
            conditions = progress.rolling_conditions(step.deployment, step.newest, step.all, status, self._times())
            status = {**status, "conditions": conditions}
        before = step.deployment.get("status") or {}
        if not same(before, status):
            self._set_status(step, status)
            return None
        return progress.seconds_to_deadline(step.deployment, status, self.cluster.clock.now()) if rolling else None

    def _times(self) -> progress.Times:
        return progress.Times(now=self.cluster.clock.now(), stamp=self.cluster.now)

    def _progressing(self, step: _Rollout, value: str, reason: str, message: str) -> list[Obj]:
        condition = progress.condition("Progressing", value, reason, message, self.cluster.now)
        return progress.with_condition(step.deployment.get("status") or {}, condition)

    def _set_status(self, step: _Rollout, status: Obj) -> None:
        step.deployment = self.cluster.set_status(DEPLOYMENTS, step.deployment, status) or step.deployment

    def _event(self, step: _Rollout, reason: str, message: str, *, kind: str = "Normal") -> None:
        self.cluster.event(step.deployment, reason, message, kind=kind, source=_SOURCE)


def _age(replicaset: Obj) -> tuple[str, str]:
    return replicaset["metadata"]["creationTimestamp"], name_of(replicaset)


def _active(replicasets: list[Obj]) -> list[Obj]:
    return [one for one in replicasets if replicas_of(one) > 0]


def _selects(deployment: Obj) -> bool:
    """An empty selector would select everything."""
    return any((deployment["spec"].get("selector") or {}).values())


def _is_saturated(step: _Rollout) -> bool:
    """Whether the current ReplicaSet alone has all pods, and they are available."""
    if step.newest is None:
        return False
    wanted = replicas_of(step.deployment)
    available = revisions.counted([step.newest], "availableReplicas")
    return replicas_of(step.newest) == revisions.desired_before(step.newest) == available == wanted
