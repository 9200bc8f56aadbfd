"""The notes of one attempt: `ctx` writes its calls here, and the finished Attempt is made from them."""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import (
    Attempt,
    AttemptStarted,
    Call,
    CallProgress,
    Intent,
    ObjectRead,
    OutsideResult,
    RaisedError,
    Verdict,
    WriteRequest,
    WriteResult,
)
from kubectl_ctrl.model.objects import Obj, uid_of, version_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.questions import Question, plain_json, raised

T = TypeVar("T")


class PendingWrite:
    """A call of `ctx.write`, until it is answered: a context manager around the work, which gets the answer.

    Without an answer the call was canceled; with an error it was refused.
    """

    __slots__ = ("_answer", "_before", "_how", "_question", "_raised", "calls")

    def __init__(self, question: Question) -> None:
        self.calls: dict[str, None] = {}  # made for it, by id
        self._question = question
        self._how = ""
        self._answer: Obj | None = None
        self._raised: RaisedError | None = None

    def answered(self, answer: Obj, *, given: Obj | None = None, how: str = "") -> None:
        self._how = how or str(WriteResult.GIVEN if answer is given else WriteResult.ANSWERED)
        self._answer = answer

    def done(self) -> None:
        self._how = str(WriteResult.DONE)

    def __enter__(self) -> PendingWrite:
        # A reconciler may make several writes at the same time; the context variable is that of the current one.
        self._before = _ASKED.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _ASKED.reset(self._before)
        if error is not None and not isinstance(error, CancelledError):
            self._raised = raised(error)

    def wish(self) -> WriteRequest:
        verb, resource, key, body, options = self._question
        answer = self._answer
        return WriteRequest(
            verb=verb,
            resource=resource,
            key=key,
            body=body,
            options=options,
            how=self._how,
            uid=uid_of(answer) if answer is not None else "",
            version=version_of(answer) if answer is not None else "",
            answer=answer,
            raised=self._raised,
            calls=tuple(self.calls),
        )

    def __repr__(self) -> str:
        return f"PendingWrite({self._question.verb}, calls={len(self.calls)}, how={self._how!r})"


_ASKED: ContextVar[PendingWrite | None] = ContextVar("kubectl_ctrl_asked", default=None)


class Notes:
    """The notes of one attempt. Once closed, its `ctx` refuses calls."""

    def __init__(self, start: AttemptStarted, observers: Observers, *, seed: int) -> None:
        self.start = start
        self.seed = seed  # of the attempt's own randomness
        self._observers = observers
        self._calls: dict[str, Call] = {}  # by id; without answers until they arrive
        self._reads: list[ObjectRead] = []
        self._asked: list[PendingWrite] = []
        self._intents: list[Intent] = []
        self._skipped: list[str] = []
        self._outside: list[OutsideResult] = []
        self._times: list[float] = []
        self._open = True
        self._beside: set[asyncio.Task[object]] = set()  # tasks that work for threads of the attempt

    @property
    def attempt(self) -> str:
        return self.start.id

    def check_open(self) -> None:
        """Refuse calls after the end: tasks that a reconcile left running would not be recorded or stopped."""
        if not self._open:
            raise ControllerError(
                f"The attempt {self.attempt!r} has ended; its `ctx` cannot be used any more.",
                next_step="Await everything that a reconcile starts before it returns.",
            )

    def close(self) -> None:
        self._open = False
        for task in self._beside:
            task.cancel()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Register a task besides that of the attempt: it is cancelled at the end of the attempt."""
        self.check_open()
        task = asyncio.current_task()
        assert task is not None
        self._beside.add(task)
        try:
            yield
        finally:
            self._beside.discard(task)

    def call(self, call: Call, answered: bool) -> None:
        self._calls[call.id] = call
        if (asked := _ASKED.get()) is not None:
            asked.calls[call.id] = None
        self._observers.tell(CallProgress(attempt=self.attempt, call=call, answered=answered))

    def read(self, verb: str, resource: Resource, query: str, found: Iterable[Obj]) -> None:
        objects = tuple(found)
        versions = tuple((uid_of(obj), version_of(obj)) for obj in objects)
        self._reads.append(
            ObjectRead(
                verb=verb,
                resource=resource,
                query=query,
                found=versions,
                objects=objects,
                wishes=len(self._asked),
            )
        )

    def refused(self, verb: str, resource: Resource, query: str, error: Exception) -> None:
        """A failed read."""
        wishes = len(self._asked)
        self._reads.append(
            ObjectRead(verb=verb, resource=resource, query=query, found=(), raised=raised(error), wishes=wishes)
        )

    def asked(self, question: Question) -> PendingWrite:
        """Note a requested write, whatever its result."""
        self.check_open()
        asked = PendingWrite(question)
        self._asked.append(asked)
        return asked

    def intend(self, intent: Intent) -> None:
        self._intents.append(intent)

    async def outside(self, name: str, look: Callable[[], Awaitable[T]]) -> T:
        """See contract.Outside."""
        self.check_open()
        place = len(self._outside)
        self._outside.append(OutsideResult(name=name))  # others may ask while this one waits
        try:
            value = await look()
        except Exception as error:
            self._outside[place] = OutsideResult(name=name, raised=raised(error))
            raise
        self._outside[place] = OutsideResult(name=name, value=plain_json(name, value))
        return value

    def time(self, now: float) -> float:
        """Note a time that the reconciler got."""
        self._times.append(now)
        return now

    def skip(self, what: str) -> None:
        """Note a write that was not sent, because it would change nothing."""
        self._skipped.append(what)

    def answered_by_write(self, uid: str, version: str) -> bool:
        """A write itself got this answer; it was not read back after a lost one."""
        return any(
            call.write and call.code in (200, 201) and (call.uid, call.new_version) == (uid, version)
            for call in self._calls.values()
        )

    def finished(self, verdict: Verdict, *, took: float, echoes: int, traceback: str) -> Attempt:
        return Attempt(
            start=self.start,
            took=took,
            verdict=verdict,
            calls=tuple(self._calls.values()),
            reads=tuple(self._reads),
            intents=tuple(self._intents),
            echoes=echoes,
            skipped=tuple(self._skipped),
            wishes=tuple(asked.wish() for asked in self._asked),
            outside=tuple(self._outside),
            seed=self.seed,
            times=tuple(self._times),
            traceback=traceback,
        )

    def __repr__(self) -> str:
        state = "open" if self._open else "closed"
        return f"Notes({self.attempt}, {state}, calls={len(self._calls)}, reads={len(self._reads)})"
