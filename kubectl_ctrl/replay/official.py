"""The calls of `ctx.official()` in their replay form: answered as they were, and nothing reaches a cluster."""

from __future__ import annotations

from kubectl_ctrl.client.official import TypedCall
from kubectl_ctrl.client.options import PatchKind
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.model.record import Recorded
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.access import ReplayWriter, unmarked
from kubectl_ctrl.replay.script import Script
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.official import list_of, not_found, query_of, question_of
from kubectl_ctrl.value import replace


class ReplayCalls:
    """See client.official.TypedCalls."""

    def __init__(self, recorded: Recorded, script: Script, notes: Notes, writer: ReplayWriter) -> None:
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
            made_up = apply_merge({}, call.body) if merged else call.body if isinstance(call.body, dict) else {}
            return (await self._writer.answered(asked, question, made_up, made_up))[0]
