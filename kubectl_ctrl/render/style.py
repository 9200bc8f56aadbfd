"""The style of output, and texts that depend on it alone: colours and times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, field


class Style(Value, kw_only=True):
    """The style of output; no line is cut if `width` is None."""

    width: int | None = None
    color: bool = False
    unicode: bool = True
    zone: tzinfo | None = UTC
    full_times: bool = False  # RFC 3339 with the date, for pipes
    controllers: bool = False  # name the controller: more than one runs
    namespace: str | None = None  # printed once for the whole run, with its id; None: in every line
    primaries: Mapping[str, Resource] = field(default_factory=dict)  # of each controller

    @property
    def arrow(self) -> str:
        return "→" if self.unicode else "->"

    @property
    def dot(self) -> str:
        """The separator of facts on one line."""
        return " · " if self.unicode else " | "

    @property
    def dash(self) -> str:
        """The separator of a verdict and its title."""
        return "—" if self.unicode else "-"

    @property
    def mark(self) -> str:
        """The mark of a cut."""
        return "…" if self.unicode else "..."


def painted(text: str, color: str, style: Style) -> str:
    """The text in a colour: an SGR number, or "" for none."""
    return f"\x1b[{color}m{text}\x1b[0m" if style.color and color and text else text


def timestamp(at: float, style: Style) -> str:
    moment = datetime.fromtimestamp(at, UTC).astimezone(style.zone)
    return moment.isoformat(timespec="milliseconds") if style.full_times else moment.strftime("%H:%M:%S")


def moment_text(at: float, now: float, style: Style) -> str:
    """A time; with its date if that is not today."""
    if style.full_times:
        return timestamp(at, style)
    day, today = (datetime.fromtimestamp(one, UTC).astimezone(style.zone).date() for one in (at, now))
    return timestamp(at, style) if day == today else f"{day} {timestamp(at, style)}"
