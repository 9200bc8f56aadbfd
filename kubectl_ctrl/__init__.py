"""Run Kubernetes controllers, and record why each reconcile ran.

The rooms, from the top; each imports only rooms below it:

cli          the verbs: command lines in, text and exit codes out
testing      the test kit for authors of controllers: fixtures, virtual time, and the sandbox with scripted faults
render       recorded or live values as text, JSON and HTML
doctor       checks of the machine, the cluster and the recordings
devcluster   the steps of up and down: a cluster with controllers on it, and its deletion
story        one object: its recording and its live state together
runs         one run of controllers from start to end, and which other runs are alive
loader       finds the controller that a command line names
controllers  the bundled reconcilers, written with the public API alone
target       the cluster that a command line means, and the guard in front of it
plan         a reconcile as a dry run
replay       a recorded reconcile again, without a cluster
clusters     local clusters: created, found, deleted
history      the recording: one SQLite file, written and read
findings     causes, chains and verdicts, derived from recorded facts
install      the CRDs and rights of a controller, applied and deleted
sandbox      a Kubernetes API server in this process, with the controllers of a cluster
runtime      triggers turn a Change into requests, workers call the reconciler, its outcome decides the next step
rbac         rights: read, derived from calls, compared, written
cache        reflector, store and overlay: a watch event becomes a Change, published once the store has it
client       requests to one API server, and its watch streams; nothing else speaks HTTP to a cluster
workqueue    one entry for each request, with all its causes, in a fair order
kubeconfig   files, flags and environment become one server, user and namespace
model        the data types that several rooms use

Below them all: processes, clock (time), exec (subprocesses), files (written whole), text (wording that several rooms
use), user (environment and folders), errors (one tree), version, locks (on files), value (how data is declared).

Everything a controller needs is imported from here and from nowhere else:

    from kubectl_ctrl import DEPLOYMENTS, Context, Request, Resource, Result, controller

    FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")

    async def reconcile(ctx: Context, request: Request) -> Result | None:
        foo = await ctx.read.get(FOOS, request.name)
        ...

    CONTROLLER = controller("foo", reconcile).for_(FOOS).owns(DEPLOYMENTS)

`kubectl ctrl run ./foo.py` runs it. These lines make the file a program as well:

    if __name__ == "__main__":
        asyncio.run(kubectl_ctrl.run(CONTROLLER))

Names are imported on first use, so that `--help` starts fast.
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
