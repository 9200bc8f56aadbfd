from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.client.call_record import FOUND_BY_READING, failed, leaving, succeeded
from kubectl_ctrl.errors import CallSite, NotFound, Unreachable
from kubectl_ctrl.model.attempt import Call
from tests.client.rig import CONFIGMAPS, an_order, configmap

LEAVING = leaving(an_order(verb="patch", body={"data": {}}, old_version="7", dry_run=True), "r-1.1", 50.0)


def test_leaving() -> None:
    call = LEAVING
    assert call == Call(
        id="r-1.1",
        verb="patch",
        resource=CONFIGMAPS,
        namespace="default",
        name="one",
        started=50.0,
        dry_run=True,
        old_version="7",
        sent={"data": {}},
    )


@pytest.mark.parametrize(
    ("answer", "uid", "version"),
    [
        ({"kind": "ConfigMap", "metadata": {"uid": "u", "resourceVersion": "8"}}, "u", "8"),
        ({"kind": "Status", "metadata": {}, "details": {"uid": "u"}}, "u", ""),
        ({"kind": "Status", "metadata": {}}, "", ""),
        (None, "", ""),
    ],
)
def test_success(answer: Any, uid: str, version: str) -> None:
    call = succeeded(LEAVING, took=2.0, sends=3, code=200, answer=answer)
    assert (call.uid, call.new_version, call.answer) == (uid, version, answer)
    assert (call.took, call.sends, call.code, call.reason, call.error) == (2.0, 3, 200, "", "")


def test_success_without_an_answer_was_found_by_reading() -> None:
    call = succeeded(LEAVING, took=1.0, sends=1, code=None, answer=configmap())
    assert (call.code, call.reason) == (None, FOUND_BY_READING)


def test_failures() -> None:
    site = CallSite("patch", "x")
    refused = failed(
        LEAVING, took=1.0, sends=1, code=None, error=NotFound("No.", site=site, code=404, reason="NotFound")
    )
    assert (refused.code, refused.reason, refused.error) == (404, "NotFound", "No.")
    silent = failed(LEAVING, took=1.0, sends=1, code=None, error=Unreachable("Gone\x1b.", site=site))
    assert (silent.code, silent.reason, silent.error) == (None, "", r"Gone\x1b.")
    foreign = failed(LEAVING, took=1.0, sends=1, code=200, error=KeyError("hunter2"))
    assert (foreign.code, foreign.error) == (200, "It was interrupted by KeyError.")
