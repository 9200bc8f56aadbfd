"""The server's defaults of built-in types: a table of plain values, and a rule where a default depends on other fields.

Both are keyed by the name of the Go type, so that a pod template has its defaults wherever it appears.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds import quantities

_RBAC_GROUP = "rbac.authorization.k8s.io"
_PLUGIN = {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"}
_SCALE_IO = {"storageMode": "ThinProvisioned", "fsType": "xfs"}
_MODE = {"defaultMode": 0o644}
_WEBHOOK: Obj = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_RATE: Obj = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
_ONE_DEVICE = {"allocationMode": "ExactCount"}

PLAIN: dict[str, Obj] = {
    "apiextensions.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    "admissionregistration.MatchResources": {
        key: _WEBHOOK[key] for key in ("matchPolicy", "namespaceSelector", "objectSelector")
    },
    "admissionregistration.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.RuleWithOperations": {"scope": "*"},
    "admissionregistration.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.ServiceReference": {"port": 443},
    "admissionregistration.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.ValidatingWebhook": _WEBHOOK,
    "apps.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.ReplicaSetSpec": {"replicas": 1},
    "apps.StatefulSetSpec": {
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "apps.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "autoscaling.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "batch.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "core.AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "core.ConfigMapVolumeSource": _MODE,
    "core.ContainerPort": {"protocol": "TCP"},
    "core.DownwardAPIVolumeSource": _MODE,
    "core.EndpointPort": {"protocol": "TCP"},
    "core.FileKeySelector": {"optional": False},
    "core.GRPCAction": {"service": ""},
    "core.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.HostPathVolumeSource": {"type": ""},
    "core.ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    "core.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core.NamespaceStatus": {"phase": "Active"},
    "core.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.PersistentVolumeStatus": {"phase": "Pending"},
    "core.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core.ProjectedVolumeSource": _MODE,
    "core.RBDPersistentVolumeSource": _PLUGIN,
    "core.RBDVolumeSource": _PLUGIN,
    "core.ReplicationControllerSpec": {"replicas": 1},
    "core.ScaleIOPersistentVolumeSource": _SCALE_IO,
    "core.ScaleIOVolumeSource": _SCALE_IO,
    "core.Secret": {"type": "Opaque"},
    "core.SecretVolumeSource": _MODE,
    "core.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "discovery.EndpointPort": {"name": "", "protocol": "TCP"},
    "flowcontrol.ExemptPriorityLevelConfiguration": _RATE,
    "flowcontrol.FlowSchemaSpec": {"matchingPrecedence": 1000},
    "flowcontrol.LimitedPriorityLevelConfiguration": {**_RATE, "nominalConcurrencyShares": 30},
    "flowcontrol.QueuingConfiguration": {"handSize": 8, "queues": 64, "queueLengthLimit": 50},
    "networking.IngressClassParametersReference": {"scope": "Cluster"},
    "networking.NetworkPolicyPort": {"protocol": "TCP"},
    "rbac.RoleRef": {"apiGroup": _RBAC_GROUP},
    "resource.DeviceSubRequest": _ONE_DEVICE,
    "resource.DeviceToleration": {"operator": "Equal"},
    "resource.ExactDeviceRequest": _ONE_DEVICE,
    "scheduling.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "storage.CSIDriverSpec": {
        **dict.fromkeys(("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"), False),
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
    },
    "storage.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}


Rule = Callable[[Obj], None]


def fill_of(schema: Obj) -> Rule | None:
    """The function that adds a type's defaults to an object."""
    *_, group, version, kind = schema["component"].split(".")
    name = f"{group}.{kind}" if version == "v1" else f"{group}/{version}.{kind}"
    plain, rule = PLAIN.get(name, {}), _RULES.get(name)
    if not plain:
        return rule
    loose = frozenset(plain.keys() - frozenset(schema.get("pointers") or ()))  # zero counts as absent

    def fill(value: Obj) -> None:
        for key, default in plain.items():
            if value.get(key) is None or (key in loose and not value[key]):
                value[key] = deepcopy(default) if isinstance(default, (dict, list)) else default
        if rule is not None:
            rule(value)

    return fill


def _under(value: Obj, key: str) -> Obj:
    """A copy of the struct in a field, in its place."""
    inner = value.get(key)
    value[key] = dict(inner) if isinstance(inner, dict) else {}
    found: Obj = value[key]
    return found


def _fill(value: Obj, **plain: Any) -> None:
    for key, default in plain.items():
        if value.get(key) is None:
            value[key] = default


# -- workloads


def _deployment(strategy: Obj) -> None:
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _fill(_under(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%")


def _daemon_set(strategy: Obj) -> None:
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _fill(_under(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)


def _daemon_set_number(daemons: Obj) -> None:
    meta = _under(daemons, "metadata")
    meta["annotations"] = {"deprecated.daemonset.template.generation": "0", **(meta.get("annotations") or {})}


def _stateful_set(strategy: Obj) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        _fill(_under(strategy, "rollingUpdate"), partition=0)


def _template_labels(obj: Obj) -> Any:
    spec = obj.get("spec") or {}
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels")


def _replication_controller(obj: Obj) -> None:
    if labels := _template_labels(obj):
        spec, meta = _under(obj, "spec"), _under(obj, "metadata")
        spec["selector"] = spec.get("selector") or labels
        meta["labels"] = meta.get("labels") or labels


def _stateful_set_spec(spec: Obj) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    if templates := spec.get("volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = [{**one, **claim} for one in templates]


def _job(obj: Obj) -> None:
    _job_spec(_under(obj, "spec"))
    if labels := _template_labels(obj):
        meta = _under(obj, "metadata")
        meta["labels"] = meta.get("labels") or labels


def _job_spec(spec: Obj) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(
        spec,
        parallelism=1,
        backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy="TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed",
        manualSelector=False,
    )


# -- pods


def _pod_spec(spec: Obj) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`."""
    if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = name


_IMAGE = re.compile(r"(?P<name>.*?)(?::(?P<tag>[\w][\w.-]{0,127}))?(?P<digest>@.*)?")


def _pull_policy(image: Any) -> str:
    """Always for the tag `latest`, also where it is implied."""
    match = _IMAGE.fullmatch(str(image or ""))
    if match is None or not match["name"]:
        return "IfNotPresent"
    return "Always" if match["tag"] == "latest" or not (match["tag"] or match["digest"]) else "IfNotPresent"


def _container(container: Obj) -> None:
    container["imagePullPolicy"] = container.get("imagePullPolicy") or _pull_policy(container.get("image"))
    container["terminationMessagePath"] = container.get("terminationMessagePath") or "/dev/termination-log"
    container["terminationMessagePolicy"] = container.get("terminationMessagePolicy") or "File"


def _volume(volume: Obj) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    if isinstance(volume.get("image"), dict):
        image = _under(volume, "image")
        image["pullPolicy"] = image.get("pullPolicy") or _pull_policy(image.get("reference"))


def _pod(pod: Obj) -> None:
    spec = _under(pod, "spec")
    for name in ("containers", "initContainers"):
        containers = spec.get(name)
        if isinstance(containers, list):
            spec[name] = [_pod_container(one, host=bool(spec.get("hostNetwork"))) for one in containers]
    _fill(spec, enableServiceLinks=True)
    if isinstance(spec.get("resources"), dict) and spec["resources"].get("limits"):
        _pod_resources(spec)


def _pod_container(container: Any, *, host: bool) -> Any:
    """A container whose requests default to its limits, which happens in pods but not in templates."""
    if not isinstance(container, dict):
        return container
    container = dict(container)
    found = container.get("resources") or {}
    if found.get("limits"):
        container["resources"] = {**found, "requests": {**found["limits"], **(found.get("requests") or {})}}
    if host and isinstance(container.get("ports"), list):
        container["ports"] = [
            {**port, "hostPort": port.get("hostPort") or port.get("containerPort")} for port in container["ports"]
        ]
    return container


def _pod_resources(spec: Obj) -> None:
    """The requests of the whole pod: those of its containers, else its limits."""
    found = _under(spec, "resources")
    requests = dict(found.get("requests") or {})
    for name in ("cpu", "memory"):
        given = [((one.get("resources") or {}).get("requests") or {}).get(name) for one in spec.get("containers") or ()]
        if name not in requests and any(given):
            total = sum((quantities.amount(one) for one in given if one), Decimal(0))
            requests[name] = quantities.canonical(f"{total:f}", -3)
    found["requests"] = {**found["limits"], **requests}


# -- the rest


def _service(service: Obj) -> None:
    spec = _under(service, "spec")
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    config = spec.get("sessionAffinityConfig") or {}
    if spec["sessionAffinity"] == "ClientIP" and (config.get("clientIP") or {}).get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    spec["type"] = spec.get("type") or "ClusterIP"
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)
    outside = spec["type"] in ("NodePort", "LoadBalancer")
    if outside or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if outside or spec["type"] == "ClusterIP":
        _fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)
        for ingress in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
            if ingress.get("ip"):
                _fill(ingress, ipMode="VIP")


def _namespace(namespace: Obj) -> None:
    meta = _under(namespace, "metadata")
    if meta.get("name"):
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}


def _secret(secret: Obj) -> None:
    plain = secret.pop("stringData", None) or {}
    encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in plain.items()}
    if encoded:
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _node_status(status: Obj) -> None:
    if capacity := status.get("capacity"):
        _fill(status, allocatable=capacity)


def _limit(item: Obj) -> None:
    if item.get("type") != "Container":
        return
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    item |= {"default": limits} if limits else {}
    item |= {"defaultRequest": requests} if requests else {}


def _scaling_up(rules: Obj | None) -> Obj:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies, **(rules or {})}


def _scaling_down(rules: Obj | None) -> Obj:
    policies = [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    return {"selectPolicy": "Max", "policies": policies, **(rules or {})}


def _autoscaler(spec: Obj) -> None:
    _fill(spec, minReplicas=1)
    target = {"type": "Utilization", "averageUtilization": 80}
    spec["metrics"] = spec.get("metrics") or [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        up, down = _scaling_up(behavior.get("scaleUp")), _scaling_down(behavior.get("scaleDown"))
        spec["behavior"] = {**behavior, "scaleUp": up, "scaleDown": down}


def _network_policy(spec: Obj) -> None:
    spec["policyTypes"] = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _subject(subject: Obj) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = subject.get("apiGroup") or _RBAC_GROUP


def _device_request(request: Obj) -> None:
    if request["allocationMode"] == "ExactCount":
        request["count"] = request.get("count") or 1


def _definition(spec: Obj) -> None:
    """The other names of a custom resource follow from its kind."""
    names = _under(spec, "names")
    kind = names.get("kind", "")
    spec["names"] = {"singular": kind.lower(), "listKind": f"{kind}List", **names}


_RULES: dict[str, Rule] = {
    "apiextensions.CustomResourceDefinitionSpec": _definition,
    "apps.DaemonSet": _daemon_set_number,
    "apps.DaemonSetUpdateStrategy": _daemon_set,
    "apps.DeploymentStrategy": _deployment,
    "apps.StatefulSetSpec": _stateful_set_spec,
    "apps.StatefulSetUpdateStrategy": _stateful_set,
    "autoscaling/v2.HorizontalPodAutoscalerSpec": _autoscaler,
    "batch.Job": _job,
    "core.Container": _container,
    "core.EphemeralContainer": _container,
    "core.LimitRangeItem": _limit,
    "core.Namespace": _namespace,
    "core.NodeStatus": _node_status,
    "core.Pod": _pod,
    "core.PodSpec": _pod_spec,
    "core.ReplicationController": _replication_controller,
    "core.Secret": _secret,
    "core.Service": _service,
    "core.Volume": _volume,
    "networking.NetworkPolicySpec": _network_policy,
    "rbac.Subject": _subject,
    "resource.DeviceSubRequest": _device_request,
    "resource.ExactDeviceRequest": _device_request,
}
