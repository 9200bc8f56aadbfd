"""Pods as a busy cluster has them: two containers, four managers, about 9 KB of JSON, 5 KB without managedFields."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kubectl_ctrl.model.objects import Obj

_TIME = "2026-08-{:02d}T{:02d}:{:02d}:{:02d}Z"


def pod(number: int, *, version: int = 1, workload: int | None = None, alike: bool = True) -> Obj:
    """Pod `number` at `version`; pods of one workload share their template, unless `alike` is False."""
    owner = number // 10 if workload is None else workload
    seed = owner if alike else number
    app = f"service-{owner % 40}"
    name = f"{app}-{_hex(f'rs{owner}', 10)}-{_hex(f'pod{number}', 5)}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{app}-{_hex(f'rs{owner}', 10)}-",
            "namespace": f"team-{owner % 20}",
            "uid": _uid(f"pod{number}"),
            "resourceVersion": str(1_000_000 + number + version * 1_000_000),
            "creationTimestamp": _time(number),
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/instance": f"{app}-prod",
                "app.kubernetes.io/version": f"v1.{seed % 30}.{seed % 7}",
                "pod-template-hash": _hex(f"rs{owner}", 10),
                "tier": "backend",
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9102",
                "checksum/config": _hex(f"config{seed}", 64),
                "kubectl.kubernetes.io/restartedAt": _time(owner),
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"{app}-{_hex(f'rs{owner}', 10)}",
                    "uid": _uid(f"rs{owner}"),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": _managed_fields(number, version),
        },
        "spec": _spec(app, number, seed),
        "status": _status(app, number, seed, version),
    }


def line(obj: Obj, kind: str = "MODIFIED") -> bytes:
    """The object as one frame of a watch."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode()


def _hex(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _uid(text: str) -> str:
    digest = _hex(text, 32)
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def _time(number: int, shift: int = 0) -> str:
    at = number * 7 + shift
    return _TIME.format(1 + at // 86_400 % 28, at // 3600 % 24, at // 60 % 60, at % 60)


def _spec(app: str, number: int, seed: int) -> dict[str, Any]:
    token = f"kube-api-access-{_hex(f'token{number}', 5)}"
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config", "defaultMode": 420}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            {
                "name": token,
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {
                                        "path": "namespace",
                                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                    }
                                ]
                            }
                        },
                    ],
                    "defaultMode": 420,
                },
            },
        ],
        "containers": [_container(app, seed, token), _container("sidecar", seed, token)],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "serviceAccount": app,
        "nodeName": f"ip-10-0-{number % 30}-{number % 250}.eu-central-1.compute.internal",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for state in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _container(name: str, seed: int, token: str) -> dict[str, Any]:
    probe = {
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
    }
    return {
        "name": name,
        "image": f"registry.example.com/platform/{name}:v1.{seed % 30}.{seed % 7}",
        "args": ["--config=/etc/service/config.yaml", f"--shard={seed % 16}", "--log-format=json"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "DATABASE_HOST", "value": f"postgres-{seed % 5}.databases.svc.cluster.local"},
            {"name": "GOMAXPROCS", "value": "2"},
        ],
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": True, "mountPath": "/etc/service"},
            {"name": token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": {**probe, "failureThreshold": 3},
        "readinessProbe": {**probe, "successThreshold": 1},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _status(app: str, number: int, seed: int, version: int) -> dict[str, Any]:
    address = f"10.{number // 65_536 % 256}.{number // 256 % 256}.{number % 256}"
    return {
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": _time(number, shift + version),
            }
            for kind, shift in (("Initialized", 1), ("Ready", 4), ("ContainersReady", 4), ("PodScheduled", 0))
        ],
        "hostIP": f"10.0.{number % 30}.{number % 250}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _time(number, 1),
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": _time(number, 3)}},
                "lastState": {},
                "ready": True,
                "restartCount": version,
                "image": f"registry.example.com/platform/{name}:v1.{seed % 30}.{seed % 7}",
                "imageID": f"registry.example.com/platform/{name}@sha256:{_hex(f'image{name}{seed}', 64)}",
                "containerID": f"containerd://{_hex(f'container{name}{number}', 64)}",
                "started": True,
            }
            for name in (app, "sidecar")
        ],
        "qosClass": "Burstable",
    }


def _managed_fields(number: int, version: int) -> list[dict[str, Any]]:
    container: Obj = {
        ".": {},
        **{f"f:{name}": {} for name in ("name", "image", "imagePullPolicy", "args", "terminationMessagePath")},
        "f:env": {
            ".": {},
            **{f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in ("POD_IP", "GOMAXPROCS")},
        },
        "f:ports": {
            ".": {},
            'k:{"containerPort":8080,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:name": {}},
        },
        "f:livenessProbe": {".": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}}, "f:periodSeconds": {}},
        "f:readinessProbe": {".": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}}, "f:periodSeconds": {}},
        "f:resources": {
            ".": {},
            "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}},
        },
        "f:volumeMounts": {".": {}, 'k:{"mountPath":"/etc/service"}': {".": {}, "f:mountPath": {}, "f:name": {}}},
    }
    labels: Obj = {f"f:{name}": {} for name in ("app.kubernetes.io/name", "app.kubernetes.io/instance", "tier")}
    conditions: dict[str, Any] = {
        f'k:{{"type":"{kind}"}}': {".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
        for kind in ("Initialized", "Ready", "ContainersReady")
    }
    created = {
        "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, **labels}, "f:ownerReferences": {".": {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"service"}': container, 'k:{"name":"sidecar"}': container},
            "f:dnsPolicy": {},
            **{f"f:{name}": {} for name in ("restartPolicy", "schedulerName", "securityContext", "serviceAccountName")},
            "f:volumes": {
                ".": {},
                'k:{"name":"config"}': {
                    ".": {},
                    "f:configMap": {".": {}, "f:defaultMode": {}, "f:name": {}},
                    "f:name": {},
                },
                'k:{"name":"scratch"}': {".": {}, "f:emptyDir": {".": {}, "f:sizeLimit": {}}, "f:name": {}},
            },
        },
    }
    status = {"f:status": {"f:conditions": conditions, "f:containerStatuses": {}, "f:phase": {}, "f:podIP": {}}}
    return [
        _entry("kube-controller-manager", created, _time(number)),
        _entry("kubelet", status, _time(number, 4 + version), subresource="status"),
    ]


def _entry(manager: str, fields: dict[str, Any], at: str, *, subresource: str = "") -> dict[str, Any]:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": at, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": fields, **({"subresource": subresource} if subresource else {})}
