"""The recorded responses to the reads and requested changes of one attempt.

The n-th read of a query gets its n-th recorded response. A further read gets the last response again, unless an object
of that type was written since; then the response is unknown, and the replay ends there. A requested change gets the
response to the equal recorded one; a differing one gets the response of the recorded one in its place, so that the rest
can be compared too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NoReturn

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.attempt import ObjectRead, OutsideResult, WriteRequest
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.comparison import differences, question_of, same_question
from kubectl_ctrl.replay.deviations import ComparedRequest, ComparisonResult
from kubectl_ctrl.replay.recorded_errors import raised_again
from kubectl_ctrl.runtime.questions import Question
from kubectl_ctrl.value import Struct, Value, field

# A request that was recorded later yields this often to concurrent tasks, whose requests may have come first.
_TURNS = 32

_Query = tuple[str, Resource, str]


class _Queried(Struct):
    """The recorded responses to one query."""

    answers: list[ObjectRead] = field(default_factory=list)
    given: int = 0  # the number of responses returned so far
    wishes: int = 0  # the number of requested changes before the last one


class PairedRequest(Value):
    """A current request, and the position of the recorded one that it corresponds to."""

    question: Question
    recorded: int | None
    where: str


class Script:
    """The recorded responses that are left; `stop` ends the replay."""

    def __init__(self, recorded: RecordedAttempt, clock: Clock, *, cut: bool, stop: Callable[[], None]) -> None:
        self.pairs: list[PairedRequest] = []  # in the current order
        self.unknown: ComparedRequest | None = None
        self._wishes = recorded.wishes
        self._clock = clock
        self._cut = cut  # the recorded attempt was cut: later responses are unknown
        self._stop = stop
        self._left = dict.fromkeys(range(len(recorded.wishes)))  # not requested in the replay so far
        self._ended = False
        self._outside: dict[str, deque[OutsideResult]] = defaultdict(deque)
        for one in recorded.outside:
            self._outside[one.name].append(one)
        self._queries: dict[_Query, _Queried] = defaultdict(_Queried)
        for read in recorded.reads:
            self._queries[read.verb, read.resource, read.query].answers.append(read)

    # Reads.

    async def read(self, verb: str, resource: Resource, query: str, where: str) -> ObjectRead:
        """The response to the query; raises its recorded error."""
        known = self._queries[verb, resource, query]
        asked = len(self.pairs)
        if self._is_next(known, asked):
            known.given += 1
        elif not known.given or any(pair.question.resource == resource for pair in self.pairs[known.wishes :]):
            await self._end(
                ComparedRequest(fate=ComparisonResult.UNKNOWN, verb=verb, resource=resource, text=query, where=where)
            )
        known.wishes = asked
        answer = known.answers[known.given - 1]
        if answer.raised is not None:
            raise raised_again(answer.raised)
        return answer

    def _is_next(self, known: _Queried, asked: int) -> bool:
        """The next response applies: not if it was recorded after a write that the replay has not reached."""
        if known.given == len(known.answers):
            return False
        return not known.given or known.answers[known.given].wishes <= asked or asked > known.wishes

    async def outside(self, name: str, where: str) -> OutsideResult:
        """The next recorded result of `ctx.outside` with this name."""
        left = self._outside[name]
        if not left:
            await self._end(ComparedRequest(fate=ComparisonResult.UNKNOWN, verb="outside", text=name, where=where))
        recorded = left.popleft()
        if recorded.raised is None and not recorded.value:  # the attempt was cut before the result
            await self._end(None)
        return recorded

    # Writes.

    async def ask(self, question: Question, where: str) -> WriteRequest | None:
        """The corresponding recorded request with its response; None for an unrecorded one."""
        place = await self._place(question)
        if place is None and self._cut and not self._left:
            await self._end(None)
        self.pairs.append(PairedRequest(question, place, where))
        if place is None:
            return None
        wish = self._wishes[place]
        if wish.raised is not None:
            raise raised_again(wish.raised)
        if not wish.how:  # the attempt was cut before the response
            await self._end(None)
        return wish

    async def _place(self, question: Question) -> int | None:
        """The position of the corresponding recorded request, which is then used up."""
        place = self._equal(question)
        # Concurrent tasks may come in another order than recorded: let the others make their requests first.
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
        """The first remaining one of that verb and object; or of that verb and type, if it is the next of all."""
        kind = (question.verb, question.resource)
        kin = [at for at in self._left if (self._wishes[at].verb, self._wishes[at].resource) == kind]
        named = next((at for at in kin if self._wishes[at].key == question.key), None)
        return kin[0] if named is None and kin[:1] == list(self._left)[:1] and kin else named

    async def _end(self, unknown: ComparedRequest | None) -> NoReturn:
        """End the replay without a response. The end of a recording that was cut is no unknown response."""
        if not (self._cut and not self._left):
            self.unknown = self.unknown or unknown
        self._ended = True
        self._stop()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("the future has no result")

    # Results.

    def findings(self) -> tuple[ComparedRequest, ...]:
        """All current requests, and the missing recorded ones at their positions."""
        found: list[tuple[int, int, ComparedRequest]] = []  # a missing one follows the last recorded one before it
        highest = -1
        for number, pair in enumerate(self.pairs, start=1):
            finding = self._finding(pair, number, moved=pair.recorded is not None and pair.recorded < highest)
            highest = max(highest, -1 if pair.recorded is None else pair.recorded)
            found.append((highest, number, finding))
        for place in self._left:
            fate = ComparisonResult.UNREACHED if self._ended and place > highest else ComparisonResult.MISSING
            wish = self._wishes[place]
            bare = ComparedRequest(fate=fate, verb=wish.verb, resource=wish.resource, key=wish.key, number=place + 1)
            found.append((place, 0, bare))
        return tuple(finding for *_, finding in sorted(found, key=lambda one: one[:2]))

    def _finding(self, pair: PairedRequest, number: int, *, moved: bool) -> ComparedRequest:
        question, recorded = pair.question, pair.recorded
        changes = () if recorded is None else differences(question_of(self._wishes[recorded]), question)
        fate = ComparisonResult.MOVED if moved else ComparisonResult.SAME
        return ComparedRequest(
            fate=ComparisonResult.EXTRA if recorded is None else ComparisonResult.DIFFERS if changes else fate,
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
