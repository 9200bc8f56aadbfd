from __future__ import annotations

import pytest

from kubectl_ctrl.cache.selection import ParsedSelection, Selection, parse_fields
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS

POD: Obj = {
    "metadata": {"name": "x", "namespace": "a", "labels": {"app": "web"}},
    "spec": {"nodeName": "n,1=2", "hostNetwork": True},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ("", True),
        ("status.phase=Running", True),
        ("status.phase==Running,metadata.name=x", True),
        ("status.phase!=Running", False),
        ("spec.hostNetwork=true", True),
        ("spec.nodeName=n\\,1\\=2", True),
        ("spec.missing=", True),
        ("spec.missing=x", False),
        ("spec.missing!=x", True),
        ("status.phase.deeper=", True),
    ],
)
def test_fields(fields: str, holds: bool) -> None:
    assert ParsedSelection(Selection(PODS, fields=fields)).holds(POD) is holds


@pytest.mark.parametrize("text", ["status.phase", "=x", "a=b=c", "a,b=c"])
def test_wrong_field_selectors_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="field selector"):
        parse_fields(text)


@pytest.mark.parametrize(
    ("selection", "holds"),
    [
        (Selection(PODS), True),
        (Selection(PODS, "a"), True),
        (Selection(PODS, "b"), False),
        (Selection(PODS, labels="app in (web, db)"), True),
        (Selection(PODS, labels="!app"), False),
    ],
)
def test_namespace_and_labels(selection: Selection, holds: bool) -> None:
    assert ParsedSelection(selection).holds(POD) is holds


def test_selection_reads_as_a_phrase() -> None:
    selection = Selection(PODS, "a", labels="app=web", fields="spec.nodeName=n", metadata_only=True)
    assert str(selection) == "pods in a with app=web with spec.nodeName=n (metadata)"
    assert selection.narrowed
    assert not Selection(PODS, "a").narrowed
