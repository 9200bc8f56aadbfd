"""The built-in types: their schemas, the owners of fields, subresources that act, and types that share objects."""

from __future__ import annotations

from typing import Any

from e2e.parity import gaps
from e2e.parity.asks import (
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    MAPS,
    PODS,
    SECRETS,
    STRATEGIC,
    Scenario,
    apply,
    config_map,
    delete,
    deployment,
    get,
    patch,
    post,
    put,
    scenario,
)

_APPS, _BATCH, _NETS = "/apis/apps/v1", "/apis/batch/v1", "/apis/networking.k8s.io/v1"
_HERE = "namespaces/{ns}"
_CONTAINER: dict[str, Any] = {"name": "c", "image": "nginx"}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [_CONTAINER]}}
_JOB_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}}
_SELECTOR = {"matchLabels": {"app": "x"}}
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
_PATH = {"path": "/", "pathType": "Prefix", "backend": _BACKEND}

_NEW: dict[str, tuple[str, dict[str, Any]]] = {
    "DaemonSet": (f"{_APPS}/{_HERE}/daemonsets", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    "ControllerRevision": (f"{_APPS}/{_HERE}/controllerrevisions", {"revision": 1, "data": {"a": {"b": [1, None]}}}),
    "CronJob": (
        f"{_BATCH}/{_HERE}/cronjobs",
        {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": _JOB_TEMPLATE}}}},
    ),
    "NetworkPolicy": (
        f"{_NETS}/{_HERE}/networkpolicies",
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": _SELECTOR}]}]}},
    ),
    "Ingress": (
        f"{_NETS}/{_HERE}/ingresses",
        {"spec": {"rules": [{"host": "a.example.com", "http": {"paths": [_PATH]}}]}},
    ),
    "Role": (f"/apis/rbac.authorization.k8s.io/v1/{_HERE}/roles", {"rules": [_RULE]}),
    "RoleBinding": (
        f"/apis/rbac.authorization.k8s.io/v1/{_HERE}/rolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "{ns}"}],
        },
    ),
    "PodDisruptionBudget": (
        f"/apis/policy/v1/{_HERE}/poddisruptionbudgets",
        {"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
    ),
    "ResourceQuota": (f"/api/v1/{_HERE}/resourcequotas", {"spec": {"hard": {"pods": "10", "memory": "1024Mi"}}}),
    "LimitRange": (
        f"/api/v1/{_HERE}/limitranges",
        {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1000m"}}]}},
    ),
    "Endpoints": (
        f"/api/v1/{_HERE}/endpoints",
        {"subsets": [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 80}]}]},
    ),
    "EndpointSlice": (
        f"/apis/discovery.k8s.io/v1/{_HERE}/endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.9"]}], "ports": [{"port": 80, "name": "a"}]},
    ),
    "PodTemplate": (f"/api/v1/{_HERE}/podtemplates", {"template": _TEMPLATE}),
    "StorageClass": ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "example.com/disk"}),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 10}),
    "RuntimeClass": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "runc"}),
    "IngressClass": (f"{_NETS}/ingressclasses", {"spec": {"controller": "example.com/ingress"}}),
    "PersistentVolumeClaim": (
        f"/api/v1/{_HERE}/persistentvolumeclaims",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "resources": {"requests": {"storage": "1Gi"}},
            }
        },
    ),
    "Pod": (
        PODS,
        {
            "spec": {
                "schedulerName": "nobody",
                "containers": [
                    {
                        **_CONTAINER,
                        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "resources": {"limits": {"cpu": "1500m"}},
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    }
                ],
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "automountServiceAccountToken": False,
            }
        },
    ),
}


# Admission adds fields.
_ADMITTED = dict.fromkeys(("PersistentVolumeClaim", "Pod"), gaps.NOT_ADMITTED)


def _named(what: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "one-{ns}", "labels": {"a": "b"}}, **what}


def _typed(kind: str, path: str, what: dict[str, Any]) -> dict[str, Any]:
    parts = path.split("/")
    return {"apiVersion": parts[2] if parts[1] == "api" else "/".join(parts[2:4]), "kind": kind, **_named(what)}


_WRONG: dict[str, Any] = {
    "a text for an object": {"spec": "x"},
    "a list for an object": {"spec": []},
    "an object for a list": {"spec": {"template": {"spec": {"containers": {}}}}},
    "a text for a list of texts": {"spec": {"template": {"spec": {"containers": [{"name": "a", "args": "x"}]}}}},
    "a number for a text": {"spec": {"template": {"spec": {"containers": [{"name": 1}]}}}},
    "a number in a list of texts": {"spec": {"template": {"spec": {"containers": [{"name": "a", "args": [1]}]}}}},
    "a text for a boolean": {"spec": {"paused": "yes"}},
    "a number for a named type": {"spec": {"template": {"spec": {"restartPolicy": 3}}}},
    "a fraction for a number": {"spec": {"replicas": 1.5}},
    "a large number": {"spec": {"replicas": 3000000000}},
    "a list for a map of texts": {"spec": {"selector": {"matchLabels": ["a"]}}},
    "a number in a map of texts": {"spec": {"selector": {"matchLabels": {"a": 1}}}},
    "a broken quantity": {
        "spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "many"}}}]}}}
    },
    "a boolean for a quantity": {
        "spec": {"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": True}}}]}}}
    },
    "unknown fields": {"odd": 1, "spec": {"odd": 2, "template": {"spec": {"containers": [{"name": "a", "odd": 3}]}}}},
    "an unknown field of metadata": {"metadata": {"name": "one", "odd": 1}},
}
_SCALER: dict[str, Any] = {
    "metadata": {"name": "one"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 70,
    },
}
_OLD_SCALERS = HPAS.replace("/v2/", "/v1/")
_NEW_EVENTS = EVENTS.replace("/api/v1/", "/apis/events.k8s.io/v1/")
_EVENT = {
    "metadata": {"name": "one"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "regarding": {"kind": "ConfigMap", "name": "one", "namespace": "{ns}"},
    "reportingController": "example.com/me",
    "reportingInstance": "me-1",
    "action": "Test",
    "reason": "R",
    "note": "words",
    "type": "Normal",
}
SCENARIOS: tuple[Scenario, ...] = (
    *(
        scenario(f"a new {kind}", post(path, _named(what), dryRun="All"), gap=_ADMITTED.get(kind, ""))
        for kind, (path, what) in _NEW.items()
    ),
    *(
        scenario(
            f"apply a new {kind}",
            apply(f"{path}/one-{{ns}}", _typed(kind, path, what), dryRun="All"),
            gap=_ADMITTED.get(kind, ""),
        )
        for kind, (path, what) in _NEW.items()
    ),
    *(
        scenario(f"a Deployment: {name}", post(DEPLOYMENTS, {**deployment("one"), **what}, fieldValidation="Strict"))
        for name, what in _WRONG.items()
    ),
    scenario("a Secret with data that is no base64", post(SECRETS, {"metadata": {"name": "one"}, "data": {"a": "?"}})),
    scenario(
        "a merge of a wrong type",
        post(MAPS, config_map("one", {"a": "b"})),
        patch(f"{MAPS}/one", {"data": {"a": 1}}),
        patch(f"{MAPS}/one", {"data": {"a": 1}}, STRATEGIC),
        put(f"{MAPS}/one", {**config_map("one"), "data": 1}),
        gap=gaps.PATCH,
    ),
    scenario("apply a wrong type", apply(f"{MAPS}/one", {**config_map("one"), "data": {"a": 1}})),
    scenario(
        "an old HorizontalPodAutoscaler",
        post(_OLD_SCALERS, _SCALER, dryRun="All"),
        post(_OLD_SCALERS, {**_SCALER, "spec": {**_SCALER["spec"], "odd": 1}}, fieldValidation="Strict"),
    ),
    scenario("an event of events.k8s.io", post(_NEW_EVENTS, _EVENT), get(f"{_NEW_EVENTS}/one")),
    scenario(
        "bind and evict a missing pod",
        post(f"{PODS}/none/binding", {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": "n"}}),
        post(f"{PODS}/none/eviction", {"metadata": {"name": "none"}}),
        post(f"{PODS}/none/eviction", {"metadata": {"name": "two"}}),
    ),
    scenario(
        "methods that a resource does not have",
        get("/api/v1/namespaces/{ns}/bindings"),
        post("/api/v1/componentstatuses", {}),
        delete("/api/v1/namespaces"),
        put("/api/v1/namespaces/{ns}/pods/one/eviction", {}),
        get("/api/v1/namespaces/{ns}/pods/one/nothing"),
    ),
)
