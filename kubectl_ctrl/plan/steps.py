"""The contents of a plan: the writes of each reconcile in order, and the effect on each object."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import Unshown, Value


class PlannedEffect(StrEnum):
    """The effect of a plan on an object."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    FOREIGN = "foreign"  # requested, and left alone because another owner has the name


class PlannedWrite(Value, kw_only=True):
    """One write; `before` and `after` are whole objects, by reference, None if there is none."""

    verb: str  # create, patch, apply, delete
    resource: Resource
    key: Key
    subresource: str = ""
    before: Unshown[Obj | None]
    after: Unshown[Obj | None]
    checked: bool = True  # False: not tried on the server, because the object exists in the plan alone
    known: bool = True  # False: the effect on the object is unknown, and `after` is `before`

    @property
    def changes(self) -> bool:
        """The object would get a new version."""
        return not self.known or not alike(self.before, self.after)


class PlannedReconcile(Value, kw_only=True):
    """One reconcile of the plan."""

    round: int
    request: Request
    attempt: Attempt
    steps: tuple[PlannedWrite, ...]
    error: CtrlError | None = None  # the error that ended it

    @property
    def writes(self) -> bool:
        return any(step.changes for step in self.steps)


class PlannedObject(Value, kw_only=True):
    """The effect of the whole plan on one object."""

    resource: Resource
    key: Key
    effect: PlannedEffect
    before: Unshown[Obj | None] = None
    after: Unshown[Obj | None] = None
    checked: bool = True
    note: str = ""


class Plan(Value, kw_only=True):
    """One controller's plan for one or more requests."""

    controller: str
    primary: Resource
    requests: tuple[Request, ...]
    given: tuple[PlannedObject, ...] = ()  # effects of the applied file, before the controller runs
    passes: tuple[PlannedReconcile, ...] = ()
    fates: tuple[PlannedObject, ...] = ()  # in the order in which they were first touched
    to_fixpoint: bool = False
    settled: bool = True  # False: it would still write after the last round
    lease: ObjectRef | None = None  # the lease that a run would hold
    secrets: Unshown[
        tuple[Obj | list[Obj], ...]
    ] = ()  # Secrets that were read or planned: their values are masked in output

    @property
    def rounds(self) -> int:
        return max((one.round for one in self.passes), default=0)

    @property
    def changed(self) -> tuple[PlannedObject, ...]:
        return tuple(one for one in self.fates if one.effect not in (PlannedEffect.UNCHANGED, PlannedEffect.FOREIGN))

    @property
    def last(self) -> tuple[PlannedReconcile, ...]:
        """The last reconcile of each request."""
        return tuple({one.request: one for one in self.passes}.values())

    @property
    def error(self) -> CtrlError | None:
        """The error that ended the last reconcile of a request, if any."""
        return next((one.error for one in self.last if one.error is not None), None)


def alike(a: Obj | None, b: Obj | None) -> bool:
    """For the server, the step from one to the other is no change."""
    if a is None or b is None:
        return a is b
    return same(_bare(a), _bare(b))


def _bare(obj: Obj) -> Obj:
    """Without the resourceVersion and the times in managedFields, which alone are no change."""
    meta = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    if "managedFields" in meta:
        meta["managedFields"] = [{**entry, "time": ""} for entry in meta["managedFields"]]
    return {**obj, "metadata": meta}
