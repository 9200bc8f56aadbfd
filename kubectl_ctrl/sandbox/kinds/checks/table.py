"""Which kind is checked by which function, and which names it allows."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds.checks import (
    access,
    config,
    jobs,
    networks,
    pods,
    policies,
    storage,
    words,
    workloads,
)
from kubectl_ctrl.sandbox.kinds.checks.words import Format, Found

CHECKS: dict[str, Callable[[Obj, Obj | None], Found]] = {
    "ClusterRole": access.role,
    "ClusterRoleBinding": access.binding,
    "ConfigMap": config.config_map,
    "CronJob": jobs.cron_job,
    "DaemonSet": workloads.daemon_set,
    "Deployment": workloads.deployment,
    "Event": policies.event,
    "HorizontalPodAutoscaler": policies.autoscaler,
    "Ingress": networks.ingress,
    "Job": jobs.job,
    "Lease": policies.lease,
    "LimitRange": policies.limit_range,
    "NetworkPolicy": networks.network_policy,
    "PersistentVolume": storage.volume,
    "PersistentVolumeClaim": storage.claim,
    "Pod": pods.pod,
    "PodDisruptionBudget": policies.budget,
    "PodTemplate": pods.pod_template,
    "PriorityClass": policies.priority_class,
    "ReplicaSet": workloads.replica_set,
    "ReplicationController": workloads.replication_controller,
    "ResourceQuota": policies.quota,
    "Role": access.role,
    "RoleBinding": access.binding,
    "Secret": config.secret,
    "Service": networks.service,
    "StatefulSet": workloads.stateful_set,
    "StorageClass": storage.storage_class,
}

# Names are DNS subdomains, except in these kinds.
NAMES: dict[str, Format] = {
    **dict.fromkeys(("Namespace", "Service", "StatefulSet"), words.label),
    **dict.fromkeys(
        ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "CertificateSigningRequest"), words.path_segment
    ),
}


def problems_of(obj: Obj, old: Obj | None) -> Found:
    check = CHECKS.get(obj["kind"])
    if check is not None and (obj["kind"] != "Event" or "involvedObject" in obj):
        yield from check(obj, old)
