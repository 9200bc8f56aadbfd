"""The official `kubernetes` client over this client's transport: an ApiClient whose requests become calls.

The package is imported only for `ctx.official()`. Its ApiClient is synchronous: it runs in a thread, and each of its
requests is one call in the event loop, for which the thread waits. Errors are its own ApiException.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson

from kubectl_ctrl.client.options import PatchKind
from kubectl_ctrl.client.order import JSON, Body
from kubectl_ctrl.errors import ApiError, ControllerError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import Unshown, Value

if TYPE_CHECKING:
    from kubernetes.client import ApiClient
    from kubernetes.client.rest import RESTResponse

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Subresources whose responses are streams or text.
_STREAMS = frozenset({"attach", "exec", "log", "portforward", "proxy"})
# Parameters without effect: the layout of the JSON, and a timeout, which each call has anyway.
_IGNORED = frozenset({"pretty", "timeoutSeconds"})
_WRITING = frozenset({"dryRun", "fieldManager"})
_SUPPORTED = {
    "get": frozenset[str](),
    "list": frozenset({"fieldSelector", "labelSelector", "limit", "resourceVersion"}),
    "create": _WRITING,
    "update": _WRITING,
    "patch": _WRITING | {"force"},
    "delete": frozenset({"dryRun", "gracePeriodSeconds", "propagationPolicy"}),
}


class TypedCall(Value, kw_only=True):
    """One request of the official client as a call; the kind of `resource` is unknown without an object in the body."""

    verb: str  # get, list, create, update, patch, delete
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    options: dict[str, str]  # the query parameters
    body: Unshown[Body | None] = None
    patch: PatchKind = PatchKind.MERGE

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.resource, self.name, self.namespace, self.subresource)

    @property
    def obj(self) -> Obj:
        if not isinstance(self.body, dict):
            _refuse(f"{self.verb} {self.ref} without an object")
        return self.body

    @property
    def dry_run(self) -> bool:
        in_body = self.verb == "delete" and isinstance(self.body, dict) and bool(self.body.get("dryRun"))
        return self.options.get("dryRun") == "All" or in_body


class TypedCalls(Protocol):
    """Makes the calls, or replays them from a recording."""

    async def answer(self, call: TypedCall) -> Obj:
        """The object, list or Status of a successful response; else an error of `kubectl_ctrl.errors`."""


def api_client(calls: TypedCalls, loop: asyncio.AbstractEventLoop) -> ApiClient:
    """An ApiClient whose requests `calls` makes in the event loop."""
    try:
        from kubernetes.client import ApiClient, Configuration
    except ModuleNotFoundError as error:
        raise ControllerError(
            f"ctx.official() needs the official Kubernetes client, and {error.name!r} is not installed.",
            next_step="pip install 'kubectl-ctrl[kubernetes]'",
        ) from error
    # Its own configuration, so that the user's environment and default configuration are not read.
    configuration = Configuration(host="http://ctx.official.invalid")
    configuration.proxy = None
    client = ApiClient(configuration)
    client.rest_client = _Bridge(calls, loop)  # type: ignore[assignment]  # it has what an ApiClient uses
    return client


class _Bridge:
    """Replaces the RESTClientObject of an ApiClient."""

    def __init__(self, calls: TypedCalls, loop: asyncio.AbstractEventLoop) -> None:
        self._calls = calls
        self._loop = loop

    def request(
        self,
        method: str,
        url: str,
        headers: dict[str, str] | None = None,
        body: Any = None,
        post_params: object = None,
        _request_timeout: object = None,
    ) -> RESTResponse:
        from kubernetes.client.rest import RESTResponse

        _check_thread()
        if _request_timeout is not None:
            _refuse("_request_timeout: each call has the deadline of ctx.write")
        call = call_of(method, url, headers or {}, body)
        try:
            answer = asyncio.run_coroutine_threadsafe(self._calls.answer(call), self._loop).result()
        except ApiError as error:
            _raise(error)
        created = call.verb == "create" and answer.get("kind") != "Status"
        return RESTResponse(_Response(201 if created else 200, {"content-type": JSON}, answer))

    def close(self) -> None:
        """It has no connections."""


class _Response:
    """The part of a response that the package reads."""

    def __init__(self, status: int, headers: dict[str, str], answer: Obj) -> None:
        self.status = status
        self.reason = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
        self.headers = headers
        self.data = orjson.dumps(answer)


def call_of(method: str, url: str, headers: dict[str, str], body: Any) -> TypedCall:
    """The call for a request; ControllerError unless it is about one object or one list."""
    parts = urlsplit(url)
    what = f"{method} {parts.path}"
    match [unquote(part) for part in parts.path.strip("/").split("/")]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            _refuse(what)
    match rest:
        case ["namespaces", namespace, plural, *tail] if group or plural not in ("status", "finalize"):
            pass
        case [plural, *tail]:
            namespace = ""
        case _:
            _refuse(what)
    name, subresource = (tail[0] if tail else ""), "/".join(tail[1:])
    verb = "list" if method == "GET" and not name else _VERBS.get(method, "")
    if not verb or (verb in ("update", "patch", "delete") and not name):
        _refuse(what)
    options = {key: value for key, value in parse_qsl(parts.query) if key not in _IGNORED}
    if options.get("watch", "").lower() == "true" or subresource.partition("/")[0] in _STREAMS:
        _refuse(f"{what}: watches, logs and streams")
    if unknown := sorted(options.keys() - _SUPPORTED[verb]):
        _refuse(f"{', '.join(unknown)} of {what}")
    kind = str(body.get("kind") or "") if isinstance(body, dict) and verb != "delete" and not subresource else ""
    return TypedCall(
        verb=verb,
        resource=Resource(group, version, plural, kind or plural, namespaced=bool(namespace)),
        namespace=namespace,
        name=name or (str((body.get("metadata") or {}).get("name") or "") if isinstance(body, dict) else ""),
        subresource=subresource,
        options=options,
        body=body,
        patch=_patch_kind(headers.get("Content-Type", ""), body),
    )


def _patch_kind(media: str, body: Any) -> PatchKind:
    """The package's rules: a list is a JSON patch, and an object without an explicit media type a strategic one."""
    if media in (PatchKind.APPLY.value, PatchKind.MERGE.value, PatchKind.STRATEGIC.value):
        return PatchKind(media)
    return PatchKind.JSON if isinstance(body, list) else PatchKind.STRATEGIC


def _check_thread() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ControllerError(
        "A client of ctx.official() was called on the event loop, which would wait for itself.",
        next_step="Call it in a thread: await ctx.in_thread(apps.read_namespaced_deployment, name, namespace).",
    )


def _refuse(what: str) -> NoReturn:
    raise ControllerError(
        f"ctx.official() does not support {what}.",
        next_step="Use it for get, list, create, replace, patch and delete of objects; ctx.outside() is for the rest.",
    )


def _raise(error: ApiError) -> NoReturn:
    """Raise the package's own exception, with `error` as its cause."""
    from kubernetes.client.exceptions import ApiException

    causes = [{"reason": one.reason, "message": one.message, "field": one.field} for one in error.causes]
    details: Obj = {"causes": causes}
    headers = {"content-type": JSON, "audit-id": error.site.audit_id}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
        details["retryAfterSeconds"] = int(error.retry_after)
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "details": {key: value for key, value in details.items() if value},
        "code": error.code,
    }
    try:
        ApiException.from_response(http_resp=_Response(error.code, headers, status), body=None, data=None)
    except ApiException as exception:
        raise exception from error
    raise AssertionError("from_response raises")
