"""Objects of built-in kinds: their defaults, and the words about every mistake that a kind checks beyond its schema."""

from __future__ import annotations

from typing import Any

from e2e.parity.asks import MAPS, PODS, SECRETS, SERVICES, Scenario, patch, post, scenario

CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
QUOTAS = "/api/v1/namespaces/{ns}/resourcequotas"
LIMITS = "/api/v1/namespaces/{ns}/limitranges"
CONTROLLERS = "/api/v1/namespaces/{ns}/replicationcontrollers"
DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS = (
    f"/apis/apps/v1/namespaces/{{ns}}/{plural}"
    for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")
)
JOBS, CRONJOBS = (f"/apis/batch/v1/namespaces/{{ns}}/{plural}" for plural in ("jobs", "cronjobs"))
INGRESSES, POLICIES = (
    f"/apis/networking.k8s.io/v1/namespaces/{{ns}}/{plural}" for plural in ("ingresses", "networkpolicies")
)
ROLES, BINDINGS = (
    f"/apis/rbac.authorization.k8s.io/v1/namespaces/{{ns}}/{plural}" for plural in ("roles", "rolebindings")
)
HPAS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"

_TRIAL = {"dryRun": "All"}  # several kinds have controllers, which would write to a stored object


def _named(**content: Any) -> dict[str, Any]:
    return {"metadata": {"name": "one"}, **content}


def _pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    # Without a token no volume is added.
    return _named(
        spec={
            "automountServiceAccountToken": False,
            "containers": [{"name": "a", "image": "nginx", **one} for one in containers],
            **spec,
        }
    )


def _work(pod: dict[str, Any] | None = None, labels: Any = None, **spec: Any) -> dict[str, Any]:
    pod = pod or {"containers": [{"name": "a", "image": "nginx"}]}
    template = {"metadata": {"labels": labels or {"app": "a"}}, "spec": pod}
    return _named(spec={"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec})


def _job(**spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "a", "image": "nginx"}], "restartPolicy": "Never"}
    return _named(spec={"template": {"spec": pod}, **spec})


def _cron(schedule: str = "* * * * *", **spec: Any) -> dict[str, Any]:
    return _named(spec={"schedule": schedule, "jobTemplate": {"spec": _job()["spec"]}, **spec})


def _service(*ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return _named(spec={"clusterIP": "None", "ports": list(ports), **spec})


def _ingress(*paths: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return _named(spec={"rules": [{"http": {"paths": list(paths)}}], **spec})


def _claim(**spec: Any) -> dict[str, Any]:
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return _named(spec={key: value for key, value in full.items() if value is not None})


def _hpa(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    return _named(spec={"scaleTargetRef": target, "maxReplicas": 3, **spec})


_BACKEND = {"service": {"name": "a", "port": {"number": 80}}}
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}

_PODS: dict[str, dict[str, Any]] = {
    "no containers": _pod(),
    "no image": _pod({"image": ""}),
    "an image with a space": _pod({"image": " a"}),
    "no name": _pod({"name": ""}),
    "a bad name": _pod({"name": "A"}),
    "a name with a dot": _pod({"name": "a.b"}),
    "one name twice": _pod({}, {}),
    "a bad port": _pod({"ports": [{"containerPort": 70000}]}),
    "port zero": _pod({"ports": [{"containerPort": 0}]}),
    "a bad protocol": _pod({"ports": [{"containerPort": 1, "protocol": "X"}]}),
    "bad port names": _pod({"ports": [{"containerPort": 1, "name": "A--b-"}, {"containerPort": 2, "name": "1"}]}),
    "a long port name": _pod({"ports": [{"containerPort": 1, "name": "a" * 16}]}),
    "one host port twice": _pod({"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]}),
    "an environment without names": _pod({"env": [{"name": ""}, {"name": "a=b"}]}),
    "a value and its source": _pod(
        {"env": [{"name": "a", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}
    ),
    "no source": _pod({"env": [{"name": "a", "valueFrom": {}}]}),
    "a source without a key": _pod({"env": [{"name": "a", "valueFrom": {"configMapKeyRef": {"name": "x"}}}]}),
    "an unknown field as source": _pod({"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]}),
    "no volume of that name": _pod({"volumeMounts": [{"name": "x", "mountPath": "/x"}]}),
    "one mount path twice": _pod(
        {"volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]}, volumes=[{"name": "v"}]
    ),
    "no mount path": _pod({"volumeMounts": [{"name": "v", "mountPath": ""}]}, volumes=[{"name": "v"}]),
    "bad volumes": _pod({}, volumes=[{"name": "A"}, {"name": "v"}, {"name": "v"}, {"name": ""}]),
    "two sources of a volume": _pod({}, volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
    "sources without names": _pod(
        {},
        volumes=[
            {"name": "a", "configMap": {}},
            {"name": "b", "secret": {}},
            {"name": "c", "hostPath": {"path": ""}},
            {"name": "d", "persistentVolumeClaim": {"claimName": ""}},
        ],
    ),
    "a bad pull policy": _pod({"imagePullPolicy": "Often"}),
    "requests above limits": _pod({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}),
    "a negative request": _pod({"resources": {"requests": {"cpu": "-1"}}}),
    "an unknown resource": _pod({"resources": {"requests": {"x": "1"}}}),
    "a part of a device": _pod({"resources": {"limits": {"a.b/c": "500m"}}}),
    "a device without a limit": _pod({"resources": {"requests": {"a.b/c": "1"}}}),
    "a probe of nothing": _pod({"livenessProbe": {}}),
    "a probe of two kinds": _pod({"livenessProbe": {"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}}),
    "probes with bad numbers": _pod(
        {
            "livenessProbe": {"tcpSocket": {"port": 0}, "successThreshold": 2, "periodSeconds": -1},
            "readinessProbe": {"httpGet": {"port": "", "scheme": "X"}, "initialDelaySeconds": -1},
        }
    ),
    "an empty command": _pod({"lifecycle": {"preStop": {"exec": {}}}}),
    "a bad restart policy": _pod({}, restartPolicy="Sometimes"),
    "a bad DNS policy": _pod({}, dnsPolicy="X"),
    "a bad node selector": _pod({}, nodeSelector={"a b": "-"}),
    "no deadline": _pod({}, activeDeadlineSeconds=0),
    "a bad host name": _pod({}, hostname="A", subdomain="b.c"),
    "bad tolerations": _pod(
        {},
        tolerations=[
            {"key": "a", "operator": "X"},
            {"operator": "Equal"},
            {"key": "a", "operator": "Exists", "value": "b"},
            {"key": "a", "effect": "X"},
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
        ],
    ),
    "a probe of an init container": _pod(
        {}, initContainers=[{"name": "i", "image": "x", "livenessProbe": {"tcpSocket": {"port": 1}}}]
    ),
    "an init container of the same name": _pod({}, initContainers=[{"name": "a", "image": "x"}]),
    "a bad node name": _pod({}, nodeName="A"),
    "a host network with other ports": _pod({"ports": [{"containerPort": 1, "hostPort": 2}]}, hostNetwork=True),
    "ephemeral containers": _pod({}, ephemeralContainers=[{"name": "e", "image": "x"}]),
}
_WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "a Deployment without a selector": (DEPLOYMENTS, _work(selector=None)),
    "a Deployment with an empty selector": (DEPLOYMENTS, _work(selector={})),
    "a Deployment with other labels": (DEPLOYMENTS, _work(labels={"b": "c"})),
    "a Deployment of nothing": (DEPLOYMENTS, _named()),
    "a Deployment with a bad selector": (
        DEPLOYMENTS,
        _work(selector={"matchExpressions": [{"key": "a b", "operator": "X"}]}),
    ),
    "a Deployment with bad expressions": (
        DEPLOYMENTS,
        _work(
            selector={
                "matchExpressions": [
                    {"key": "a", "operator": "In"},
                    {"key": "b", "operator": "Exists", "values": ["c"]},
                ]
            }
        ),
    ),
    "a Deployment with bad labels": (DEPLOYMENTS, _work(labels={"app": "a", "x": "-"})),
    "a Deployment with bad annotations": (
        DEPLOYMENTS,
        _named(
            spec={
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}, "annotations": {"a b": "c"}},
                    "spec": _work()["spec"]["template"]["spec"],
                },
            }
        ),
    ),
    "a Deployment that never restarts": (
        DEPLOYMENTS,
        _work({"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Never", "activeDeadlineSeconds": 5}),
    ),
    "a Deployment with bad numbers": (
        DEPLOYMENTS,
        _work(replicas=-1, minReadySeconds=-1, revisionHistoryLimit=-1, progressDeadlineSeconds=-5),
    ),
    "a Deployment with a short deadline": (DEPLOYMENTS, _work(minReadySeconds=10, progressDeadlineSeconds=10)),
    "a Deployment with an odd strategy": (
        DEPLOYMENTS,
        _work(strategy={"rollingUpdate": {"maxSurge": "x", "maxUnavailable": "101%"}}),
    ),
    "a Deployment that cannot move": (
        DEPLOYMENTS,
        _work(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    ),
    "a Deployment with negative steps": (
        DEPLOYMENTS,
        _work(strategy={"rollingUpdate": {"maxSurge": -1, "maxUnavailable": "0%"}}),
    ),
    "a Deployment of two strategies": (
        DEPLOYMENTS,
        _work(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    ),
    "a Deployment of a bad name": (DEPLOYMENTS, {**_work(), "metadata": {"name": "A_b"}}),
    "a ReplicaSet of nothing": (REPLICASETS, _named()),
    "a ReplicaSet with bad numbers": (REPLICASETS, _work(replicas=-1, minReadySeconds=-1)),
    "a StatefulSet of nothing": (STATEFULSETS, _named()),
    "a StatefulSet with bad fields": (
        STATEFULSETS,
        _work(
            podManagementPolicy="X", replicas=-1, updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}
        ),
    ),
    "a StatefulSet with a negative partition": (
        STATEFULSETS,
        _work(updateStrategy={"rollingUpdate": {"partition": -1}, "type": "RollingUpdate"}),
    ),
    "a StatefulSet with other labels": (STATEFULSETS, _work(labels={"b": "c"}, serviceName="A")),
    "a StatefulSet of a bad name": (STATEFULSETS, {**_work(), "metadata": {"name": "a.b"}}),
    "a DaemonSet of nothing": (DAEMONSETS, _named()),
    "a DaemonSet with other labels": (DAEMONSETS, _work(labels={"b": "c"}, minReadySeconds=-1)),
    "a DaemonSet that cannot move": (DAEMONSETS, _work(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}})),
    "a DaemonSet of two steps": (
        DAEMONSETS,
        _work(updateStrategy={"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}),
    ),
    "a ReplicationController of nothing": (CONTROLLERS, _named()),
    "a Job that always restarts": (JOBS, _named(spec={"template": {"spec": _work()["spec"]["template"]["spec"]}})),
    "a Job with bad numbers": (JOBS, _job(parallelism=-1, completions=-1, backoffLimit=-1, activeDeadlineSeconds=-1)),
    "a Job that lives for a negative time": (JOBS, _job(ttlSecondsAfterFinished=-1)),
    "an indexed Job without completions": (JOBS, _job(completionMode="Indexed", parallelism=2)),
    "a Job of an odd mode": (JOBS, _job(completionMode="X")),
    "a Job of a bad name": (JOBS, {**_job(), "metadata": {"name": "A"}}),
    "a CronJob without a schedule": (CRONJOBS, _cron("")),
    "a CronJob with a bad schedule": (CRONJOBS, _cron("a b c d e")),
    "a CronJob with a short schedule": (CRONJOBS, _cron("* *")),
    "a CronJob with a late minute": (CRONJOBS, _cron("61 * * * *")),
    "a CronJob with a zone in its schedule": (CRONJOBS, _cron("TZ=UTC * * * * *")),
    "a CronJob in an unknown zone": (CRONJOBS, _cron(timeZone="X/Y")),
    "a CronJob with bad fields": (
        CRONJOBS,
        _cron(
            concurrencyPolicy="X", startingDeadlineSeconds=-1, successfulJobsHistoryLimit=-1, failedJobsHistoryLimit=-1
        ),
    ),
    "a CronJob of a long name": (CRONJOBS, {**_cron(), "metadata": {"name": "a" * 53}}),
}
_REST: dict[str, tuple[str, dict[str, Any]]] = {
    # One bad key each: Go's maps have no order.
    "a ConfigMap with a bad key": (MAPS, _named(data={"a b": "c"})),
    "a ConfigMap with a parent as key": (MAPS, _named(data={"..": "x"})),
    "a ConfigMap with a key that starts as a parent": (MAPS, _named(data={"..a": "x"})),
    "a ConfigMap with an empty key": (MAPS, _named(binaryData={"": "aGk="})),
    "a ConfigMap with a key twice": (MAPS, _named(data={"a": "b"}, binaryData={"a": "aGk="})),
    "a Secret with bad keys": (SECRETS, _named(data={"a b": "aGk="})),
    "a Secret for TLS without keys": (SECRETS, _named(type="kubernetes.io/tls")),
    "a Secret for images without a key": (SECRETS, _named(type="kubernetes.io/dockerconfigjson")),
    "a Secret for a user without one": (SECRETS, _named(type="kubernetes.io/basic-auth")),
    "a Secret for SSH without a key": (SECRETS, _named(type="kubernetes.io/ssh-auth")),
    "a Secret for an account without one": (SECRETS, _named(type="kubernetes.io/service-account-token")),
    "annotations that are too big": (MAPS, {"metadata": {"name": "one", "annotations": {"a": "x" * (256 << 10)}}}),
    "both standard finalizers": (MAPS, {"metadata": {"name": "one", "finalizers": ["orphan", "foregroundDeletion"]}}),
    "a Service without ports": (SERVICES, _named(spec={"type": "ClusterIP"})),
    "a Service with unnamed ports": (SERVICES, _service({"port": 1}, {"port": 2})),
    "a Service with a port twice": (SERVICES, _service({"port": 1, "name": "a"}, {"port": 1, "name": "a"})),
    "a Service with bad ports": (
        SERVICES,
        _service({"port": 0, "protocol": "X", "targetPort": 70000}, {"port": 1, "name": "A_", "targetPort": "-"}),
    ),
    "a Service of a bad type": (SERVICES, _service({"port": 1}, type="X")),
    "a Service with a bad affinity": (SERVICES, _service({"port": 1}, sessionAffinity="X")),
    "a Service with a bad selector": (SERVICES, _service({"port": 1}, selector={"a b": "-"})),
    "a Service with a node port": (SERVICES, _service({"port": 1, "nodePort": 30000})),
    "a Service with a policy": (SERVICES, _service({"port": 1}, externalTrafficPolicy="Local")),
    "a Service of a bad name": (SERVICES, {**_service({"port": 1}), "metadata": {"name": "A.b"}}),
    "an external Service without a name": (SERVICES, _named(spec={"type": "ExternalName"})),
    "an external Service of a bad name": (SERVICES, _named(spec={"type": "ExternalName", "externalName": "A_"})),
    "an Ingress of nothing": (INGRESSES, _named()),
    "an Ingress without paths": (INGRESSES, _ingress()),
    "an Ingress without types": (INGRESSES, _ingress({"path": "a", "backend": _BACKEND})),
    "an Ingress with bad paths": (
        INGRESSES,
        _ingress(
            {"path": "a", "pathType": "Prefix", "backend": _BACKEND},
            {"path": "/a//b", "pathType": "Exact", "backend": _BACKEND},
            {"path": "/", "pathType": "X", "backend": _BACKEND},
        ),
    ),
    "an Ingress without backends": (INGRESSES, _ingress({"path": "/", "pathType": "Prefix", "backend": {}})),
    "an Ingress without a port": (
        INGRESSES,
        _ingress({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "", "port": {}}}}),
    ),
    "an Ingress with a bad host": (
        INGRESSES,
        _named(spec={"rules": [{"host": "A_"}, {"host": "1.2.3.4"}, {"host": "*a"}], "defaultBackend": _BACKEND}),
    ),
    "a NetworkPolicy with bad ports": (
        POLICIES,
        _named(spec={"podSelector": {}, "ingress": [{"ports": [{"protocol": "X", "port": 0}], "from": [{}]}]}),
    ),
    "a claim without modes": (CLAIMS, _claim(accessModes=None)),
    "a claim with bad modes": (CLAIMS, _claim(accessModes=["X"])),
    "a claim without a size": (CLAIMS, _claim(resources=None)),
    "a claim of no size": (CLAIMS, _claim(resources={"requests": {"storage": "0"}})),
    "a claim with a bad class": (CLAIMS, _claim(storageClassName="A_", volumeMode="X")),
    "a claim with a bad selector": (CLAIMS, _claim(selector={"matchLabels": {"a b": "c"}})),
    "a Role without verbs": (ROLES, _named(rules=[{"apiGroups": [""], "resources": ["pods"]}])),
    "a Role without resources": (ROLES, _named(rules=[{"verbs": ["get"]}])),
    "a Role for paths": (ROLES, _named(rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}])),
    "a RoleBinding of nothing": (BINDINGS, _named(roleRef={"kind": "", "name": ""})),
    "a RoleBinding of an odd kind": (BINDINGS, _named(roleRef={**_ROLE, "kind": "X"})),
    "a RoleBinding of odd subjects": (
        BINDINGS,
        _named(
            roleRef=_ROLE,
            subjects=[{"kind": "User"}, {"kind": "X", "name": "a"}, {"kind": "ServiceAccount", "name": "A"}],
        ),
    ),
    "an autoscaler of nothing": (HPAS, _named(spec={"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 1})),
    "an autoscaler of odd metrics": (HPAS, _hpa(metrics=[{"type": "X"}, {"type": "Resource"}])),
    "an autoscaler with odd targets": (
        HPAS,
        _hpa(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "X"}}}]),
    ),
    "a budget of both kinds": (BUDGETS, _named(spec={"minAvailable": 1, "maxUnavailable": 1})),
    "a budget with bad numbers": (BUDGETS, _named(spec={"minAvailable": "x"})),
    "a budget with a negative number": (BUDGETS, _named(spec={"maxUnavailable": -1})),
    "a budget above all": (BUDGETS, _named(spec={"maxUnavailable": "101%"})),
    "a quota with a bad name": (QUOTAS, _named(spec={"hard": {"x": "1"}})),
    "a quota with a negative number": (QUOTAS, _named(spec={"hard": {"pods": "-1"}})),
    "a quota of half an object": (QUOTAS, _named(spec={"hard": {"services": "500m"}})),
    "a quota with bad scopes": (QUOTAS, _named(spec={"hard": {"services": "1"}, "scopes": ["X", "BestEffort"]})),
    "a limit range of an odd type": (LIMITS, _named(spec={"limits": [{"type": "X"}]})),
    "a limit range out of order": (
        LIMITS,
        _named(spec={"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}),
    ),
    "a Lease with bad numbers": (LEASES, _named(spec={"leaseDurationSeconds": 0, "leaseTransitions": -1})),
    "a priority class that is too high": (PRIORITIES, _named(value=1000000001)),
    "a priority class of the system": (PRIORITIES, {"metadata": {"name": "system-a"}, "value": 5}),
    "a storage class without a provisioner": (CLASSES, _named(provisioner="")),
    "a storage class with bad fields": (CLASSES, _named(provisioner="a_/b", reclaimPolicy="X", volumeBindingMode="X")),
}
_CHANGES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "the data of an immutable ConfigMap": (MAPS, _named(data={"a": "b"}, immutable=True), {"data": {"a": "c"}}),
    "an immutable ConfigMap itself": (MAPS, _named(immutable=True), {"immutable": False}),
    "the labels of an immutable ConfigMap": (
        MAPS,
        _named(data={"a": "b"}, immutable=True),
        {"metadata": {"labels": {"a": "b"}}},
    ),
    "the data of an immutable Secret": (SECRETS, _named(data={"a": "aGk="}, immutable=True), {"data": {"a": "aGg="}}),
    "the type of a Secret": (SECRETS, _named(), {"type": "x/y"}),
    "the selector of a Deployment": (
        DEPLOYMENTS,
        _work(replicas=0),
        {
            "spec": {
                "selector": {"matchLabels": {"app": None, "b": "c"}},
                "template": {"metadata": {"labels": {"b": "c"}}},
            }
        },
    ),
    "the service of a StatefulSet": (STATEFULSETS, _work(replicas=0), {"spec": {"serviceName": "b"}}),
    "the role of a binding": (BINDINGS, _named(roleRef=_ROLE), {"roleRef": {"name": "b"}}),
    "the completions of a Job": (JOBS, _job(suspend=True, parallelism=1, completions=1), {"spec": {"completions": 2}}),
    "the scope of a quota": (
        QUOTAS,
        _named(spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]}),
        {"spec": {"scopes": ["NotBestEffort"]}},
    ),
}


def _changed(name: str, path: str, first: dict[str, Any], change: Any) -> Scenario:
    return scenario(f"to change {name}", post(path, first), patch(f"{path}/one", change), played=True)


SCENARIOS = (
    *(scenario(f"a pod with {name}", post(PODS, body, **_TRIAL)) for name, body in _PODS.items()),
    *(scenario(name, post(path, body, **_TRIAL)) for name, (path, body) in (_WORK | _REST).items()),
    *(_changed(name, *change) for name, change in _CHANGES.items()),
)
