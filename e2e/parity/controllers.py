"""What the controllers of a cluster make of an object: its status, and the objects below it, after every step.

Most pods ask for a node that does not exist, so that no kubelet changes them: the scenario itself does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from e2e.parity.asks import PODS, SECRETS, SERVICES, STATEFULSETS, Ask, config_map, delete, patch, post

JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
CRONJOBS = "/apis/batch/v1/namespaces/{ns}/cronjobs"
DAEMONSETS = "/apis/apps/v1/namespaces/{ns}/daemonsets"
REVISIONS = "/apis/apps/v1/namespaces/{ns}/controllerrevisions"
CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
QUOTAS = "/api/v1/namespaces/{ns}/resourcequotas"
ENDPOINTS = "/api/v1/namespaces/{ns}/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"


@dataclass(frozen=True, slots=True)
class Deed:
    """The status of so many pods in the phase `Pending`, in the order of their completion index or name."""

    count: int
    phase: str
    code: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """The objects of a path, limited to these fields."""

    path: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Play:
    name: str
    views: tuple[View, ...]
    steps: tuple[Ask | Deed, ...]


def _play(name: str, views: Sequence[View], *steps: Ask | Deed) -> Play:
    return Play(name, tuple(views), steps)


def _spec(*, restart: str = "Always", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "web", "image": "nginx:1"}]
    return {"restartPolicy": restart, "nodeSelector": {"no": "where"}, "containers": containers, **spec}


def _selecting(kind: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": _spec()}
    full = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": full}


def _set(**spec: Any) -> Ask:
    return post(STATEFULSETS, _selecting("StatefulSet", **{"serviceName": "web", "replicas": 3, **spec}))


def _image(path: str) -> Ask:
    containers = [{"name": "web", "image": "nginx:2"}]
    return patch(path, {"spec": {"template": {"spec": {"containers": containers}}}})


def _job(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"job": "one"}}, "spec": _spec(restart=spec.pop("restart", "Never"))}
    own = {"manualSelector": True, "selector": {"matchLabels": {"job": "one"}}, "template": template}
    full = {"completions": 1, "parallelism": 1, **own, **spec}
    kept = {key: value for key, value in full.items() if value is not None}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": kept}


def _made(**spec: Any) -> Ask:
    return post(JOBS, _job(**spec))


_POD = View(
    PODS, ("metadata.name", "metadata.labels", "metadata.finalizers", "spec.hostname", "spec.subdomain", "status.phase")
)
_COUNT = View(PODS, ("metadata.labels.app", "metadata.finalizers", "status.phase"))
_OF_SET = (View(STATEFULSETS, ("status",)), _POD)
_WITH_HISTORY = (*_OF_SET, View(REVISIONS, ("metadata.name", "revision")))
_WITH_CLAIMS = (*_OF_SET, View(CLAIMS, ("metadata.name", "metadata.labels", "metadata.ownerReferences")))
_WEB = f"{STATEFULSETS}/web"
_TWO = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "data"}}
_CLAIM = [{**_TWO, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]
_ALL = {"whenScaled": "Delete", "whenDeleted": "Delete"}
_SETS = (
    _play("sts: one pod after the other", _OF_SET, _set(), Deed(1, "Running"), Deed(1, "Running"), Deed(1, "Running")),
    _play("sts: all at once", _OF_SET, _set(podManagementPolicy="Parallel"), Deed(3, "Running")),
    _play("sts: another first ordinal", _OF_SET, _set(replicas=1, ordinals={"start": 4}), Deed(1, "Running")),
    _play(
        "sts: fewer",
        _OF_SET,
        _set(podManagementPolicy="Parallel"),
        Deed(3, "Running"),
        patch(_WEB, {"spec": {"replicas": 1}}),
    ),
    _play(
        "sts: another image",
        _WITH_HISTORY,
        _set(replicas=2, podManagementPolicy="Parallel"),
        Deed(2, "Running"),
        _image(_WEB),
        Deed(1, "Running"),
        Deed(1, "Running"),
    ),
    _play(
        "sts: a partition",
        _WITH_HISTORY,
        _set(replicas=2, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        Deed(1, "Running"),
        Deed(1, "Running"),
        _image(_WEB),
        Deed(1, "Running"),
        delete(f"{PODS}/web-0"),
    ),
    _play(
        "sts: on delete",
        _WITH_HISTORY,
        _set(replicas=1, updateStrategy={"type": "OnDelete"}),
        Deed(1, "Running"),
        _image(_WEB),
        delete(f"{PODS}/web-0"),
    ),
    _play("sts: a failed pod", _OF_SET, _set(replicas=1), Deed(1, "Failed")),
    _play("sts: claims", _WITH_CLAIMS, _set(replicas=1, volumeClaimTemplates=_CLAIM)),
    _play(
        "sts: claims that go",
        _WITH_CLAIMS,
        _set(
            replicas=2,
            podManagementPolicy="Parallel",
            volumeClaimTemplates=_CLAIM,
            persistentVolumeClaimRetentionPolicy=_ALL,
        ),
        Deed(2, "Running"),
    ),
    _play("sts: gone", _OF_SET, _set(replicas=1), delete(_WEB)),
    _play("sts: gone in the foreground", _OF_SET, _set(replicas=1), delete(_WEB, {"propagationPolicy": "Foreground"})),
)

_OF_JOB = (View(JOBS, ("status",)), _COUNT)
_OF_INDEXED = (View(JOBS, ("status",)), _POD)
_ONE = f"{JOBS}/one"
_INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}


def _rule(action: str) -> dict[str, Any]:
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]}


_JOBS = (
    _play("job: one success", _OF_JOB, _made(), Deed(1, "Succeeded")),
    _play("job: one runs, one ends", _OF_JOB, _made(parallelism=2), Deed(1, "Running")),
    _play(
        "job: three successes", _OF_JOB, _made(parallelism=2, completions=3), Deed(2, "Succeeded"), Deed(1, "Succeeded")
    ),
    _play(
        "job: without completions",
        _OF_JOB,
        _made(completions=None, parallelism=2),
        Deed(1, "Succeeded"),
        Deed(1, "Succeeded"),
    ),
    _play("job: no parallelism", _OF_JOB, _made(parallelism=0)),
    _play("job: no completions", _OF_JOB, _made(completions=0)),
    _play("job: failed", _OF_JOB, _made(backoffLimit=0), Deed(1, "Failed", 1)),
    _play(
        "job: failed with others", _OF_JOB, _made(backoffLimit=0, parallelism=3, completions=3), Deed(1, "Failed", 1)
    ),
    _play("job: failed once", _OF_JOB, _made(), Deed(1, "Failed", 1)),
    _play("job: a deadline", _OF_JOB, _made(activeDeadlineSeconds=1)),
    _play("job: indexed", _OF_INDEXED, _made(**_INDEXED), Deed(1, "Succeeded"), Deed(2, "Succeeded")),
    _play("job: two indexes", _OF_INDEXED, _made(**{**_INDEXED, "parallelism": 2}), Deed(2, "Succeeded")),
    _play(
        "job: a failed index",
        _OF_JOB,
        _made(**_INDEXED, backoffLimitPerIndex=0),
        Deed(1, "Failed", 1),
        Deed(2, "Succeeded"),
    ),
    _play(
        "job: too many failed indexes",
        _OF_JOB,
        _made(**_INDEXED, backoffLimitPerIndex=0, maxFailedIndexes=0),
        Deed(1, "Failed", 1),
    ),
    _play(
        "job: success of one index",
        _OF_JOB,
        _made(**_INDEXED, successPolicy={"rules": [{"succeededCount": 1}]}),
        Deed(1, "Succeeded"),
    ),
    _play(
        "job: suspended", _OF_JOB, _made(suspend=True), patch(_ONE, {"spec": {"suspend": False}}), Deed(1, "Succeeded")
    ),
    _play(
        "job: suspended later", _OF_JOB, _made(parallelism=2, completions=2), patch(_ONE, {"spec": {"suspend": True}})
    ),
    _play(
        "job: less parallel", _OF_JOB, _made(parallelism=3, completions=3), patch(_ONE, {"spec": {"parallelism": 1}})
    ),
    _play("job: a code that fails it", _OF_JOB, _made(podFailurePolicy=_rule("FailJob")), Deed(1, "Failed", 42)),
    _play("job: a code that is ignored", _OF_JOB, _made(podFailurePolicy=_rule("Ignore")), Deed(1, "Failed", 42)),
    _play("job: gone", _OF_JOB, _made(), delete(_ONE, {"propagationPolicy": "Background"})),
    _play("job: orphans", _OF_JOB, _made(), delete(_ONE, {"propagationPolicy": "Orphan"})),
    _play("job: a time to live", _OF_JOB, _made(ttlSecondsAfterFinished=0), Deed(1, "Succeeded")),
)

_OF_DAEMONS = (View(DAEMONSETS, ("status",)), _COUNT)
_NOBODY = _selecting("DaemonSet")
_TEMPLATE = _NOBODY["spec"]["template"]
_EVERYWHERE = {**_TEMPLATE, "spec": {"containers": _TEMPLATE["spec"]["containers"], "schedulerName": "nobody"}}
_DAEMONS = (
    _play("ds: no node", _OF_DAEMONS, post(DAEMONSETS, _NOBODY)),
    _play(
        "ds: all nodes",
        _OF_DAEMONS,
        post(DAEMONSETS, _selecting("DaemonSet", template=_EVERYWHERE)),
        Deed(4, "Running"),
    ),
    _play(
        "ds: gone",
        _OF_DAEMONS,
        post(DAEMONSETS, _selecting("DaemonSet", template=_EVERYWHERE)),
        delete(f"{DAEMONSETS}/web"),
    ),
    _play(
        "ds: another image",
        _OF_DAEMONS,
        post(DAEMONSETS, _selecting("DaemonSet", template=_EVERYWHERE)),
        _image(f"{DAEMONSETS}/web"),
    ),
)


def _service(**spec: Any) -> Ask:
    full = {"selector": {"app": "web"}, "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], **spec}
    return post(
        SERVICES,
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"a": "b"}}, "spec": full},
    )


def _pod(name: str, **spec: Any) -> Ask:
    meta = {"name": name, "labels": {"app": "web"}}
    return post(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _spec(**spec)})


def _budget(**spec: Any) -> Ask:
    full = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return post(
        BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": full}
    )


_ENDS = (
    View(ENDPOINTS, ("metadata.name", "metadata.labels", "subsets")),
    View(SLICES, ("metadata.labels", "endpoints", "ports")),
)
_BUDGET = (View(BUDGETS, ("status",)),)
_HARD = {"pods": "5", "count/secrets": "20", "secrets": "3", "services": "5"}
_OTHERS = (
    _play("endpoints: a service with pods", _ENDS, _pod("one", nodeSelector={}), _service()),
    _play("endpoints: a headless service", _ENDS, _pod("one", nodeSelector={}), _service(clusterIP="None")),
    _play("endpoints: gone", _ENDS, _service(), delete(f"{SERVICES}/web")),
    _play("budget: no pods", _BUDGET, _budget(minAvailable=1)),
    _play(
        "budget: a number",
        _BUDGET,
        _budget(minAvailable=1),
        _pod("one"),
        _pod("two"),
        Deed(1, "Running"),
        Deed(1, "Running"),
    ),
    _play(
        "budget: a share",
        _BUDGET,
        _budget(maxUnavailable="50%"),
        _set(podManagementPolicy="Parallel"),
        Deed(3, "Running"),
    ),
    _play(
        "quota: counts",
        (View(QUOTAS, ("status",)),),
        post(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": _HARD}}),
        _pod("one"),
        post(SECRETS, {**config_map("one"), "kind": "Secret"}),
        delete(f"{SECRETS}/one"),
    ),
    _play(
        "cron: suspended",
        (View(CRONJOBS, ("status",)),),
        post(
            CRONJOBS,
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": "tick"},
                "spec": {
                    "schedule": "* * * * *",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": {"spec": _spec(restart="Never")}}},
                },
            },
        ),
    ),
)

PLAYS = (*_SETS, *_JOBS, *_DAEMONS, *_OTHERS)
