from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds.builtin import defaulted, prepared, problems
from kubectl_ctrl.sandbox.kinds.quantities import canonical
from tests.sandbox.callers import deployment

# Written by hack/update.d/defaults from the server's own code.
_GOLDENS: list[dict[str, Obj]] = json.loads(Path(__file__).with_name("goldens").joinpath("defaults.json").read_text())
_NAMES = [f"{place} {case['given']['kind']}" for place, case in enumerate(_GOLDENS)]


@pytest.mark.parametrize("case", _GOLDENS, ids=_NAMES)
def test_defaults_and_stored_forms_are_the_servers(case: dict[str, Obj]) -> None:
    assert defaulted(case["given"]) == case["stored"]


@pytest.mark.parametrize("case", _GOLDENS, ids=_NAMES)
def test_a_stored_form_is_stable(case: dict[str, Obj]) -> None:
    assert defaulted(case["stored"]) == case["stored"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1", "1"),
        ("2", "2"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("2000M", "2G"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("-500m", "-500m"),
        ("0", "0"),
        ("odd", "odd"),
    ],
)
def test_quantities(given: str, shown: str) -> None:
    assert canonical(given) == shown


def _pod(*resources: Any) -> Obj:
    containers = [{"name": f"c{place}", "image": "a", "resources": one} for place, one in enumerate(resources)]
    return defaulted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": containers}})


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
    ],
)
def test_quality_of_service(resources: list[Obj], expected: str) -> None:
    assert prepared(_pod(*resources))["status"] == {"phase": "Pending", "qosClass": expected}


def test_two_ports_of_one_container_may_not_have_one_name() -> None:
    def told(*ports: Obj) -> list[tuple[str, str]]:
        obj = deployment("web")
        obj["spec"]["template"]["spec"]["containers"][0]["ports"] = list(ports)
        return [(one.field, one.message) for one in problems(defaulted(obj), None)]

    assert told({"name": "a", "containerPort": 80}, {"name": "b", "containerPort": 81}) == []
    assert told({"containerPort": 80}, {"containerPort": 81}) == []
    field = "spec.template.spec.containers[0].ports[1].name"
    assert told({"name": "a", "containerPort": 80}, {"name": "a", "containerPort": 81}) == [
        (field, 'Duplicate value: "a"')
    ]
