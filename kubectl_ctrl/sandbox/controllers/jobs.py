"""The Job controller: pods until enough of them have succeeded, or too many have failed.

Each pod has a finalizer until the Job has counted it. A pod that ends is listed in `uncountedTerminatedPods` before its
finalizer is removed, and in the counters afterwards, so that no client sees a pod that is counted twice or not at all.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, namespace_of, uid_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers import jobpods
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess
from kubectl_ctrl.sandbox.controllers.pods import is_active, is_ready, is_terminating, phase_of
from kubectl_ctrl.sandbox.controllers.resources import JOBS
from kubectl_ctrl.sandbox.controllers.workloads import WorkloadController, is_finished

_ITSELF = "kubernetes.io/job-controller"
_MOST_AT_ONCE = 500  # pods created or deleted in one step


class Jobs(WorkloadController):
    resource = JOBS
    source = "job-controller"

    def __init__(self, cluster: ClusterAccess) -> None:
        super().__init__(cluster)
        self.failures: dict[str, tuple[int, float]] = {}  # UID: the failures since the last success, and the last time

    def sync(self, key: Key) -> float | None:
        job = self.cluster.get(JOBS, key)
        if job is None or finished_condition(job) is not None:
            self._release(key, job)
            return None
        if job["spec"].get("managedBy", _ITSELF) != _ITSELF:
            return None
        return _Round(self, job).act()

    def _release(self, key: Key, job: Obj | None) -> None:
        """Remove the finalizer of pods that no Job will count any more."""
        self.failures.pop(uid_of(job) if job is not None else "", None)
        for pod in list(self.cluster.all(PODS, key.namespace)):
            if jobpods.is_tracked(pod) and self._is_orphan(pod):
                self.untrack(pod)

    def _is_orphan(self, pod: Obj) -> bool:
        reference = controller_of(pod)
        if reference is None:
            return True
        if (reference["kind"], reference["apiVersion"]) != (JOBS.kind, JOBS.api_version):
            return False
        job = self.cluster.get(JOBS, Key(namespace_of(pod), reference["name"]))
        return job is None or uid_of(job) != reference["uid"] or finished_condition(job) is not None

    def untrack(self, pod: Obj) -> None:
        left = [name for name in pod["metadata"].get("finalizers") or () if name != jobpods.FINALIZER]
        self.cluster.merge(PODS, pod, {"metadata": {"finalizers": left}})


def finished_condition(job: Obj) -> str | None:
    """Complete or Failed, if the Job is."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next(
        (one["type"] for one in conditions if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None
    )


class _Round:
    """One sync of one Job."""

    def __init__(self, controller: Jobs, job: Obj) -> None:
        self._controller = controller
        self._cluster = controller.cluster
        self._now = self._cluster.clock.now()
        self.job = job
        self.spec = job["spec"]
        self.status: Obj = deepcopy(job.get("status") or {})
        self._uncounted = {
            name: list((self.status.get("uncountedTerminatedPods") or {}).get(name) or [])
            for name in ("succeeded", "failed")
        }
        self._conditions: list[Obj] = self.status.get("conditions") or []
        self._again: list[float] = []
        self._refused: Refusal | None = None
        self._verdict: Obj | None = None  # the condition with which the Job ends
        self._completions: int | None = self.spec.get("completions")
        self._indexed = self.spec.get("completionMode") == "Indexed"
        self._suspended = bool(self.spec.get("suspend"))
        self._per_index = self._indexed and "backoffLimitPerIndex" in self.spec
        self._find_pods()

    def _find_pods(self) -> None:
        if self.spec.get("selector"):
            self._pods = self._controller.claim(self.job)
        else:
            self._pods = self._cluster.controlled(PODS, self.job)
        self._pods.sort(key=jobpods.index_of)
        self._active = [pod for pod in self._pods if is_active(pod)]
        self._ready = sum(map(is_ready, self._active))
        self._terminating = sum(map(is_terminating, self._pods))
        tracked = [pod for pod in self._pods if jobpods.is_tracked(pod) and self._is_valid(pod)]
        self._succeeded_pods = [pod for pod in tracked if phase_of(pod) == "Succeeded"]
        self._failed_pods = [pod for pod in tracked if jobpods.has_failed(self.spec, pod)]
        self._succeeded_before, self._failed_indexes = self._indexes("completedIndexes"), self._indexes("failedIndexes")
        self._succeeded = self._succeeded_before | {
            jobpods.index_of(pod) for pod in self._succeeded_pods if self._indexed
        }
        self._delayed: dict[int, Obj] = {}

    def _indexes(self, field: str) -> set[int]:
        return jobpods.parse_indexes(self.status.get(field) or "", self._completions or 0) if self._indexed else set()

    def _is_valid(self, pod: Obj) -> bool:
        return not self._indexed or 0 <= jobpods.index_of(pod) < (self._completions or 0)

    # -- the steps of a round

    def act(self) -> float | None:
        new_failed = [pod for pod in self._failed_pods if uid_of(pod) not in self._uncounted["failed"]]
        new_succeeded = [pod for pod in self._succeeded_pods if uid_of(pod) not in self._uncounted["succeeded"]]
        counted = sum(jobpods.counts(self.spec, pod) for pod in new_failed)
        failed = int(self.status.get("failed") or 0) + len(self._uncounted["failed"]) + counted
        done = int(self.status.get("succeeded") or 0) + len(self._uncounted["succeeded"]) + len(new_succeeded)
        if "startTime" not in self.status and not self._suspended:
            self.status["startTime"] = self._cluster.now
        self._remember(new_succeeded, new_failed)
        self._judge(failed)
        if self._indexed:
            self._judge_indexes()
            done = len(self._succeeded)
        if self._verdict is not None:
            self._stop(self._active, untrack=False)
        else:
            self._proceed(done)
        self._count()
        if self._refused is not None:
            raise self._refused
        return min(self._again, default=None)

    def _remember(self, succeeded: list[Obj], failed: list[Obj]) -> None:
        """Count the failures since the last success, for the delay of the next pods."""
        if not succeeded and not failed:
            return
        count, last = self._controller.failures.get(uid_of(self.job), (0, 0.0))
        if succeeded:
            count, last = 0, max(map(jobpods.finished_at, succeeded))
        times = [at for at in map(jobpods.finished_at, failed) if not succeeded or at > last]
        self._controller.failures[uid_of(self.job)] = (count + len(times), max([last, *times]))

    def _judge(self, failed: int) -> None:
        """The reason for which the Job fails, or the one that was found before."""
        for kind, final in (("SuccessCriteriaMet", "SuccessCriteriaMet"), ("FailureTarget", "Failed")):
            if (known := self._condition(kind)) is not None and known["status"] == "True":
                self._verdict = self._new_condition(final, known.get("reason", ""), known.get("message", ""))
                return
        for pod in self._pods:
            action, message = jobpods.verdict(self.spec, pod) if jobpods.has_failed(self.spec, pod) else ("", "")
            if action == "FailJob":
                self._verdict = self._new_condition("FailureTarget", "PodFailurePolicy", message)
                return
        limit = int(self.spec.get("backoffLimit", 2**31 - 1 if self._per_index else 6))
        if failed > limit or self._restarts_too_often(limit):
            self._fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        elif "activeDeadlineSeconds" in self.spec and not self._suspended:
            left = parse_rfc3339(self.status["startTime"]) + self.spec["activeDeadlineSeconds"] - self._now
            if left <= 0:
                self._fail("DeadlineExceeded", "Job was active longer than specified deadline")
            else:
                self._again.append(left)

    def _restarts_too_often(self, limit: int) -> bool:
        if self.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        return jobpods.restarts(self._pods) >= max(limit, 1)

    def _judge_indexes(self) -> None:
        if self._per_index:
            self._find_failed_indexes()
            most, failed = self.spec.get("maxFailedIndexes"), len(self._failed_indexes)
            if self._verdict is None and most is not None and failed > most:
                words = "Job has exceeded the specified maximal number of failed indexes"
                self._fail("MaxFailedIndexesExceeded", words)
            elif self._verdict is None and failed and failed + len(self._succeeded) >= (self._completions or 0):
                self._fail("FailedIndexes", "Job has failed indexes")
        if self._verdict is None and (message := jobpods.success_rule(self.spec, self._succeeded)):
            self._verdict = self._new_condition("SuccessCriteriaMet", "SuccessPolicy", message)

    def _find_failed_indexes(self) -> None:
        """Also the failed pods that stay until their replacement exists, which continues their count."""
        for pod in self._failed_pods:
            action, _ = jobpods.verdict(self.spec, pod)
            over = jobpods.failures_of_index(pod) >= self.spec["backoffLimitPerIndex"]
            if action == "FailIndex" or (over and action != "Ignore"):
                self._failed_indexes.add(jobpods.index_of(pod))
        settled = self._succeeded | self._failed_indexes | {jobpods.index_of(pod) for pod in self._active}
        for pod in sorted(self._failed_pods, key=lambda pod: (jobpods.all_failures(pod), jobpods.finished_at(pod))):
            if jobpods.index_of(pod) not in settled:
                self._delayed[jobpods.index_of(pod)] = pod

    def _proceed(self, done: int) -> None:
        """Keep the right number of pods, and see whether all have succeeded."""
        managed = not is_deleting(self.job)
        if managed:
            self._manage(done)
        enough = done > 0 if self._completions is None else done >= self._completions
        if enough and not self._active:
            words = "Reached expected number of succeeded pods"
            self._verdict = self._new_condition("SuccessCriteriaMet", "CompletionsReached", words)
        elif managed and self._suspended:
            if self._set_condition("Suspended", "True", "JobSuspended", "Job suspended"):
                self._controller.event(self.job, "Suspended", "Job suspended")
                self.status.pop("startTime", None)
        elif managed and self._set_condition("Suspended", "False", "JobResumed", "Job resumed"):
            self._controller.event(self.job, "Resumed", "Job resumed")
            self.status["startTime"] = self._cluster.now

    def _manage(self, done: int) -> None:
        if self._suspended:
            self._stop(self._active, untrack=True)
            return
        wanted = int(self.spec.get("parallelism", 1))
        if self._completions is not None:
            wanted = max(0, min(wanted, self._completions - done))
        elif done:
            wanted = len(self._active)
        surplus = self._surplus(wanted)
        if surplus:
            self._stop(surplus[:_MOST_AT_ONCE], untrack=True)
            return
        waiting = self._terminating if jobpods.replaces_only_failed(self.spec) else 0
        if (missing := wanted - waiting - len(self._active)) > 0:
            self._start(min(missing, _MOST_AT_ONCE))

    def _surplus(self, wanted: int) -> list[Obj]:
        """Pods with an invalid or repeated index, and others until few enough are left."""
        ordered = sorted(self._active, key=jobpods.removal_order)
        repeated: list[Obj] = []
        if self._indexed:
            last = {jobpods.index_of(pod): uid_of(pod) for pod in ordered}
            repeated = [pod for pod in ordered if not self._is_valid(pod) or last[jobpods.index_of(pod)] != uid_of(pod)]
        others = [pod for pod in ordered if pod not in repeated]
        return [*repeated, *others[: max(0, len(others) - wanted)]]

    def _start(self, count: int) -> None:
        indexes = self._free_indexes(count) if self._indexed else [-1] * count
        wait = 0.0
        if self._per_index:
            waits = {index: self._index_delay(index) for index in indexes}
            indexes = [index for index in indexes if not waits[index]]
            wait = min(waits.values(), default=0.0)
        else:
            wait = jobpods.delay(*self._controller.failures.get(uid_of(self.job), (0, 0.0)), self._now)
        if wait:
            self._again.append(wait)
            return
        for index in indexes:
            try:
                pod = jobpods.new_pod(self.job, index, self._delayed.get(index))
                self._active.append(self._controller.create_pod(self.job, pod))
            except Refusal as refusal:
                self._refused = refusal
                return

    def _index_delay(self, index: int) -> float:
        former = self._delayed.get(index)
        if former is None:
            return 0.0
        return jobpods.delay(jobpods.all_failures(former) + 1, jobpods.finished_at(former), self._now)

    def _free_indexes(self, count: int) -> list[int]:
        taken = self._succeeded | self._failed_indexes | {jobpods.index_of(pod) for pod in self._active}
        if jobpods.replaces_only_failed(self.spec):
            taken |= {jobpods.index_of(pod) for pod in filter(is_terminating, self._pods)}
        return [index for index in range(self._completions or 0) if index not in taken][:count]

    def _stop(self, pods: list[Obj], *, untrack: bool) -> None:
        for pod in list(pods):
            if untrack and jobpods.is_tracked(pod):
                self._controller.untrack(pod)
            self._controller.delete_pod(self.job, pod)
            self._ready -= is_ready(pod)
            left = self._cluster.get(PODS, key_of(pod))
            self._terminating += left is not None
        self._active = [pod for pod in self._active if pod not in pods]

    # -- the status

    def _count(self) -> None:
        """List ended pods in the status, remove their finalizers, then count them and end the Job."""
        removed = [pod for pod in self._pods if jobpods.is_tracked(pod) and self._may_untrack(pod)]
        final = self._verdict
        for pod in removed:
            self._list(pod, ended=final is not None and final["type"] != "SuccessCriteriaMet")
        if final is not None and final["type"] in ("FailureTarget", "SuccessCriteriaMet"):
            if self._condition(final["type"]) is None:
                self._conditions.append(final)
            kind = "Failed" if final["type"] == "FailureTarget" else "Complete"
            final = self._new_condition(kind, final["reason"], final["message"])
        self._write()
        gone = [pod for pod in removed if is_deleting(self._cluster.get(PODS, key_of(pod)) or pod)]
        for pod in removed:
            self._controller.untrack(pod)
        self._terminating -= sum(not is_finished(pod) and self._cluster.get(PODS, key_of(pod)) is None for pod in gone)
        for name, field in (("succeeded", "succeeded"), ("failed", "failed")):
            if not (name == "succeeded" and self._indexed):
                self.status[field] = int(self.status.get(field) or 0) + len(self._uncounted[name])
            self._uncounted[name] = []
        if final is not None and self._terminating <= 0:
            self._end(final)
        self._write()
        if final is not None and final in self._conditions:
            self._report(final)

    def _may_untrack(self, pod: Obj) -> bool:
        if is_deleting(self.job) or self._verdict is not None or phase_of(pod) == "Succeeded":
            return True
        return jobpods.has_failed(self.spec, pod) and self._delayed.get(jobpods.index_of(pod)) is not pod

    def _list(self, pod: Obj, *, ended: bool) -> None:
        uid = uid_of(pod)
        if not self._is_valid(pod):
            return
        if phase_of(pod) == "Succeeded" and uid not in self._uncounted["failed"]:
            if not self._indexed and uid not in self._uncounted["succeeded"]:
                self._uncounted["succeeded"].append(uid)
        elif (
            (jobpods.has_failed(self.spec, pod) or ended)
            and uid not in self._uncounted["failed"]
            and jobpods.counts(self.spec, pod)
        ):
            self._uncounted["failed"].append(uid)

    def _write(self) -> None:
        """The status as clients see it."""
        if self._indexed:
            self.status["succeeded"] = len(self._succeeded)
            self.status["completedIndexes"] = jobpods.format_indexes(self._succeeded)
        if self._per_index:
            self.status["failedIndexes"] = jobpods.format_indexes(self._failed_indexes)
        self.status["active"] = len(self._active)
        for name in ("active", "succeeded", "failed", "completedIndexes"):
            if not self.status.get(name):
                self.status.pop(name, None)
        self.status["ready"] = self._ready
        self.status["terminating"] = max(0, self._terminating)
        self.status["uncountedTerminatedPods"] = {name: list(uids) for name, uids in self._uncounted.items() if uids}
        if self._conditions:
            self.status["conditions"] = list(self._conditions)
        self._controller.write_status(self._cluster.get(JOBS, key_of(self.job)) or self.job, self.status)

    def _end(self, final: Obj) -> None:
        self._conditions.append(final)
        if final["type"] == "Complete":
            self.status["completionTime"] = final["lastTransitionTime"]

    def _report(self, final: Obj) -> None:
        if final["type"] != "Complete":
            self._controller.event(self.job, final["reason"], final["message"], warning=True)
            return
        if self._completions is not None and int(self.status.get("succeeded") or 0) > self._completions:
            words = "Too many succeeded pods running after completion count reached"
            self._controller.event(self.job, "TooManySucceededPods", words, warning=True)
        self._controller.event(self.job, "Completed", "Job completed")

    # -- conditions

    def _fail(self, reason: str, message: str) -> None:
        self._verdict = self._new_condition("FailureTarget", reason, message)

    def _condition(self, kind: str) -> Obj | None:
        return next((one for one in self._conditions if one["type"] == kind), None)

    def _new_condition(self, kind: str, reason: str, message: str, status: str = "True") -> Obj:
        times: dict[str, Any] = dict.fromkeys(("lastProbeTime", "lastTransitionTime"), self._cluster.now)
        return {"type": kind, "status": status, **times, "reason": reason, "message": message}

    def _set_condition(self, kind: str, status: str, reason: str, message: str) -> bool:
        """Whether this changed anything; a condition that was never true does not become false."""
        before = self._condition(kind)
        if (before is None and status == "False") or (before is not None and before["status"] == status):
            return False
        self._conditions = [one for one in self._conditions if one is not before]
        self._conditions.append(self._new_condition(kind, reason, message, status))
        return True
