"""One story in the forms that programs and pictures want: `trace -o json` and its kin."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping

from kubectl_ctrl.model.record import Story

# Form -> what makes it. Loaded when it is asked for: who wants lines of JSON does not wait for YAML and pages.
FORMS: Mapping[str, str] = {
    "json": "json:document",
    "jsonl": "json:lines",
    "yaml": "yaml:document",
    "dot": "dot:document",
    "otlp": "otlp:lines",
    "perfetto": "perfetto:document",
    "html": "html:document",
}
# Opened by programs, and of no use on a screen: how their files end.
FILES: Mapping[str, str] = {"html": "html", "otlp": "otlp.jsonl", "perfetto": "perfetto.json"}


def export(form: str, story: Story) -> Iterable[str]:
    """Pieces of text in order, each made when it is asked for; together they end with a newline."""
    module, _, name = FORMS[form].partition(":")
    render: Callable[[Story], Iterable[str]] = getattr(
        importlib.import_module(f"kubectl_ctrl.render.trace.{module}"), name
    )
    return render(story)
