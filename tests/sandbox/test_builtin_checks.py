from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.sandbox import answers, intake, names
from kubectl_ctrl.sandbox.kinds.builtin import completed, defaulted, prepared, problems
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.kinds.schedules import problem_of
from tests.sandbox.callers import deployment

# The answers of a real server to the objects of e2e/parity/builtin.py.
_GOLDENS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("goldens").joinpath("problems.json").read_text())


def _kind(obj: Obj, plural: str) -> ServedKind:
    group, _, version = obj["apiVersion"].rpartition("/")
    return ServedKind(resource=Resource(group, version, plural, obj["kind"]), singular=obj["kind"].lower())


def _new(obj: Obj) -> Obj:
    meta = {**obj["metadata"], "namespace": "default", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return completed(prepared(defaulted(intake.without_nulls({**obj, "metadata": meta}))))


@pytest.mark.parametrize("case", _GOLDENS, ids=[case["name"].replace("/", " ") for case in _GOLDENS])
def test_every_problem_has_the_words_of_the_server(case: dict[str, Any]) -> None:
    old, new = None, _new(case["given"])
    if "change" in case:
        old, new = new, defaulted(apply_merge(new, case["change"]))
    found = [*names.problems(_kind(new, case["plural"]), new, old), *problems(new, old)]
    said = [[one.reason.removeprefix("FieldValue"), one.field, one.message] for one in found]
    assert said == case["causes"]


@pytest.mark.parametrize(("kind", "field"), [("ConfigMap", "[]"), ("Secret", "data")])
def test_content_above_a_mebibyte(kind: str, field: str) -> None:
    texts = "data" if kind == "ConfigMap" else "stringData"
    for size, expected in ((1 << 20, []), ((1 << 20) + 1, [field])):
        obj = _new({"apiVersion": "v1", "kind": kind, "metadata": {"name": "one"}, texts: {"a": "x" * size}})
        assert [one.field for one in problems(obj, None)] == expected


@pytest.mark.parametrize(
    "schedule", ["* * * * *", "*/5 0-12/2 1,15 jan-mar MON", "@daily", "@every 1h30m", "CRON_TZ=UTC 0 0 * * ?"]
)
def test_sound_schedules(schedule: str) -> None:
    assert problem_of(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("0-1-2 * * * *", "too many hyphens: 0-1-2"),
        ("*/1/2 * * * *", "too many slashes: */1/2"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-4 * * * *", "beginning of range (5) beyond end of range (4): 5-4"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("@never", "unrecognized descriptor: @never"),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
    ],
)
def test_unsound_schedules(schedule: str, words: str) -> None:
    assert problem_of(schedule) == words


def test_a_stored_object_is_not_checked_for_its_name_again() -> None:
    obj = _new(deployment("web"))
    odd = {**obj, "metadata": {**obj["metadata"], "name": "Odd"}}
    intake.check(_kind(obj, "deployments"), odd, odd)
    with pytest.raises(answers.Refusal, match="RFC 1123"):
        intake.check(_kind(obj, "deployments"), odd, None)


def _changed_pod(change: Obj, **spec: Any) -> list[str]:
    container = {"name": "a", "image": "nginx"}
    old = _new(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": [container], **spec}}
    )
    new = defaulted(apply_merge(old, {"spec": change}))
    return [f"{one.field}: {one.message}" for one in problems(new, old)]


def test_few_fields_of_a_pod_may_change() -> None:
    assert _changed_pod({"containers": [{"name": "a", "image": "other"}]}) == []
    assert _changed_pod({"tolerations": [{"key": "a", "operator": "Exists"}]}) == []
    assert _changed_pod({"activeDeadlineSeconds": 5}) == []
    assert _changed_pod({"nodeSelector": {"a": "b"}}, schedulingGates=[{"name": "g"}]) == []
    (said,) = _changed_pod({"nodeName": "n"})
    assert said.startswith("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,")
    (said,) = _changed_pod({"tolerations": None}, tolerations=[{"key": "a", "operator": "Exists"}])
    assert said.startswith("spec.tolerations: Forbidden: existing toleration can not be modified")
    words = "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"
    assert _changed_pod({"schedulingGates": [{"name": "g"}]}) == [words]


def test_a_subresource_has_rules_of_its_own() -> None:
    container = {"name": "a", "image": "nginx"}
    old = _new({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": [container]}})
    new = {**old, "spec": {**old["spec"], "nodeName": "n"}}
    intake.check(_kind(new, "pods"), new, old, "binding")
    with pytest.raises(answers.Refusal, match="pod updates may not change"):
        intake.check(_kind(new, "pods"), new, old)
