"""The CronJob controller: a Job at each time of a schedule, and only a few finished ones."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubectl_ctrl.clock import parse_rfc3339, rfc3339
from kubectl_ctrl.model.objects import (
    Key,
    Obj,
    annotations_of,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    version_of,
)
from kubectl_ctrl.model.owners import controlled_by, owner_reference
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers.jobs import finished_condition
from kubectl_ctrl.sandbox.controllers.pods import refusal_message
from kubectl_ctrl.sandbox.controllers.resources import CRONJOBS, JOBS
from kubectl_ctrl.sandbox.controllers.workloads import WorkloadController
from kubectl_ctrl.sandbox.kinds.schedules import BadSchedule, Schedule, parse_schedule

_PLANNED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_DELAY = 0.1  # seconds after the planned time, in case the clocks of two machines differ
_MANY = 100  # missed times


class CronJobs(WorkloadController):
    resource = CRONJOBS
    source = "cronjob-controller"
    owned = (JOBS,)

    def sync(self, key: Key) -> float | None:
        found = self.cluster.get(CRONJOBS, key)
        return None if found is None else _Round(self, found).act()


class _Round:
    """One sync of one CronJob."""

    def __init__(self, controller: CronJobs, found: Obj) -> None:
        self._controller = controller
        self._cluster = controller.cluster
        self._now = self._cluster.clock.now()
        self._cron = found
        self._spec = found["spec"]
        self._status: Obj = deepcopy(found.get("status") or {})
        self._active: list[Obj] = self._status.get("active") or []
        self._jobs = self._cluster.controlled(JOBS, found)

    def act(self) -> float | None:
        self._delete_old("Complete", self._spec.get("successfulJobsHistoryLimit", 3))
        self._delete_old("Failed", self._spec.get("failedJobsHistoryLimit", 1))
        self._observe()
        refused: Refusal | None = None
        again = None
        if not is_deleting(self._cron):
            try:
                again = self._schedule()
            except Refusal as refusal:
                refused = refusal
        self._status = {**self._status, "active": self._active}
        if not self._active:
            del self._status["active"]
        self._controller.write_status(self._cron, self._status)
        if refused is not None:
            raise refused
        return again

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._controller.event(self._cron, reason, message, warning=warning)

    # -- the Jobs that exist

    def _delete_old(self, how: str, limit: int) -> None:
        ended = [job for job in self._jobs if finished_condition(job) == how]
        ended.sort(key=lambda job: ((job.get("status") or {}).get("startTime") or "~", name_of(job)))
        for job in ended[: max(0, len(ended) - limit)]:
            self._delete(job)

    def _delete(self, job: Obj) -> None:
        self._cluster.delete(JOBS, job, propagationPolicy="Background")
        self._active = [one for one in self._active if one["uid"] != uid_of(job)]
        self._jobs = [one for one in self._jobs if one is not job]
        self._event("SuccessfulDelete", f"Deleted job {name_of(job)}")

    def _observe(self) -> None:
        listed = {one["uid"] for one in self._active}
        for job in self._jobs:
            how = finished_condition(job)
            if how is None and uid_of(job) not in listed:
                words = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
                self._event("UnexpectedJob", words, warning=True)
            elif how is not None and uid_of(job) in listed:
                self._active = [one for one in self._active if one["uid"] != uid_of(job)]
                self._event("SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: {how}")
            if how == "Complete":
                self._note_success((job.get("status") or {}).get("completionTime") or "")
        there = {uid_of(job) for job in self._jobs}
        for one in [one for one in self._active if one["uid"] not in there]:
            self._event("MissingJob", f"Active job went missing: {one['name']}")
            self._active.remove(one)

    def _note_success(self, at: str) -> None:
        if at > self._status.get("lastSuccessfulTime", ""):
            self._status["lastSuccessfulTime"] = at

    # -- the next Job

    def _schedule(self) -> float | None:
        schedule = self._parsed()
        if schedule is None:
            return None
        if "TZ" in self._spec["schedule"]:
            self._warn_of_zone()
        try:
            planned, missed = self._last_planned(schedule, deadline=True)
        except BadSchedule as error:
            self._event("InvalidSchedule", f"invalid schedule: {self._spec['schedule']} : {error}", warning=True)
            return None
        if planned is not None:
            if missed > _MANY:
                words = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                self._event("TooManyMissedTimes", words, warning=True)
            self._start(planned)
        return self._until_next(schedule)

    def _parsed(self) -> Schedule | None:
        """None if no Job may start."""
        zone = self._spec.get("timeZone") or ""
        if zone and not _exists(zone):
            words = f'invalid timeZone: "{zone}": unknown time zone {zone}'
            self._event("UnknownTimeZone", words, warning=True)
            return None
        if self._spec.get("suspend"):
            return None
        try:
            return parse_schedule(self._spec["schedule"], zone)
        except (BadSchedule, ZoneInfoNotFoundError) as error:
            words = f'unparseable schedule: "{self._spec["schedule"]}" : {error}'
            self._event("UnparseableSchedule", words, warning=True)
            return None

    def _warn_of_zone(self) -> None:
        page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        why = f"is not officially supported, see {page} for more details"
        words = f'CRON_TZ or TZ used in schedule "{self._spec["schedule"]}" {why}'
        self._event("UnsupportedSchedule", words, warning=True)

    def _last_planned(self, schedule: Schedule, *, deadline: bool) -> tuple[float | None, int]:
        """The latest time that has come since the last Job, and about how many have come."""
        first = self._earliest(deadline=deadline)
        one = schedule.next(first)
        two = schedule.next(one) if one is not None else None
        if one is None or two is None or two - one < 1:
            raise BadSchedule("time difference between two schedules is less than 1 second")
        if self._now < one:
            return None, 0
        if self._now < two:
            return one, 0
        count = int(self._now - one) // int(two - one) + 1
        latest, at = None, schedule.next(one + (count - 2) * int(two - one))
        while at is not None and at <= self._now:
            latest, at = at, schedule.next(at)
        return latest, count

    def _earliest(self, *, deadline: bool) -> float:
        last = self._status.get("lastScheduleTime") or self._cron["metadata"]["creationTimestamp"]
        first = parse_rfc3339(last)
        if deadline and "startingDeadlineSeconds" in self._spec:
            return max(first, self._now - float(self._spec["startingDeadlineSeconds"]))
        return first

    def _until_next(self, schedule: Schedule) -> float | None:
        try:
            latest, missed = self._last_planned(schedule, deadline=False)
        except BadSchedule:
            latest, missed = self._now, 0
        start = latest if latest is not None else self._now if missed else self._earliest(deadline=False)
        at = schedule.next(start)
        return None if at is None else at + _DELAY - self._now

    def _start(self, planned: float) -> None:
        late = self._spec.get("startingDeadlineSeconds")
        if late is not None and planned + late < self._now:
            when = datetime.fromtimestamp(planned, UTC).strftime("%a, %d %b %Y %H:%M:%S UTC")
            self._event("MissSchedule", f"Missed scheduled time to start a job: {when}", warning=True)
            return
        name, policy = f"{name_of(self._cron)}-{int(planned) // 60}", self._spec.get("concurrencyPolicy", "Allow")
        known = any(one["name"] == name for one in self._active)
        if known or self._status.get("lastScheduleTime") == rfc3339(planned):
            return
        if policy == "Forbid" and self._active:
            words = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event("JobAlreadyActive", words)
            return
        if policy == "Replace":
            running = {one["uid"] for one in self._active}
            for job in [job for job in self._jobs if uid_of(job) in running]:
                self._delete(job)
        self._create(name, planned)

    def _create(self, name: str, planned: float) -> None:
        job = self._cluster.get(JOBS, Key(namespace_of(self._cron), name))
        if job is not None and not controlled_by(job, uid_of(self._cron)):
            return
        if job is None:
            try:
                job = self._cluster.create(self._job(name, planned))
            except Refusal as refusal:
                self._event("FailedCreate", f"Error creating job: {refusal_message(refusal)}", warning=True)
                raise
            self._event("SuccessfulCreate", f"Created job {name}")
        reference = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "namespace": namespace_of(job), "name": name}
        self._active = [*self._active, {**reference, "uid": uid_of(job), "resourceVersion": version_of(job)}]
        self._status["lastScheduleTime"] = rfc3339(planned)

    def _job(self, name: str, planned: float) -> Obj:
        template = {"metadata": {}, **self._spec["jobTemplate"]}
        zone = ZoneInfo(self._spec.get("timeZone") or "UTC")
        at = datetime.fromtimestamp(planned, zone).isoformat().replace("+00:00", "Z")
        metadata = {
            "name": name,
            "namespace": namespace_of(self._cron),
            "labels": labels_of(template),
            "annotations": {**annotations_of(template), _PLANNED: at},
            "ownerReferences": [owner_reference(self._cron)],
        }
        return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": template["spec"]}


def _exists(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return False
    return True
