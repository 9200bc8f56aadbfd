"""The book, with real processes that are killed in the middle of it and that want the same lock."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.lifecycle import held
from kubectl_ctrl.clusters.registry import Book, Entry, Phase, locked_file
from kubectl_ctrl.errors import ClusterError, CtrlError, UsageError
from kubectl_ctrl.value import replace
from tests.rights import unprivileged

# Ends itself at the N-th thing that it does to a file, as kill -9 would.
KILLED = """
import os, signal, sys
from pathlib import Path
from kubectl_ctrl.clusters.registry import Book, Entry, Phase

book, left = Book(Path(sys.argv[1])), int(sys.argv[3])
entry = Entry(name="one", provider="kwok", phase=Phase.READY, began=2.0, folder=book.place("one"), server="new")

def count(event, details):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

def write(): book.write(entry); book.write_kubeconfig(entry, "new")
def remove(): book.remove("one")

verb = {"write": write, "remove": remove}[sys.argv[2]]
sys.addaudithook(count)
verb()
os._exit(0)
"""

HOLDER = """
import sys
from pathlib import Path
from kubectl_ctrl.clusters.registry import Book

with Book(Path(sys.argv[1])).locked("one") as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""

COUNTER = """
import sys
from pathlib import Path
from kubectl_ctrl.clusters.registry import Book

folder = Path(sys.argv[1])
for _ in range(60):
    while True:
        with Book(folder).locked("one") as ours:
            if ours:
                number = int((folder / "number").read_text())
                (folder / "number").write_text(str(number + 1))
                break
"""


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "clusters")


def page(book: Book, name: str = "one") -> Entry:
    return Entry(name=name, provider="kwok", phase=Phase.CREATING, began=1.0, folder=book.place(name))


def python(code: str, *words: object) -> list[str]:
    return [sys.executable, "-B", "-c", code, *map(str, words)]


def test_what_was_written_is_found_as_it_was(book: Book) -> None:
    entry = replace(page(book), phase=Phase.READY, server="https://127.0.0.1:1", ca="ab", notes={"a": "b"})
    book.write(entry)
    book.write_kubeconfig(entry, "content")
    assert book.find("one") == entry
    assert book.entries() == (entry,)
    assert {path.name: path.stat().st_mode & 0o777 for path in entry.folder.iterdir()} == {
        "cluster.json": 0o600,
        "kubeconfig": 0o600,
    }
    assert entry.folder.stat().st_mode & 0o777 == 0o700
    assert repr(book) == f"Book({str(book.folder)!r}, 1)"


def test_what_a_later_version_wrote_beside_is_passed_over(book: Book) -> None:
    book.write(page(book))
    file = book.place("one") / "cluster.json"
    file.write_text(file.read_text().replace("{", '{"colour": "red",', 1))
    assert book.find("one") == page(book)


@pytest.mark.parametrize("verb", ["write", "remove"])
def test_a_kill_at_any_step_leaves_a_page_that_is_whole_and_can_go_on(book: Book, verb: str) -> None:
    for step in range(60):
        book.write(page(book))
        book.write_kubeconfig(page(book), "old")
        code = subprocess.run(python(KILLED, book.folder, verb, step), check=False).returncode
        found = book.find("one")
        if verb == "write":
            assert found is not None
            assert found.server in ("", "new")
            assert found.kubeconfig.read_text() in ("old", "new")
        elif found is None:
            assert not book.place("one").exists() or not any(book.place("one").iterdir())
        book.check("one")
        book.remove("one")
        assert not book.place("one").exists()
        if code == 0:
            assert step > 1
            return
    pytest.fail("It never came to its end.")


def test_a_damaged_page_is_told_and_not_guessed_at(book: Book) -> None:
    book.write(page(book))
    for text in ("", "{", "[]", '{"phase": "new"}', '{"phase": "ready"}'):
        (book.place("one") / "cluster.json").write_text(text)
        assert (book.find("one"), book.entries(), book.damaged()) == (None, (), (book.place("one"),))
        with pytest.raises(ClusterError, match="cannot be read"):
            book.check("one")
    book.remove("one")
    book.check("one")


def test_a_full_disk_leaves_the_page_as_it_was(book: Book, tmp_path: Path) -> None:
    book.write(page(book))
    code = "import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))\n"
    code += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + KILLED
    done = subprocess.run(python(code, book.folder, "write", 999), capture_output=True, text=True, check=False)
    assert "cannot be written" in done.stderr
    assert book.find("one") == page(book)
    assert [path.name for path in book.place("one").iterdir()] == ["cluster.json"]


def test_a_folder_that_cannot_be_written_is_named(book: Book, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with unprivileged(), pytest.raises(CtrlError, match="cannot be made"):
        book.write(page(book))


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "..", "a" * 41, "a\n", "é"])
def test_names_become_paths_and_are_checked(book: Book, name: str) -> None:
    with pytest.raises(UsageError):
        book.find(name)
    with pytest.raises(UsageError):
        book.remove(name)


def test_the_lock_is_of_one_and_goes_with_its_holder(book: Book) -> None:
    with subprocess.Popen(python(HOLDER, book.folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"True\n"
        assert book.holder("one") == other.pid
        with book.locked("one") as ours:
            assert not ours
        with book.locked("two") as ours:
            assert ours
        other.send_signal(signal.SIGKILL)
        other.wait()
        with book.locked("one") as ours:
            assert ours
            assert book.holder("one") == os.getpid()
    assert list(book.folder.iterdir()) == []
    assert book.holder("one") is None


def test_the_lock_holds_while_its_file_comes_and_goes(book: Book) -> None:
    book.folder.mkdir()
    (book.folder / "number").write_text("0")
    others = [subprocess.Popen(python(COUNTER, book.folder)) for _ in range(3)]
    assert [other.wait(timeout=240) for other in others] == [0, 0, 0]
    assert (book.folder / "number").read_text() == "180"


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CtrlError, match="cannot be made"), locked_file(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_who_waits_for_a_cluster_says_for_whom_and_goes_on(book: Book) -> None:
    notes: list[str] = []

    async def main(other: subprocess.Popen[bytes]) -> None:
        def note(line: str) -> None:
            notes.append(line)
            other.kill()

        async with held(book, "one", SystemClock(), note):
            assert book.holder("one") == os.getpid()

    with subprocess.Popen(python(HOLDER, book.folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        asyncio.run(main(other))
        assert notes == [f"waiting for process {other.pid}, which is changing cluster 'one'"]
