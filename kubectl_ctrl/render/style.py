"""How lines are to look, and what depends on that alone: colours, and times as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, field


class Style(Value, kw_only=True):
    """How lines are to look; None as width means that nothing is cut."""

    width: int | None = None
    color: bool = False
    unicode: bool = True
    zone: tzinfo | None = UTC
    full_times: bool = False  # RFC 3339 with the date, for pipes
    controllers: bool = False  # name the controller: more than one runs
    namespace: str | None = None  # said once for the whole run, with the run's id; None: said in every line
    primaries: Mapping[str, Resource] = field(default_factory=dict)  # of each controller

    @property
    def arrow(self) -> str:
        return "→" if self.unicode else "->"

    @property
    def dot(self) -> str:
        """Between facts on one line."""
        return " · " if self.unicode else " | "

    @property
    def dash(self) -> str:
        """Between a verdict and what it is on."""
        return "—" if self.unicode else "-"

    @property
    def mark(self) -> str:
        """Stands where something was cut."""
        return "…" if self.unicode else "..."


def painted(text: str, color: str, style: Style) -> str:
    """The text in a colour, by its number for terminals; "" is none."""
    return f"\x1b[{color}m{text}\x1b[0m" if style.color and color and text else text


def timestamp(at: float, style: Style) -> str:
    moment = datetime.fromtimestamp(at, UTC).astimezone(style.zone)
    return moment.isoformat(timespec="milliseconds") if style.full_times else moment.strftime("%H:%M:%S")


def moment_text(at: float, now: float, style: Style) -> str:
    """A time for people: of another day with its date."""
    if style.full_times:
        return timestamp(at, style)
    day, today = (datetime.fromtimestamp(one, UTC).astimezone(style.zone).date() for one in (at, now))
    return timestamp(at, style) if day == today else f"{day} {timestamp(at, style)}"
