"""The calls of `ctx.official()`, live and in a plan: recorded as those of `ctx.read.live` and `ctx.write`.

Answers to writes go to the caches and the echoes. Every read is a request: cached objects lack fields of the types.
"""

from __future__ import annotations

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.official import TypedCall
from kubectl_ctrl.client.options import DeleteOptions, ListQuery, WriteOptions
from kubectl_ctrl.errors import CallSite, NotFound
from kubectl_ctrl.model.objects import Obj, uid_of, version_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime import questions
from kubectl_ctrl.runtime.access import AccessParts
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.questions import Question
from kubectl_ctrl.runtime.writes import Writes
from kubectl_ctrl.value import replace

# The prefix of recorded lists, which distinguishes them from reads of one object.
_LIST = "list "


class LiveCalls:
    """See client.official.TypedCalls."""

    def __init__(self, equipment: AccessParts, client: Client, notes: Notes) -> None:
        self._equipment = equipment
        self._client = client
        self._notes = notes

    async def answer(self, call: TypedCall) -> Obj:
        with self._notes.beside():
            call = replace(call, resource=await self._resource(call.resource))
            if call.verb in ("get", "list"):
                return await self._read(call)
            with self._notes.asked(question_of(call)) as asked:
                answer = await self._write(call)
                if is_object(answer):
                    asked.answered(answer)
                else:
                    asked.done()
            return answer

    async def _resource(self, guess: Resource) -> Resource:
        """The resource with its kind on the server; the server itself refuses an unknown one."""
        known = self._equipment.caches.declared(guess)
        if known is not None:
            return known
        served = await self._client.discovery.serves(guess)
        return guess if served is None else served.resource

    async def _read(self, call: TypedCall) -> Obj:
        resource, query = call.resource, query_of(call)
        found: list[Obj] = []
        version = ""
        try:
            if call.verb == "get":
                found = [await self._client.get(call.ref)]
            else:
                listed = await self._client.list(resource, _list_query(call))
                found, version = listed.items, listed.version
        except NotFound as error:
            if call.verb == "list":
                self._notes.refused("live", resource, query, error)
            else:
                self._notes.read("live", resource, query, ())
            raise
        except Exception as error:
            self._notes.refused("live", resource, query, error)
            raise
        self._notes.check_open()
        self._notes.read("live", resource, query, found)
        return found[0] if call.verb == "get" else list_of(resource, found, version)

    async def _write(self, call: TypedCall) -> Obj:
        writes = Writes(
            self._client,
            self._equipment.overlays,
            self._equipment.echoes,
            self._notes,
            manager=self._equipment.manager,
            clock=self._equipment.clock,
        )
        if call.verb == "delete" and not call.dry_run:
            answer = await self._client.delete(call.ref, _delete_options(call))
            if is_object(answer):
                writes.landed(call.resource, answer, known="", tied=False)
            elif uid := str((answer.get("details") or {}).get("uid") or ""):
                writes.gone(call.ref, uid)
            return answer
        known = "" if call.verb == "create" else _version_in(call)
        answer = await self._sent(call)
        if not call.dry_run and call.subresource in ("", "status") and is_object(answer):
            writes.landed(call.resource, answer, known=known, tied=bool(known) or call.verb == "create")
        return answer

    async def _sent(self, call: TypedCall) -> Obj:
        manager = call.options.get("fieldManager") or self._equipment.manager
        force = call.options.get("force", "").lower() == "true"
        options = WriteOptions(manager=manager, force=force, dry_run=call.dry_run)
        if call.verb == "delete":
            return await self._client.delete(call.ref, _delete_options(call))
        if call.verb == "create":
            if call.subresource:
                return await self._client.create(call.ref, call.obj, options)
            meta = {**(call.obj.get("metadata") or {})}
            if call.namespace:
                meta["namespace"] = call.namespace
            return await self._client.create(call.resource, {**call.obj, "metadata": meta}, options)
        if call.verb == "update":
            return await self._client.replace(call.ref, call.obj, options)
        body = call.body if isinstance(call.body, list) else call.obj
        return await self._client.patch(call.ref, body, call.patch, options)


def question_of(call: TypedCall) -> Question:
    how = call.patch.name.lower() if call.verb == "patch" else ""
    return questions.typed(call.verb, call.ref, call.body, (("type", how), *sorted(call.options.items())))


def query_of(call: TypedCall) -> str:
    """The read as it is recorded."""
    if call.verb == "get":
        return "/".join(filter(None, (str(call.ref.key), call.subresource)))
    return _LIST + " ".join(
        filter(None, (call.namespace or "all", *(text for _, text in sorted(call.options.items()))))
    )


def list_of(resource: Resource, items: list[Obj], version: str = "") -> Obj:
    meta = {"resourceVersion": version}
    return {"apiVersion": resource.api_version, "kind": f"{resource.kind}List", "metadata": meta, "items": items}


def not_found(call: TypedCall) -> NotFound:
    site = CallSite(call.verb, str(call.ref))
    return NotFound(f"There is no {call.ref} ({call.verb}, 404 NotFound).", site=site, code=404, reason="NotFound")


def is_object(answer: Obj) -> bool:
    return bool(answer.get("kind") != "Status" and uid_of(answer))


def _version_in(call: TypedCall) -> str:
    """The version that a write requires, or ""."""
    return version_of(call.body) if isinstance(call.body, dict) and call.body.get("metadata") else ""


def _list_query(call: TypedCall) -> ListQuery:
    said = call.options
    query = ListQuery(
        namespace=call.namespace,
        labels=said.get("labelSelector", ""),
        fields=said.get("fieldSelector", ""),
        version=said.get("resourceVersion", ""),
    )
    return replace(query, limit=int(said["limit"])) if said.get("limit") else query


def _delete_options(call: TypedCall) -> DeleteOptions:
    body = call.body if isinstance(call.body, dict) else {}
    preconditions = body.get("preconditions") or {}
    grace = call.options.get("gracePeriodSeconds", body.get("gracePeriodSeconds"))
    return DeleteOptions(
        propagation=call.options.get("propagationPolicy") or body.get("propagationPolicy") or "",
        uid=preconditions.get("uid") or "",
        version=preconditions.get("resourceVersion") or "",
        grace=None if grace is None else int(grace),
        dry_run=call.dry_run,
    )
