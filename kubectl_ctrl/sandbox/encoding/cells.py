"""The cells of the built-in kinds in a Table.

Most kinds are described by one word for each cell; the others have functions here and in `pods`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding import machines, networks, pods, workloads
from kubectl_ctrl.sandbox.encoding.ages import human, since
from kubectl_ctrl.sandbox.encoding.facts import age, at, count, elided, labels, selector

Cells = Callable[[Obj, float], list[Any]]

# A word is `path=default`, or `how:path`. Numbers, true and false as defaults are values, anything else is text.
_WORDS = {
    "": "metadata.name= metadata.creationTimestamp=",
    "CSINode.storage.k8s.io": "metadata.name= count:spec.drivers age:",
    "CSIStorageCapacity.storage.k8s.io": "metadata.name= storageClassName= capacity=<unset>",
    "ClusterTrustBundle.certificates.k8s.io": "metadata.name= spec.signerName=<none>",
    "DeviceClass.resource.k8s.io": "metadata.name= age:",
    "DeviceTaintRule.resource.k8s.io": "metadata.name= spec.taint.key= spec.taint.value= spec.taint.effect="
    " past:spec.taint.timeAdded age:",
    "Lease.coordination.k8s.io": "metadata.name= spec.holderIdentity= age:",
    "LeaseCandidate.coordination.k8s.io": "metadata.name= spec.leaseName= spec.binaryVersion="
    " spec.emulationVersion= age:",
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": "metadata.name= count:webhooks age:",
    "Namespace": "metadata.name= status.phase= age:",
    "NetworkPolicy.networking.k8s.io": "metadata.name= selector:spec.podSelector age:",
    "PodTemplate": "metadata.name= names:template.spec images:template.spec labels:template.metadata.labels",
    "PodDisruptionBudget.policy": "metadata.name= text:spec.minAvailable text:spec.maxUnavailable"
    " status.disruptionsAllowed=0 age:",
    "PriorityClass.scheduling.k8s.io": "metadata.name= value=0 globalDefault=false age: preemptionPolicy=",
    "ReplicationController": "metadata.name= spec.replicas=0 status.replicas=0 status.readyReplicas=0 age:"
    " names:spec.template.spec images:spec.template.spec labels:spec.selector",
    "ReplicaSet.apps": "metadata.name= spec.replicas=0 status.replicas=0 status.readyReplicas=0 age:"
    " names:spec.template.spec images:spec.template.spec selector:spec.selector",
    "DaemonSet.apps": "metadata.name= status.desiredNumberScheduled=0 status.currentNumberScheduled=0"
    " status.numberReady=0 status.updatedNumberScheduled=0 status.numberAvailable=0"
    " labels:spec.template.spec.nodeSelector age: names:spec.template.spec images:spec.template.spec"
    " selector:spec.selector",
    "ResourceClaimTemplate.resource.k8s.io": "metadata.name= age:",
    "ResourceSlice.resource.k8s.io": "metadata.name= spec.nodeName= spec.driver= spec.pool.name= age:",
    "RuntimeClass.node.k8s.io": "metadata.name= handler= age:",
    "Scale.autoscaling": "metadata.name= spec.replicas=0 status.replicas=0 age:",
    "Secret": "metadata.name= type= count:data age:",
    "ServiceAccount": "metadata.name= age:",
    "ServiceCIDR.networking.k8s.io": "metadata.name= list:spec.cidrs age:",
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": "metadata.name= count:webhooks age:",
    "VolumeAttachment.storage.k8s.io": "metadata.name= spec.attacher= spec.source.persistentVolumeName= spec.nodeName="
    " status.attached=false age:",
    "VolumeAttributesClass.storage.k8s.io": "metadata.name= driverName= age:",
    "Workload.scheduling.k8s.io": "metadata.name= age:",
}
_VALUES: dict[str, Any] = {"0": 0, "false": False, "true": True}


def _word(word: str) -> Callable[[Obj, float], Any]:
    how, colon, path = word.partition(":")
    if not colon:
        path, _, text = word.partition("=")
        default = _VALUES.get(text, text)
        return lambda obj, _: default if (found := at(obj, path)) is None else found
    reader = _HOW[how]
    return lambda obj, now: reader(at(obj, path) if path else obj, now)


_HOW: dict[str, Callable[[Any, float], Any]] = {
    "age": age,
    "past": lambda value, now: since(value, now) if value else "",
    "count": lambda value, _: len(value or ()),
    "labels": lambda value, _: labels(value),
    "list": lambda value, _: ",".join(value or ()),
    "selector": lambda value, _: selector(value),
    "text": lambda value, _: "N/A" if value is None else str(value),
    "names": lambda value, _: workloads.names(value),
    "images": lambda value, _: workloads.images(value),
}


def _by_words(words: str) -> Cells:
    readers = [_word(word) for word in words.split(" ")]
    return lambda obj, now: [read(obj, now) for read in readers]


def _name(obj: Obj) -> str:
    return str(at(obj, "metadata.name") or "")


def _config_map(obj: Obj, now: float) -> list[Any]:
    return [_name(obj), count(obj.get("data")) + count(obj.get("binaryData")), age(obj, now)]


def _api_service(obj: Obj, now: float) -> list[Any]:
    service = at(obj, "spec.service")
    where = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    state = "Unknown"
    for condition in at(obj, "status.conditions") or ():
        if condition["type"] == "Available":
            reason = condition.get("reason") if condition["status"] != "True" else ""
            state = f"{condition['status']} ({reason})" if reason else condition["status"]
    return [_name(obj), where, state, age(obj, now)]


def _csi_driver(obj: Obj, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    tokens = spec.get("tokenRequests")
    return [
        _name(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        "<unset>" if tokens is None else ",".join(token.get("audience", "") for token in tokens),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        age(obj, now),
    ]


def _signing_request(obj: Obj, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    kinds = {condition.get("type") for condition in at(obj, "status.conditions") or ()}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    state += ",Failed" if "Failed" in kinds else ""
    state += ",Issued" if at(obj, "status.certificate") else ""
    seconds = spec.get("expirationSeconds")
    asked = "<none>" if seconds is None else human(seconds)
    return [_name(obj), age(obj, now), spec.get("signerName") or "<none>", spec.get("username", ""), asked, state]


def _certificate_request(obj: Obj, _: float) -> list[Any]:
    spec, state = obj.get("spec") or {}, "Pending"
    for condition in at(obj, "status.conditions") or ():
        if condition.get("type") in ("Issued", "Denied", "Failed"):
            state = condition["type"]
    names = [spec.get(name, "") for name in ("podName", "serviceAccountName", "nodeName", "signerName")]
    return [_name(obj), *names, state, labels(spec.get("unverifiedUserAnnotations"))]


def _component_status(obj: Obj, _: float) -> list[Any]:
    for condition in obj.get("conditions") or ():
        if condition.get("type") == "Healthy":
            state = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [_name(obj), state, condition.get("message", ""), condition.get("error", "")]
    return [_name(obj), "Unknown", "", ""]


def _event(obj: Obj, now: float) -> list[Any]:
    first, last = _times(obj, now)
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    where = [
        source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or "",
        source.get("host") or obj.get("reportingInstance") or "",
    ]
    target = str(about.get("kind", "")).lower()
    series = obj.get("series")
    times = obj.get("count") or obj.get("deprecatedCount") or 1
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{target}/{about['name']}" if about.get("name") else target,
        about.get("fieldPath", ""),
        ", ".join(where) if where[1] else where[0],
        str(obj.get("message") or obj.get("note") or "").strip(),
        first,
        times if series is None else series.get("count", 0),
        _name(obj),
    ]


def _times(event: Obj, now: float) -> tuple[str, str]:
    """The ages of the first and of the last occurrence."""
    first = since(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime"), now)
    latest = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    last = since(latest, now) if latest else first
    series = event.get("series")
    return first, last if series is None else since(series.get("lastObservedTime"), now)


def _binding(obj: Obj, now: float) -> list[Any]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()

    def of(kind: str) -> str:
        found = [subject for subject in subjects if subject.get("kind") == kind]
        return ", ".join(
            f"{one.get('namespace', '')}/{one['name']}"
            if kind == "ServiceAccount" and one.get("namespace")
            else one["name"]
            for one in found
        )

    named = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [_name(obj), named, age(obj, now), of("User"), of("Group"), of("ServiceAccount")]


def _controller_revision(obj: Obj, now: float) -> list[Any]:
    owner = next((ref for ref in at(obj, "metadata.ownerReferences") or () if ref.get("controller")), None)
    named = "<none>"
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        named = f"{kind.lower()}/{owner['name']}"
    return [_name(obj), named, obj.get("revision", 0), age(obj, now)]


def _quota(obj: Obj, now: float) -> list[Any]:
    hard, used = at(obj, "status.hard") or {}, at(obj, "status.used") or {}
    parts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in parts.items() if name.startswith("limits.")]
    requests = [text for name, text in parts.items() if not name.startswith("limits.")]
    return [_name(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def _flow_schema(obj: Obj, now: float) -> list[Any]:
    dangling = (one for one in at(obj, "status.conditions") or () if one.get("type") == "Dangling")
    return [
        _name(obj),
        at(obj, "spec.priorityLevelConfiguration.name") or "",
        at(obj, "spec.matchingPrecedence") or 0,
        at(obj, "spec.distinguisherMethod.type") or "<none>",
        age(obj, now),
        next((one.get("status", "") for one in dangling), "?"),
    ]


def _priority_level(obj: Obj, now: float) -> list[Any]:
    limited = at(obj, "spec.limited")
    queuing = at(limited or {}, "limitResponse.queuing")
    shares = "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)
    queues = [
        "<none>" if queuing is None else queuing.get(name, 0) for name in ("queues", "handSize", "queueLengthLimit")
    ]
    return [_name(obj), at(obj, "spec.type") or "", shares, *queues, age(obj, now)]


def _policy(field: str) -> Cells:
    def cells(obj: Obj, now: float) -> list[Any]:
        param = at(obj, "spec.paramKind")
        shown = "<unset>" if param is None else f"{param.get('apiVersion', '')}/{param.get('kind', '')}"
        return [_name(obj), count(at(obj, f"spec.{field}")), shown, age(obj, now)]

    return cells


def _policy_binding(obj: Obj, now: float) -> list[Any]:
    param, shown = at(obj, "spec.paramRef") or {}, "<unset>"
    if param.get("name"):
        shown = f"{param.get('namespace') or '*'}/{param['name']}"
    elif param.get("selector") is not None:
        shown = _go_selector(param["selector"])
    return [_name(obj), at(obj, "spec.policyName") or "", shown, age(obj, now)]


def _go_selector(selector: Obj) -> str:
    pairs = " ".join(f"{key}:{value}" for key, value in sorted((selector.get("matchLabels") or {}).items()))
    shown = (
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    rules = f"map[string]string{{{pairs}}}" if not pairs else "map[string]string{" + _go_pairs(selector) + "}"
    return f"&LabelSelector{{MatchLabels:{rules},MatchExpressions:[]LabelSelectorRequirement{{{''.join(shown)}}},}}"


def _go_pairs(selector: Obj) -> str:
    return "".join(f"{key}: {value}," for key, value in sorted(selector["matchLabels"].items()))


def _ip_address(obj: Obj, now: float) -> list[Any]:
    ref, shown = at(obj, "spec.parentRef"), "<none>"
    if ref is not None:
        full = ".".join(filter(None, (ref.get("resource", ""), ref.get("group", "")))).lower()
        shown = "/".join(filter(None, (full, ref.get("namespace", ""), ref.get("name", ""))))
    return [_name(obj), shown, age(obj, now)]


def _claim(obj: Obj, now: float) -> list[Any]:
    deleted = bool(at(obj, "metadata.deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if at(obj, "status.allocation") is not None:
        states += ["allocated", *(["reserved"] if at(obj, "status.reservedFor") else [])]
    elif not deleted:
        states.append("pending")
    return [_name(obj), ",".join(states), age(obj, now)]


def _pool_request(obj: Obj, now: float) -> list[Any]:
    status, state, completed = obj.get("status"), "Pending", "<none>"
    sums: list[str] = ["-"] * 5
    pools = at(obj, "status.pools") or []
    total = at(obj, "status.poolCount") or 0
    for condition in at(obj, "status.conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            state = condition["type"]
            break
    if state == "Complete":
        completed = since(condition.get("lastTransitionTime"), now)
        state = f"Complete ({len(pools)}/{total} pools)" if total > len(pools) else state
    if status is not None and state != "Failed":
        fields = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
        sums = [str(sum(pool.get(field) or 0 for pool in pools)) for field in fields]
        sums.append(str(sum(pool.get("validationError") is not None for pool in pools)))
    return [_name(obj), at(obj, "spec.driver") or "", *sums, total, state, completed]


def _storage_version(obj: Obj, now: float) -> list[Any]:
    versions = at(obj, "status.storageVersions") or ()
    shown = elided([f"{one.get('apiServerID', '')}={one.get('encodingVersion', '')}" for one in versions])
    return [_name(obj), at(obj, "status.commonEncodingVersion") or "<unset>", shown, age(obj, now)]


def _migration(obj: Obj, _: float) -> list[Any]:
    resource = at(obj, "spec.resource") or {}
    state = "Unknown"
    for condition in at(obj, "status.conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Running", "Failed", "Succeeded"):
            state = condition["type"]
    return [_name(obj), ".".join(filter(None, (resource.get("resource"), resource.get("group")))), state]


def _pod_group(obj: Obj, now: float) -> list[Any]:
    conditions = {condition.get("type"): condition for condition in at(obj, "status.conditions") or ()}
    state = "Pending"
    if "PodGroupScheduled" in conditions:
        state = "Scheduled" if conditions["PodGroupScheduled"].get("status") == "True" else "Unschedulable"
    if "DisruptionTarget" in conditions:
        state = conditions["DisruptionTarget"].get("reason", "")
    policy = "Basic" if at(obj, "spec.schedulingPolicy.gang") is None else "Gang"
    return [_name(obj), policy, _workload_of(obj), state, age(obj, now)]


def _workload_of(obj: Obj) -> str:
    ref = at(obj, "spec.podGroupTemplateRef")
    return "<none>" if ref is None else str(at(ref, "workload.workloadName") or "")


def _admission(kinds: Iterable[str]) -> dict[str, Cells]:
    group = "admissionregistration.k8s.io"
    found: dict[str, Cells] = {f"{kind}AdmissionPolicyBinding.{group}": _policy_binding for kind in kinds}
    fields = {"Mutating": "mutations", "Validating": "validations"}
    return found | {f"{kind}AdmissionPolicy.{group}": _policy(fields[kind]) for kind in kinds}


CELLS: dict[str, Cells] = {
    **{kind: _by_words(words) for kind, words in _WORDS.items()},
    **_admission(("Mutating", "Validating")),
    **workloads.CELLS,
    **networks.CELLS,
    **machines.CELLS,
    "APIService.apiregistration.k8s.io": _api_service,
    "CSIDriver.storage.k8s.io": _csi_driver,
    "CertificateSigningRequest.certificates.k8s.io": _signing_request,
    "ClusterRoleBinding.rbac.authorization.k8s.io": _binding,
    "ComponentStatus": _component_status,
    "ConfigMap": _config_map,
    "ControllerRevision.apps": _controller_revision,
    "Event": _event,
    "Event.events.k8s.io": _event,
    "FlowSchema.flowcontrol.apiserver.k8s.io": _flow_schema,
    "IPAddress.networking.k8s.io": _ip_address,
    "Pod": pods.cells,
    "PodCertificateRequest.certificates.k8s.io": _certificate_request,
    "PodGroup.scheduling.k8s.io": _pod_group,
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": _priority_level,
    "ResourceClaim.resource.k8s.io": _claim,
    "ResourcePoolStatusRequest.resource.k8s.io": _pool_request,
    "ResourceQuota": _quota,
    "RoleBinding.rbac.authorization.k8s.io": _binding,
    "StorageVersion.internal.apiserver.k8s.io": _storage_version,
    "StorageVersionMigration.storagemigration.k8s.io": _migration,
}
