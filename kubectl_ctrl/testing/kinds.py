"""The resource types of the scripted server: built-in ones, and those that CRDs add."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import (
    CRDS,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    LEASES,
    NAMESPACES,
    PODS,
    REPLICASETS,
    SECRETS,
    STATEFULSETS,
    Resource,
)
from kubectl_ctrl.testing import schemas
from kubectl_ctrl.value import Unshown, Value, field

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Generation(StrEnum):
    """The changes that increase metadata.generation."""

    NEVER = "never"
    SPEC = "spec"  # built-in types: a change of the spec
    ALL = "all"  # custom resources: any change outside metadata, and outside status where that is a subresource


class ServedKind(Value, kw_only=True):
    """One resource type in one version, and its storage rules."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    generation: Generation = Generation.NEVER
    unconditional: bool = True  # a PUT does not need a resourceVersion
    create_on_update: bool = False
    field_labels: tuple[str, ...] = ()  # field selectors beyond metadata.name and metadata.namespace
    schema: Unshown[Obj] = field(default_factory=dict)
    custom: bool = False
    scale: Obj | None = None  # the paths of a custom resource's scale subresource
    storage_version: str = ""  # the storage version of this group and plural

    @property
    def table(self) -> str:
        """All versions of a resource type share one table."""
        return self.resource.full_name

    @property
    def storage_api_version(self) -> str:
        group = self.resource.group
        return f"{group}/{self.storage_version}" if group else self.storage_version

    @property
    def strict_finalizers(self) -> bool:
        """Whether a finalizer must be a standard one or have a domain."""
        return not self.custom and self.resource not in (CRDS, EVENTS, LEASES)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


def _core(plural: str, kind: str, *short: str, namespaced: bool = True) -> ServedKind:
    resource = Resource("", "v1", plural, kind, namespaced)
    return ServedKind(
        resource=resource, singular=kind.lower(), short_names=short, schema=schemas.CONFIG, storage_version="v1"
    )


_EVENT_LABELS = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")),
    *("reason", "reportingComponent", "source", "type"),
)
_POD_LABELS = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase")

_SCALED = ("status", "scale")

BUILT_IN: tuple[ServedKind, ...] = (
    ServedKind(
        resource=NAMESPACES,
        singular="namespace",
        short_names=("ns",),
        subresources=("status", "finalize"),
        field_labels=("status.phase",),
        storage_version="v1",
    ),
    ServedKind(
        resource=PODS,
        singular="pod",
        short_names=("po",),
        categories=("all",),
        subresources=("status",),
        generation=Generation.SPEC,
        field_labels=_POD_LABELS,
        schema=schemas.POD,
        storage_version="v1",
    ),
    _core("configmaps", "ConfigMap", "cm"),
    ServedKind(
        resource=SECRETS, singular="secret", field_labels=("type",), schema=schemas.CONFIG, storage_version="v1"
    ),
    _core("serviceaccounts", "ServiceAccount", "sa"),
    ServedKind(
        resource=Resource("", "v1", "services", "Service"),
        singular="service",
        short_names=("svc",),
        categories=("all",),
        subresources=("status",),
        schema=schemas.SERVICE,
        storage_version="v1",
    ),
    *(
        ServedKind(
            resource=Resource("rbac.authorization.k8s.io", "v1", f"{kind.lower()}s", kind, "Cluster" not in kind),
            singular=kind.lower(),
            schema=schemas.RBAC,
            storage_version="v1",
        )
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    ),
    ServedKind(
        resource=EVENTS,
        singular="event",
        short_names=("ev",),
        create_on_update=True,
        field_labels=_EVENT_LABELS,
        schema=schemas.EVENT,
        storage_version="v1",
    ),
    ServedKind(
        resource=DEPLOYMENTS,
        singular="deployment",
        short_names=("deploy",),
        subresources=_SCALED,
        schema=schemas.WORKLOAD,
        categories=("all",),
        generation=Generation.SPEC,
        storage_version="v1",
    ),
    ServedKind(
        resource=REPLICASETS,
        singular="replicaset",
        short_names=("rs",),
        subresources=_SCALED,
        schema=schemas.WORKLOAD,
        categories=("all",),
        generation=Generation.SPEC,
        storage_version="v1",
    ),
    ServedKind(
        resource=STATEFULSETS,
        singular="statefulset",
        short_names=("sts",),
        subresources=_SCALED,
        schema=schemas.WORKLOAD,
        categories=("all",),
        generation=Generation.SPEC,
        storage_version="v1",
    ),
    ServedKind(resource=LEASES, singular="lease", unconditional=False, create_on_update=True, storage_version="v1"),
    ServedKind(
        resource=HPAS,
        singular="horizontalpodautoscaler",
        short_names=("hpa",),
        categories=("all",),
        subresources=("status",),
        schema=schemas.HPA,
        storage_version="v2",
    ),
    ServedKind(
        resource=CRDS,
        singular="customresourcedefinition",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=("status",),
        generation=Generation.SPEC,
        unconditional=False,
        schema=schemas.CRD,
        storage_version="v1",
    ),
)


def kinds_of(crd: Obj) -> list[ServedKind]:
    """The Kind of each served version of a CustomResourceDefinition."""
    spec = crd["spec"]
    names = spec["names"]
    stored = next((version["name"] for version in spec["versions"] if version.get("storage")), "")
    found = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        resource = Resource(
            spec["group"], version["name"], names["plural"], names["kind"], spec.get("scope") != "Cluster"
        )
        subresources = version.get("subresources") or {}
        found.append(
            ServedKind(
                resource=resource,
                singular=names.get("singular") or names["kind"].lower(),
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=tuple(name for name in ("status", "scale") if name in subresources),
                generation=Generation.ALL,
                unconditional=False,
                field_labels=tuple(path["jsonPath"].lstrip(".") for path in version.get("selectableFields") or ()),
                schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
                custom=True,
                scale=subresources.get("scale"),
                storage_version=stored,
            )
        )
    return found
