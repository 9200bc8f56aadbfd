"""A kubeconfig of a user, and `--use` and its undo on it, with what must hold after each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.kubeconfig import files
from tests.objects import present

PROD = "https://10.0.0.1:6443"
SERVER = "https://127.0.0.1:4001"

# With all that a rewrite could lose: a comment, what only others know, values that look like something else.
MINE = f"""\
# my clusters
apiVersion: v1
kind: Config
preferences: {{colors: true}}
clusters:
- name: prod
  cluster:
    server: {PROD}   # never by mistake
    extensions:
    - {{name: of-somebody, extension: {{version: 1.20, since: 2026-01-01, on: yes}}}}
contexts:
- {{name: prod, context: {{cluster: prod, user: me}}}}
- {{name: staging, context: {{cluster: prod, user: me, namespace: "null"}}}}
users:
- {{name: me, user: {{token: "12e5"}}}}
current-context: prod
of-nobody-we-know: {{kept: "0x10"}}
"""


def use(app: App, entry: ClusterEntry) -> ClusterEntry:
    found = asyncio.run(current_context.use(app.user, entry, app.registry, app.narrate))
    assert found == app.registry.find(entry.name)
    return found


def undo(app: App, entry: ClusterEntry) -> str:
    text = asyncio.run(current_context.undo(app.user, entry, app.registry))
    assert present(app.registry.find(entry.name)).used == {}
    assert sorted(path.name for path in entry.folder.iterdir()) == ["cluster.json", "kubeconfig"]
    return text


def read(file: Path) -> dict[str, Any]:
    """As kubectl takes it: a date is text there."""
    content: dict[str, Any] = files.parse(file.read_bytes(), "it")
    return content


def names(file: Path, plural: str = "contexts") -> list[str]:
    return [one["name"] for one in read(file)[plural]]


def beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())
