"""The specification of one call: path, query, body, and what to do if its response is lost."""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import quote

from kubectl_ctrl.errors import CallSite, UsageError
from kubectl_ctrl.model.attempt import WRITES
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import Unshown, Value

JSON = "application/json"

Body = Obj | list[Obj]  # a JSON patch is a list of operations

# Objects below such a path may contain credentials: their requests and responses are never quoted.
_SENSITIVE = re.compile("secret|token|credential", re.IGNORECASE)


class WhenLost(StrEnum):
    """What to do when a request was sent and its response was lost."""

    REPEAT = "repeat"  # it is idempotent
    READ = "read"  # the live object shows whether it was carried out
    UNKNOWN = "unknown"  # neither


class Order(Value, kw_only=True):
    """One call; all its sends are the same."""

    verb: str  # get list create update patch apply delete watch
    method: str
    path: str  # percent-encoded
    query: tuple[tuple[str, str], ...] = ()
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Unshown[Body | None] = None
    content_type: str = JSON
    accept: str = JSON
    timeout: float = 30.0
    dry_run: bool = False
    old_version: str = ""
    before: Unshown[Obj | None] = None  # the object that the caller has read
    when_lost: WhenLost = WhenLost.REPEAT
    resend: bool = True  # False: one send, because the caller retries itself

    @property
    def write(self) -> bool:
        """Whether it can change the cluster."""
        return self.verb in WRITES and not self.dry_run

    @property
    def sensitive(self) -> bool:
        return _SENSITIVE.search(self.path) is not None

    @property
    def target(self) -> str:
        """For messages: `deployments.apps default/web/status`, `pods in namespace 'default'`."""
        if self.resource is None:
            return self.path
        if self.name:
            tail = f"/{self.subresource}" if self.subresource else ""
            return f"{self.resource} {Key(self.namespace, self.name)}{tail}"
        if not self.resource.namespaced:
            return str(self.resource)
        return f"{self.resource} in " + (f"namespace {self.namespace!r}" if self.namespace else "all namespaces")

    def site(self, audit_id: str) -> CallSite:
        return CallSite(self.verb, self.target, audit_id)


def collection_path(resource: Resource, namespace: str) -> str:
    """The path for list and create; of all namespaces if `namespace` is ""."""
    if resource.namespaced and namespace:
        return f"{resource.root}/namespaces/{_segment(namespace, 'namespace')}/{resource.plural}"
    return f"{resource.root}/{resource.plural}"


def object_path(ref: ObjectRef) -> str:
    """The path of one object; UsageError for a reference that would name a whole collection."""
    if ref.resource.namespaced and not ref.namespace:
        raise UsageError(f"{ref.resource.kind} {ref.name!r} has no namespace, and {ref.resource} live in namespaces.")
    path = f"{collection_path(ref.resource, ref.namespace)}/{_segment(ref.name, 'name')}"
    return path + "".join(f"/{_segment(part, 'subresource')}" for part in ref.subresource.split("/") if part)


def _segment(text: str, what: str) -> str:
    # With an empty name, the delete of one object would delete the collection; dots would leave the path.
    if text in {"", ".", ".."} or "/" in text or "%" in text:
        raise UsageError(f"{text!r} cannot be a {what}: it is empty, or contains characters that a path cannot have.")
    return quote(text, safe=":")
