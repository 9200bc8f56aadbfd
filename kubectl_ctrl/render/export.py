"""One story in the forms that programs and pictures want: `trace -o json` and its kin."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render import tracejson

FORMS = {"json": tracejson.document, "jsonl": tracejson.lines}


def export(form: str, story: Story) -> Iterable[str]:
    """Pieces of text in order, each made when it is asked for; together they end with a newline."""
    return FORMS[form](story)
