"""Plays a scenario on one server, and removes the values that each server may choose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from e2e.parity.asks import ADMIN, Ask, Scenario
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubectl_ctrl.value import replace

AGENT = "parity/1.0"
_REFERENCE = re.compile(r"\$(\d+)\.([\w.]+)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"\d+[sm]|\dm\d+s")
_LAG = re.compile(r"too old resource version: .*\)")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # of an object that no answer shows
_ITSELF = ("kube-apiserver", "kube-controller-manager")
_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+|JTI=[\w-]+")
_REVISION = "deployment.kubernetes.io/revision"
# A server whose cache is late answers with the time after which to ask again (a Retry-After header).
_TRIES = 10


class Administrator:
    """A scripted server, with the token of its administrator in every request."""

    def __init__(self, server: Transport) -> None:
        self._server = server

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._server.send(self._signed(request))

    async def open(self, request: HttpRequest) -> HttpStream:
        return await self._server.open(self._signed(request))

    async def close(self) -> None:
        await self._server.close()

    def _signed(self, request: HttpRequest) -> HttpRequest:
        return replace(request, headers={**request.headers, "Authorization": f"Bearer {ADMIN}"})


class Player:
    """One scenario on one server, request by request."""

    def __init__(self, transport: Transport, bare: Transport, namespace: str, scenario: Scenario, clock: Clock) -> None:
        self._admin = transport
        self._bare = bare  # without credentials of its own
        self._clock = clock
        self._namespace = namespace
        self._noise = Noise(namespace, played=scenario.played)
        self._noise_before = self._noise  # the last response
        self._answers: list[Any] = []

    async def ask(self, ask: Ask) -> dict[str, Any]:
        """The response without noise; later requests can refer to it."""
        request = self._request(ask)
        for _ in range(_TRIES):
            status, headers, body = await self._answered(request, ask)
            if "retry-after" not in headers:
                break
            await self._clock.sleep(float(headers["retry-after"]))
        self._answers.append(body)
        self._noise_before = deepcopy(self._noise)
        answer = {"code": status, "type": headers.get("content-type"), "warning": headers.get("warning"), "body": body}
        return dict(self._noise.removed(answer))

    def forget(self) -> None:
        """The last response was not the awaited one: its versions must not be counted either."""
        del self._answers[-1]
        self._noise = self._noise_before

    async def _answered(self, request: HttpRequest, ask: Ask) -> tuple[int, Mapping[str, str], Any]:
        transport = self._admin if ask.token == ADMIN else self._bare
        if ask.until:
            return await self._watched(transport, request, ask.until)
        response = await transport.send(request)
        return response.status, response.headers, _decoded(response.body)

    async def _watched(
        self, transport: Transport, request: HttpRequest, until: str
    ) -> tuple[int, Mapping[str, str], Any]:
        stream = await transport.open(request)
        try:
            if stream.status != 200:
                return stream.status, stream.headers, _decoded(await stream.read())
            frames: list[Any] = []
            async for batch in stream.batches():
                for frame in map(json.loads, batch):
                    frames.append(frame)
                    if _ends(frame, until):  # further frames of the same batch, such as another bookmark, are chance
                        return stream.status, stream.headers, frames
            return stream.status, stream.headers, frames
        finally:
            await stream.close()

    def _request(self, ask: Ask) -> HttpRequest:
        plain = ask.body is None or isinstance(ask.body, bytes)
        body = ask.body if plain else json.dumps(self._filled(ask.body)).encode()
        return HttpRequest(
            method=ask.method,
            path=self._filled(ask.path),
            query=tuple((key, self._filled(value)) for key, value in ask.query.items()),
            headers={"User-Agent": AGENT, "Content-Type": ask.media, "Accept": ask.accept, **self._credentials(ask)},
            body=body,
            deadline=90.0,
        )

    def _credentials(self, ask: Ask) -> dict[str, str]:
        bearer = "" if ask.token in ("", ADMIN) else f"Bearer {self._filled(ask.token)}"
        named = {"Authorization": bearer, "Impersonate-User": self._filled(ask.user), "Impersonate-Group": ask.groups}
        return {name: value for name, value in named.items() if value}

    def _filled(self, value: Any) -> Any:
        match value:
            case dict():
                return {self._filled(key): self._filled(item) for key, item in value.items()}
            case list():
                return [self._filled(item) for item in value]
            case str() if whole := _REFERENCE.fullmatch(value):
                return self._referred(whole)
            case str():
                text = value.replace("{ns}", self._namespace)
                return _REFERENCE.sub(lambda reference: str(self._referred(reference)), text)
        return value

    def _referred(self, reference: re.Match[str]) -> Any:
        value = self._answers[int(reference[1])]
        for part in reference[2].split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        return value


def _unplayed(result: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that the cluster's controllers write."""
    left = {key: value for key, value in result.items() if key != "status" or "uid" not in result.get("metadata", {})}
    if "annotations" in left and "uid" in left:
        left["annotations"] = {key: value for key, value in left["annotations"].items() if key != _REVISION}
    return {key: value for key, value in left.items() if key != "annotations" or value}


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


def _ends(frame: Any, until: str) -> bool:
    if until == frame["type"]:
        return True
    return bool(frame["type"] != "DELETED" and until == frame["object"].get("metadata", {}).get("name"))


class Noise:
    """The values that differ between servers: UIDs, versions, generated names and times.

    Each UID, version and generated name becomes the number of its first occurrence, so equal ones stay equal.
    """

    def __init__(self, namespace: str, *, played: bool) -> None:
        self._played = played
        self._namespace = re.compile(rf"{re.escape(namespace)}(?!\d)")
        self._uids: dict[str, str] = {}
        self._versions: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def removed(self, answer: Any) -> Any:
        for meta in _metadata(answer):
            self._learn(meta)
        return self._plain(answer)

    def _learn(self, meta: Mapping[str, Any]) -> None:
        _numbered(self._uids, meta.get("uid"), "uid")
        start, name = meta.get("generateName", ""), meta.get("name", "")
        if start and name.startswith(start) and len(name) == len(start) + 5:
            _numbered(self._names, name, "name")
        if "uid" in meta:
            _numbered(self._versions, meta.get("resourceVersion"), "version")

    def _plain(self, value: Any) -> Any:
        match value:
            case dict():
                return self._plain_dict(value)
            case list():
                return [self._plain(item) for item in value]
            case str():
                return self._plain_text(value)
        return value

    def _plain_dict(self, value: Mapping[str, Any]) -> dict[str, Any]:
        result = {self._plain_text(key): self._plain(item) for key, item in value.items()}
        if "managedFields" in result:
            result["managedFields"] = sorted(self._entries(result["managedFields"]), key=_owner)
        for name in ("resourceRules", "nonResourceRules"):
            if name in result:
                result[name] = sorted(result[name], key=json.dumps)
        if "causes" in result:
            result["causes"] = sorted(result["causes"], key=json.dumps)
        if isinstance(result.get("resourceVersion"), str) and (self._played or "uid" not in value):
            result["resourceVersion"] = "<version>"
        if "cells" in result:
            result["cells"] = ["<age>" if _AGE.fullmatch(str(cell)) else cell for cell in result["cells"]]
        if result.get("continue"):
            result["continue"] = "<continue>"
        return _unplayed(result) if self._played else result

    def _entries(self, entries: list[Any]) -> Iterator[Any]:
        """Their order depends on the times; a real server also has entries of the cluster's own controllers."""
        return (entry for entry in entries if not self._played or entry.get("manager") not in _ITSELF)

    def _plain_text(self, text: str) -> str:
        text = _TOKEN.sub("<token>", text)
        for known in (self._uids, self._names):
            for value, label in known.items():
                text = text.replace(value, label)
        for value, label in self._versions.items():
            text = re.sub(rf"(?<![\w.-]){value}(?![\w.-])", label, text)
        text = _UID.sub("<uid>", self._namespace.sub("{ns}", text))
        return _TIME.sub("<time>", _LAG.sub("too old resource version", text))


def _metadata(value: Any) -> Iterator[Mapping[str, Any]]:
    """The metadata of every object in a value."""
    if isinstance(value, list):
        for item in value:
            yield from _metadata(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "metadata" and isinstance(item, dict):
                yield item
            else:
                yield from _metadata(item)


def _numbered(known: dict[str, str], value: object, what: str) -> None:
    if isinstance(value, str) and value:
        known.setdefault(value, f"<{what} {len(known) + 1}>")


def _owner(entry: Mapping[str, Any]) -> str:
    return json.dumps([entry.get(name, "") for name in ("operation", "manager", "apiVersion", "subresource")])
