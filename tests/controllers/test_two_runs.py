"""Two processes that run one controller."""

from __future__ import annotations

import pytest

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Running
from tests.controllers.test_faults import Play, State, Trouble, undisturbed


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("late", [0.0, 1.0])
def test_f36_two_that_know_nothing_of_each_other_end_as_one_does(name: str, late: float) -> None:
    """Neither has a lease, so both write; at rest neither does."""

    async def main() -> list[State]:
        play = Play(name, Trouble())
        await play.stage.clock.sleep(late)
        twin = Running(play.stage.manager(play.spec))
        states = await play.acts()
        await twin.stopped()
        return states

    assert run_virtual(main) == undisturbed(name)[1]
