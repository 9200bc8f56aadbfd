"""Objects that are deleted after a time: Events, and finished Jobs with a time to live."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of
from kubectl_ctrl.model.resources import EVENTS
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess, Controller
from kubectl_ctrl.sandbox.controllers.resources import JOBS
from kubectl_ctrl.sandbox.storage import StoredChange

_LIFE_OF_EVENT = 3600.0


class EventExpiry(Controller):
    """An Event lives for an hour after its last change."""

    component = "kube-apiserver"

    def __init__(self, cluster: ClusterAccess) -> None:
        super().__init__(cluster)
        self._changed: dict[Key, float] = {}

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table != EVENTS.full_name:
            return ()
        key = change.key
        if change.new is None:
            self._changed.pop(key, None)
            return ()
        self._changed[key] = self.cluster.clock.elapsed()
        return (key,)

    def sync(self, key: Key) -> float | None:
        event = self.cluster.get(EVENTS, key)
        if event is None or key not in self._changed:
            return None
        left = self._changed[key] + _LIFE_OF_EVENT - self.cluster.clock.elapsed()
        if left > 0:
            return left
        self.cluster.delete(EVENTS, event)
        return None


class JobExpiry(Controller):
    """A finished Job lives for `ttlSecondsAfterFinished`."""

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        return (key_of(change.new),) if table == JOBS.full_name and change.new is not None else ()

    def sync(self, key: Key) -> float | None:
        job = self.cluster.get(JOBS, key)
        life = job["spec"].get("ttlSecondsAfterFinished") if job is not None else None
        if job is None or life is None or is_deleting(job) or (end := _end_of(job)) is None:
            return None
        left = end + float(life) - self.cluster.clock.now()
        if left > 0:
            return left
        self.cluster.delete(JOBS, job, propagationPolicy="Foreground", preconditions={"uid": uid_of(job)})
        return None


def _end_of(job: Obj) -> float | None:
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return parse_rfc3339(condition["lastTransitionTime"])
    return None
