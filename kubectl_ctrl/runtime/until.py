"""The conditions of `run --until`, in the form of `kubectl wait --for`; watched, never polled."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import Protocol

from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CallError, CtrlError, NotServed, UsageError
from kubectl_ctrl.model.jsonpath import JsonPath
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.summary import Unmet
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

_FORMS = (
    "write TYPE/NAME=condition=Ready, TYPE/NAME=condition=Ready=False, TYPE/NAME=jsonpath={.status.phase}=Running, "
    "TYPE/NAME=jsonpath={.status.phase}, TYPE/NAME=create or TYPE/NAME=delete"
)
_HEAD = re.compile(r"(?P<type>[A-Za-z][\w.-]*)/(?P<name>[a-z0-9A-Z][\w.:-]*)=(?P<goal>.+)", re.DOTALL)
_RETRY_AFTER = 2.0


class Goal(Protocol):
    """A condition on one object; `None` is an object that does not exist."""

    @property
    def text(self) -> str: ...

    def lacks(self, obj: Obj | None) -> str:
        """The reason why it does not hold, or ""."""


class Created(Value):
    """`create`: the object exists."""

    text: str

    def lacks(self, obj: Obj | None) -> str:
        return "" if obj is not None else "does not exist"


class Deleted(Value):
    """`delete`: the object does not exist."""

    text: str

    def lacks(self, obj: Obj | None) -> str:
        if obj is None:
            return ""
        held = ", ".join(obj["metadata"].get("finalizers") or ())
        if not obj["metadata"].get("deletionTimestamp"):
            return "exists"
        return f"is being deleted, blocked by {held}" if held else "is being deleted"


class Conditioned(Value):
    """`condition=TYPE[=STATUS]`, case-insensitive; a condition of an older generation does not count."""

    text: str
    type: str
    status: str

    def lacks(self, obj: Obj | None) -> str:
        if obj is None:
            return "does not exist"
        status = obj.get("status") or {}
        for condition in status.get("conditions") or ():
            if str(condition.get("type")).lower() != self.type.lower():
                continue
            observed = condition.get("observedGeneration", status.get("observedGeneration"))
            generation = obj["metadata"].get("generation")
            if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
                return f"is for generation {observed}, and the object has generation {generation}"
            if str(condition.get("status")).lower() == self.status.lower():
                return ""
            why = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            return f"is {condition.get('status')}" + (f" ({why})" if why else "")
        return f"has no condition {self.type}"


class Valued(Value):
    """`jsonpath={PATH}[=VALUE]`: exactly one value is found, and it equals VALUE if given."""

    text: str
    path: JsonPath
    value: str | None

    def lacks(self, obj: Obj | None) -> str:
        if obj is None:
            return "does not exist"
        try:
            found = [value for values in self.path.find(obj) for value in values]
        except UsageError as error:
            return f"cannot be evaluated: {error.message.rstrip('.')}"
        if not found:
            return "has no such value"
        if len(found) > 1:
            return f"has {len(found)} such values, and only one can be compared"
        value = found[0]
        if self.value is None:
            return ""
        if isinstance(value, dict | list):
            return "is an object or a list, which cannot be compared"
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return "" if text.strip() == self.value else f"is {text!r}"


class UntilFlag(Value, kw_only=True):
    source: str
    type: str
    name: str
    namespace: str  # if its type is namespaced
    goal: Goal


def parse_until(source: str, namespace: str) -> UntilFlag:
    """From `foo/web=condition=Ready`; raises UsageError with the valid forms."""
    head = _HEAD.fullmatch(source)
    if head is None:
        raise UsageError(f"Invalid value for --until: {source!r}.", next_step=_FORMS)
    return UntilFlag(
        source=source, type=head["type"], name=head["name"], namespace=namespace, goal=_goal(head["goal"], source)
    )


def _goal(text: str, source: str) -> Goal:
    how, _, rest = text.partition("=")
    if text.lower() == "create":
        return Created(text)
    if text.lower() == "delete":
        return Deleted(text)
    if how == "condition" and rest and not rest.startswith("="):
        kind, given, status = rest.partition("=")
        if status or not given:
            return Conditioned(text, kind, status or "True")
    if how == "jsonpath" and rest:
        return _valued(text, rest, source)
    raise UsageError(f"Invalid value for --until: {source!r}.", next_step=_FORMS)


def _valued(text: str, rest: str, source: str) -> Valued:
    """A path in braces ends with its brace: a filter in it may have equals signs."""
    brace = rest.rfind("}=") if rest.startswith("{") else rest.find("=") - 1
    path, value = (rest[: brace + 1], rest[brace + 2 :].strip("'\"")) if brace > 0 else (rest, None)
    if value == "":
        raise UsageError(
            f"Invalid value for --until: {source!r} has no value after the last equals sign.", next_step=_FORMS
        )
    return Valued(text, JsonPath.relaxed(path), value)


class _Watched:
    """One condition and its state."""

    def __init__(self, wanted: UntilFlag, now: float) -> None:
        self.wanted = wanted
        self.lack = "has not been read yet"
        self.since = now  # of its last change
        self.informer: Informer | None = None  # once the type is served

    def say(self, lack: str, now: float) -> None:
        if lack != self.lack:
            self.lack, self.since = lack, now

    @property
    def text(self) -> str:
        wanted, health = self.wanted, self.informer.health if self.informer else None
        blind = f" (it cannot be watched: {health.message})" if health and health.message else ""
        return f"{wanted.type}/{wanted.name} {wanted.goal.text}: it {self.lack}{blind}"


class Until:
    """Watches the objects of all conditions. It has its own informers, with the rights of the user, not of controllers.

    Of several types with one name, those of the run's controllers come first, then the one that kubectl would choose.
    """

    def __init__(
        self, wanted: Sequence[UntilFlag], client: Client, *, own: Collection[Resource], clock: Clock, rng: Random
    ) -> None:
        self._client = client
        self._own = own
        self._clock = clock
        self._informers = Informers(client, clock=clock, rng=rng, managers=frozenset())
        self._watched = [_Watched(one, clock.now()) for one in wanted]
        self._over = asyncio.Event()
        self._error: CtrlError | None = None

    def __repr__(self) -> str:
        met = sum(not one.lack for one in self._watched)
        return f"Until({met} of {len(self._watched)} met, {self._informers!r})"

    async def reached(self) -> None:
        """Return when all conditions hold at the same time; raises UsageError for an ambiguous type."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._informers.run(), name="informers of --until")]
            tasks += [group.create_task(self._watch(one), name=f"--until {one.wanted.source}") for one in self._watched]
            await self._over.wait()
            for task in tasks:
                task.cancel()
        if self._error is not None:
            raise self._error

    def unmet(self) -> Iterator[Unmet]:
        return (Unmet(one.text, one.since) for one in self._watched if one.lack)

    async def _watch(self, one: _Watched) -> None:
        try:
            resource = await self._served(one)
        except CtrlError as error:
            self._error = error
            self._over.set()
            return
        place = one.wanted.namespace if resource.namespaced else ""
        informer = self._informers.informer(Selection(resource, place, fields=f"metadata.name={one.wanted.name}"))
        one.informer = informer
        informer.subscribe(f"--until {one.wanted.source}", lambda change: self._judge(one, change.new))
        await informer.wait_synced()
        if not informer.list():
            self._judge(one, None)

    async def _served(self, one: _Watched) -> Resource:
        """The resource of the type, once the server serves it."""
        while True:
            try:
                match = await self._client.discovery.match(one.wanted.type)
                named = [api.resource for api in (match.found, *match.others)]
                return next((resource for resource in named if resource in self._own), named[0])
            except NotServed as error:
                # Without the type the object does not exist.
                lack = one.wanted.goal.lacks(None)
                hint = error.next_step.rstrip(".")
                self._say(one, lack and f"is of a type that is not served: {one.wanted.type} ({hint})")
            except CallError as error:
                _log.debug("Discovery failed: %s", error.message, extra={"action": "until.unknown"})
            await self._clock.sleep(_RETRY_AFTER)
            self._client.discovery.forget()

    def _judge(self, one: _Watched, obj: Obj | None) -> None:
        self._say(one, one.wanted.goal.lacks(obj))

    def _say(self, one: _Watched, lack: str) -> None:
        one.say(lack, self._clock.now())
        if not any(one.lack for one in self._watched):
            self._over.set()
