"""What the plan has made of the objects that it wrote, laid over what the server has. No I/O.

| object            | its state                                                                          |
|-------------------|------------------------------------------------------------------------------------|
| exists            | the live object with what each dry run changed, in order                           |
| exists in the plan | what the server answered to the dry run that would create it, and later words      |
| deleted           | none; its name is as good as free                                                  |

Versions and UIDs that no server gave are marked as such: they begin with `planned-`, and never leave in a request.
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
from kubectl_ctrl.plan.predictions import laid, merged
from kubectl_ctrl.plan.steps import Step, alike
from kubectl_ctrl.value import Unshown, Value, replace

PLANNED = "planned-"

# What only a server says, and no creation may.
_SERVERS_OWN = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"})


# Their lists are merged by the keys of the items.
_BY_KEY = frozenset({PatchKind.APPLY, PatchKind.STRATEGIC})


class Layer(Value, kw_only=True):
    """One write that was tried: `answer` is what the server made of `live`."""

    kind: PatchKind | None  # None for a deletion
    manager: str = ""
    subresource: str = ""
    body: Unshown[Body]
    live: Unshown[Obj]
    answer: Unshown[Obj]

    def over(self, before: Obj) -> Obj:
        state: Obj = laid(self.live, before, spoken(before, self.body, self.kind, self.subresource), self.answer)
        return state

    def replaces(self, other: Layer) -> bool:
        """An apply says all that its manager wants: what that manager applied before means nothing any more."""
        mine, before = (self.kind, self.manager, self.subresource), (other.kind, other.manager, other.subresource)
        return self.kind is PatchKind.APPLY and mine == before


class Planned(Value, kw_only=True):
    """One object that the plan wrote."""

    state: Unshown[Obj | None]  # None: deleted
    live: Unshown[Obj | None] = None  # as the server has it; None: it exists in the plan alone
    layers: tuple[Layer, ...] = ()


class World:
    """See the module. `changed` is told of each new state; None for an object that is gone, with its last state."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.blocked: CtrlError | None = None  # a webhook that takes no dry run: the plan cannot go on
        self.changed: Callable[[Resource, Obj, bool], None] | None = None
        self._objects: dict[tuple[Resource, Key], Planned] = {}
        self._numbers = count(1)

    def find(self, ref: ObjectRef) -> Planned | None:
        return self._objects.get((ref.resource, ref.key))

    def visible(self, ref: ObjectRef, live: Obj) -> Obj:
        """The object that a read shows where the server has `live`; another one of its name is shown as it is."""
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
        """The objects that a list shows where the server answers `live`; selectors of fields are its own to judge."""
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
        """What a write would make of an object that is there; nothing is noted."""
        planned = self.find(ref.sub(""))
        before = self.visible(ref.sub(""), live)
        layers = () if planned is None else planned.layers
        return _versioned(folded(live, _with(layers, layer)), version_of(before))

    def wrote(self, ref: ObjectRef, live: Obj, layer: Layer, verb: str) -> Obj:
        """Note a write to an object that is there; its new state, with a new version if it changed anything."""
        whole = ref.sub("")
        before = self.visible(whole, live)
        planned = self.find(whole)
        layers = _with(() if planned is None else planned.layers, layer)
        after = _versioned(folded(live, layers), version_of(before))
        after = before if alike(before, after) else _versioned(after, self._invent())
        self._objects[whole.resource, whole.key] = Planned(state=after, live=live, layers=layers)
        self._step(ref, verb, before, after)
        self._settle(whole, after)
        return after

    def born(self, ref: ObjectRef, answer: Obj, verb: str) -> Obj:
        """Note a creation; the object has a UID and a version that nobody has given it."""
        meta = {**answer["metadata"], "uid": self._invent(), "resourceVersion": self._invent()}
        state: Obj = {**answer, "metadata": meta}
        place = ref.resource, key_of(state)
        before = self._objects.get(place)
        # A name that the plan set free: the server still has the object that was there.
        live = before.live if before is not None else None
        self._objects[place] = Planned(state=state)
        self._step(ref.resource.ref(place[1].name, place[1].namespace), verb, None, state, checked=live is None)
        self._tell(ref.resource, state, gone=False)
        return state

    def rewrote(self, ref: ObjectRef, after: Obj, verb: str, *, checked: bool) -> Obj:
        """Note a write to an object that exists in the plan alone."""
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
        """Note a deletion after which nothing is left."""
        self._objects[ref.resource, ref.key] = Planned(state=None, live=live)
        self._step(ref, "delete", before, None, checked=live is not None)
        self._tell(ref.resource, before, gone=True)

    def touched(self, ref: ObjectRef, state: Obj, verb: str) -> None:
        """Note a write of which it is not known what it makes of the object."""
        self._step(ref, verb, state, state)
        self.steps[-1] = replace(self.steps[-1], known=False)

    def _settle(self, ref: ObjectRef, state: Obj) -> None:
        """An object whose last finalizer goes while it is being deleted goes too."""
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
            Step(
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


def spoken(before: Obj, body: Body, kind: PatchKind | None, subresource: str) -> Obj:
    """The state with a write's own words in it, as far as that can be told without a server."""
    if kind is None:
        return before
    if isinstance(body, list):
        after: Obj = apply_json(before, body)
        return after
    said = {key: value for key, value in body.items() if subresource in ("", key)}
    if "metadata" in said:
        pinned = ("uid", "resourceVersion")
        said["metadata"] = {key: value for key, value in said["metadata"].items() if key not in pinned}
    changed: Obj = merged(before, said) if kind in _BY_KEY else apply_merge(before, said)
    return changed


def as_new(state: Obj) -> Obj:
    """The body of a creation that would make this state, as far as a creation can say it."""
    meta = {key: value for key, value in state["metadata"].items() if key not in _SERVERS_OWN}
    return {**{key: value for key, value in state.items() if key != "status"}, "metadata": meta}


def _with(layers: tuple[Layer, ...], layer: Layer) -> tuple[Layer, ...]:
    return (*(one for one in layers if not layer.replaces(one)), layer)
