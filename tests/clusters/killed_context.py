"""A process of its own that has --use, and its undo, killed before each of their steps on files; see test_using_killed.

A child is forked for each step and ends there as with kill -9: nothing of Python runs any more. Then the undo is done,
and the first thing that is not as it was before is printed.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from itertools import count
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
from kubectl_ctrl.user import User
from tests.cli.ours import kubeconfig, made
from tests.objects import present

KILLED = 137
STEPS = ("open", "os.", "fcntl.", "shutil.")


def snapshot(home: Path, registry: Registry) -> dict[str, bytes]:
    """Everything below home but the registry's own; folders too."""
    found = (path for path in home.rglob("*") if registry.folder not in (path, *path.parents))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def child(home: Path, registry: Registry, step: int, *, undo: bool) -> int:
    """Do it in a process that is killed before its step of that number; its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    left, entry = count(), there(registry)

    def killing(event: str, words: tuple[object, ...]) -> None:
        ours = event.startswith("fcntl.") or any(str(home) in str(word) for word in words)
        if event.startswith(STEPS) and ours and next(left) == step:
            os._exit(KILLED)

    sys.addaudithook(killing)
    work = (
        current_context.undo(app(home).user, entry, registry)
        if undo
        else current_context.use(app(home).user, entry, registry, app(home).narrate)
    )
    asyncio.run(work)
    os._exit(0)


def app(home: Path) -> App:
    return App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(home)}))


def there(registry: Registry) -> ClusterEntry:
    return present(registry.find("ctrl"))


def main(folder: Path, text: str) -> int:
    """The number of steps before which it was killed; ends with 1 at the first thing that is wrong."""
    steps = 0
    for undo in (False, True):
        for step in count():
            home = folder / f"{undo}-{step}"
            registry = Registry(home / "state" / "clusters")
            made(registry, "ctrl", "https://127.0.0.1:4001")
            if text:
                (home / ".kube").mkdir()
                (home / ".kube" / "config").write_text(text)
            before = snapshot(home, registry)
            if undo:
                asyncio.run(current_context.use(app(home).user, there(registry), registry, app(home).narrate))
            code = child(home, registry, step, undo=undo)
            asyncio.run(current_context.undo(app(home).user, there(registry), registry))
            if there(registry).used or (after := snapshot(home, registry)) != before:
                print(f"killed before step {step} ({undo=}): {after} instead of {before}, {there(registry)}")  # noqa: T201
                return 1
            if code != KILLED:
                break
            steps += 1
    print(steps)  # noqa: T201
    return 0


if __name__ == "__main__":
    given = "# mine\n" + kubeconfig("prod", prod="https://10.0.0.1:6443") + "odd: {kept: true}\n"
    sys.exit(main(Path(sys.argv[1]), given if sys.argv[2] == "there" else ""))
