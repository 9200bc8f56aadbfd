from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.cli.runlock import only_runner
from kubectl_ctrl.errors import CtrlError, Refused


def test_a_second_runner_of_the_same_scope_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with (
        only_runner(tmp_path, cluster="c", controller="foo", scope="default"),
        pytest.raises(Refused, match=r"foo already runs here .*default.*: process \d+\."),
        only_runner(tmp_path, cluster="c", controller="foo", scope="default"),
    ):
        pass


@pytest.mark.parametrize("other", [{"cluster": "d"}, {"controller": "bar"}, {"scope": ""}])
def test_another_cluster_controller_or_scope_is_another_place(tmp_path: Path, other: dict[str, str]) -> None:
    place = {"cluster": "c", "controller": "foo", "scope": "default"}
    with only_runner(tmp_path, **place), only_runner(tmp_path, **(place | other)):
        pass


def test_the_place_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with only_runner(tmp_path, cluster="c", controller="foo", scope="default"):
            pass


def test_a_lock_file_that_was_planted_as_a_link_is_not_followed(tmp_path: Path) -> None:
    with only_runner(tmp_path, cluster="c", controller="foo", scope="default"):
        (lock,) = (tmp_path / "runners").iterdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    lock.unlink()
    lock.symlink_to(victim)
    with (
        pytest.raises(CtrlError, match="cannot be made"),
        only_runner(tmp_path, cluster="c", controller="foo", scope="default"),
    ):
        pass
    assert victim.read_text() == "precious"
