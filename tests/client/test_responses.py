from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.options import PLAIN_WRITE, DeleteOptions, PatchKind, WriteOptions
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.responses import answered, refused, refused_in_stream, retry_after, unfit_for_a_stream
from kubectl_ctrl.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    BadRequest,
    CallError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NamespaceTerminating,
    NotFound,
    NotServed,
    Replaced,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from kubectl_ctrl.model.resources import DEPLOYMENTS, LEASES, PODS, SECRETS, Resource
from kubectl_ctrl.model.transport import HttpResponse
from tests.client.rig import an_order, answer, configmap, status

NOW = 1_767_225_600.0

# Every reason that a kube-apiserver gives, with the code that it gives it with.
REASONS: list[tuple[int, str, type[ApiError]]] = [
    (400, "BadRequest", BadRequest),
    (401, "Unauthorized", Unauthorized),
    (403, "Forbidden", Forbidden),
    (404, "NotFound", NotFound),
    (405, "MethodNotAllowed", MethodNotAllowed),
    (406, "NotAcceptable", ApiError),
    (409, "AlreadyExists", AlreadyExists),
    (409, "Conflict", Conflict),
    (410, "Expired", Expired),
    (410, "Gone", Expired),
    (413, "RequestEntityTooLarge", ApiError),
    (415, "UnsupportedMediaType", ApiError),
    (422, "Invalid", Invalid),
    (429, "TooManyRequests", TooManyRequests),
    (500, "InternalError", ServerError),
    (500, "ServerTimeout", ServerError),
    (500, "StoreReadError", ServerError),
    (500, "", ServerError),
    (502, "", ServerError),
    (503, "ServiceUnavailable", ServerError),
    (504, "Timeout", ServerError),
    (507, "", ServerError),
    (418, "", ApiError),
]


def refuse(response: HttpResponse, order: Order | None = None) -> CallError:
    order = order or an_order()
    return refused(response, order, order.site("a-1"), NOW)


def apply(uid: str = "u-1") -> Order:
    body = configmap()
    body["metadata"]["uid"] = uid
    ref = DEPLOYMENTS.ref("one", "default")
    return requests.patch(ref, body, PatchKind.APPLY, WriteOptions(manager="kubectl-ctrl-foo"))


@pytest.mark.parametrize(("code", "reason", "kind"), REASONS)
def test_every_code_and_reason_has_its_class(code: int, reason: str, kind: type[ApiError]) -> None:
    error = refuse(answer(status(code, reason, "why it was so", name="one"), code))
    assert type(error) is kind
    assert isinstance(error, ApiError)
    assert (error.code, error.reason) == (code, reason)
    assert "configmaps default/one" in error.message
    assert "why it was so." in error.message
    assert str(code) in error.message
    assert error.message[0].isupper()
    assert error.message.endswith(".")
    assert error.site.audit_id == "a-1"


@pytest.mark.parametrize("code", [401, 429, 500, 502, 503, 504])
def test_codes_of_filters_and_balancers_need_no_status(code: int) -> None:
    error = refuse(answer(b"<html>upstream\x1b[31m is ill</html>", code))
    assert isinstance(error, ApiError)
    assert error.code == code
    assert r"upstream\\x1b[31m is ill" in error.message


def test_load_shedding_is_plain_text_with_a_hint() -> None:
    error = refuse(answer(b"Too many requests, please try again later.", 429, retry_after="1"))
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == 1.0


@pytest.mark.parametrize("code", [302, 307, 400, 403, 404, 407, 409, 410, 413, 422])
def test_other_answers_without_a_status_come_from_somebody_else(code: int) -> None:
    error = refuse(answer(b"<!DOCTYPE html><title>Please log in</title>", code, location="https://login.example/x"))
    assert type(error) is BadAnswer
    assert f"({code} and points to 'https://login.example/x')" in error.message
    assert "<!DOCTYPE html>" in error.message


def test_only_the_servers_own_404_says_that_a_type_is_not_served() -> None:
    assert type(refuse(answer(b"404 page not found\n", 404))) is NotServed
    assert type(refuse(answer(b"default backend - 404", 404))) is BadAnswer
    generic = status(404, "NotFound", "the server could not find the requested resource")
    assert type(refuse(answer(generic, 404))) is NotServed


def test_a_create_that_misses_something_does_not_say_that_the_object_is_missing() -> None:
    order = requests.create(DEPLOYMENTS, configmap(), PLAIN_WRITE)
    error = refuse(answer(status(404, "NotFound", 'namespaces "default" not found', name="default"), 404), order)
    assert type(error) is NotFound
    assert error.message == (
        'The server refused create deployments.apps default/one (404 NotFound): namespaces "default" not found.'
    )


def test_a_terminating_namespace_is_known_by_its_cause() -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace x is being terminated", "field": "x"}
    message = 'pods "p" is forbidden: unable to create new content in namespace x because it is being terminated'
    error = refuse(answer(status(403, "Forbidden", message, causes=[cause]), 403))
    assert type(error) is NamespaceTerminating
    assert error.causes[0].reason == "NamespaceTerminating"
    assert type(refuse(answer(status(403, "Forbidden", message), 403))) is Forbidden


@pytest.mark.parametrize(
    ("code", "message", "causes"),
    [
        (422, "x is invalid", [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "immutable"}]),
        (409, "uid mismatch: the provided object specified uid u-1, and no existing object was found", []),
        (409, "Precondition failed: UID in precondition: u-1, UID in object meta: u-2", []),
        (409, "the UID in the precondition (u-1) does not match the UID in record (u-2).", []),
    ],
)
def test_another_uid_means_that_the_object_is_gone(code: int, message: str, causes: list[Any]) -> None:
    reason = "Invalid" if code == 422 else "Conflict"
    answered_ = answer(status(code, reason, message, causes=causes), code)
    error = refuse(answered_, apply())
    assert type(error) is Replaced
    assert isinstance(error, NotFound)
    assert error.code == code
    assert type(refuse(answered_, requests.create(PODS, configmap(), PLAIN_WRITE))) is not Replaced


def test_a_version_precondition_stays_a_conflict() -> None:
    order = requests.delete(PODS.ref("p", "default"), DeleteOptions(uid="u", version="1"))
    message = "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2)."
    assert type(refuse(answer(status(409, "Conflict", message, name="p"), 409), order)) is Conflict


def test_a_denial_names_the_rule_that_is_missing() -> None:
    message = (
        'leases.coordination.k8s.io "x" is forbidden: User "system:serviceaccount:a:b" cannot update resource '
        '"leases/status" in API group "coordination.k8s.io" in the namespace "kube-system"'
    )
    order = requests.replace(LEASES.ref("x", "kube-system").sub("status"), configmap(), PLAIN_WRITE)
    error = refuse(answer(status(403, "Forbidden", message, name="x"), 403), order)
    assert error.message.startswith(
        "The server forbids update leases.coordination.k8s.io kube-system/x/status (403 Forbidden):"
    )
    assert error.next_step == (
        "Add to a Role in namespace 'kube-system': apiGroups [\"coordination.k8s.io\"], "
        'resources ["leases/status"], verbs ["update"].'
    )


def test_a_denial_without_words_names_the_rule_for_what_was_asked() -> None:
    error = refuse(answer(status(403, "Forbidden"), 403), apply())
    assert error.next_step == (
        'Add to a Role in namespace \'default\': apiGroups ["apps"], resources ["deployments"], verbs ["patch"].'
    )
    nodes = requests.get(Resource("", "v1", "nodes", "Node", namespaced=False).ref("n"))
    error = refuse(answer(status(403, "Forbidden"), 403), nodes)
    assert error.next_step == 'Add to a ClusterRole: apiGroups [""], resources ["nodes"], verbs ["get"].'


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1',
        'admission webhook "w.example" denied the request: no',
    ],
)
def test_no_rule_cures_a_quota_or_a_webhook(message: str) -> None:
    error = refuse(answer(status(403, "Forbidden", message), 403))
    assert error.next_step == ""
    assert message in error.message


def test_an_owner_reference_denied_names_the_finalizers_rule() -> None:
    message = (
        'pods "x" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource '
        "you can't set finalizers on: , <nil>"
    )
    assert "finalizers" in refuse(answer(status(403, "Forbidden", message), 403)).next_step


def test_an_invalid_object_lists_its_causes_and_counts_the_rest() -> None:
    causes = [
        {"reason": "FieldValueRequired", "field": f"spec.f{number}", "message": f"Required value: {number}"}
        for number in range(10)
    ]
    causes += causes[:2]
    error = refuse(answer(status(422, "Invalid", "long", causes=causes), 422), apply())
    assert isinstance(error, Invalid)
    assert len(error.causes) == 12
    assert error.message.startswith(
        "The object of apply deployments.apps default/one is invalid (422 Invalid): spec.f0: Required value: 0; "
        "spec.f1: Required value: 1; "
    )
    assert error.message.endswith("spec.f7: Required value: 7; and 2 more.")


def test_a_servers_words_are_never_a_format() -> None:
    error = refuse(answer(status(409, "Conflict", "{what} {0} %s {why.__class__}", name="one"), 409))
    assert "{what} {0} %s {why.__class__}" in error.message


@pytest.mark.parametrize("place", ["message", "reason", "field", "cause", "html"])
def test_nothing_steers_a_terminal(place: str) -> None:
    evil = "a\x1b]0;owned\x07\x9b31m\u202egnp\r\nb\u2028c\x00"
    response = answer(
        status(
            422,
            evil if place == "reason" else "Invalid",
            evil if place == "message" else "m",
            causes=[{"reason": "r", "field": evil if place == "field" else "f", "message": evil}],
        ),
        422,
    )
    if place == "html":
        response = answer(evil.encode(), 400)
    error = refuse(response)
    texts = [error.message, error.next_step, str(error)]
    if isinstance(error, ApiError):
        texts += [error.reason, *(text for cause in error.causes for text in (cause.field, cause.message))]
    assert all(text.isprintable() for text in texts)
    assert any("x1b]0;owned" in text for text in texts)


def test_a_very_long_message_is_cut() -> None:
    assert len(refuse(answer(status(500, "InternalError", "etcd " * 100_000), 500)).message) < 2_000


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "It begins with nothing."),
        (b"<html><body>hello</body></html>", "It begins with '<html><body>hello</body></html>'."),
        (b'{"kind":"ConfigMap","metadata":{"na', "unexpected end of data"),
        (b"[]", "it is not an object with a kind."),
        (b"null", "it is not an object with a kind."),
        (b'{"metadata":{}}', "it is not an object with a kind."),
        (b'{"kind":"ConfigMap"}', "its object has no metadata."),
        (b'{"kind": "\xff"}', "not valid UTF-8"),
        (b"[" * 100_000, "depth limit"),
    ],
)
def test_a_good_answer_that_is_no_object(body: bytes, why: str) -> None:
    order = an_order()
    with pytest.raises(BadAnswer) as caught:
        answered(answer(body), order, order.site("a-1"))
    assert why in caught.value.message
    assert "get configmaps default/one (200)" in caught.value.message
    assert caught.value.message.isprintable()


CANARY = "hunter2-canary"
CANARY_IN_BASE64 = "aHVudGVyMi1jYW5hcnk="


@pytest.mark.parametrize(
    "response",
    [
        answer({"kind": "Secret", "data": {"p": CANARY}}),
        answer(b'{"kind":"Secret","data":{"p":"' + CANARY_IN_BASE64.encode()),
        answer(CANARY.encode(), 400),
        answer(CANARY.encode(), 500),
        answer(CANARY.encode(), 302),
        answer(
            status(400, "BadRequest", f"cannot be handled as a Secret: illegal base64 data: {CANARY_IN_BASE64}"), 400
        ),
        answer(status(400, "BadRequest", f"error found in #10 byte of ...|{{p: {CANARY[:9]}|..., bigger context"), 400),
        answer(status(500, "InternalError", f"webhook said: secret {CANARY} is weak"), 500),
        answer(
            status(
                422,
                "Invalid",
                f"data[p]: Invalid value: {CANARY!r}",
                causes=[{"reason": "FieldValueInvalid", "field": "data[p]", "message": f"Invalid value: {CANARY!r}"}],
            ),
            422,
        ),
    ],
)
@pytest.mark.parametrize("where", ["data", "stringData", "patch"])
def test_a_secret_never_reaches_an_error(response: HttpResponse, where: str) -> None:
    secret = {"metadata": {"name": "s", "namespace": "default"}}
    ref = SECRETS.ref("s", "default")
    order = requests.create(SECRETS, {**secret, "data": {"p": CANARY_IN_BASE64}}, PLAIN_WRITE)
    if where == "stringData":
        order = requests.create(SECRETS, {**secret, "stringData": {"p": CANARY}}, PLAIN_WRITE)
    elif where == "patch":
        change = [{"op": "replace", "path": "/data/p", "value": CANARY_IN_BASE64}]
        order = requests.patch(ref, change, PatchKind.JSON, PLAIN_WRITE)
    if response.status == 200:
        with pytest.raises(BadAnswer) as caught:
            answered(response, order, order.site(""))
        error: CallError = caught.value
    else:
        error = refuse(response, order)
    shown = [error.message, error.next_step, repr(error), repr(order), repr(response)]
    shown += [repr(error.causes)] if isinstance(error, ApiError) else []
    for text in shown:
        assert CANARY[:9] not in text
        assert CANARY_IN_BASE64 not in text


def test_a_token_request_is_as_secret_as_a_secret() -> None:
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    order = requests.create(accounts.ref("x", "default").sub("token"), {"metadata": {}, "spec": {}}, PLAIN_WRITE)
    with pytest.raises(BadAnswer) as caught:
        answered(answer(b'{"status":{"token":"' + CANARY.encode()), order, order.site(""))
    assert CANARY not in caught.value.message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1.0),
        (" 30 ", 30.0),
        ("0", 0.0),
        ("Thu, 01 Jan 2026 00:00:05 GMT", 5.0),
        ("Thu, 01 Jan 2015 00:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("\u0661", None),
        ("9" * 5000, 999_999_999.0),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == seconds


def test_the_hint_may_stand_in_the_status_alone() -> None:
    error = refuse(answer(status(429, "TooManyRequests", retryAfterSeconds=7), 429))
    assert error.retry_after == 7.0
    error = refuse(answer(status(429, "TooManyRequests", retryAfterSeconds=7), 429, retry_after="2"))
    assert error.retry_after == 2.0


def test_an_error_frame_has_the_code_of_its_status() -> None:
    order = an_order(verb="watch")
    site = order.site("")
    gone = refused_in_stream(status(410, "Expired", "too old resource version: 1 (2)"), order, site, NOW)
    assert type(gone) is Expired
    assert type(refused_in_stream({"kind": "Status", "metadata": {}}, order, site, NOW)) is ServerError
    assert type(refused_in_stream({"kind": "Pod", "metadata": {}}, order, site, NOW)) is BadAnswer


@pytest.mark.parametrize(
    ("media", "fits"),
    [
        ("application/json", True),
        ("application/json;stream=watch", True),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", True),
        ("text/html; charset=utf-8", False),
        ("application/vnd.kubernetes.protobuf;stream=watch", False),
    ],
)
def test_a_stream_is_json(media: str, fits: bool) -> None:
    order = an_order(verb="watch")
    assert (unfit_for_a_stream({"content-type": media}, order, order.site("")) is None) is fits
    assert unfit_for_a_stream({}, order, order.site("")) is None


def test_broken_statuses_do_not_break_the_reader() -> None:
    odd: list[Any] = [
        {"kind": "Status", "details": "no", "code": "x", "message": 7, "reason": None},
        {"kind": "Status", "details": {"causes": ["no", {"reason": 1}], "retryAfterSeconds": "2"}},
    ]
    for body in odd:
        assert type(refuse(answer(body, 409))) is Conflict
