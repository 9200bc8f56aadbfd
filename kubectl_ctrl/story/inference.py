"""What can be inferred of an object that nothing is recorded of: one short look at it and at the events about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import CallError, CtrlError
from kubectl_ctrl.findings.inference import Inferred, infer
from kubectl_ctrl.model.objects import Key, Obj, uid_of
from kubectl_ctrl.model.resources import EVENTS, Resource
from kubectl_ctrl.story.lookup import split_words

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.kubeconfig.resolution import Resolved


def inferred(app: App, given: Given, words: Sequence[str]) -> tuple[Inferred | None, CtrlError | None]:
    """The object that these words mean to the cluster, and what is to be inferred of it; or why there is nothing.

    With --offline nobody is asked: then there is neither.
    """
    if given.flags.get("offline"):
        return None, None
    # The client and its event loop are for those who ask.
    from kubectl_ctrl.story.short_query import shortly

    kind, name = split_words(words)
    look = _Look(kind, name)
    error = shortly(app, given, look.ask)
    return look.found(), error


class _Look:
    """What is read in the time that there is."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        self._name = name
        self._context = ""
        self._object: tuple[Resource, Key, Obj] | None = None
        self._events: list[Obj] = []
        self._lacking = ["The events about it could not be read in time."]

    async def ask(self, client: Client, resolved: Resolved) -> None:
        from kubectl_ctrl.client.options import ListQuery
        from kubectl_ctrl.target import guard

        self._context = guard.context_name(resolved)
        resource = (await client.discovery.find(self._kind)).resource
        ref = resource.ref(self._name, resolved.namespace)
        obj = await client.get(ref)
        self._object = resource, ref.key, obj
        try:
            # Events of what has no namespace are in `default`, or wherever their sender put them.
            query = ListQuery(namespace=ref.namespace, fields=f"involvedObject.uid={uid_of(obj)}")
            self._events = list((await client.list(EVENTS, query)).items)
            self._lacking = []
        except CallError as error:
            self._lacking = [f"The events about it could not be read: {error.message}"]

    def found(self) -> Inferred | None:
        if self._object is None:
            return None
        resource, key, obj = self._object
        at = SystemClock().now()
        return infer(resource, key, obj, self._events, context=self._context, at=at, lacking=self._lacking)
