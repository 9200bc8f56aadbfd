"""Making and taking away above any provider: what the book says before and after, and what a failure leaves.

That it all holds with clusters that answer is for e2e/contract_clusters.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubectl_ctrl.clusters.lifecycle import raised, removed
from kubectl_ctrl.clusters.provider import Life, Note, Wish
from kubectl_ctrl.clusters.registry import Book, Entry, Phase
from kubectl_ctrl.errors import ClusterError, CtrlError, Refused, TimedOut
from kubectl_ctrl.value import replace
from tests.clusters.made_up import KUBECONFIG, MadeUp, machine

HURRIED = Wish(wait=0.01)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "clusters")


def written(book: Book, phase: Phase) -> Entry:
    entry = Entry(name="one", provider="made-up", phase=phase, began=1.0, folder=book.place("one"))
    entry = replace(entry, context="made-up", used={"file": "mine"})
    book.write(entry)
    book.write_kubeconfig(entry, KUBECONFIG)
    return entry


def up(book: Book, provider: MadeUp, wish: Wish = HURRIED, *others: MadeUp) -> tuple[CtrlError, list[str]]:
    """Nothing of it answers, so it ends with an error; and the notes."""
    notes: list[str] = []
    everything = {each.name: each for each in (provider, *others)}
    here = machine(book.folder.parent)
    making = raised(book, everything, provider.name, "one", wish, machine=here, note=notes.append)
    with pytest.raises(CtrlError) as caught:
        asyncio.run(making)
    return caught.value, notes


def down(book: Book, *providers: MadeUp) -> bool:
    return asyncio.run(removed(book, {each.name: each for each in providers}, "one", note=lambda line: None))


def test_the_page_is_there_before_anything_is_made(book: Book) -> None:
    class Looking(MadeUp):
        async def _do(self, what: str) -> None:
            found = book.find("one")
            self.did.append(f"{what}, {found.phase if found else None}")

    provider = Looking()
    error, _ = up(book, provider)
    assert isinstance(error, TimedOut)
    assert error.next_step == "use --keep-on-failure to inspect it, or wait longer: --wait 10m"
    assert provider.did == ["create, creating", "delete creating, creating"]
    assert list(book.folder.iterdir()) == []


def test_a_failure_leaves_nothing_and_keeps_what_the_program_said(book: Book) -> None:
    provider = MadeUp(fails={"create"})
    error, _ = up(book, provider)
    assert isinstance(error, ClusterError)
    assert (error.message, error.next_step, error.output) == (
        "The create failed.",
        "try it again",
        "all that it said",
    )
    assert provider.did == ["create", "delete creating"]
    assert book.entries() == ()


def test_a_failure_that_cannot_be_cleared_away_says_both_and_is_found_again(book: Book) -> None:
    provider = MadeUp(fails={"create", "delete"})
    error, _ = up(book, provider)
    assert error.message == "The create failed."
    assert error.tried == "deleting it failed: The delete creating failed."
    assert error.next_step == "delete the rest of it: kubectl ctrl down one"
    assert [entry.phase for entry in book.entries()] == [Phase.CREATING]
    provider.fails = set()
    assert down(book, provider)


def test_what_is_to_be_kept_stays_and_the_error_says_where(book: Book) -> None:
    provider = MadeUp(fails={"create"})
    error, _ = up(book, provider, Wish(keep_on_failure=True))
    assert provider.did == ["create"]
    assert str(book.place("one")) in error.next_step
    assert "kubectl ctrl down one" in error.next_step
    assert [entry.phase for entry in book.entries()] == [Phase.CREATING]


def test_one_that_is_cancelled_leaves_nothing(book: Book) -> None:
    provider = MadeUp(hangs={"create"})

    async def main() -> None:
        provider.reached = asyncio.Event()
        everything, here = {"made-up": provider}, machine(book.folder.parent)
        making = raised(book, everything, "made-up", "one", HURRIED, machine=here, note=lambda line: None)
        task = asyncio.create_task(making)
        await provider.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert provider.did == ["create", "delete creating"]
    assert book.entries() == ()


@pytest.mark.parametrize(
    ("phase", "text"), [(Phase.CREATING, "not completely made"), (Phase.DELETING, "not completely taken")]
)
def test_what_was_not_finished_is_taken_away_and_made_anew(book: Book, phase: Phase, text: str) -> None:
    written(book, phase)
    provider = MadeUp()
    _, notes = up(book, provider)
    assert provider.did == ["delete deleting", "create", "delete creating"]
    assert text in notes[0]


def test_one_that_is_gone_is_made_anew_with_its_changes_to_the_kubeconfig_known(book: Book) -> None:
    written(book, Phase.READY)
    provider = MadeUp(now=Life.ABSENT, fails={"create"})
    _, notes = up(book, provider, Wish(keep_on_failure=True))
    assert provider.did == ["delete deleting", "create"]
    assert "is gone" in notes[0]
    assert [(entry.phase, entry.used) for entry in book.entries()] == [(Phase.CREATING, {"file": "mine"})]


@pytest.mark.parametrize("provider", [MadeUp(now=Life.ABSENT, fails={"create"}), MadeUp(now=Life.ABSENT, owner="x")])
def test_what_was_changed_for_one_that_cannot_be_made_anew_is_still_known(book: Book, provider: MadeUp) -> None:
    """Or the user's kubeconfig would lead to nothing for good."""
    written(book, Phase.READY)
    up(book, provider)
    [entry] = book.entries()
    assert entry.phase is not Phase.READY
    assert entry.used == {"file": "mine"}


def test_what_is_in_one_that_is_incomplete_is_not_given_up_unasked(book: Book) -> None:
    before = written(book, Phase.READY)
    provider = MadeUp(now=Life.PARTIAL)
    error, _ = up(book, provider)
    assert isinstance(error, ClusterError)
    assert error.message == (
        "Cluster 'one' is incomplete, parts of it are missing, and recreating it would delete everything in it."
    )
    assert error.next_step == "recreate it anyway: kubectl ctrl down one, then kubectl ctrl up --name one"
    before.kubeconfig.unlink()
    provider.now = Life.RUNNING
    assert "its kubeconfig is missing" in up(book, provider)[0].message
    assert (provider.did, book.entries()) == ([], (before,))


def test_one_that_is_stopped_is_started_and_never_made_anew(book: Book) -> None:
    before = written(book, Phase.READY)
    provider = MadeUp(now=Life.STOPPED, fails={"start"})
    error, _ = up(book, provider)
    assert (provider.did, error.message) == (["start"], "The start failed.")
    assert book.entries() == (before,)


def test_one_that_does_not_come_back_in_time_is_told_where_to_look(book: Book) -> None:
    class Late(MadeUp):
        async def start(self, entry: Entry, note: Note) -> None:
            raise TimedOut("It is late.")

    before = written(book, Phase.READY)
    error, _ = up(book, Late(now=Life.STOPPED))
    assert error.next_step == (
        "check its logs: kubectl ctrl cluster logs one; or try again: kubectl ctrl up --name one"
    )
    assert book.entries() == (before,)


def test_one_that_runs_and_does_not_answer_stays_and_is_told(book: Book) -> None:
    before = written(book, Phase.READY)
    provider = MadeUp()
    error, _ = up(book, provider)
    assert isinstance(error, TimedOut)
    assert "Cluster 'one' is not ready after 0.01 s: " in error.message
    assert "cluster logs one" in error.next_step
    assert (provider.did, book.entries()) == ([], (before,))


def test_a_name_that_is_somebody_elses_is_refused_before_anything_is_written(book: Book) -> None:
    provider = MadeUp(owner="a cluster of that name is there, made by somebody else")
    error, _ = up(book, provider)
    assert isinstance(error, Refused)
    assert provider.did == []
    assert not book.place("one").exists()


def test_one_of_another_provider_is_refused(book: Book) -> None:
    written(book, Phase.READY)
    error, _ = up(book, MadeUp(name="other"))
    assert isinstance(error, Refused)
    assert "created with made-up, not other" in error.message


def test_a_page_that_cannot_be_read_is_taken_away_where_nobody_knows_a_cluster_of_that_name(book: Book) -> None:
    written(book, Phase.READY)
    (book.place("one") / "cluster.json").write_text("{")
    provider = MadeUp(owner="a cluster of that name is there")
    error, _ = up(book, provider)
    assert "cannot be read" in error.message
    assert error.next_step.endswith("kubectl ctrl down one")
    with pytest.raises(ClusterError, match="cannot be read") as caught:
        down(book, provider)
    assert caught.value.tried == "a cluster of that name is there"
    assert caught.value.next_step == (
        f"if it is the same cluster, delete it with made-up; then remove '{book.place('one')}'"
    )
    assert down(book, MadeUp())
    assert book.entries() == ()


def test_it_is_marked_before_it_is_taken_away_and_stays_marked_where_that_fails(book: Book) -> None:
    written(book, Phase.READY)
    provider = MadeUp(fails={"delete"})
    with pytest.raises(ClusterError, match="The delete deleting failed"):
        down(book, provider)
    assert [entry.phase for entry in book.entries()] == [Phase.DELETING]
    provider.fails = set()
    assert down(book, provider)


def test_nothing_is_taken_away_that_is_not_in_the_book(book: Book) -> None:
    provider = MadeUp()
    assert not down(book, provider)
    assert provider.did == []


def test_of_a_folder_without_a_page_each_provider_takes_away_what_it_knows(book: Book) -> None:
    """Which of them has left something in it is known to themselves alone."""
    book.place("one").mkdir(parents=True)  # a kill before the first page, or the page is lost
    one, other = MadeUp(), MadeUp(name="other")
    assert down(book, one, other)
    assert [one.did, other.did] == [["delete deleting"]] * 2
    up(book, one, HURRIED, other)
    assert one.did[1:] == ["delete deleting", "create", "delete creating"]
    assert other.did[1:] == ["delete deleting"]


def test_what_a_provider_cannot_take_away_keeps_a_folder_without_a_page(book: Book) -> None:
    book.place("one").mkdir(parents=True)
    error, _ = up(book, MadeUp(), HURRIED, MadeUp(name="other", fails={"delete"}))
    assert error.message == "The delete deleting failed."
    assert book.place("one").is_dir()
