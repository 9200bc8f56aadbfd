"""The forms of an answer that all verbs share: text as the terminal takes it, and documents for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.render.style import Style, moment_text
from kubectl_ctrl.text import Text, verbatim

if TYPE_CHECKING:
    from kubectl_ctrl.model.record import Cluster
    from kubectl_ctrl.render.printers import Printer
    from kubectl_ctrl.story.lookup import Meant

# The words of -o where objects are listed, beside the templates; "" is a table.
WORDS = ("", "wide", "name", "json", "yaml")


def style_of(app: App, given: Given) -> Style:
    """How text is to look on this output."""
    return Style(
        width=app.width,
        color=app.color,
        unicode=app.unicode,
        zone=UTC if given["utc"] else None,
        full_times=not app.terminal,
    )


def note_of(meant: Meant, style: Style) -> str:
    """The line before an answer out of a recording: the end of its cluster, and why it is this one; "" for neither."""
    return "; ".join(filter(None, (_ended(meant.cluster, style), meant.note)))


def _ended(cluster: Cluster, style: Style) -> str:
    """`cluster ctrl (kind), deleted 10:31:05`, of a cluster that we made and that is gone."""
    if cluster.ended is None:
        return ""
    when = moment_text(cluster.ended, SystemClock().now(), style)
    return f"cluster {cluster.name} ({cluster.provider}), deleted {when}"


def document(value: dict[str, Any], form: str) -> Text:
    """As JSON or YAML, whichever -o says."""
    if form == "json":
        return verbatim(json.dumps(value, indent=2))
    import yaml

    return verbatim(yaml.safe_dump(value, sort_keys=False).rstrip("\n"))


def printer(given: Given, words: Sequence[str] = WORDS) -> Printer:
    """What -o, --no-headers and --sort-by (flags.LISTED, or -o alone) ask for; to be called before anything else."""
    from kubectl_ctrl.render import printers

    return printers.printer(
        given["output"],
        words,
        read=_read,
        headers=not given.flags.get("no_headers"),
        sort_by=given.flags.get("sort_by") or "",
    )


def printed(app: App, form: Printer, document: Mapping[str, Any], key: str, name: str = "name") -> None:
    """The answer in any form but a table: of the list at `key` of the document, whose items have a `name`."""
    items = document[key]
    app.answer(verbatim(form.text(document, items, [str(item[name]) for item in items])), end="")


def _read(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"The file {file!r} of --output cannot be read: {why}.", next_step="use a readable file"
        ) from None
