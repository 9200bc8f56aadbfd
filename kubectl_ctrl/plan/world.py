"""The planned states of the objects that the plan wrote, based on the live objects. No I/O.

| object            | its state                                                                          |
|-------------------|------------------------------------------------------------------------------------|
| exists            | the live object with the changes of each dry run, in order                         |
| exists in the plan | the result of the dry run that creates it, with the fields of later writes         |
| deleted           | none; its name is free                                                             |

Planned versions and UIDs begin with `planned-`, and no request contains them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from kubectl_ctrl.client.options import ListQuery, PatchKind
from kubectl_ctrl.client.order import Body
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.objects import Key, Obj, key_of, labels_of, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.patches import apply_json, apply_merge
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.plan.predictions import combined, merged
from kubectl_ctrl.plan.steps import PlannedWrite, alike
from kubectl_ctrl.value import Unshown, Value, replace

PLANNED = "planned-"

# Fields that only the server sets.
_SERVERS_OWN = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"})


# Patches that merge lists by the keys of the items.
_BY_KEY = frozenset({PatchKind.APPLY, PatchKind.STRATEGIC})


class Layer(Value, kw_only=True):
    """One write sent as a dry run: the server made `answer` from `live`."""

    kind: PatchKind | None  # None for a deletion
    manager: str = ""
    subresource: str = ""
    body: Unshown[Body]
    live: Unshown[Obj]
    answer: Unshown[Obj]

    def over(self, before: Obj) -> Obj:
        state: Obj = combined(self.live, before, stated(before, self.body, self.kind, self.subresource), self.answer)
        return state

    def replaces(self, other: Layer) -> bool:
        """An apply has all fields of its manager, so it replaces the earlier apply of the same manager."""
        mine, before = (self.kind, self.manager, self.subresource), (other.kind, other.manager, other.subresource)
        return self.kind is PatchKind.APPLY and mine == before


class PlannedState(Value, kw_only=True):
    state: Unshown[Obj | None]  # None: deleted
    live: Unshown[Obj | None] = None  # on the server; None: it exists in the plan alone
    layers: tuple[Layer, ...] = ()


class World:
    """`changed` is called with each new state, or with the last state of a deleted object and True."""

    def __init__(self) -> None:
        self.steps: list[PlannedWrite] = []
        self.blocked: CtrlError | None = None  # a webhook does not support dry run: the plan cannot continue
        self.changed: Callable[[Resource, Obj, bool], None] | None = None
        self._objects: dict[tuple[Resource, Key], PlannedState] = {}
        self._numbers = count(1)

    def find(self, ref: ObjectRef) -> PlannedState | None:
        return self._objects.get((ref.resource, ref.key))

    def visible(self, ref: ObjectRef, live: Obj) -> Obj:
        """The planned state of `live`; a new object of the same name is returned unchanged."""
        planned = self.find(ref)
        if planned is None or planned.live is None or planned.state is None:
            return live
        if uid_of(planned.live) != uid_of(live):
            del self._objects[ref.resource, ref.key]
            return live
        state = _versioned(folded(live, planned.layers), version_of(planned.state))
        self._objects[ref.resource, ref.key] = replace(planned, live=live, state=state)
        return state

    def listed(self, resource: Resource, query: ListQuery, live: list[Obj]) -> list[Obj]:
        """The planned result of a list; field selectors are evaluated by the server alone."""
        shown = {key_of(obj): self.visible(resource.ref(name_of(obj), namespace_of(obj)), obj) for obj in live}
        selector = Selector.parse(query.labels)
        for (of, key), planned in self._objects.items():
            if of != resource or query.namespace not in ("", key.namespace):
                continue
            state = planned.state
            if state is None or not selector.matches(labels_of(state)):
                shown.pop(key, None)
            elif key in shown or not query.fields:
                shown[key] = state
        return list(shown.values())

    def tried(self, ref: ObjectRef, live: Obj, layer: Layer) -> Obj:
        """The state after a dry-run write to an existing object, which is not recorded."""
        planned = self.find(ref.sub(""))
        before = self.visible(ref.sub(""), live)
        layers = () if planned is None else planned.layers
        return _versioned(folded(live, _with(layers, layer)), version_of(before))

    def wrote(self, ref: ObjectRef, live: Obj, layer: Layer, verb: str) -> Obj:
        """Record a write to an existing object; returns its new state, with a new version if it changed."""
        whole = ref.sub("")
        before = self.visible(whole, live)
        planned = self.find(whole)
        layers = _with(() if planned is None else planned.layers, layer)
        after = _versioned(folded(live, layers), version_of(before))
        after = before if alike(before, after) else _versioned(after, self._invent())
        self._objects[whole.resource, whole.key] = PlannedState(state=after, live=live, layers=layers)
        self._step(ref, verb, before, after)
        self._settle(whole, after)
        return after

    def created(self, ref: ObjectRef, answer: Obj, verb: str) -> Obj:
        """Record a creation; the object gets a planned UID and version."""
        meta = {**answer["metadata"], "uid": self._invent(), "resourceVersion": self._invent()}
        state: Obj = {**answer, "metadata": meta}
        place = ref.resource, key_of(state)
        before = self._objects.get(place)
        # The plan deleted an object of this name, which still exists on the server.
        live = before.live if before is not None else None
        self._objects[place] = PlannedState(state=state)
        self._step(ref.resource.ref(place[1].name, place[1].namespace), verb, None, state, checked=live is None)
        self._tell(ref.resource, state, gone=False)
        return state

    def rewrote(self, ref: ObjectRef, after: Obj, verb: str, *, checked: bool) -> Obj:
        """Record a write to an object that exists in the plan alone."""
        whole = ref.sub("")
        planned = self._objects[whole.resource, whole.key]
        before = planned.state
        assert before is not None
        meta = {**after["metadata"], "uid": uid_of(before), "resourceVersion": version_of(before)}
        after = {**after, "metadata": meta}
        if not alike(before, after):
            after = _versioned(after, self._invent())
        self._objects[whole.resource, whole.key] = replace(planned, state=after)
        self._step(ref, verb, before, after, checked=checked)
        self._settle(whole, after)
        return after

    def removed(self, ref: ObjectRef, live: Obj | None, before: Obj) -> None:
        """Record a deletion without finalizers."""
        self._objects[ref.resource, ref.key] = PlannedState(state=None, live=live)
        self._step(ref, "delete", before, None, checked=live is not None)
        self._tell(ref.resource, before, gone=True)

    def touched(self, ref: ObjectRef, state: Obj, verb: str) -> None:
        """Record a write with an unknown effect on the object."""
        self._step(ref, verb, state, state)
        self.steps[-1] = replace(self.steps[-1], known=False)

    def _settle(self, ref: ObjectRef, state: Obj) -> None:
        """Delete an object under deletion when its last finalizer is removed."""
        meta = state["metadata"]
        gone = meta.get("deletionTimestamp") and not (meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"))
        if gone:
            planned = self._objects[ref.resource, ref.key]
            self._objects[ref.resource, ref.key] = replace(planned, state=None, layers=())
            last = self.steps[-1]
            self.steps[-1] = replace(last, after=None)
        self._tell(ref.resource, state, gone=bool(gone))

    def _step(self, ref: ObjectRef, verb: str, before: Obj | None, after: Obj | None, *, checked: bool = True) -> None:
        self.steps.append(
            PlannedWrite(
                verb=verb,
                resource=ref.resource,
                key=ref.key,
                subresource=ref.subresource,
                before=before,
                after=after,
                checked=checked,
            )
        )

    def _tell(self, resource: Resource, state: Obj, *, gone: bool) -> None:
        if self.changed is not None:
            self.changed(resource, state, gone)

    def _invent(self) -> str:
        return f"{PLANNED}{next(self._numbers)}"

    def __repr__(self) -> str:
        return f"World(objects={len(self._objects)}, steps={len(self.steps)}, blocked={self.blocked is not None})"


def _versioned(state: Obj, version: str) -> Obj:
    return {**state, "metadata": {**state["metadata"], "resourceVersion": version}}


def folded(live: Obj, layers: tuple[Layer, ...]) -> Obj:
    """The live object with every layer over it, first to last."""
    state = live
    for layer in layers:
        state = layer.over(state)
    return state


def stated(before: Obj, body: Body, kind: PatchKind | None, subresource: str) -> Obj:
    """The state with the fields of a write, as far as they can be merged without a server."""
    if kind is None:
        return before
    if isinstance(body, list):
        after: Obj = apply_json(before, body)
        return after
    fields = {key: value for key, value in body.items() if subresource in ("", key)}
    if "metadata" in fields:
        pinned = ("uid", "resourceVersion")
        fields["metadata"] = {key: value for key, value in fields["metadata"].items() if key not in pinned}
    changed: Obj = merged(before, fields) if kind in _BY_KEY else apply_merge(before, fields)
    return changed


def as_new(state: Obj) -> Obj:
    """The body of a create request for this state."""
    meta = {key: value for key, value in state["metadata"].items() if key not in _SERVERS_OWN}
    return {**{key: value for key, value in state.items() if key != "status"}, "metadata": meta}


def _with(layers: tuple[Layer, ...], layer: Layer) -> tuple[Layer, ...]:
    return (*(one for one in layers if not layer.replaces(one)), layer)
