"""A second fault strikes foo while it recovers from the first: the plays and ends are those of single faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, product
from random import Random

import pytest

from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from tests.controllers.test_faults import Play, Trouble, played, undisturbed


@dataclass(frozen=True)
class Fault:
    """One way in which a call goes wrong."""

    name: str
    arm: Callable[[Stage, Match], object]
    kills: bool = False


FAULTS = (
    Fault("lost answer", lambda stage, match: stage.server.faults.lose(match)),
    Fault("reset", lambda stage, match: stage.server.faults.lose(match, after_commit=False)),
    Fault("500", lambda stage, match: stage.server.faults.fail(match, 500)),
    Fault("no answer", lambda stage, match: stage.server.faults.hang(match)),
    Fault("dies before", lambda stage, match: stage.server.faults.hang(match), kills=True),
    Fault("dies after", lambda stage, match: stage.server.faults.hang(match, after_commit=True), kills=True),
)
# The second strikes at one of the calls that follow the first; whatever recovers from one fault takes no more.
_GAPS = (1, 2, 3)
_CASES = 3


@dataclass
class Pair(Trouble):
    """The second fault strikes `gap` calls after the first."""

    first: Fault = FAULTS[0]
    second: Fault = FAULTS[0]
    gap: int = 1
    since: int = 0  # calls after the first fault
    struck_twice: bool = False

    def __post_init__(self) -> None:
        self.kills = self.first.kills or self.second.kills

    def arm_on(self, play: Play) -> None:
        def first(_: HttpRequest) -> bool:
            self.calls += 1
            if self.calls == self.at and self.first.kills:
                self.struck.set()
            return self.calls == self.at

        def second(_: HttpRequest) -> bool:
            self.since += self.calls >= self.at
            if self.since != self.gap or self.struck_twice:
                return False
            self.struck_twice = True
            if self.second.kills:
                self.struck.set()
            return True

        # The script of the first is asked first, and keeps the call that it strikes from the other.
        self.first.arm(play.stage, Match(user_agent="kubectl-ctrl/*", when=first))
        self.second.arm(play.stage, Match(user_agent="kubectl-ctrl/*", when=second))


KINDS = [(one, two) for one, two in product(FAULTS, FAULTS) if not (one.kills and two.kills)]


@pytest.mark.parametrize(("first", "second"), KINDS, ids=[f"{one.name}, {two.name}" for one, two in KINDS])
def test_a_second_fault_in_the_recovery_from_the_first_changes_no_end(first: Fault, second: Fault) -> None:
    calls, expected = undisturbed("foo")
    places = list(product(range(1, calls + 1), _GAPS))
    Random(f"{first.name}, {second.name}").shuffle(places)  # the same places in every run
    struck = 0
    for at, gap in islice(places, _CASES):
        pair = Pair(at=at, first=first, second=second, gap=gap)
        states, _ = played("foo", pair)
        assert states == expected, f"{first.name} at call {at} of {calls}, {second.name} {gap} calls later"
        struck += pair.struck_twice
    assert struck, "a second fault finds a call"
