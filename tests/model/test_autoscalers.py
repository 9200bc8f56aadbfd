from __future__ import annotations

import pytest

from kubectl_ctrl.model.autoscalers import by_scale_target, scale_target
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, STATEFULSETS


def hpa(**target: str) -> Obj:
    return {"spec": {"scaleTargetRef": {"name": "web", **target}}}


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "web"),
        ({"apiVersion": "apps/v1beta1", "kind": "Deployment"}, "web"),
        ({"kind": "Deployment"}, "web"),
        ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, None),
        ({"apiVersion": "example.com/v1", "kind": "Deployment"}, None),
        ({"apiVersion": "v1", "kind": "Deployment"}, None),
    ],
)
def test_it_is_told_by_group_and_kind(target: dict[str, str], found: str | None) -> None:
    assert scale_target(hpa(**target), DEPLOYMENTS) == found


def test_other_resources_are_asked_for_in_the_same_way() -> None:
    assert scale_target(hpa(apiVersion="apps/v1", kind="StatefulSet"), STATEFULSETS) == "web"
    assert scale_target(hpa(apiVersion="v1", kind="Pod"), PODS) == "web"


def test_an_index_finds_it_by_namespace_and_name_of_what_it_scales() -> None:
    values = by_scale_target(DEPLOYMENTS)
    scaler = {**hpa(kind="Deployment"), "metadata": {"name": "auto", "namespace": "default"}}
    assert values(scaler) == ("default/web",)
    assert values({**scaler, **hpa(kind="StatefulSet")}) == ()
