"""Hiding the values of Secrets wherever they occur: in messages and in other objects.

A reconciler may put a password into an error or a ConfigMap, and a server quotes rejected values. So the recorder
passes each Secret of a run to `Secrecy.learn` first, and everything that it records through `Secrecy`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

from kubectl_ctrl.model.attempt import Attempt, ObjectRead, OutsideResult, RaisedError, WriteRequest
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.masking import (
    LAST_APPLIED,
    MASK,
    MASKED,
    is_secret,
    is_secret_key,
    masked,
    masked_difference,
    masked_text,
    masked_value,
    may_hold_secrets,
)
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Changes, RecordedAttempt, RecordedCall, RecordedCause
from kubectl_ctrl.value import replace

T = TypeVar("T")

# A shorter value may be any word; hiding it would make messages unreadable.
_SHORTEST = 6
_SHORTEST_LINE = 16
# A value that looks like a name (`postgres`) is hidden only in messages, because in other objects it probably is a
# name.
_NAME = re.compile(r"[a-z]+([-.][a-z]+)*")
_LONGEST_NAME = 15

_MOST_KNOWN = 2_000
_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion", "kind", "apiVersion"})


class Secrecy:
    """The secret values of one run."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, None] = OrderedDict()
        self._patterns: tuple[re.Pattern[str], re.Pattern[str]] | None = None

    def learn(self, secrets: Iterable[Obj | list[Obj]]) -> None:
        """Hide the values of these Secrets, or JSON patches of Secrets, from now on."""
        for value in (text for secret in secrets for one in _values(secret) for text in _encodings(one)):
            if value not in self._values:
                self._patterns = None
            self._values[value] = None
            self._values.move_to_end(value)
            if len(self._values) > _MOST_KNOWN:
                self._values.popitem(last=False)

    @property
    def knows_any(self) -> bool:
        return bool(self._values)

    def text(self, text: str) -> str:
        """A message without secrets."""
        shown = masked_text(text)
        return self._compiled[0].sub(MASK, shown) if text and self._values else shown

    def kept(self, obj: Obj) -> Obj:
        """An object without secrets; marked if anything was hidden."""
        shown, hidden = masked(obj)
        found = self._searched(shown) if self._values else shown
        if not hidden and found is shown:
            return shown
        meta = found.get("metadata")
        return {**found, "metadata": {**meta, MASKED: True}} if isinstance(meta, dict) else found

    def attempt(self, recorded: RecordedAttempt) -> RecordedAttempt:
        """An attempt without secrets."""
        verdict = recorded.verdict
        changed: dict[str, Any] = {
            "causes": _mapped(self._why, recorded.causes),
            "calls": _mapped(self.made, recorded.calls),
            "reads": _mapped(self._read, recorded.reads),
            "wishes": _mapped(self._wish, recorded.wishes),
            "intents": tuple(replace(one, message=self.text(one.message)) for one in recorded.intents),
            "skipped": _mapped(self.text, recorded.skipped),
            "outside": _mapped(self._outside, recorded.outside),
        }
        # Most of the many attempts have nothing to hide, and are not copied.
        changed = {name: values for name, values in changed.items() if values is not getattr(recorded, name)}
        if verdict is not None and verdict.message:
            changed["verdict"] = replace(verdict, message=self.text(verdict.message))
        if recorded.traceback:
            changed["traceback"] = self.text(recorded.traceback)
        return replace(recorded, **changed) if changed else recorded

    def made(self, made: RecordedCall) -> RecordedCall:
        changes, call = self._changes(made.changes), made.call
        if call.error:
            call = replace(call, error=self.text(call.error))
        return made if call is made.call and changes is made.changes else RecordedCall(call=call, changes=changes)

    def early(self, made: RecordedCall) -> RecordedCall:
        """A call of a running attempt: the Secrets that it has read are not known yet, so all values are hidden."""
        call, changes = made.call, made.changes
        error = f"{call.code or ''} {call.reason}".strip() if call.error else ""
        shown = tuple(Difference(path=one.path, old=_covered(one.old), new=_covered(one.new)) for one in changes.shown)
        return RecordedCall(call=replace(call, error=error), changes=replace(changes, shown=shown))

    def _why(self, why: RecordedCause) -> RecordedCause:
        changes = self._changes(why.changes)
        if changes is why.changes and not why.detail:
            return why
        return replace(why, changes=changes, detail=self.text(why.detail))

    def _changes(self, changes: Changes) -> Changes:
        shown = _mapped(self.difference, changes.shown)
        return changes if shown is changes.shown else replace(changes, shown=shown)

    def difference(self, one: Difference) -> Difference:
        """A difference without secrets."""
        shown = masked_difference(one)
        if not self._values:
            return shown
        old, new = self._searched(shown.old), self._searched(shown.new)
        return shown if old is shown.old and new is shown.new else Difference(path=shown.path, old=old, new=new)

    def _read(self, read: ObjectRead) -> ObjectRead:
        query = self.text(read.query) if self._values else read.query
        if read.raised is None:
            return read if query == read.query else replace(read, query=query)
        return replace(read, query=query, raised=self._raised(read.raised))

    def _wish(self, wish: WriteRequest) -> WriteRequest:
        body, raised = self._body(wish), wish.raised and self._raised(wish.raised)
        return wish if body is wish.body and raised is wish.raised else replace(wish, body=body, raised=raised)

    def _body(self, wish: WriteRequest) -> str:
        if not (wish.body and (self._values or is_secret(wish.resource) or may_hold_secrets(wish.body.encode()))):
            return wish.body
        body = json.loads(wish.body)
        shown, hidden = masked(body, wish.resource)
        found = self._searched(shown) if self._values else shown
        return json.dumps(found, separators=(",", ":")) if hidden or found is not body else wish.body

    def _outside(self, one: OutsideResult) -> OutsideResult:
        raised = one.raised and self._raised(one.raised)
        if not (one.value and (self._values or is_secret_key(one.name) or may_hold_secrets(one.value.encode()))):
            return one if raised is one.raised else replace(one, raised=raised)
        value = json.loads(one.value)
        shown = masked_value(value, one.name)
        found = self._searched(shown) if self._values else shown
        return one if found is value else replace(one, value=json.dumps(found, separators=(",", ":")))

    def _raised(self, raised: RaisedError) -> RaisedError:
        causes = tuple(replace(cause, message=self.text(cause.message)) for cause in raised.causes)
        return replace(raised, message=self.text(raised.message), causes=causes)

    def _searched(self, value: Any) -> Any:
        """The value with known secrets hidden in its strings; the same object if there are none."""
        if isinstance(value, dict):
            walked = {key: part if key in _IDENTITY else self._searched(part) for key, part in value.items()}
            return walked if any(part is not value[key] for key, part in walked.items()) else value
        if isinstance(value, list):
            items = [self._searched(part) for part in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if not isinstance(value, str):
            return value
        shown = self._compiled[1].sub(MASK, value)
        return value if shown == value else shown

    @property
    def _compiled(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """The patterns for messages, and for objects."""
        if self._patterns is None:
            strong = [text for text in self._values if len(text) > _LONGEST_NAME or not _NAME.fullmatch(text)]
            self._patterns = _pattern(self._values), _pattern(strong)
        return self._patterns

    def __repr__(self) -> str:
        return f"Secrecy(values={len(self._values)})"


def secrets_in(attempt: Attempt) -> Iterator[Obj | list[Obj]]:
    """The Secrets of an attempt: those that it has read, written, or been triggered by."""
    for read in attempt.reads:
        if is_secret(read.resource):
            yield from read.objects
    for wish in attempt.wishes:
        if is_secret(wish.resource):
            if wish.answer is not None:
                yield wish.answer
            if wish.body:
                yield json.loads(wish.body)
    for call in attempt.calls:
        if is_secret(call.resource):
            yield from (one for one in (call.before, call.answer, call.sent) if one is not None)
    for cause in attempt.start.causes:
        if is_secret(cause.resource):
            yield from (one for one in (cause.old, cause.new) if one is not None)


def _covered(side: Any) -> Any:
    return side if side is ABSENT or isinstance(side, bool | int | float) else HIDDEN


def _mapped(convert: Callable[[T], T], values: tuple[T, ...]) -> tuple[T, ...]:
    """The converted values; the same tuple if none has changed."""
    converted = tuple(map(convert, values))
    return values if all(new is old for new, old in zip(converted, values, strict=True)) else converted


def _pattern(values: Iterable[str]) -> re.Pattern[str]:
    # The longest first, because one may be the beginning of another.
    return re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True))) or r"(?!)")


def _values(secret: Any) -> Iterator[str]:
    """All values of a Secret, or of a JSON patch of one, encoded and decoded. An invalid body may be anything."""
    if isinstance(secret, list):
        for step in secret:
            yield from _below(step.get("value") if isinstance(step, dict) else step)
        return
    if not isinstance(secret, dict):
        yield from _below(secret)
        return
    for text in _below(secret.get("data")):
        yield text
        yield from _decoded(text)
    yield from _below(secret.get("stringData"))
    meta = secret.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    copy = annotations.get(LAST_APPLIED) if isinstance(annotations, dict) else None
    try:
        yield from _values(json.loads(copy) if isinstance(copy, str) else copy)
    except ValueError:
        yield from _below(copy)


def _below(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from _decoded(value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _below(part)
    elif isinstance(value, list):
        for part in value:
            yield from _below(part)


def _decoded(text: str) -> Iterator[str]:
    try:
        yield base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return


def _encodings(value: str) -> Iterator[str]:
    """The value in the encodings in which messages may have it; also each of its lines."""
    if len(value) < _SHORTEST:
        return
    yield value
    yield base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    spellings = (json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, safe=""), value.strip())
    yield from (one for one in spellings if len(one) >= _SHORTEST)
    yield from (line for line in value.splitlines() if len(line) >= _SHORTEST_LINE)
