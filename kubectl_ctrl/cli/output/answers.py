"""Forms of output that all verbs share: styled text, tables, and documents for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.render.style import Style, moment_text
from kubectl_ctrl.text import Text, verbatim

if TYPE_CHECKING:
    from kubectl_ctrl.render.printers import Printer
    from kubectl_ctrl.story.lookup import SelectedRecording

# The values of -o for verbs that list, except the templates; "" is a table.
WORDS = ("", "wide", "name", "json", "yaml")


def style_of(app: App, given: ParsedCommandLine) -> Style:
    """The style of text on standard output."""
    return Style(
        width=app.width,
        color=app.color,
        unicode=app.unicode,
        zone=UTC if given["utc"] else None,
        full_times=not app.terminal,
    )


def note_of(meant: SelectedRecording, style: Style) -> str:
    """The line before output from a recording, such as `cluster ctrl (kind), deleted 10:31:05`; "" for none."""
    cluster, deleted = meant.cluster, ""
    if cluster.ended is not None:
        when = moment_text(cluster.ended, SystemClock().now(), style)
        deleted = f"cluster {cluster.name} ({cluster.provider}), deleted {when}"
    return "; ".join(filter(None, (deleted, meant.note)))


def document(value: dict[str, Any], form: str) -> Text:
    """The value as JSON or YAML."""
    if form == "json":
        return verbatim(json.dumps(value, indent=2))
    import yaml

    return verbatim(yaml.safe_dump(value, sort_keys=False).rstrip("\n"))


def printer(given: ParsedCommandLine, words: Sequence[str] = WORDS) -> Printer:
    """The printer for -o, --no-headers and --sort-by. Call it first: it checks the flags."""
    from kubectl_ctrl.render import printers

    return printers.printer(
        given["output"],
        words,
        read=_read,
        headers=not given.flags.get("no_headers"),
        sort_by=given.flags.get("sort_by") or "",
    )


def printed(app: App, form: Printer, document: Mapping[str, Any], key: str, name: str = "name") -> None:
    """Print the list at `key` of the document, in any form but a table; `name` is the key of the items' names."""
    items = document[key]
    app.answer(verbatim(form.text(document, items, [str(item[name]) for item in items])), end="")


def _read(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"Cannot read the file {file!r} of --output: {why}.", next_step="use a readable file"
        ) from None
