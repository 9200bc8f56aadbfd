from __future__ import annotations

import re
from random import Random

from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.runtime.ids import AttemptIds, attempt_context, attempt_log, current_attempt, new_run


class _NoChoice(Random):
    def getrandbits(self, k: int, /) -> int:
        return 0x7F3


def test_a_run_is_named_by_the_given_randomness() -> None:
    assert new_run(Random(1)) == new_run(Random(1))
    assert re.fullmatch(r"r[0-9a-f]{3}", new_run(Random(1)))
    assert new_run(_NoChoice()) == "r7f3"


def test_a_known_run_is_not_named_again() -> None:
    rng = Random(2)
    taken: set[str] = set()
    for _ in range(5000):  # more than three digits can name
        run = new_run(rng, taken)
        assert run not in taken
        taken.add(run)


def test_attempts_are_numbered_over_the_run() -> None:
    ids = AttemptIds("r7f3")
    assert [ids.next(), ids.next()] == ["r7f3-1", "r7f3-2"]
    assert repr(ids) == "AttemptIds(r7f3, given=2)"


def test_the_attempt_is_known_inside_its_context_alone() -> None:
    with attempt_context("r7f3-12"):
        assert current_attempt() == "r7f3-12"
    assert current_attempt() == ""


def test_the_reconcilers_log_names_controller_attempt_and_request() -> None:
    log = attempt_log("toy", "r7f3-12", Key("default", "bear"))
    assert log.logger.name == "kubectl_ctrl.controller.toy"
    assert log.extra == {"controller": "toy", "attempt": "r7f3-12", "request": "default/bear"}
