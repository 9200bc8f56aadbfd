"""The forms of an answer that all verbs share: text as the terminal takes it, and documents for machines."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.render.style import Style


def style_of(app: App, given: Given) -> Style:
    """How text is to look on this output."""
    return Style(
        width=app.width,
        color=app.color,
        unicode=app.unicode,
        zone=UTC if given["utc"] else None,
        full_times=not app.terminal,
    )


def document(value: dict[str, Any], form: str) -> str:
    """As JSON or YAML, whichever -o says."""
    if form == "json":
        return json.dumps(value, indent=2)
    import yaml

    return yaml.safe_dump(value, sort_keys=False).rstrip("\n")
