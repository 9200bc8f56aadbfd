"""One story in the forms that programs and pictures want: `trace -o json` and its kin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render import dot, html, otlp, perfetto, tracejson, yamltext

FORMS: Mapping[str, Callable[[Story], Iterable[str]]] = {
    "json": tracejson.document,
    "jsonl": tracejson.lines,
    "yaml": yamltext.document,
    "dot": dot.document,
    "otlp": otlp.lines,
    "perfetto": perfetto.document,
    "html": html.document,
}
# Opened by programs, and of no use on a screen.
FILES = ("otlp", "perfetto", "html")


def export(form: str, story: Story) -> Iterable[str]:
    """Pieces of text in order, each made when it is asked for; together they end with a newline."""
    return FORMS[form](story)
