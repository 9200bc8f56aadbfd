from __future__ import annotations

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.testing.builtin import problems, quantity
from tests.testing.callers import deployment


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1", "1"),
        (2, "2"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("2000M", "2G"),
        ("0", "0"),
        ("odd", "odd"),
    ],
)
def test_quantities(given: str | int, shown: str) -> None:
    assert quantity(given) == shown


def test_two_ports_of_one_container_may_not_have_one_name() -> None:
    def told(*ports: Obj) -> list[tuple[str, str]]:
        obj = deployment("web")
        obj["spec"]["template"]["spec"]["containers"][0]["ports"] = list(ports)
        return [(one.field, one.message) for one in problems(obj, None)]

    assert told({"name": "a", "containerPort": 80}, {"name": "b", "containerPort": 81}) == []
    assert told({"containerPort": 80}, {"containerPort": 81}) == []
    field = "spec.template.spec.containers[0].ports[1].name"
    assert told({"name": "a", "containerPort": 80}, {"name": "a", "containerPort": 81}) == [
        (field, 'Duplicate value: "a"')
    ]
