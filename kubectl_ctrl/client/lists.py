"""Responses to list calls: pages of objects, in the same form as those of a watch."""

from __future__ import annotations

from kubectl_ctrl.client.shapes import ExpectedType, InvalidItem, flaw_of, projected
from kubectl_ctrl.errors import BadAnswer, CallSite
from kubectl_ctrl.model.objects import PARTIAL_KIND, PARTIAL_VERSION, Obj
from kubectl_ctrl.value import Value


class ListPage(Value, kw_only=True):
    """A list, or one page of it."""

    items: list[Obj]
    version: str  # of the list: where a watch starts
    more: bool = False  # more pages follow
    poisoned: tuple[InvalidItem, ...] = ()  # items that are not valid objects


def page_of(answer: Obj, expected: ExpectedType, site: CallSite) -> tuple[ListPage, str]:
    """The page in a response, and the continue token, "" for the last page."""
    metadata, items = answer["metadata"], answer.get("items", ...)
    if not str(answer["kind"]).endswith("List") or not isinstance(items, list | None):
        raise BadAnswer(f"The answer to {site.verb} {site.target} is not a list, but {answer['kind']!r}.", site=site)
    token = str(metadata.get("continue") or "")
    good: list[Obj] = []
    bad: list[InvalidItem] = []
    for item in items or []:
        # Items of built-in types lack apiVersion and kind; the item is new, so it is changed in place.
        if isinstance(item, dict) and "kind" not in item:
            partial = answer["kind"] == f"{PARTIAL_KIND}List"
            item["kind"] = PARTIAL_KIND if partial else expected.kind
            item["apiVersion"] = PARTIAL_VERSION if partial else expected.api_version
        if why := flaw_of(item, expected):
            bad.append(expected.poisoned(item, f"An item cannot be used: {why}."))
        else:
            good.append(projected(item) if expected.metadata_only else item)
    version = str(metadata.get("resourceVersion") or "")
    return ListPage(items=good, version=version, more=bool(token), poisoned=tuple(bad)), token


def joined(pages: list[ListPage]) -> ListPage:
    """All pages as one list; all have the same version."""
    if len(pages) == 1:
        return pages[0]
    return ListPage(
        items=[item for page in pages for item in page.items],
        version=pages[-1].version,
        poisoned=tuple(bad for page in pages for bad in page.poisoned),
    )
