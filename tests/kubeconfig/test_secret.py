from __future__ import annotations

import copy
import pickle

import pytest

from kubectl_ctrl.kubeconfig.secret import Secret

CANARY = "c4nary-in-the-mine"


def test_it_is_shown_nowhere() -> None:
    secret = Secret(CANARY)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!s:>40}", f"{secret} {secret!r}"]
    assert not [text for text in shown if CANARY in text]
    assert secret.reveal() == CANARY


def test_it_compares_by_its_text() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert Secret("a")
    assert not Secret("")


def test_it_does_not_leave_the_process() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(CANARY))
    with pytest.raises(TypeError):
        copy.deepcopy({"token": Secret(CANARY)})
