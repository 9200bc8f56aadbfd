"""The resource types: the built-in ones, from data and one table of rules, and those that CRDs add."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, EVENTS, LEASES, Resource
from kubectl_ctrl.sandbox.kinds import schemas
from kubectl_ctrl.sandbox.kinds.views import VIEWS, View
from kubectl_ctrl.value import Unshown, Value, field

_PART_VERBS = ("get", "patch", "update")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class Generation(StrEnum):
    """The changes that increase metadata.generation."""

    NEVER = "never"
    FIRST = "first"  # it stays 1
    SPEC = "spec"  # built-in types: a change of the spec
    TEMPLATE = "template"
    WEBHOOKS = "webhooks"
    ALL = "all"  # any change outside metadata, and outside status where that is a subresource


class ServedKind(Value, kw_only=True):
    """One resource type in one version, and its storage rules."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # and their verbs
    generation: Generation = Generation.NEVER
    unconditional: bool = True  # a PUT does not need a resourceVersion
    create_on_update: bool = False
    field_labels: tuple[str, ...] = ()  # field selectors beyond metadata.name and metadata.namespace
    schema: Unshown[Obj] = field(default_factory=dict)
    custom: bool = False
    columns: Unshown[tuple[Obj, ...]] = ()  # a custom resource's additionalPrinterColumns
    scale: Obj | None = None  # the paths of a custom resource's scale subresource
    storage_version: str = ""  # the storage version of this group and plural
    since: int = 0  # objects stored up to this version may lack defaults of a custom resource's schema
    view: Unshown[View | None] = None  # of the built-in type that is stored, where this one only shows it
    verbs: tuple[str, ...] = CUSTOM_VERBS
    deprecated: str = ""  # the warning of every answer

    def kept_metadata(self, subresource: str) -> tuple[str, ...]:
        """The metadata that a write through a subresource does not change."""
        if subresource in ("ephemeralcontainers", "resize"):
            return USERS_METADATA
        if subresource != "status":
            return ()
        return USERS_METADATA if self.custom else _KEPT_BY_STATUS.get(self.stored.full_name, ())

    @property
    def stored(self) -> Resource:
        return self.resource if self.view is None else self.view.stored

    @property
    def table(self) -> str:
        """All versions of a resource type share one table."""
        return self.stored.full_name

    @property
    def virtual(self) -> bool:
        """Whether objects of this type are answered and not stored, such as a TokenReview."""
        return "get" not in self.verbs

    @property
    def storage_api_version(self) -> str:
        if self.view is not None:
            return self.view.stored.api_version
        group = self.resource.group
        return f"{group}/{self.storage_version}" if group else self.storage_version

    def shown(self, obj: Obj) -> Obj:
        """A stored object in this version."""
        version = self.resource.api_version
        form = self.view.show(obj) if self.view is not None and obj["apiVersion"] != version else obj
        return {**form, "apiVersion": version}

    @property
    def strict_finalizers(self) -> bool:
        """Whether a finalizer must be a standard one or have a domain."""
        return not self.custom and self.stored not in (CRDS, EVENTS, LEASES)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


_EVENT_LABELS = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    *("involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
)

# The rules of the types' storage that are not in the data, by group and plural.
_SPEC_COUNTED = (
    *("pods", "replicationcontrollers", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"),
    *("jobs.batch", "cronjobs.batch", "ingresses.networking.k8s.io", "networkpolicies.networking.k8s.io"),
    *("ingressclasses.networking.k8s.io", "poddisruptionbudgets.policy", "csidrivers.storage.k8s.io"),
    *("resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io", CRDS.full_name),
    *("flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"),
    *(
        f"{what}admission{part}.admissionregistration.k8s.io"
        for what in ("validating", "mutating")
        for part in ("policies", "policybindings")
    ),
)
_GENERATIONS = {
    **dict.fromkeys(_SPEC_COUNTED, Generation.SPEC),
    "podtemplates": Generation.TEMPLATE,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": Generation.WEBHOOKS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": Generation.WEBHOOKS,
    "endpointslices.discovery.k8s.io": Generation.ALL,
    "priorityclasses.scheduling.k8s.io": Generation.FIRST,
}
_NEED_VERSION = frozenset(
    {
        *("runtimeclasses.node.k8s.io", "poddisruptionbudgets.policy", "apiservices.apiregistration.k8s.io"),
        *(f"{plural}.storage.k8s.io" for plural in ("csidrivers", "csinodes", "csistoragecapacities")),
        *("volumeattachments.storage.k8s.io", LEASES.full_name, CRDS.full_name),
        *(name for name in _GENERATIONS if name.endswith(".admissionregistration.k8s.io")),
    }
)
_CREATED_BY_UPDATE = frozenset(
    {
        *("endpoints", "events", "limitranges", "services", LEASES.full_name, "runtimeclasses.node.k8s.io"),
        *(f"{name}.rbac.authorization.k8s.io" for name in ("roles", "rolebindings", "clusterroles")),
        "clusterrolebindings.rbac.authorization.k8s.io",
    }
)
_FIELD_LABELS: dict[str, tuple[str, ...]] = {
    "namespaces": ("status.phase",),
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "nodes": ("spec.unschedulable",),
    "replicationcontrollers": ("status.replicas",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "events": _EVENT_LABELS,
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}
USERS_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")  # all metadata that clients write
_KEPT_BY_STATUS: dict[str, tuple[str, ...]] = {
    "pods": ("ownerReferences",),
    "deployments.apps": ("labels",),
    **dict.fromkeys(
        (
            *("servicecidrs.networking.k8s.io", "resourceclaims.resource.k8s.io", "volumeattachments.storage.k8s.io"),
            *("flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"),
            *("apiservices.apiregistration.k8s.io", "validatingadmissionpolicies.admissionregistration.k8s.io"),
            "storageversionmigrations.storagemigration.k8s.io",
        ),
        USERS_METADATA,
    ),
}
_DEPRECATED = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def _built_in() -> tuple[ServedKind, ...]:
    found = []
    for group in GROUPS:
        for version in group["versions"]:
            for entry in version["resources"]:
                if "/" not in entry["name"]:
                    parts = [one for one in version["resources"] if one["name"].startswith(f"{entry['name']}/")]
                    found.append(_kind(group["name"], version["version"], entry, parts))
    return tuple(found)


def _kind(group: str, version: str, entry: Obj, parts: list[Obj]) -> ServedKind:
    resource = Resource(group, version, entry["name"], entry["kind"], entry["namespaced"])
    view = VIEWS.get((group, version, entry["name"]))
    stored = resource if view is None else view.stored
    name = stored.full_name
    shown = (entry.get("group", group), entry.get("version", version), entry["kind"])
    return ServedKind(
        resource=resource,
        singular=entry["singularName"],
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources={part["name"].partition("/")[2]: tuple(part["verbs"]) for part in parts},
        generation=_GENERATIONS.get(name, Generation.NEVER),
        unconditional=name not in _NEED_VERSION,
        create_on_update=name in _CREATED_BY_UPDATE,
        field_labels=_FIELD_LABELS.get(name, ()),
        schema=schemas.of(*shown),
        storage_version=stored.version,
        view=view,
        verbs=tuple(entry["verbs"]),
        deprecated=_DEPRECATED.get(name, ""),
    )


# The groups in the order of discovery, each with its versions and their resources.
GROUPS: tuple[Obj, ...] = tuple(schemas.load("resources"))
BUILT_IN: tuple[ServedKind, ...] = _built_in()


def kinds_of(crd: Obj) -> list[ServedKind]:
    """The Kind of each served version of a CustomResourceDefinition."""
    if (find(crd, "Established") or {}).get("status") == "False":
        return []
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
                subresources={name: _PART_VERBS for name in ("status", "scale") if name in subresources},
                generation=Generation.ALL,
                unconditional=False,
                field_labels=tuple(path["jsonPath"].lstrip(".") for path in version.get("selectableFields") or ()),
                schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
                custom=True,
                columns=tuple(version.get("additionalPrinterColumns") or ()),
                scale=subresources.get("scale"),
                storage_version=stored,
                since=int(crd["metadata"].get("resourceVersion") or 0),
                deprecated=_warning(version, resource) if version.get("deprecated") else "",
            )
        )
    return found


def _warning(version: Obj, resource: Resource) -> str:
    return str(version.get("deprecationWarning") or f"{resource.api_version} {resource.kind} is deprecated")
