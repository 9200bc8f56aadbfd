"""Faults of requests, as scripts: which requests they match, their effect, and how often."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.value import Struct, Value


class IncomingRequest(Value, kw_only=True):
    """An incoming request; `ask` is None where no resource type is involved (discovery, schemas, health)."""

    request: HttpRequest
    ask: ParsedRequest | None

    @property
    def verb(self) -> str:
        return self.ask.verb if self.ask is not None else self.request.method.lower()


class Match(Value, kw_only=True):
    """Which requests match; an empty field matches all. Several verbs are separated by blanks."""

    verb: str = ""  # get list watch create update patch delete deletecollection
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str | None = None  # None: any; "": the object itself
    path: str = ""  # a pattern with * over the whole path
    user_agent: str = ""  # a pattern
    when: Callable[[HttpRequest], bool] | None = None

    def __call__(self, seen: IncomingRequest) -> bool:
        if self.verb and seen.verb not in self.verb.split():
            return False
        if self.path and not fnmatchcase(seen.request.path, self.path):
            return False
        if self.user_agent and not fnmatchcase(_user_agent(seen.request), self.user_agent):
            return False
        if not self._fits(seen.ask):
            return False
        return self.when is None or self.when(seen.request)

    def _fits(self, ask: ParsedRequest | None) -> bool:
        if ask is None:
            return not (self.plural or self.namespace or self.name or self.subresource)
        return (
            self.plural in ("", ask.resource.plural)
            and self.namespace in ("", ask.namespace)
            and self.name in ("", ask.name)
            and self.subresource in (None, ask.subresource)
        )


ANY = Match()
WRITES = Match(verb="create update patch delete")


def _user_agent(request: HttpRequest) -> str:
    return next((value for name, value in request.headers.items() if name.lower() == "user-agent"), "")


class Fault(Struct, kw_only=True):
    """One script. `left` counts down to 0; None never does. `stop()` ends it early."""

    match: Match
    left: int | None
    after_commit: bool = False  # the server executes the request, and then this happens to the answer
    response: HttpResponse | None = None  # the answer instead
    lost: bool = False  # the connection breaks without an answer
    hangs: bool = False  # no answer ever comes
    delay_before: float = 0.0
    delay_after: float = 0.0
    hits: int = 0

    def stop(self) -> None:
        self.left = 0

    def take(self, seen: IncomingRequest) -> bool:
        if self.left == 0 or not self.match(seen):
            return False
        self.hits += 1
        if self.left is not None:
            self.left -= 1
        return True


class Faults:
    """The active scripts, oldest first; the first match is used for a request."""

    def __init__(self) -> None:
        self._scripts: list[Fault] = []

    def fail(
        self,
        match: Match,
        code: int,
        *,
        reason: str = "",
        message: str = "",
        retry_after: int | None = None,
        times: int | None = 1,
        after_commit: bool = False,
    ) -> Fault:
        """Answer with an error status; with `after_commit` a write took effect all the same."""
        refusal = answers.failure(code, reason=reason, message=message, retry_after=retry_after)
        return self._add(Fault(match=match, left=times, after_commit=after_commit, response=refusal.response()))

    def answer(self, match: Match, response: HttpResponse, *, times: int | None = 1) -> Fault:
        """Answer with exactly this: HTML of a captive portal, an object from elsewhere."""
        return self._add(Fault(match=match, left=times, response=response))

    def lose(self, match: Match, *, times: int | None = 1, after_commit: bool = True) -> Fault:
        """Break the connection; the write took effect, or with `after_commit=False` did not."""
        return self._add(Fault(match=match, left=times, after_commit=after_commit, lost=True))

    def hang(self, match: Match, *, times: int | None = 1, after_commit: bool = False) -> Fault:
        """Never answer; the client's deadline ends it."""
        return self._add(Fault(match=match, left=times, after_commit=after_commit, hangs=True))

    def delay(self, match: Match, *, before: float = 0.0, after: float = 0.0, times: int | None = 1) -> Fault:
        """Let the request take `before` seconds until it is done, and the answer `after` seconds until it arrives."""
        return self._add(Fault(match=match, left=times, delay_before=before, delay_after=after))

    def clear(self) -> None:
        self._scripts.clear()

    def take(self, seen: IncomingRequest) -> Fault | None:
        """The script for this request; counts this use."""
        self._scripts = [script for script in self._scripts if script.left != 0]
        return next((script for script in self._scripts if script.take(seen)), None)

    def _add(self, fault: Fault) -> Fault:
        self._scripts.append(fault)
        return fault

    def __repr__(self) -> str:
        return f"Faults(in force={sum(script.left != 0 for script in self._scripts)})"
