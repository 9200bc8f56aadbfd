"""The output formats of `trace -o`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping

from kubectl_ctrl.model.record import Story

# Format -> its module and function, loaded when it is used: JSON lines need neither YAML nor pages.
FORMS: Mapping[str, str] = {
    "json": "json:document",
    "jsonl": "json:lines",
    "yaml": "yaml:document",
    "dot": "dot:document",
    "otlp": "otlp:lines",
    "perfetto": "perfetto:document",
    "html": "html:document",
}
# Formats for other programs, useless on a terminal -> the suffix of a file name.
FILES: Mapping[str, str] = {"html": "html", "otlp": "otlp.jsonl", "perfetto": "perfetto.json"}


def export(form: str, story: Story) -> Iterable[str]:
    """Pieces of text, each made when it is needed; the last one ends with a newline."""
    module, _, name = FORMS[form].partition(":")
    found = importlib.import_module(f"kubectl_ctrl.render.trace.{module}")
    render: Callable[[Story], Iterable[str]] = getattr(found, name)
    return render(story)
