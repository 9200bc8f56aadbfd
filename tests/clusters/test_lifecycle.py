"""Making and taking away above any provider: what the registry says before and after, and what a failure leaves.

That it all holds with clusters that answer is for e2e/contract_clusters.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubectl_ctrl.clusters import lifecycle
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, Note
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.errors import ClusterError, CtrlError, Refused, TimedOut
from kubectl_ctrl.value import replace
from tests.clusters.made_up import KUBECONFIG, MadeUp, machine

HURRIED = ClusterSpec(wait=0.01)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


def written(registry: Registry, phase: Phase) -> ClusterEntry:
    entry = ClusterEntry(name="one", provider="made-up", phase=phase, began=1.0, folder=registry.place("one"))
    entry = replace(entry, context="made-up", used={"file": "mine"})
    registry.write(entry)
    registry.write_kubeconfig(entry, KUBECONFIG)
    return entry


def up(
    registry: Registry, provider: MadeUp, spec: ClusterSpec = HURRIED, *others: MadeUp
) -> tuple[CtrlError, list[str]]:
    """Nothing of it answers, so it ends with an error; and the notes."""
    notes: list[str] = []
    everything = {each.name: each for each in (provider, *others)}
    here = machine(registry.folder.parent)
    making = lifecycle.ensure(registry, everything, provider.name, "one", spec, machine=here, note=notes.append)
    with pytest.raises(CtrlError) as caught:
        asyncio.run(making)
    return caught.value, notes


def down(registry: Registry, *providers: MadeUp) -> bool:
    known = {each.name: each for each in providers}
    return asyncio.run(lifecycle.delete(registry, known, "one", note=lambda line: None))


def test_the_page_is_there_before_anything_is_made(registry: Registry) -> None:
    class Looking(MadeUp):
        async def _do(self, what: str) -> None:
            found = registry.find("one")
            self.did.append(f"{what}, {found.phase if found else None}")

    provider = Looking()
    error, _ = up(registry, provider)
    assert isinstance(error, TimedOut)
    assert error.next_step == "use --keep-on-failure to inspect it, or wait longer: --wait 10m"
    assert provider.did == ["create, creating", "delete creating, creating"]
    assert list(registry.folder.iterdir()) == []


def test_a_failure_leaves_nothing_and_keeps_what_the_program_said(registry: Registry) -> None:
    provider = MadeUp(fails={"create"})
    error, _ = up(registry, provider)
    assert isinstance(error, ClusterError)
    assert (error.message, error.next_step, error.output) == (
        "The create failed.",
        "try it again",
        "all that it said",
    )
    assert provider.did == ["create", "delete creating"]
    assert registry.entries() == ()


def test_a_failure_that_cannot_be_cleared_away_says_both_and_is_found_again(registry: Registry) -> None:
    provider = MadeUp(fails={"create", "delete"})
    error, _ = up(registry, provider)
    assert error.message == "The create failed."
    assert error.tried == "deleting it failed: The delete creating failed."
    assert error.next_step == "delete the rest of it: kubectl ctrl down one"
    assert [entry.phase for entry in registry.entries()] == [Phase.CREATING]
    provider.fails = set()
    assert down(registry, provider)


def test_what_is_to_be_kept_stays_and_the_error_says_where(registry: Registry) -> None:
    provider = MadeUp(fails={"create"})
    error, _ = up(registry, provider, ClusterSpec(keep_on_failure=True))
    assert provider.did == ["create"]
    assert str(registry.place("one")) in error.next_step
    assert "kubectl ctrl down one" in error.next_step
    assert [entry.phase for entry in registry.entries()] == [Phase.CREATING]


@pytest.mark.real_loop
async def test_one_that_is_cancelled_leaves_nothing(registry: Registry) -> None:
    provider = MadeUp(hangs={"create"})
    provider.reached = asyncio.Event()
    everything, here = {"made-up": provider}, machine(registry.folder.parent)
    making = lifecycle.ensure(registry, everything, "made-up", "one", HURRIED, machine=here, note=lambda line: None)
    task = asyncio.create_task(making)
    await provider.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.did == ["create", "delete creating"]
    assert registry.entries() == ()


@pytest.mark.parametrize(
    ("phase", "text"), [(Phase.CREATING, "not completely created"), (Phase.DELETING, "not completely deleted")]
)
def test_what_was_not_finished_is_taken_away_and_made_anew(registry: Registry, phase: Phase, text: str) -> None:
    written(registry, phase)
    provider = MadeUp()
    _, notes = up(registry, provider)
    assert provider.did == ["delete deleting", "create", "delete creating"]
    assert text in notes[0]


def test_one_that_is_gone_is_recreated_with_its_changes_to_the_kubeconfig_known(registry: Registry) -> None:
    written(registry, Phase.READY)
    provider = MadeUp(now=ClusterState.ABSENT, fails={"create"})
    _, notes = up(registry, provider, ClusterSpec(keep_on_failure=True))
    assert provider.did == ["delete deleting", "create"]
    assert "is gone" in notes[0]
    assert [(entry.phase, entry.used) for entry in registry.entries()] == [(Phase.CREATING, {"file": "mine"})]


@pytest.mark.parametrize(
    "provider", [MadeUp(now=ClusterState.ABSENT, fails={"create"}), MadeUp(now=ClusterState.ABSENT, owner="x")]
)
def test_changes_for_one_that_cannot_be_recreated_are_still_known(registry: Registry, provider: MadeUp) -> None:
    """Or the user's kubeconfig would lead to nothing for good."""
    written(registry, Phase.READY)
    up(registry, provider)
    [entry] = registry.entries()
    assert entry.phase is not Phase.READY
    assert entry.used == {"file": "mine"}


def test_what_is_in_one_that_is_incomplete_is_not_given_up_unasked(registry: Registry) -> None:
    before = written(registry, Phase.READY)
    provider = MadeUp(now=ClusterState.PARTIAL)
    error, _ = up(registry, provider)
    assert isinstance(error, ClusterError)
    assert error.message == (
        "Cluster 'one' is incomplete, parts of it are missing, and recreating it would delete everything in it."
    )
    assert error.next_step == "recreate it anyway: kubectl ctrl down one, then kubectl ctrl up --name one"
    before.kubeconfig.unlink()
    provider.now = ClusterState.RUNNING
    assert "its kubeconfig is missing" in up(registry, provider)[0].message
    assert (provider.did, registry.entries()) == ([], (before,))


def test_one_that_is_stopped_is_started_and_never_made_anew(registry: Registry) -> None:
    before = written(registry, Phase.READY)
    provider = MadeUp(now=ClusterState.STOPPED, fails={"start"})
    error, _ = up(registry, provider)
    assert (provider.did, error.message) == (["start"], "The start failed.")
    assert registry.entries() == (before,)


def test_one_that_does_not_come_back_in_time_is_told_where_to_look(registry: Registry) -> None:
    class Late(MadeUp):
        async def start(self, entry: ClusterEntry, note: Note) -> None:
            raise TimedOut("It is late.")

    before = written(registry, Phase.READY)
    error, _ = up(registry, Late(now=ClusterState.STOPPED))
    assert error.next_step == (
        "check its logs: kubectl ctrl cluster logs one; or try again: kubectl ctrl up --name one"
    )
    assert registry.entries() == (before,)


def test_one_that_runs_and_does_not_answer_stays_and_is_told(registry: Registry) -> None:
    before = written(registry, Phase.READY)
    provider = MadeUp()
    error, _ = up(registry, provider)
    assert isinstance(error, TimedOut)
    assert "Cluster 'one' is not ready after 10ms: " in error.message
    assert "cluster logs one" in error.next_step
    assert (provider.did, registry.entries()) == ([], (before,))


def test_a_name_that_is_somebody_elses_is_refused_before_anything_is_written(registry: Registry) -> None:
    provider = MadeUp(owner="a cluster of that name is there, made by somebody else")
    error, _ = up(registry, provider)
    assert isinstance(error, Refused)
    assert provider.did == []
    assert not registry.place("one").exists()


def test_one_of_another_provider_is_refused(registry: Registry) -> None:
    written(registry, Phase.READY)
    error, _ = up(registry, MadeUp(name="other"))
    assert isinstance(error, Refused)
    assert "created with made-up, not other" in error.message


def test_a_page_that_cannot_be_read_is_taken_away_where_nobody_knows_a_cluster_of_that_name(registry: Registry) -> None:
    written(registry, Phase.READY)
    (registry.place("one") / "cluster.json").write_text("{")
    provider = MadeUp(owner="a cluster of that name is there")
    error, _ = up(registry, provider)
    assert "cannot be read" in error.message
    assert error.next_step.endswith("kubectl ctrl down one")
    with pytest.raises(ClusterError, match="cannot be read") as caught:
        down(registry, provider)
    assert caught.value.tried == "a cluster of that name is there"
    assert caught.value.next_step == (
        f"if it is the same cluster, delete it with made-up; then remove '{registry.place('one')}'"
    )
    assert down(registry, MadeUp())
    assert registry.entries() == ()


def test_it_is_marked_before_it_is_taken_away_and_stays_marked_where_that_fails(registry: Registry) -> None:
    written(registry, Phase.READY)
    provider = MadeUp(fails={"delete"})
    with pytest.raises(ClusterError, match="The delete deleting failed"):
        down(registry, provider)
    assert [entry.phase for entry in registry.entries()] == [Phase.DELETING]
    provider.fails = set()
    assert down(registry, provider)


def test_nothing_is_taken_away_that_is_not_in_the_book(registry: Registry) -> None:
    provider = MadeUp()
    assert not down(registry, provider)
    assert provider.did == []


def test_of_a_folder_without_a_page_each_provider_takes_away_what_it_knows(registry: Registry) -> None:
    """Which of them has left something in it is known to themselves alone."""
    registry.place("one").mkdir(parents=True)  # a kill before the first page, or the page is lost
    one, other = MadeUp(), MadeUp(name="other")
    assert down(registry, one, other)
    assert [one.did, other.did] == [["delete deleting"]] * 2
    up(registry, one, HURRIED, other)
    assert one.did[1:] == ["delete deleting", "create", "delete creating"]
    assert other.did[1:] == ["delete deleting"]


def test_what_a_provider_cannot_take_away_keeps_a_folder_without_a_page(registry: Registry) -> None:
    registry.place("one").mkdir(parents=True)
    error, _ = up(registry, MadeUp(), HURRIED, MadeUp(name="other", fails={"delete"}))
    assert error.message == "The delete deleting failed."
    assert registry.place("one").is_dir()
