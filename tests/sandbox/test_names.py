from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from tests.sandbox.callers import DEPLOYMENTS_PATH, MAPS_PATH, Caller, configmap, deployment


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "x" * 254, ""])
async def test_names_must_be_names(name: str, call: Caller) -> None:
    code, status = await call("POST", MAPS_PATH, configmap(name))
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.name")


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ({"example.com/a_b": "V_1.x", "short": ""}, 201),
        ({"a": "x" * 63}, 201),
        ({"a": "x" * 64}, 422),
        ({"a": "-x"}, 422),
        ({"a b": "x"}, 422),
        ({"Up.Per/a": "x"}, 422),
        ({"a" * 64: "x"}, 422),
        ({"a": 7}, 400),
    ],
)
async def test_labels_must_be_labels(labels: Any, code: int, call: Caller) -> None:
    body = configmap("one")
    body["metadata"]["labels"] = labels
    assert (await call("POST", MAPS_PATH, body))[0] == code


async def test_the_labels_of_a_template_are_looked_at_too(call: Caller) -> None:
    long = {"controller": "x" * 64}
    body = deployment("web", selector={"matchLabels": {}})
    body["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    body["spec"]["template"]["metadata"]["labels"] |= long
    code, status = await call("POST", DEPLOYMENTS_PATH, body)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.template.labels")


async def test_an_owner_needs_its_uid(call: Caller) -> None:
    body = configmap("one")
    body["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}]
    code, status = await call("POST", MAPS_PATH, body)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.ownerReferences.uid")


@pytest.mark.parametrize(
    ("namespace", "about", "code"),
    [("default", "default", 201), ("default", "", 201), ("default", "kube-system", 422), ("kube-public", "", 422)],
)
async def test_an_event_lies_where_its_subject_does(namespace: str, about: str, code: int, call: Caller) -> None:
    subject: Obj = {"kind": "Foo", "name": "one", **({"namespace": about} if about else {})}
    body = {"metadata": {"generateName": "one."}, "involvedObject": subject, "reason": "Synced", "type": "Normal"}
    assert (await call("POST", f"/api/v1/namespaces/{namespace}/events", body))[0] == code
