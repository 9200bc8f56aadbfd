"""The relevant parts of the built-in types' schemas: which lists merge by key, which values are atomic.

Written as OpenAPI v3 with Kubernetes' extensions, as in CRDs. Values without a schema are granular if they are objects
and atomic if they are lists, as the server treats unknown fields.
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj

STRING: Obj = {"type": "string"}
INTEGER: Obj = {"type": "integer"}


MAP: Obj = {"type": "object", "additionalProperties": STRING}


def atomic(**properties: Obj) -> Obj:
    return {"type": "object", "x-kubernetes-map-type": "atomic", "properties": properties}


def keyed(*keys: str, **properties: Obj) -> Obj:
    """A list whose items merge by these keys."""
    items: Obj = {"type": "object", "properties": {**dict.fromkeys(keys, STRING), **properties}}
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "items": items}


def unique(items: Obj) -> Obj:
    return {"type": "array", "x-kubernetes-list-type": "set", "items": items}


def struct(**properties: Any) -> Obj:
    """A struct whose schema here is incomplete: all other keys are fields, too."""
    return {"type": "object", "properties": properties, "x-open": True}


METADATA: Obj = struct(
    annotations=MAP,
    labels=MAP,
    finalizers=unique(STRING),
    ownerReferences={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
        "items": atomic(uid=STRING),
    },
)

CONDITIONS: Obj = keyed("type")

_PORTS: Obj = keyed("containerPort", "protocol")
_PORTS["items"]["properties"]["containerPort"] = INTEGER
_PORTS["items"]["properties"]["protocol"] = {"type": "string", "default": "TCP"}

_RESOURCES: Obj = struct(claims=keyed("name"), limits=MAP, requests=MAP)

_CONTAINER: Obj = keyed(
    "name",
    env=keyed(
        "name",
        valueFrom=struct(configMapKeyRef=atomic(), fieldRef=atomic(), resourceFieldRef=atomic(), secretKeyRef=atomic()),
    ),
    ports=_PORTS,
    resources=_RESOURCES,
    volumeMounts=keyed("mountPath"),
    volumeDevices=keyed("devicePath"),
)

_POD_SPEC: Obj = struct(
    containers=_CONTAINER,
    initContainers=_CONTAINER,
    ephemeralContainers=_CONTAINER,
    hostAliases=keyed("ip"),
    imagePullSecrets=keyed("name"),
    nodeSelector=atomic(),
    topologySpreadConstraints=keyed("topologyKey", "whenUnsatisfiable"),
    volumes=keyed("name"),
)

_TEMPLATE: Obj = struct(metadata=METADATA, spec=_POD_SPEC)

POD: Obj = struct(
    metadata=METADATA,
    spec=_POD_SPEC,
    status=struct(conditions=CONDITIONS, podIPs=keyed("ip"), hostIPs={"type": "array"}),
)

WORKLOAD: Obj = struct(
    metadata=METADATA, spec=struct(selector=atomic(), template=_TEMPLATE), status=struct(conditions=CONDITIONS)
)

_SERVICE_PORTS: Obj = keyed("port", "protocol")
_SERVICE_PORTS["items"]["properties"]["port"] = INTEGER
_SERVICE_PORTS["items"]["properties"]["protocol"] = {"type": "string", "default": "TCP"}

SERVICE: Obj = struct(
    metadata=METADATA, spec=struct(ports=_SERVICE_PORTS, selector=atomic()), status=struct(conditions=CONDITIONS)
)

HPA: Obj = struct(metadata=METADATA, spec=struct(metrics={"type": "array"}), status=struct(conditions=CONDITIONS))

EVENT: Obj = struct(metadata=METADATA, involvedObject=atomic(), related=atomic())

CRD: Obj = struct(metadata=METADATA, status=struct(conditions=CONDITIONS))

RBAC: Obj = struct(metadata=METADATA, roleRef=atomic())

CONFIG: Obj = struct(metadata=METADATA, data=MAP, binaryData=MAP, stringData=MAP)


_TEMPLATED: Obj = {"spec": {"template": {"metadata": {}, "spec": {"containers": None}}}, "status": {}}

# The structs of a kind that always exist, empty: creating the object does not give anybody ownership of them.
EMPTY: dict[str, Obj] = {
    "Deployment": {**_TEMPLATED, "spec": {**_TEMPLATED["spec"], "strategy": {}}},
    "ReplicaSet": _TEMPLATED,
    "StatefulSet": {**_TEMPLATED, "spec": {**_TEMPLATED["spec"], "serviceName": "", "updateStrategy": {}}},
    "Pod": {"spec": {"containers": None}, "status": {}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {}}, "status": {}},
    "Lease": {"spec": {}},
    "Event": {
        **dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp")),
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    "CustomResourceDefinition": {"spec": {"names": {}}, "status": {}},
}


def full(schema: Obj) -> Obj:
    """A kind's schema with the metadata that every kind has."""
    properties = {**(schema.get("properties") or {}), "metadata": METADATA}
    return {**schema, "properties": properties}
