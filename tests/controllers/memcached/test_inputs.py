"""What Memcached and its CRD make of odd inputs; the numbers are those of docs/faults.md."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.controllers.memcached.reconciler import MEMCACHEDS
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.sandbox.answers import Refusal
from tests.controllers.memcached.caching import TEST, Caching, deployment, memcached
from tests.objects import present


@pytest.mark.parametrize("length", [63, 64, 253])
async def test_m12_a_name_too_long_for_a_label_is_a_condition(length: int, stage: Caching) -> None:
    name = "m" * length
    async with stage.controlled(memcached(name)):
        if length == 63:
            assert stage.condition(name=name) == ("True", "MinimumReplicasReady")
            return
        assert stage.condition("Degraded", name=name) == ("True", "NameTooLong")
        assert f"has {length} characters; a pod label may have 63" in stage.told_by("Degraded", name)["message"]
        assert stage.server.objects(DEPLOYMENTS) == []
        attempts = len(stage.attempts)
        await stage.rest(3600)
        assert len(stage.attempts) == attempts


async def test_m12_a_name_with_dots_will_do(stage: Caching) -> None:
    async with stage.controlled(memcached("cache.of.mine")):
        assert stage.condition(name="cache.of.mine") == ("True", "MinimumReplicasReady")
        assert stage.status("cache.of.mine")["nodes"] == stage.pods()


@pytest.mark.parametrize("size", [-1, 1.5, "3", None, 2**31])
async def test_m15_a_size_that_is_no_number_in_range(size: Any, stage: Caching) -> None:
    with pytest.raises(Refusal, match=r"spec\.size"):
        stage.server.create(memcached(size=size))


@pytest.mark.parametrize(
    ("field", "value"), [("containerPort", 0), ("containerPort", 65536), ("image", ""), ("image", " x")]
)
async def test_m15_other_fields_out_of_range(field: str, value: Any, stage: Caching) -> None:
    with pytest.raises(Refusal, match=rf"spec\.{field}"):
        stage.server.create(memcached(**{field: value}))


async def test_m17_none_very_many_and_an_unknown_field() -> None:
    stage = Caching(playing=False)
    async with stage.controlled(memcached("none", size=0), memcached("many", size=2**31 - 1, siez=3)):
        assert stage.condition(name="none") == ("False", "RollingOut")
        assert stage.deployment("none")["spec"]["replicas"] == 0
        assert stage.deployment("many")["spec"]["replicas"] == 2**31 - 1
        assert present(stage.server.get(MEMCACHEDS, "many"))["spec"] == {"size": 2**31 - 1}


async def test_m20_a_live_selector_that_fits_no_pod_of_its_template() -> None:
    """Nobody can make one, but the words are there if the server finds so."""
    stage = Caching(playing=False)
    made = deployment(owner=owner_reference(stage.server.create(memcached())), labels={"tier": "cache"})
    made["spec"]["selector"] = {"matchExpressions": [{"key": "memcached_cr", "operator": "DoesNotExist"}]}
    async with stage.controlled(made):
        await stage.rest(600)
        assert stage.condition("Degraded") == ("True", "Invalid")
        assert "`selector` does not match template `labels`" in stage.told_by("Degraded")["message"]
        assert len(stage.attempts) <= 3
        stage.server.delete(DEPLOYMENTS, TEST)
        await stage.rest(5)
        assert stage.deployment()["spec"]["selector"]["matchLabels"]["memcached_cr"] == TEST
        assert stage.condition("Degraded") == ("False", "AsExpected")


async def test_m37_odd_words_in_an_image_stay_data(stage: Caching) -> None:
    odd = "-x;$(reboot)\x1b[31m\u202egpj"
    async with stage.controlled(memcached(image=odd)):
        assert stage.container()["image"] == odd
        assert stage.container()["command"] == ["memcached", "-m", "64", "-o", "modern", "-v"]
