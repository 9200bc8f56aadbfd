"""What was recorded of one attempt, told again to code that asks: the answers behind the replay doors.

A read is answered by what was asked: the n-th ask of a query gets its n-th answer. An ask more than was recorded gets
the last answer again, as long as nothing of that type was written in between; otherwise nobody knows the answer, and
the replay ends there. A write is answered as the same question was; one that is asked otherwise is answered as the
question in its place was, so that what follows can be compared too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NoReturn

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.attempt import Outside, Read, WriteRequest
from kubectl_ctrl.model.record import Recorded
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.comparison import differences, question_of, same_question
from kubectl_ctrl.replay.deviations import Fate, Finding
from kubectl_ctrl.replay.recorded_errors import raised_again
from kubectl_ctrl.runtime.questions import Question
from kubectl_ctrl.value import Struct, Value, field

# So often others may run before a question that was recorded later is taken for one that is asked too early.
_TURNS = 32

_Query = tuple[str, Resource, str]


class _Queried(Struct):
    """The recorded answers to one query."""

    answers: list[Read] = field(default_factory=list)
    given: int = 0  # how many of them were
    wishes: int = 0  # asked when the last was given


class Paired(Value):
    """One question of today, and the recorded one that it stands for: its place, None for none."""

    question: Question
    recorded: int | None
    where: str


class Script:
    """The answers, as far as they are used up; `stop` ends the replay."""

    def __init__(self, recorded: Recorded, clock: Clock, *, cut: bool, stop: Callable[[], None]) -> None:
        self.pairs: list[Paired] = []  # in the order in which today's code asks
        self.unknown: Finding | None = None
        self._wishes = recorded.wishes
        self._clock = clock
        self._cut = cut  # the recorded attempt was: what comes after its last question is not known
        self._stop = stop
        self._left = dict.fromkeys(range(len(recorded.wishes)))  # not asked again so far
        self._ended = False
        self._outside: dict[str, deque[Outside]] = defaultdict(deque)
        for one in recorded.outside:
            self._outside[one.name].append(one)
        self._queries: dict[_Query, _Queried] = defaultdict(_Queried)
        for read in recorded.reads:
            self._queries[read.verb, read.resource, read.query].answers.append(read)

    # Reads.

    async def read(self, verb: str, resource: Resource, query: str, where: str) -> Read:
        """What the query found; raises what it raised."""
        known = self._queries[verb, resource, query]
        asked = len(self.pairs)
        if self._is_next(known, asked):
            known.given += 1
        elif not known.given or self._wrote(resource, known.wishes):
            await self._end(Finding(fate=Fate.UNKNOWN, verb=verb, resource=resource, text=query, where=where))
        known.wishes = asked
        answer = known.answers[known.given - 1]
        if answer.raised is not None:
            raise raised_again(answer.raised)
        return answer

    def _is_next(self, known: _Queried, asked: int) -> bool:
        """Whether the next answer is due: it is not when it was given after a write that is still to come."""
        if known.given == len(known.answers):
            return False
        return not known.given or known.answers[known.given].wishes <= asked or asked > known.wishes

    def _wrote(self, resource: Resource, since: int) -> bool:
        return any(pair.question.resource == resource for pair in self.pairs[since:])

    async def outside(self, name: str, where: str) -> Outside:
        """The next answer from outside that was recorded under that name."""
        left = self._outside[name]
        if not left:
            await self._end(Finding(fate=Fate.UNKNOWN, verb="outside", text=name, where=where))
        told = left.popleft()
        if told.raised is None and not told.value:  # it was cut before it was answered
            await self._end(None)
        return told

    # Writes.

    async def ask(self, question: Question, where: str) -> WriteRequest | None:
        """The recorded question that this one stands for, with its answer; None for one that was not recorded."""
        place = await self._place(question)
        if place is None and self._cut and not self._left:
            await self._end(None)
        self.pairs.append(Paired(question, place, where))
        if place is None:
            return None
        wish = self._wishes[place]
        if wish.raised is not None:
            raise raised_again(wish.raised)
        if not wish.how:  # it was cut before it was answered
            await self._end(None)
        return wish

    async def _place(self, question: Question) -> int | None:
        """Takes its place in the recording."""
        place = self._equal(question)
        # What runs at the same time may come in another order than it did: let the others ask first.
        for _ in range(_TURNS):
            if place is None or place == next(iter(self._left)):
                break
            await self._clock.sleep(0)
            place = self._equal(question)
        if place is None:
            place = self._like(question)
        if place is not None:
            del self._left[place]
        return place

    def _equal(self, question: Question) -> int | None:
        return next((at for at in self._left if same_question(question_of(self._wishes[at]), question)), None)

    def _like(self, question: Question) -> int | None:
        """The first one left of that verb and object; or of that verb and type, when it is the next of all."""
        kin = [at for at in self._left if _is_kin(self._wishes[at], question)]
        named = next((at for at in kin if self._wishes[at].key == question.key), None)
        return kin[0] if named is None and kin[:1] == list(self._left)[:1] and kin else named

    async def _end(self, unknown: Finding | None) -> NoReturn:
        """Nothing can be answered any more. A recording that was cut simply ends."""
        if not (self._cut and not self._left):
            self.unknown = self.unknown or unknown
        self._ended = True
        self._stop()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody answers")

    # What came of it.

    def findings(self) -> tuple[Finding, ...]:
        """Every question of today, and those that were recorded and not asked, at their places."""
        found: list[tuple[int, int, Finding]] = []  # what is missing stands after the last before it that was asked
        highest = -1
        for number, pair in enumerate(self.pairs, start=1):
            finding = self._finding(pair, number, moved=pair.recorded is not None and pair.recorded < highest)
            highest = max(highest, -1 if pair.recorded is None else pair.recorded)
            found.append((highest, number, finding))
        for place in self._left:
            fate = Fate.UNREACHED if self._ended and place > highest else Fate.MISSING
            wish = self._wishes[place]
            bare = Finding(fate=fate, verb=wish.verb, resource=wish.resource, key=wish.key, number=place + 1)
            found.append((place, 0, bare))
        return tuple(finding for *_, finding in sorted(found, key=lambda one: one[:2]))

    def _finding(self, pair: Paired, number: int, *, moved: bool) -> Finding:
        question, recorded = pair.question, pair.recorded
        changes = () if recorded is None else differences(question_of(self._wishes[recorded]), question)
        fate = Fate.MOVED if moved else Fate.SAME
        return Finding(
            fate=Fate.EXTRA if recorded is None else Fate.DIFFERS if changes else fate,
            verb=question.verb,
            resource=question.resource,
            key=question.key,
            number=0 if recorded is None else recorded + 1,
            today=number,
            where=pair.where,
            changes=changes,
        )

    def __repr__(self) -> str:
        return f"Script(asked={len(self.pairs)}, left={len(self._left)})"


def _is_kin(wish: WriteRequest, question: Question) -> bool:
    return (wish.verb, wish.resource) == (question.verb, question.resource)
