"""The reader, the writer and the official client of a replay: they return recorded responses and send no request."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from types import CodeType
from typing import Any

from kubectl_ctrl.cache.readonly import read_only
from kubectl_ctrl.client.official import TypedCall
from kubectl_ctrl.client.options import PatchKind
from kubectl_ctrl.model.attempt import Intent, ObjectRead, WriteResult
from kubectl_ctrl.model.conditions import Condition, status_with
from kubectl_ctrl.model.masking import MASKED, is_secret
from kubectl_ctrl.model.objects import Obj, key_of
from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.script import Script
from kubectl_ctrl.runtime import questions
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.contract import Ensured, EventType, How, Labels
from kubectl_ctrl.runtime.notes import Notes, PendingWrite
from kubectl_ctrl.runtime.official import list_of, not_found, query_of, question_of
from kubectl_ctrl.runtime.questions import Question
from kubectl_ctrl.value import replace

# Frames in these rooms lie between a request and the reconciler that makes it.
_BETWEEN = tuple(PurePath(__file__).parents[1] / room for room in ("replay", "runtime"))

# Returns the line of the reconciler that makes a request; called during the request.
Where = Callable[[], str]


def where_in(home: CodeType | None) -> Where:
    """`folder/file.py:12` of the innermost frame in the folder of the reconciler's code."""
    folder = PurePath(home.co_filename).parent if home is not None else None

    def where() -> str:
        frame = sys._getframe(1) if folder is not None else None  # noqa: SLF001  # the only way without a traceback
        while frame is not None:
            path = PurePath(frame.f_code.co_filename)
            if folder is not None and path.is_relative_to(folder) and not any(map(path.is_relative_to, _BETWEEN)):
                return f"{path.parent.name}/{path.name}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    return where


class ReplayReader:
    """See contract.Reader."""

    def __init__(self, script: Script, notes: Notes, where: Where) -> None:
        self._script = script
        self._notes = notes
        self._where = where

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        return await self._one("get", resource, name, namespace)

    async def live(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        return await self._one("live", resource, name, namespace)

    async def list(
        self, resource: Resource, *, namespace: str | None = None, labels: Labels | None = None
    ) -> Sequence[Obj]:
        return await self._read("list", resource, questions.listing(self._place(resource, namespace), labels))

    async def children(self, owner: Obj, resource: Resource) -> Sequence[Obj]:
        return await self._read("list", resource, questions.controlled(owner))

    async def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        return await self._read("list", resource, questions.by_index(index, value))

    async def _one(self, verb: str, resource: Resource, name: str, namespace: str | None) -> Obj | None:
        ref = resource.ref(name, self._place(resource, namespace))
        return next(iter(await self._read(verb, resource, str(ref.key))), None)

    async def _read(self, verb: str, resource: Resource, query: str) -> Sequence[Obj]:
        self._notes.check_open()
        try:
            read: ObjectRead = await self._script.read(verb, resource, query, self._where())
        except Exception as error:
            self._notes.refused(verb, resource, query, error)
            raise
        self._notes.read(verb, resource, query, read.objects)
        found = [unmarked(obj) for obj in read.objects]
        return found if verb == "live" else [read_only(obj) for obj in found]

    def _place(self, resource: Resource, namespace: str | None) -> str:
        return questions.place(resource, namespace, self._notes.start.request.namespace)


class ReplayWriter:
    """See contract.Writer. An unrecorded request gets an invented response, as of a server that accepts it."""

    def __init__(
        self, spec: ControllerSpec, script: Script, notes: Notes, where: Where, now: Callable[[], float]
    ) -> None:
        self._spec = spec
        self._now = now
        self._script = script
        self._notes = notes
        self._where = where
        self._invented = 0

    async def ensure(
        self, child: Obj, *, owner: Obj, resource: Resource | None = None, leave_out: Iterable[str] = ()
    ) -> Ensured:
        question = questions.ensure(child, owner, resource or self._spec.resource_of(child), tuple(leave_out))
        with self._notes.asked(question) as asked:
            obj, how = await self.answered(asked, question, child, child)
        known = {one.value for one in How}
        return Ensured(obj, How(how) if how in known else How.CREATED)

    async def status(self, obj: Obj, status: Obj, *, resource: Resource | None = None) -> Obj:
        question = questions.status(obj, resource or self._spec.resource_of(obj), status)
        with self._notes.asked(question) as asked:
            return (await self.answered(asked, question, obj, {**obj, "status": status}))[0]

    async def conditions(
        self, obj: Obj, /, *conditions: Condition, resource: Resource | None = None, **status: Any
    ) -> Obj:
        return await self.status(obj, status_with(obj, conditions, status, self._now()), resource=resource)

    async def create(self, obj: Obj, *, resource: Resource | None = None) -> Obj:
        own = self._notes.start.request.namespace
        question = questions.create(obj, resource or self._spec.resource_of(obj), own)
        with self._notes.asked(question) as asked:
            return (await self.answered(asked, question, obj, obj))[0]

    async def patch(
        self,
        obj: Obj,
        change: Obj,
        *,
        resource: Resource | None = None,
        subresource: str = "",
        any_version: bool = False,
    ) -> Obj:
        resource = resource or self._spec.resource_of(obj)
        question = questions.patch(obj, resource, change, subresource, any_version)
        with self._notes.asked(question) as asked:
            return (await self.answered(asked, question, obj, apply_merge(obj, change)))[0]

    async def delete(
        self,
        obj: Obj,
        *,
        resource: Resource | None = None,
        propagation: str = "Background",
        any_version: bool = False,
    ) -> None:
        resource = resource or self._spec.resource_of(obj)
        question = questions.delete(obj, resource, propagation, any_version)
        with self._notes.asked(question) as asked:
            await self._script.ask(question, self._where())
            asked.done()

    async def add_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        held = obj["metadata"].get("finalizers") or []
        return await self._finalize("add_finalizer", obj, resource, name, held if name in held else [*held, name])

    async def remove_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        held = obj["metadata"].get("finalizers") or []
        return await self._finalize("remove_finalizer", obj, resource, name, [one for one in held if one != name])

    def event(self, about: Obj, *, type: EventType = "Normal", reason: str, message: str) -> None:  # noqa: A002
        self._notes.check_open()
        self._notes.intend(Intent(type=type, reason=reason, message=message, about=key_of(about)))

    async def _finalize(self, verb: str, obj: Obj, resource: Resource | None, name: str, then: list[str]) -> Obj:
        question = questions.finalizer(verb, obj, resource or self._spec.resource_of(obj), name)
        with self._notes.asked(question) as asked:
            invented = {**obj, "metadata": {**obj["metadata"], "finalizers": then}}
            return (await self.answered(asked, question, obj, invented))[0]

    async def answered(self, asked: PendingWrite, question: Question, given: Obj, invented: Obj) -> tuple[Obj, str]:
        """The recorded response; for a Secret, which is never recorded, the object of the current request."""
        wish = await self._script.ask(question, self._where())
        answer, how = given, WriteResult.GIVEN.value
        if wish is None:
            self._invented += 1
            answer, how = _stamped(question, invented, f"made-up-{self._invented}", "0"), ""
        elif wish.how != WriteResult.GIVEN:
            how = wish.how
            if is_secret(question.resource) or wish.answer is None:
                answer = _stamped(question, invented, wish.uid, wish.version)
            else:
                answer = unmarked(wish.answer)
        asked.answered(answer, given=given, how="" if how in tuple(WriteResult) else how)
        return answer, how


class ReplayCalls:
    """The calls of `ctx.official()`; see client.official.TypedCalls."""

    def __init__(self, recorded: RecordedAttempt, script: Script, notes: Notes, writer: ReplayWriter) -> None:
        self._script = script
        self._notes = notes
        self._writer = writer
        seen = [*(read.resource for read in recorded.reads), *(wish.resource for wish in recorded.wishes)]
        self._resources: dict[Resource, Resource] = {resource: resource for resource in seen}

    async def answer(self, call: TypedCall) -> Obj:
        with self._notes.beside():
            call = replace(call, resource=self._resources.get(call.resource, call.resource))
            return await (self._read(call) if call.verb in ("get", "list") else self._write(call))

    async def _read(self, call: TypedCall) -> Obj:
        query = query_of(call)
        try:
            read = await self._script.read("live", call.resource, query, "")
        except Exception as error:
            self._notes.refused("live", call.resource, query, error)
            raise
        self._notes.read("live", call.resource, query, read.objects)
        found = [unmarked(obj) for obj in read.objects]
        if call.verb == "list":
            return list_of(call.resource, found)
        if not found:
            raise not_found(call)
        return found[0]

    async def _write(self, call: TypedCall) -> Obj:
        question = question_of(call)
        with self._notes.asked(question) as asked:
            if call.verb == "delete":
                wish = await self._script.ask(question, "")
                if wish is not None and wish.answer is not None:
                    asked.answered(wish.answer)
                    return unmarked(wish.answer)
                asked.done()
                return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            merged = call.verb == "patch" and call.patch is not PatchKind.JSON
            invented = apply_merge({}, call.body) if merged else call.body if isinstance(call.body, dict) else {}
            return (await self._writer.answered(asked, question, invented, invented))[0]


def _stamped(question: Question, obj: Any, uid: str, version: str) -> Obj:
    """A copy with the fields that a server adds."""
    copied: Obj = json.loads(questions.as_json(obj))
    meta = {"name": question.key.name, "namespace": question.key.namespace, **copied.get("metadata", {})}
    kept = {key: value for key, value in meta.items() if value}
    about = {"apiVersion": question.resource.api_version, "kind": question.resource.kind}
    return {**about, **copied, "metadata": {**kept, "uid": kept.get("uid") or uid, "resourceVersion": version}}


def unmarked(obj: Obj) -> Obj:
    """Without the mark of the recording for an object with hidden values."""
    meta = obj["metadata"]
    if MASKED not in meta:
        return obj
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != MASKED}}
