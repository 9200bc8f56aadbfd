"""The registry, with real processes that are killed in the middle of it and that want the same lock."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters import lifecycle
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry, locked_file
from kubectl_ctrl.errors import ClusterError, CtrlError, UsageError
from kubectl_ctrl.value import replace
from tests.rights import unprivileged

# Ends itself at the N-th thing that it does to a file, as kill -9 would.
KILLED = """
import os, signal, sys
from pathlib import Path
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry

registry, left = Registry(Path(sys.argv[1])), int(sys.argv[3])
entry = ClusterEntry(
    name="one", provider="kwok", phase=Phase.READY, began=2.0, folder=registry.place("one"), server="new"
)

def count(event, details):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

def write(): registry.write(entry); registry.write_kubeconfig(entry, "new")
def remove(): registry.remove("one")

verb = {"write": write, "remove": remove}[sys.argv[2]]
sys.addaudithook(count)
verb()
os._exit(0)
"""

HOLDER = """
import sys
from pathlib import Path
from kubectl_ctrl.clusters.registry import Registry

with Registry(Path(sys.argv[1])).locked("one") as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""

COUNTER = """
import sys
from pathlib import Path
from kubectl_ctrl.clusters.registry import Registry

folder = Path(sys.argv[1])
for _ in range(60):
    while True:
        with Registry(folder).locked("one") as ours:
            if ours:
                number = int((folder / "number").read_text())
                (folder / "number").write_text(str(number + 1))
                break
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "clusters")


def page(registry: Registry, name: str = "one") -> ClusterEntry:
    return ClusterEntry(name=name, provider="kwok", phase=Phase.CREATING, began=1.0, folder=registry.place(name))


def python(code: str, *words: object) -> list[str]:
    return [sys.executable, "-B", "-c", code, *map(str, words)]


def test_what_was_written_is_found_as_it_was(registry: Registry) -> None:
    entry = replace(page(registry), phase=Phase.READY, server="https://127.0.0.1:1", ca="ab", notes={"a": "b"})
    registry.write(entry)
    registry.write_kubeconfig(entry, "content")
    assert registry.find("one") == entry
    assert registry.entries() == (entry,)
    assert {path.name: path.stat().st_mode & 0o777 for path in entry.folder.iterdir()} == {
        "cluster.json": 0o600,
        "kubeconfig": 0o600,
    }
    assert entry.folder.stat().st_mode & 0o777 == 0o700
    assert repr(registry) == f"Registry({str(registry.folder)!r}, 1)"


def test_what_a_later_version_wrote_beside_is_passed_over(registry: Registry) -> None:
    registry.write(page(registry))
    file = registry.place("one") / "cluster.json"
    file.write_text(file.read_text().replace("{", '{"colour": "red",', 1))
    assert registry.find("one") == page(registry)


@pytest.mark.parametrize("verb", ["write", "remove"])
def test_a_kill_at_any_step_leaves_a_page_that_is_whole_and_can_go_on(registry: Registry, verb: str) -> None:
    for step in range(60):
        registry.write(page(registry))
        registry.write_kubeconfig(page(registry), "old")
        code = subprocess.run(python(KILLED, registry.folder, verb, step), check=False).returncode
        found = registry.find("one")
        if verb == "write":
            assert found is not None
            assert found.server in ("", "new")
            assert found.kubeconfig.read_text() in ("old", "new")
        elif found is None:
            assert not registry.place("one").exists() or not any(registry.place("one").iterdir())
        registry.check("one")
        registry.remove("one")
        assert not registry.place("one").exists()
        if code == 0:
            assert step > 1
            return
    pytest.fail("It never came to its end.")


def test_a_damaged_page_is_told_and_not_guessed_at(registry: Registry) -> None:
    registry.write(page(registry))
    for text in ("", "{", "[]", '{"phase": "new"}', '{"phase": "ready"}'):
        (registry.place("one") / "cluster.json").write_text(text)
        assert (registry.find("one"), registry.entries(), registry.damaged()) == (None, (), (registry.place("one"),))
        with pytest.raises(ClusterError, match="cannot be read"):
            registry.check("one")
    registry.remove("one")
    registry.check("one")


def test_a_full_disk_leaves_the_page_as_it_was(registry: Registry, tmp_path: Path) -> None:
    registry.write(page(registry))
    code = "import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))\n"
    code += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + KILLED
    done = subprocess.run(python(code, registry.folder, "write", 999), capture_output=True, text=True, check=False)
    assert "cannot be written" in done.stderr
    assert registry.find("one") == page(registry)
    assert [path.name for path in registry.place("one").iterdir()] == ["cluster.json"]


def test_a_folder_that_cannot_be_written_is_named(registry: Registry, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with unprivileged(), pytest.raises(CtrlError, match="cannot be created"):
        registry.write(page(registry))


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "..", "a" * 41, "a\n", "é"])
def test_names_become_paths_and_are_checked(registry: Registry, name: str) -> None:
    with pytest.raises(UsageError):
        registry.find(name)
    with pytest.raises(UsageError):
        registry.remove(name)


def test_the_lock_is_of_one_and_goes_with_its_holder(registry: Registry) -> None:
    with subprocess.Popen(python(HOLDER, registry.folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"True\n"
        assert registry.holder("one") == other.pid
        with registry.locked("one") as ours:
            assert not ours
        with registry.locked("two") as ours:
            assert ours
        other.send_signal(signal.SIGKILL)
        other.wait()
        with registry.locked("one") as ours:
            assert ours
            assert registry.holder("one") == os.getpid()
    assert list(registry.folder.iterdir()) == []
    assert registry.holder("one") is None


def test_the_lock_holds_while_its_file_comes_and_goes(registry: Registry) -> None:
    registry.folder.mkdir()
    (registry.folder / "number").write_text("0")
    others = [subprocess.Popen(python(COUNTER, registry.folder)) for _ in range(3)]
    assert [other.wait(timeout=240) for other in others] == [0, 0, 0]
    assert (registry.folder / "number").read_text() == "180"


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CtrlError, match="cannot be created"), locked_file(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_who_waits_for_a_cluster_says_for_whom_and_goes_on(registry: Registry) -> None:
    notes: list[str] = []

    async def main(other: subprocess.Popen[bytes]) -> None:
        def note(line: str) -> None:
            notes.append(line)
            other.kill()

        async with lifecycle.lock(registry, "one", SystemClock(), note):
            assert registry.holder("one") == os.getpid()

    with subprocess.Popen(python(HOLDER, registry.folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        asyncio.run(main(other))
        assert notes == [f"waiting for process {other.pid}, which is changing cluster 'one'"]
