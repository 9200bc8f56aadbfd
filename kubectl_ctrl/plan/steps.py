"""What a plan says: the writes that a controller would make now, object by object and in their order, and what then."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import Unshown, Value


class Effect(StrEnum):
    """What a plan would make of an object."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    FOREIGN = "foreign"  # wanted, and left alone because somebody else has the name


class Step(Value, kw_only=True):
    """One write as it would be sent; `before` and `after` are whole objects, by reference, None where there is none."""

    verb: str  # create, patch, apply, delete
    resource: Resource
    key: Key
    subresource: str = ""
    before: Unshown[Obj | None]
    after: Unshown[Obj | None]
    checked: bool = True  # False: the server was not asked, because the object exists in the plan alone
    known: bool = True  # False: what it makes of the object is not known, so both are the same

    @property
    def changes(self) -> bool:
        """Whether the object would get another version."""
        return not self.known or not alike(self.before, self.after)


class Pass(Value, kw_only=True):
    """One reconcile of the plan."""

    round: int
    request: Request
    attempt: Attempt
    steps: tuple[Step, ...]
    error: CtrlError | None = None  # what ended it, where that is one of ours

    @property
    def writes(self) -> bool:
        return any(step.changes for step in self.steps)


class Fate(Value, kw_only=True):
    """What the whole plan would make of one object."""

    resource: Resource
    key: Key
    effect: Effect
    before: Unshown[Obj | None] = None
    after: Unshown[Obj | None] = None
    checked: bool = True
    note: str = ""


class Plan(Value, kw_only=True):
    """One controller's plan for one or more requests."""

    controller: str
    primary: Resource
    requests: tuple[Request, ...]
    given: tuple[Fate, ...] = ()  # what a file would make of objects before the controller looks at them
    passes: tuple[Pass, ...] = ()
    fates: tuple[Fate, ...] = ()  # in the order in which they were first touched
    to_fixpoint: bool = False
    settled: bool = True  # False: it would still write after the last round
    lease: ObjectRef | None = None  # that a run would hold while it does all this
    secrets: Unshown[tuple[Obj | list[Obj], ...]] = ()  # seen: whoever shows it hides what they hold

    @property
    def rounds(self) -> int:
        return max((one.round for one in self.passes), default=0)

    @property
    def changed(self) -> tuple[Fate, ...]:
        return tuple(one for one in self.fates if one.effect not in (Effect.UNCHANGED, Effect.FOREIGN))

    @property
    def last(self) -> tuple[Pass, ...]:
        """The last reconcile of each request."""
        return tuple({one.request: one for one in self.passes}.values())

    @property
    def error(self) -> CtrlError | None:
        """What ended the last reconcile of a request, if anything did."""
        return next((one.error for one in self.last if one.error is not None), None)


def alike(a: Obj | None, b: Obj | None) -> bool:
    """Whether the server would take the step from one to the other for no change at all."""
    if a is None or b is None:
        return a is b
    return same(_bare(a), _bare(b))


def _bare(obj: Obj) -> Obj:
    """Without its version, and without the times in its managedFields: alone they are no change."""
    meta = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    if "managedFields" in meta:
        meta["managedFields"] = [{**entry, "time": ""} for entry in meta["managedFields"]]
    return {**obj, "metadata": meta}
