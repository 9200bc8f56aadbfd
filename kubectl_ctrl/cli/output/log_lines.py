"""Prints the package's log records on stderr while a verb runs, as text or JSON."""

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
# The user sees these lines at once, so their times have no date.
_TIME_ONLY = Style(zone=None)
# The attributes of every record; all others are fields given with `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The `extra` fields of a record, in order."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class _Text(logging.Formatter):
    def __init__(self, hide: Hide, style: Style) -> None:
        super().__init__()
        self._hide = hide
        self._text_style = style

    def format(self, record: logging.LogRecord) -> str:
        message = self._hide(record.getMessage())
        fields = {name: self._hide(str(value)) for name, value in fields_of(record).items()}
        # Only fields that the message does not already contain.
        shown = {name: value for name, value in fields.items() if name != "action" and value not in message}
        beside = " ".join(f"{name}={value}" for name, value in shown.items())
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = f"{timestamp(record.created, self._text_style)} {level}{message}" + (f" ({beside})" if beside else "")
        # Continuation lines are indented: a line break in a message must not look like the start of a record.
        line = text.replace("\n", "\n    ")
        return verbatim(line + (f"\n{self._hide(self.formatException(record.exc_info))}" if record.exc_info else ""))


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
        """The value with secrets masked in each of its strings."""
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
    """The error that ends the process, as a JSON log line; `output` is that of a failed program behind it."""
    beside = {"tried": error.tried, "next": error.next_step, "output": output}
    fields = {"action": "failed", "error": error.id, "exitCode": error.exit_code}
    record = {"name": __name__, "levelno": logging.ERROR, "levelname": "ERROR", "msg": error.message}
    return _Json().format(
        logging.makeLogRecord(record | fields | {name: text for name, text in beside.items() if text})
    )


@contextmanager
def logging_to(
    write: Callable[[str], object], *, form: str, verbosity: int, hide: Hide = masked_text, style: Style = _TIME_ONLY
) -> Iterator[None]:
    """For the block: pass log records of the package, and warnings of libraries, to `write`, one text each.

    `hide` masks secrets, because errors quote values. `style` gives the format of times.
    """
    handler = _Handler(write)
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
    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self.format(record))
        except Exception:  # noqa: BLE001  # as in all handlers: a record that cannot be formatted must not raise
            self.handleError(record)


def _attempt(record: logging.LogRecord) -> bool:
    """Adds the id of the attempt, also to records of libraries: a handler runs in the context of the caller."""
    if attempt := current_attempt():
        record.__dict__.setdefault("attempt", attempt)
    return True


class _Tracebacks(logging.Filter):
    """Replaces tracebacks by their error, except with -v 6."""

    def __init__(self, verbosity: int) -> None:
        super().__init__()
        self._wanted = verbosity >= _DEBUG_FROM

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and not self._wanted:
            error = record.exc_info[1]
            record.error = f"{type(error).__name__}: {error}"
            record.exc_info = None
        return True
