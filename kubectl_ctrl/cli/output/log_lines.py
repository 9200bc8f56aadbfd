"""Where the package's log lines go while a verb runs: to stderr, as text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.masking import masked_text
from kubectl_ctrl.render.style import Style, timestamp
from kubectl_ctrl.runtime.ids import current_attempt
from kubectl_ctrl.text import verbatim

Hide = Callable[[str], str]

_DEBUG_FROM = 6
# What is told while somebody waits for it needs no date.
_AT_ONCE = Style(zone=None)
# What every record has; the rest are the fields that a caller put beside its message.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What stands beside the message, in the order it was given."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class _Text(logging.Formatter):
    def __init__(self, hide: Hide, style: Style) -> None:
        super().__init__()
        self._hide = hide
        self._looks = style

    def format(self, record: logging.LogRecord) -> str:
        message = self._hide(record.getMessage())
        fields = {name: self._hide(str(value)) for name, value in fields_of(record).items()}
        beside = " ".join(f"{name}={value}" for name, value in fields.items() if _adds(name, value, message))
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = f"{timestamp(record.created, self._looks)} {level}{message}" + (f" ({beside})" if beside else "")
        # A stack has lines of its own; set in, so that nothing in a message passes for a line of ours.
        line = text.replace("\n", "\n    ")
        return verbatim(line + (f"\n{self._hide(self.formatException(record.exc_info))}" if record.exc_info else ""))


def _adds(name: str, value: str, message: str) -> bool:
    """Whether a field tells a person more than the message does."""
    return name != "action" and value not in message


class _Json(logging.Formatter):
    def __init__(self, hide: Hide = masked_text) -> None:
        super().__init__()
        self._hide = hide

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(self._hidden(line), default=str)

    def _hidden(self, value: Any) -> Any:
        """The same, every text of it looked through."""
        match value:
            case str():
                return self._hide(value)
            case dict():
                return {name: self._hidden(part) for name, part in value.items()}
            case list() | tuple():
                return [self._hidden(part) for part in value]
            case None | bool() | int() | float():
                return value
        return self._hide(str(value))


def error_line(error: CtrlError, *, output: str) -> str:
    """What ends the process, as a log line of machines; `output` is what a program behind it said."""
    beside = {"tried": error.tried, "next": error.next_step, "output": output}
    fields = {"action": "failed", "error": error.id, "exitCode": error.exit_code}
    record = {"name": __name__, "levelno": logging.ERROR, "levelname": "ERROR", "msg": error.message}
    return _Json().format(
        logging.makeLogRecord(record | fields | {name: text for name, text in beside.items() if text})
    )


@contextmanager
def logging_to(
    tell: Callable[[str], object], *, form: str, verbosity: int, hide: Hide = masked_text, style: Style = _AT_ONCE
) -> Iterator[None]:
    """For the block: the package's log lines, and warnings of the libraries under it, go to `tell`, a text each.

    `hide` takes out of every text what must not be seen: errors quote what they are about. Times are as `style` has
    them.
    """
    handler = _Handler(tell)
    handler.setFormatter(_Json(hide) if form == "json" else _Text(hide, style))
    handler.addFilter(_Tracebacks(verbosity))
    handler.addFilter(_attempt)
    ours, root = logging.getLogger("kubectl_ctrl"), logging.getLogger()
    ours.setLevel(logging.DEBUG if verbosity >= _DEBUG_FROM else logging.INFO)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._tell(self.format(record))
        except Exception:  # noqa: BLE001  # as every handler: a record that cannot be formatted ends nothing
            self.handleError(record)


def _attempt(record: logging.LogRecord) -> bool:
    """Puts the attempt beside the lines of libraries too; a handler runs in the context of who writes the line."""
    if attempt := current_attempt():
        record.__dict__.setdefault("attempt", attempt)
    return True


class _Tracebacks(logging.Filter):
    """Takes tracebacks out unless they were asked for; the error itself stays, on the line."""

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self._wanted = verbosity >= _DEBUG_FROM

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and not self._wanted:
            error = record.exc_info[1]
            record.error = f"{type(error).__name__}: {error}"
            record.exc_info = None
        return True
