"""A plain model of a server: every state that ever was, by version, and what a watch of a selection tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.selectors import Selector
from tests.objects import present

THINGS = Resource("example.com", "v1", "things", "Thing")


def thing(key: Key, uid: str, version: str, *, labels: dict[str, str] | None = None, value: int = 0) -> Obj:
    meta = {"name": key.name, "namespace": key.namespace, "uid": uid, "resourceVersion": version}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {**meta, "labels": dict(labels or {})},
        "spec": {"value": value},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one version changed."""

    version: int
    key: Key
    obj: Obj | None  # after the step; None: deleted
    last: Obj | None  # deleted: the final state, with the version of the deletion


@dataclass(slots=True)
class History:
    """One line of time; a restored server begins another one."""

    steps: list[Step] = field(default_factory=list)
    base: int = 0

    @property
    def version(self) -> int:
        return self.steps[-1].version if self.steps else self.base

    def at(self, key: Key, version: int) -> Obj | None:
        """The state of that key as of that version."""
        for step in reversed(self.steps):
            if step.key == key and step.version <= version:
                return step.obj
        return None

    def state(self, version: int) -> dict[Key, Obj]:
        state: dict[Key, Obj] = {}
        for step in self.steps:
            if step.version > version:
                break
            if step.obj is None:
                state.pop(step.key, None)
            else:
                state[step.key] = step.obj
        return state

    def put(self, obj: Obj) -> Step:
        step = Step(version=int(obj["metadata"]["resourceVersion"]), key=key_of(obj), obj=obj, last=None)
        self.steps.append(step)
        return step

    def delete(self, key: Key) -> Step:
        version = self.version + 1
        last = present(self.at(key, version))
        final = {**last, "metadata": {**last["metadata"], "resourceVersion": str(version)}}
        step = Step(version=version, key=key, obj=None, last=final)
        self.steps.append(step)
        return step

    def until(self, version: int) -> History:
        """What a server restored to that version knows."""
        return History([step for step in self.steps if step.version <= version], self.base)

    def event(self, step: Step, selector: Selector | None) -> tuple[str, Obj] | None:
        """What a watch tells of that step: objects enter and leave a selection as if they were made and deleted."""
        before = selected(self.at(step.key, step.version - 1), selector)
        after = selected(step.obj, selector)
        if before is None and after is None:
            return None
        if after is not None:
            return ("MODIFIED" if before is not None else "ADDED"), after
        if step.last is not None:
            return "DELETED", step.last
        assert before is not None
        return "DELETED", {**before, "metadata": {**before["metadata"], "resourceVersion": str(step.version)}}


def selected(obj: Obj | None, selector: Selector | None) -> Obj | None:
    if obj is None or (selector is not None and not selector.matches(obj["metadata"]["labels"])):
        return None
    return obj
