"""Which provider makes a cluster, and how that is said."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from pathlib import Path

import pytest

from kubectl_ctrl.clusters.provider import ClusterSpec, Fitness, Provider
from kubectl_ctrl.clusters.providers import PROVIDERS, chosen, providers
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, Refused, UsageError
from tests.clusters.made_up import MadeUp, machine

NO_DOCKER = Fitness(usable=False, text="no docker, podman or nerdctl answers", next_step="start docker")
NO_KWOKCTL = Fitness(usable=False, text="kwokctl is not in PATH", next_step="brew install kwok")


def two(kind: Fitness | None = None, kwok: Fitness | None = None) -> Mapping[str, MadeUp]:
    fit = {name: Fitness(usable=True, text=f"{name} v1") for name in ("kind", "kwok")}
    return {
        "kind": MadeUp(name="kind", fitting=kind or fit["kind"]),
        "kwok": MadeUp(name="kwok", fitting=kwok or fit["kwok"]),
    }


def choose(word: str, known: Mapping[str, MadeUp], registry: Registry) -> tuple[str, str]:
    provider, line = asyncio.run(chosen(word, "one", ClusterSpec(), known, registry))
    return provider.name, line


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


def test_every_provider_is_there_by_its_name(tmp_path: Path) -> None:
    assert PROVIDERS == ("kind", "kwok", "sandbox")
    assert [provider.name for provider in providers(machine(tmp_path)).values()] == ["kind", "kwok", "sandbox"]


def test_a_provider_is_eight_methods_and_nothing_that_only_one_of_them_has(tmp_path: Path) -> None:
    methods = {name for name, one in vars(Provider).items() if inspect.isfunction(one) and not name.startswith("_")}
    assert len(methods) <= 8
    for provider in providers(machine(tmp_path)).values():
        own = {name for name, one in vars(type(provider)).items() if inspect.isfunction(one)}
        assert {name for name in own if not name.startswith("_")} == methods


def test_the_first_that_can_is_taken_and_the_line_says_why(registry: Registry) -> None:
    assert choose("auto", two(), registry) == ("kind", "kind v1 (kwok works too)")
    assert choose("auto", two(kind=NO_DOCKER), registry) == (
        "kwok",
        "kwok v1 (kind: no docker, podman or nerdctl answers)",
    )
    assert choose("auto", two(kwok=NO_KWOKCTL), registry) == ("kind", "kind v1 (kwokctl is not in PATH)")


def test_f58_when_none_can_each_says_what_it_lacks(registry: Registry) -> None:
    with pytest.raises(PrerequisiteMissing) as caught:
        choose("auto", two(NO_DOCKER, NO_KWOKCTL), registry)
    assert caught.value.each == ("kind: no docker, podman or nerdctl answers", "kwokctl is not in PATH")
    assert caught.value.tried == "; ".join(caught.value.each)
    assert caught.value.next_step == "start docker; or brew install kwok"
    assert caught.value.exit_code == 5


def test_f58_one_that_was_asked_for_says_what_it_lacks(registry: Registry) -> None:
    assert choose("kwok", two(kind=NO_DOCKER), registry) == ("kwok", "kwok v1")
    with pytest.raises(PrerequisiteMissing, match="kind cannot work here: no docker") as caught:
        choose("kind", two(kind=NO_DOCKER), registry)
    assert caught.value.next_step == "start docker"


def test_what_the_words_themselves_rule_out_is_wrong_usage(registry: Registry) -> None:
    unwanted = Fitness(usable=False, text="its nodes have no image", next_step="omit --image", usage=True)
    assert choose("auto", two(kwok=unwanted), registry)[0] == "kind"
    with pytest.raises(UsageError, match="kwok does not support this: its nodes have no image") as caught:
        choose("kwok", two(kwok=unwanted), registry)
    assert caught.value.next_step == "omit --image"


def test_a_cluster_that_is_there_goes_first(registry: Registry) -> None:
    registry.write(
        ClusterEntry(name="one", provider="kwok", phase=Phase.READY, began=1.0, folder=registry.place("one"))
    )
    assert choose("auto", two(), registry) == ("kwok", "kwok, which created cluster 'one'")
    assert choose("kwok", two(kwok=NO_KWOKCTL), registry) == ("kwok", "kwok, which created cluster 'one'")
    with pytest.raises(Refused, match="created with kwok, not kind"):
        choose("kind", two(), registry)


def test_what_this_version_does_not_know_is_said(registry: Registry) -> None:
    with pytest.raises(UsageError) as caught:
        choose("k3d", two(), registry)
    assert caught.value.next_step == "use one of auto, kind, kwok"
    registry.write(
        ClusterEntry(name="one", provider="later", phase=Phase.READY, began=1.0, folder=registry.place("one"))
    )
    with pytest.raises(ClusterError, match="which this version does not support"):
        choose("auto", two(), registry)
