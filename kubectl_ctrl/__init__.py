"""Run Kubernetes controllers, and tell what they did and why.

The rooms, from the top; each imports only rooms below it:

cli          the verbs, which put it all together
testing      the kit for people who write controllers
render       live or recorded values as text, JSON and pictures
doctor       checks of the machine, the cluster and the recordings
devcluster   the steps of up and down: a cluster with everything on it, and its end
story        what is known of one object, recorded and live
runs         one run of controllers from start to end, and who else runs here
loader       from a word of the command line to a controller
controllers  the bundled reconcilers, written on what is public here
target       the cluster that a command line means, past the guard
plan         a reconcile without effects
replay       a recorded reconcile again, without a cluster
clusters     local clusters: made, found again, deleted
history      what runs recorded, in one file, and back
findings     from what was recorded to why
install      what a controller needs in a cluster, applied and deleted
runtime      triggers turn a Change into requests, a controller calls the reconciler, the verdict says what follows
rbac         rights: read, derived, compared, written
cache        reflector, store and overlay: a watch event becomes a Change, told once the store has it
client       one request: bytes become watch events; the only HTTP to a cluster
workqueue    one entry for each request, its causes beside it, in a fair order
kubeconfig   files, flags and environment become one server, user and namespace
model        pure data, which all of them speak

Under them all: processes, clock (time), exec (subprocesses), files (written whole), text (words that several rooms
write), user (the environment and folders), errors (one tree), version, locks (on files), value (how data is declared).

Everything a controller needs is imported from here and from nowhere else:

    from kubectl_ctrl import DEPLOYMENTS, Context, Request, Resource, Result, controller

    FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")

    async def reconcile(ctx: Context, request: Request) -> Result | None:
        foo = await ctx.read.get(FOOS, request.name)
        ...

    CONTROLLER = controller("foo", reconcile).for_(FOOS).owns(DEPLOYMENTS)

`kubectl ctrl run ./foo.py` runs it. So does a program of one's own, which other commands can still import:

    if __name__ == "__main__":
        asyncio.run(kubectl_ctrl.run(CONTROLLER))

Names are loaded when they are first used: a command line that only prints help pays for none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubectl_ctrl.errors import (
        AlreadyExists,
        ApiError,
        BadAnswer,
        BadRequest,
        CallError,
        Conflict,
        ControllerError,
        CtrlError,
        DeadlinePassed,
        Expired,
        Forbidden,
        Invalid,
        MethodNotAllowed,
        NamespaceTerminating,
        NotFound,
        NotInstalled,
        NotLeading,
        NotServed,
        OutcomeUnknown,
        Refused,
        Replaced,
        ServerError,
        TerminalError,
        TooManyRequests,
        Unauthorized,
        Unreachable,
        Untrusted,
        UsageError,
    )
    from kubectl_ctrl.model.autoscalers import by_scale_target, scale_target
    from kubectl_ctrl.model.cause import Cause, CauseKind, Request
    from kubectl_ctrl.model.change import Change, ChangeKind
    from kubectl_ctrl.model.conditions import Condition
    from kubectl_ctrl.model.conditions import find as find_condition
    from kubectl_ctrl.model.conditions import is_true as condition_is_true
    from kubectl_ctrl.model.objects import (
        Key,
        Obj,
        annotations_of,
        generation_of,
        is_deleting,
        key_of,
        labels_of,
        name_of,
        namespace_of,
        uid_of,
        version_of,
    )
    from kubectl_ctrl.model.owners import controlled_by, controller_of, owner_reference
    from kubectl_ctrl.model.patches import apply_merge
    from kubectl_ctrl.model.resources import (
        CONFIGMAPS,
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
        ObjectRef,
        Resource,
    )
    from kubectl_ctrl.model.selectors import Selector
    from kubectl_ctrl.runs.program import run
    from kubectl_ctrl.runtime.builder import ControllerSpec, controller
    from kubectl_ctrl.runtime.contract import Cached, Context, Ensured, How, Reader, Result, Writer
    from kubectl_ctrl.runtime.predicates import (
        Predicate,
        all_of,
        annotations_changed,
        any_of,
        generation_changed,
        labels_changed,
        named,
        not_,
        owner_changed,
    )

# module -> the names that come from it; `public = own` where they differ.
_HOMES = {
    "errors": (
        "AlreadyExists ApiError BadAnswer BadRequest CallError Conflict ControllerError CtrlError DeadlinePassed "
        "Expired Forbidden Invalid MethodNotAllowed NamespaceTerminating NotFound NotInstalled NotLeading "
        "NotServed OutcomeUnknown Refused Replaced ServerError TerminalError TooManyRequests Unauthorized "
        "Unreachable Untrusted UsageError"
    ),
    "model.autoscalers": "by_scale_target scale_target",
    "model.cause": "Cause CauseKind Request",
    "model.change": "Change ChangeKind",
    "model.conditions": "Condition find_condition=find condition_is_true=is_true",
    "model.objects": (
        "Key Obj annotations_of generation_of is_deleting key_of labels_of name_of namespace_of uid_of version_of"
    ),
    "model.owners": "controlled_by controller_of owner_reference",
    "model.patches": "apply_merge",
    "model.resources": (
        "CONFIGMAPS CRDS DEPLOYMENTS EVENTS HPAS LEASES NAMESPACES PODS REPLICASETS SECRETS STATEFULSETS ObjectRef "
        "Resource"
    ),
    "model.selectors": "Selector",
    "runtime.builder": "ControllerSpec controller",
    "runtime.contract": "Cached Context Ensured How Reader Result Writer",
    "runtime.predicates": (
        "Predicate all_of annotations_changed any_of generation_changed labels_changed named not_ owner_changed"
    ),
    "runs.program": "run",
}


def _table() -> dict[str, tuple[str, str]]:
    """Public name -> (module, name there)."""
    found: dict[str, tuple[str, str]] = {}
    for module, names in _HOMES.items():
        for name in names.split():
            public, _, own = name.partition("=")
            found[public] = (f"kubectl_ctrl.{module}", own or public)
    return found


_TABLE = _table()

__all__ = [
    "CONFIGMAPS",
    "CRDS",
    "DEPLOYMENTS",
    "EVENTS",
    "HPAS",
    "LEASES",
    "NAMESPACES",
    "PODS",
    "REPLICASETS",
    "SECRETS",
    "STATEFULSETS",
    "AlreadyExists",
    "ApiError",
    "BadAnswer",
    "BadRequest",
    "Cached",
    "CallError",
    "Cause",
    "CauseKind",
    "Change",
    "ChangeKind",
    "Condition",
    "Conflict",
    "Context",
    "ControllerError",
    "ControllerSpec",
    "CtrlError",
    "DeadlinePassed",
    "Ensured",
    "Expired",
    "Forbidden",
    "How",
    "Invalid",
    "Key",
    "MethodNotAllowed",
    "NamespaceTerminating",
    "NotFound",
    "NotInstalled",
    "NotLeading",
    "NotServed",
    "Obj",
    "ObjectRef",
    "OutcomeUnknown",
    "Predicate",
    "Reader",
    "Refused",
    "Replaced",
    "Request",
    "Resource",
    "Result",
    "Selector",
    "ServerError",
    "TerminalError",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Untrusted",
    "UsageError",
    "Writer",
    "all_of",
    "annotations_changed",
    "annotations_of",
    "any_of",
    "apply_merge",
    "by_scale_target",
    "condition_is_true",
    "controlled_by",
    "controller",
    "controller_of",
    "find_condition",
    "generation_changed",
    "generation_of",
    "is_deleting",
    "key_of",
    "labels_changed",
    "labels_of",
    "name_of",
    "named",
    "namespace_of",
    "not_",
    "owner_changed",
    "owner_reference",
    "run",
    "scale_target",
    "uid_of",
    "version_of",
]


def __getattr__(name: str) -> object:
    try:
        module, own = _TABLE[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(importlib.import_module(module), own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
