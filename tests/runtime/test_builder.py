from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from kubectl_ctrl.errors import ControllerError, UsageError
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, NAMESPACES, PODS, REPLICASETS, SECRETS
from kubectl_ctrl.runtime.builder import ControllerSpec, Via, check_together, controller
from kubectl_ctrl.runtime.contract import Cached, Context, Result
from kubectl_ctrl.runtime.predicates import generation_changed, labels_changed
from tests.objects import present
from tests.runtime.toy import BOXES, TOYS, do_nothing


def to_bear(obj: Obj, cached: Cached) -> Iterable[Request]:
    return [Request("default", "bear")]


def by_name(obj: Obj) -> Iterable[str]:
    return [obj["metadata"]["name"]]


def test_a_sentence_becomes_a_value() -> None:
    spec = (
        controller("toy", do_nothing)
        .for_(TOYS, when=generation_changed)
        .owns(DEPLOYMENTS)
        .owns(PODS, through=(REPLICASETS, DEPLOYMENTS))
        .watches(HPAS, to=to_bear, when=[generation_changed, labels_changed])
        .reads(SECRETS)
        .index(TOYS, "name", by_name)
    )
    assert spec.primary == TOYS
    assert [source.via for source in spec.sources] == [Via.SELF, Via.OWNER, Via.OWNER, Via.MAPPING, Via.NOTHING]
    assert spec.resources == (TOYS, DEPLOYMENTS, PODS, REPLICASETS, HPAS, SECRETS)
    assert spec.sources[3].when == (generation_changed, labels_changed)
    assert spec.field_manager == "kubectl-ctrl-toy"


def test_each_step_returns_a_new_frozen_value() -> None:
    first = controller("toy", do_nothing).for_(TOYS)
    assert (len(first.sources), len(first.owns(DEPLOYMENTS).sources)) == (1, 2)
    with pytest.raises(AttributeError):
        first.name = "other"  # type: ignore[misc]


def refusal(build: Callable[[], object]) -> str:
    with pytest.raises(ControllerError) as caught:
        build()
    return f"{caught.value} {caught.value.next_step}"


@pytest.mark.parametrize("name", ["", "Toy", "my_toy", "-toy", "toy-", "töy", "a" * 41, "toy\n"], ids=repr)
def test_a_name_that_cannot_be_part_of_a_lease_is_refused(name: str) -> None:
    assert "lower-case letters, digits and dashes" in refusal(lambda: controller(name, do_nothing))


def test_two_primaries_are_refused_and_both_named() -> None:
    told = refusal(lambda: controller("toy", do_nothing).for_(TOYS).for_(BOXES))
    assert "toys.toys.example.com" in told
    assert "boxes.toys.example.com" in told


def test_one_name_may_be_that_of_several_resources() -> None:
    spec = controller("toy", do_nothing).for_(TOYS, DEPLOYMENTS, when=generation_changed).owns(PODS)
    assert (spec.primary, spec.primaries) == (TOYS, (TOYS, DEPLOYMENTS))
    assert spec.resources == (TOYS, DEPLOYMENTS, PODS)
    assert [source.when for source in spec.sources] == [(generation_changed,), (generation_changed,), ()]


def test_several_resources_that_one_request_cannot_mean_are_refused() -> None:
    assert "twice" in refusal(lambda: controller("toy", do_nothing).for_(TOYS, TOYS))
    told = refusal(lambda: controller("toy", do_nothing).for_(TOYS, BOXES))
    assert "toys.toys.example.com and boxes.toys.example.com" in told


@pytest.mark.parametrize(
    "rest",
    [
        lambda spec: spec.owns(DEPLOYMENTS),
        lambda spec: spec.watches(HPAS, to=to_bear),
        lambda spec: spec.reads(SECRETS),
        lambda spec: check_together([spec]),
    ],
    ids=["owns", "watches", "reads", "run"],
)
def test_a_controller_for_nothing_is_refused(rest: Callable[[ControllerSpec], object]) -> None:
    assert "Begin with .for_(RESOURCE)." in refusal(lambda: rest(controller("toy", do_nothing)))


def test_two_controllers_of_one_name_are_refused() -> None:
    spec = controller("toy", do_nothing).for_(TOYS)
    assert "named 'toy'" in refusal(lambda: check_together([spec, spec.owns(DEPLOYMENTS)]))


def test_a_function_that_is_not_async_is_refused() -> None:
    def reconcile(ctx: Context, request: Request) -> Result | None:
        return None

    told = refusal(lambda: controller("toy", reconcile))  # type: ignore[arg-type]
    assert "not async" in told
    assert "async def reconcile(ctx, request)" in told


async def _one(ctx: Context) -> None:
    pass


async def _three(ctx: Context, request: Request, more: int) -> None:
    pass


async def _keyword(ctx: Context, *, request: Request) -> None:
    pass


@pytest.mark.parametrize("function", [_one, _three, _keyword])
def test_a_wrong_signature_is_refused_and_the_right_one_named(function: Any) -> None:
    told = refusal(lambda: controller("toy", function))
    assert function.__name__ in told
    assert "takes (ctx, request)" in told


class _Callable:
    async def __call__(self, ctx: Context, request: Request) -> None:
        pass


async def _bound(setting: int, ctx: Context, request: Request) -> None:
    pass


async def _optional(ctx: Context, request: Request, setting: int = 3) -> None:
    pass


@pytest.mark.parametrize("function", [_Callable(), partial(_bound, 3), _optional])
def test_whatever_can_be_awaited_with_two_arguments_is_a_reconciler(function: Any) -> None:
    assert controller("toy", function).for_(TOYS).primary == TOYS


def test_a_namespaced_primary_cannot_own_what_has_no_namespace() -> None:
    toy = controller("toy", do_nothing).for_(TOYS)
    assert "namespaces" in refusal(lambda: toy.owns(NAMESPACES))
    assert "boxes" in refusal(lambda: toy.owns(PODS, through=[BOXES]))
    assert controller("box", do_nothing).for_(BOXES).owns(NAMESPACES).owns(PODS).resources[1:] == (NAMESPACES, PODS)


def test_the_same_ownership_twice_is_refused_and_another_chain_is_not() -> None:
    toy = controller("toy", do_nothing).for_(TOYS).owns(PODS)
    assert "twice" in refusal(lambda: toy.owns(PODS, when=generation_changed))
    assert len(toy.owns(PODS, through=[REPLICASETS]).sources) == 3


def test_mappings_and_indexes_are_plain_functions_of_the_right_shape() -> None:
    toy = controller("toy", do_nothing).for_(TOYS)
    assert "async" in refusal(lambda: toy.watches(HPAS, to=do_nothing))  # type: ignore[arg-type]
    assert "takes (obj, cached)" in refusal(lambda: toy.watches(HPAS, to=by_name))  # type: ignore[arg-type]
    assert "cannot be called" in refusal(lambda: toy.watches(HPAS, to=None))  # type: ignore[arg-type]
    assert "takes (obj)" in refusal(lambda: toy.index(TOYS, "name", to_bear))  # type: ignore[arg-type]


def test_an_index_needs_a_cached_resource_and_a_name_of_its_own() -> None:
    toy = controller("toy", do_nothing).for_(TOYS).index(TOYS, "name", by_name)
    assert "without watching or reading" in refusal(lambda: toy.index(HPAS, "name", by_name))
    assert "two indexes 'name'" in refusal(lambda: toy.index(TOYS, "name", by_name))


def test_a_predicate_without_a_name_and_a_resource_that_is_none_are_refused() -> None:
    toy = controller("toy", do_nothing)
    assert "named(" in refusal(lambda: toy.for_(TOYS, when=[lambda change: True]))  # type: ignore[list-item]
    assert "Expected a Resource" in refusal(lambda: toy.for_("toys"))  # type: ignore[arg-type]


def test_what_is_cached_of_a_resource_is_said_once_and_of_a_declared_one() -> None:
    spec = controller("toy", do_nothing).for_(TOYS).owns(PODS)
    narrow = spec.caching(PODS, fields="status.phase!=Failed", metadata_only=True)
    assert (narrow.view(PODS).fields, narrow.view(PODS).metadata_only) == ("status.phase!=Failed", True)
    assert (narrow.view(TOYS).fields, narrow.view(TOYS).metadata_only) == ("", False)
    with pytest.raises(ControllerError, match="caches secrets without watching or reading it"):
        spec.caching(SECRETS, metadata_only=True)
    with pytest.raises(ControllerError, match=r"calls .caching\(pods\) twice"):
        narrow.caching(PODS)
    with pytest.raises(UsageError, match="Invalid field selector"):
        spec.caching(PODS, fields="status.phase")


def test_a_cleanup_takes_the_place_of_the_reconciler() -> None:
    async def undo(ctx: Context, request: Request) -> None: ...

    spec = controller("toy", do_nothing).for_(TOYS)
    assert spec.undoing is None
    undoing = present(spec.cleanup(undo).undoing)
    assert (undoing.reconcile, undoing.primary) == (undo, TOYS)
    with pytest.raises(ControllerError, match="which is not async"):
        spec.cleanup(by_name)  # type: ignore[arg-type]
