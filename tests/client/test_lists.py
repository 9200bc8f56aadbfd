from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.client.lists import ListPage, joined, page_of
from kubectl_ctrl.client.shapes import ExpectedType, InvalidItem
from kubectl_ctrl.errors import BadAnswer, CallSite
from kubectl_ctrl.model.objects import Obj

SITE = CallSite("list", "pods")
PODS = ExpectedType(kind="Pod", api_version="v1", metadata_only=False, sensitive=False)
PARTIAL = ExpectedType(kind="Pod", api_version="v1", metadata_only=True, sensitive=False)


def a_list(*items: Any, kind: str = "PodList", **metadata: str) -> Obj:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "9", **metadata}, "items": list(items)}


def test_items_are_given_the_kind_that_built_in_lists_leave_out() -> None:
    page, token = page_of(a_list({"metadata": {"name": "a"}, "spec": {}}), PODS, SITE)
    assert page.items == [{"metadata": {"name": "a"}, "spec": {}, "kind": "Pod", "apiVersion": "v1"}]
    assert (page.version, page.more, page.poisoned, token) == ("9", False, (), "")


def test_a_page_knows_that_others_follow() -> None:
    page, token = page_of(a_list(**{"continue": "t"}), PODS, SITE)
    assert (page.more, token) == (True, "t")


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_may_be_null(items: Any) -> None:
    page, _ = page_of({**a_list(), "items": items}, PODS, SITE)
    assert page.items == []


@pytest.mark.parametrize(
    "answer",
    [
        {**a_list(), "kind": "Pod"},
        {**a_list(), "items": {}},
        {"kind": "PodList", "metadata": {}},
        {"kind": "Status", "metadata": {}, "items": []},
    ],
)
def test_what_is_no_list(answer: Obj) -> None:
    with pytest.raises(BadAnswer, match="The answer to list pods is not a list"):
        page_of(answer, PODS, SITE)


def test_a_poisoned_item_costs_itself_only() -> None:
    good = {"metadata": {"name": "a"}}
    bad: list[Any] = [None, 7, {}, {"metadata": {}}, {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}]
    page, _ = page_of(a_list(*bad, good), PODS, SITE)
    assert [item["metadata"]["name"] for item in page.items] == ["a"]
    assert [item.why for item in page.poisoned] == [
        "An item cannot be used: it is not an object.",
        "An item cannot be used: it is not an object.",
        "An item cannot be used: it has no metadata.",
        "An item cannot be used: it has no name.",
        "An item cannot be used: it is a 'Node' of 'v1'.",
    ]
    assert page.poisoned[4].excerpt.startswith("""'{"kind": "Node",""")


def test_secrets_are_not_quoted() -> None:
    expected = ExpectedType(kind="Secret", api_version="v1", metadata_only=False, sensitive=True)
    page, _ = page_of(a_list({"data": {"p": "hunter2"}}, "hunter2", kind="SecretList"), expected, SITE)
    assert len(page.poisoned) == 2
    assert all("hunter2" not in item.excerpt + item.why for item in page.poisoned)


@pytest.mark.parametrize("kind", ["PartialObjectMetadataList", "PodList"])
def test_metadata_only_whatever_the_server_sends(kind: str) -> None:
    whole = {"metadata": {"name": "a"}, **({"spec": {}} if kind == "PodList" else {})}
    page, _ = page_of(a_list(whole, kind=kind), PARTIAL, SITE)
    assert page.items == [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}]


def test_joined() -> None:
    bad = InvalidItem("x", "y")
    first = ListPage(items=[{"a": 1}], version="9", more=True, poisoned=(bad,))
    last = ListPage(items=[{"b": 2}], version="9")
    assert joined([last]) is last
    assert joined([first, last]) == ListPage(items=[{"a": 1}, {"b": 2}], version="9", poisoned=(bad,))
