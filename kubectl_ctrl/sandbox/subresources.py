"""The subresources that are actions rather than views of an object: the binding, eviction and log of a pod."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.sandbox.storage import Storage
from kubectl_ctrl.value import replace

_DONE: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_STREAMS = ("attach", "exec", "portforward", "proxy")


def done() -> HttpResponse:
    return answers.answer(_DONE, 201)


def eviction(ask: ParsedRequest) -> ParsedRequest:
    """The deletion that an eviction asks for."""
    body = _named(ask, "Eviction")
    options = body.get("deleteOptions") or {}
    headers = {**ask.headers, "content-type": ""}
    return replace(ask, verb="delete", subresource="", headers=headers, raw=answers.encode(options))


def binding(ask: ParsedRequest, storage: Storage) -> tuple[ParsedRequest, str]:
    """The request with the pod's name, and the node; raises the 409 of a pod that has a node."""
    body = _named(ask, "Binding")
    node = (body.get("target") or {}).get("name") or ""
    ask = replace(ask, name=ask.name or str(body["metadata"].get("name") or ""))
    pod = _pod(ask, storage)
    if (pod.get("spec") or {}).get("nodeName"):
        why = f'pod {ask.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        status = answers.status(
            409,
            "Conflict",
            f'Operation cannot be fulfilled on pods/binding "{ask.name}": {why}',
            name=ask.name,
            kind="pods/binding",
        )
        raise answers.Refusal(409, status)
    return ask, node


def log(ask: ParsedRequest, storage: Storage) -> HttpResponse:
    """One line: the containers of this cluster do not run."""
    _pod(ask, storage)
    text = f"Pod {ask.name} runs no program: this cluster only records what its containers should do.\n"
    return HttpResponse(status=200, headers={"content-type": "text/plain"}, body=text.encode())


def check_supported(ask: ParsedRequest) -> None:
    if ask.subresource in _STREAMS:
        message = f"{ask.resource.plural}/{ask.subresource} is not supported: the containers of this cluster do not run"
        raise answers.Refusal(501, answers.status(501, "NotImplemented", message))


def _named(ask: ParsedRequest, kind: str) -> Obj:
    body: Obj = ask.opened()[1]
    if ask.name and (body["metadata"].get("name") or ask.name) != ask.name:
        raise answers.bad_request(f"name in URL does not match name in {kind} object")
    return body


def _pod(ask: ParsedRequest, storage: Storage) -> Obj:
    pod = storage.get("pods", ask.key)
    if pod is None:
        raise answers.not_found(ask.resource, ask.name)
    return pod
