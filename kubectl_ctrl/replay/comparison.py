"""Compares the requests and results of the current code with the recorded ones. Pure.

Not compared:

| place                                                       | why                                             |
|-------------------------------------------------------------|-------------------------------------------------|
| metadata.resourceVersion, generation, creationTimestamp,    | set by the server                               |
| managedFields, uid, selfLink                                |                                                 |
| a time under lastTransitionTime, lastUpdateTime,            | may come from a clock that is not `ctx.now`; a  |
| lastProbeTime, lastHeartbeatTime, lastScheduleTime,         | time that is set or removed is compared         |
| lastSuccessfulTime, observedAt, startTime, completionTime   |                                                 |
| addresses of Python objects in messages (0x7f...)           | differ in every process                         |
| the line of the reconciler at which an error was raised     | moves with every edit                           |
| the delay of a retry                                        | set by the queue, and random                    |
| values that a recording hides                               | both sides are hidden before they are compared  |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from kubectl_ctrl.model.attempt import Intent, Outcome, Verdict, WriteRequest
from kubectl_ctrl.model.diffs import ABSENT, Difference, diff
from kubectl_ctrl.model.masking import MASK, masked
from kubectl_ctrl.replay.deviations import ComparedRequest, ComparisonResult
from kubectl_ctrl.runtime.questions import Question
from kubectl_ctrl.value import replace

_SET_BY_SERVER = frozenset(
    f"metadata.{field}"
    for field in ("resourceVersion", "generation", "creationTimestamp", "managedFields", "uid", "selfLink")
)
_TIMES = frozenset(
    {
        "lastTransitionTime",
        "lastUpdateTime",
        "lastProbeTime",
        "lastHeartbeatTime",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "observedAt",
        "startTime",
        "completionTime",
    }
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
_NEAR = 1e-6  # seconds: the precision of times as text


def question_of(wish: WriteRequest) -> Question:
    return Question(wish.verb, wish.resource, wish.key, wish.body, wish.options)


def differences(recorded: Question, today: Question) -> tuple[Difference, ...]:
    """The differences between two requests of one verb and one type."""
    found = [
        Difference(path=name, old=old, new=new)
        for name, old, new in (
            ("namespace", recorded.key.namespace, today.key.namespace),
            ("name", recorded.key.name, today.key.name),
        )
        if old != new
    ]
    # The pinned UID and version are those of an object that was read. An invented response has others.
    found += diff(dict(recorded.options), dict(today.options), ignore=frozenset())
    before, after = (_comparable(question) for question in (recorded, today))
    found += diff(before, after, ignore=_SET_BY_SERVER)
    return tuple(one for one in found if not _hides(one.old, one.new))


def same_question(recorded: Question, today: Question) -> bool:
    if (recorded.verb, recorded.resource) != (today.verb, today.resource):
        return False
    return recorded == today or not differences(recorded, today)


def _comparable(question: Question) -> dict[str, Any]:
    if not question.body:
        return {}
    body = json.loads(question.body)
    if question.verb == "status":
        body = {"status": body}
    if not isinstance(body, dict):
        return {"body": body}
    settled: dict[str, Any] = _settled(masked(body, question.resource)[0])
    return settled


def _settled(value: Any) -> Any:
    """With every time that is not compared replaced by the same text."""
    if isinstance(value, dict):
        return {key: "(a time)" if key in _TIMES and _is_time(part) else _settled(part) for key, part in value.items()}
    return [_settled(part) for part in value] if isinstance(value, list) else value


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


def outcomes(recorded: Verdict, today: Verdict) -> tuple[Difference, ...]:
    """The differences between two verdicts."""
    if recorded.error_id == today.error_id == "AttemptTimeout":
        return ()
    pairs: list[tuple[str, Any, Any]] = [
        ("outcome", recorded.outcome.value, today.outcome.value),
        ("error", recorded.error_id or ABSENT, today.error_id or ABSENT),
    ]
    if not recorded.outcome is today.outcome is Outcome.DONE:  # its only message is the runtime's, of a deleted object
        pairs.append(("message", _steady(recorded.message) or ABSENT, _steady(today.message) or ABSENT))
    timed = recorded.outcome is today.outcome and today.outcome in (Outcome.AFTER, Outcome.WAITING, Outcome.TERMINAL)
    if timed and abs(recorded.delay - today.delay) > _NEAR:
        pairs.append(("after", recorded.delay, today.delay))
    found = [Difference(path=path, old=old, new=new) for path, old, new in pairs if old != new]
    return tuple(one for one in found if not _hides(one.old, one.new))


def _hides(recorded: object, today: object) -> bool:
    """The recorded text is the current one with hidden parts: values of Secrets are hidden in every text."""
    if not (isinstance(recorded, str) and isinstance(today, str) and MASK in recorded):
        return False
    return re.fullmatch(".+".join(map(re.escape, recorded.split(MASK))), today, re.DOTALL) is not None


def _steady(text: str) -> str:
    return _ADDRESS.sub("0x...", text)


def events(recorded: Sequence[Intent], today: Sequence[Intent]) -> Iterator[ComparedRequest]:
    """The events of both in order; in a differing stretch, the first is compared with the first, and so on."""
    messages = {one.message: _steady(one.message) for one in (*recorded, *today)}
    # A message with hidden parts is equal to the current message that it matches.
    for one in recorded:
        known = next((other.message for other in today if _hides(one.message, other.message)), None)
        if known is not None:
            messages[one.message] = messages[known]
    before, after = ([replace(one, message=messages[one.message]) for one in side] for side in (recorded, today))
    for tag, start, stop, begin, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for place in range(max(stop - start, end - begin)):
            old = recorded[start + place] if start + place < stop else None
            new = today[begin + place] if begin + place < end else None
            yield _event(old, new, start + place + 1, begin + place + 1, same=tag == "equal")


def _event(old: Intent | None, new: Intent | None, number: int, place: int, *, same: bool) -> ComparedRequest:
    shown = new or old
    assert shown is not None
    bare = ComparedRequest(fate=ComparisonResult.SAME, verb="event", key=shown.about, text=shown.reason)
    if old is None:
        return replace(bare, fate=ComparisonResult.EXTRA, today=place)
    if new is None:
        return replace(bare, fate=ComparisonResult.MISSING, number=number)
    bare = replace(bare, number=number, today=place)
    if same:
        return bare
    before, after = (
        {"type": one.type, "reason": one.reason, "message": one.message, "about": str(one.about)} for one in (old, new)
    )
    return replace(bare, fate=ComparisonResult.DIFFERS, changes=diff(before, after, ignore=frozenset()))
