"""What keeps `--use`, or its undo, from touching a kubeconfig: it is left as it is, and the user is told what helps."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import ConfigError, Refused, UsageError
from kubectl_ctrl.kubeconfig import lock
from kubectl_ctrl.user import User
from tests.cli.ours import kubeconfig, made
from tests.cli.theirs import PROD, beside, undo, use
from tests.objects import present


@pytest.mark.parametrize(
    "text",
    [
        "- a",
        "contexts: [a]",
        "users: 3",
        "clusters: {a: 1}",
        "contexts: [{name: kind-ctrl, context: kind-ctrl}]",
        "clusters: [{name: [kind-ctrl]}]",
    ],
)
def test_a_file_that_is_no_kubeconfig_any_more_is_left_as_it_is(
    app: App, mine: Path, entry: ClusterEntry, text: str
) -> None:
    used = use(app, entry)
    mine.write_text(text)
    with pytest.raises(ConfigError, match="is not a kubeconfig any more"):
        undo(app, used)
    assert mine.read_text() == text


def test_a_file_that_cannot_be_read_any_more_is_said_to_be_so(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    mine.unlink()
    mine.mkdir()
    with pytest.raises(ConfigError, match="cannot be read: Is a directory") as caught:
        undo(app, used)
    assert "move it away; then repeat this" in caught.value.next_step


def test_a_file_that_became_a_circle_of_links_is_left_as_it_is(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    mine.unlink()
    mine.symlink_to(mine)
    with pytest.raises(ConfigError, match="Too many levels of symbolic links") as caught:
        undo(app, used)
    assert caught.value.next_step == "make it readable and writable, or move it away; then repeat this"
    assert mine.is_symlink()


def test_what_is_no_plain_file_is_neither_read_nor_replaced(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    mine.unlink()
    os.mkfifo(mine)
    with pytest.raises(ConfigError, match="it is not a regular file"):
        undo(app, used)
    assert mine.is_fifo()
    app.user = User({**app.user.environ, "KUBECONFIG": "/dev/null"})
    with pytest.raises(ConfigError, match="'/dev/null' cannot be changed: it is not a regular file"):
        current_context.can_use(app.user)


def test_a_file_that_holds_itself_cannot_be_written_anew(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    text = mine.read_text() + "circle: &a [*a]\n"
    mine.write_text(text)
    with pytest.raises(ConfigError, match="is nested too deeply"):
        undo(app, used)
    assert mine.read_text() == text


def test_an_entry_of_the_user_under_our_name_is_never_hidden(app: App, mine: Path, entry: ClusterEntry) -> None:
    mine.write_text(kubeconfig("prod", prod=PROD, **{"kind-ctrl": "https://127.0.0.1:7777"}))
    text = mine.read_text()
    with pytest.raises(Refused, match="another cluster 'kind-ctrl' already") as caught:
        use(app, entry)
    assert caught.value.next_step.startswith("give the cluster another --name, or omit --use; or, ")
    assert caught.value.next_step.endswith(": kubectl config delete-cluster kind-ctrl")
    assert mine.read_text() == text
    assert beside(mine) == ["config"]
    assert undo(app, present(app.registry.find("ctrl"))) == "your kubeconfig was not changed"
    assert mine.read_text() == text


@pytest.mark.parametrize("what", ["file", "folder", "link", "name", "pipe", "broken", "ours"])
def test_what_cannot_be_used_is_refused_before_anything_is_made(
    app: App, mine: Path, entry: ClusterEntry, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: type[Exception] = ConfigError
    if what == "file":
        mine.chmod(0o444)
    elif what == "folder":
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != mine.parent)  # root may write anywhere
    elif what == "link":
        mine.unlink()
        mine.symlink_to("gone/config")
    elif what == "name":
        mine.with_name("other").hardlink_to(mine)
    elif what == "pipe":
        mine.unlink()
        os.mkfifo(mine)
    elif what == "broken":
        mine.write_text("a: [")
    else:
        app.user, told = User({**app.user.environ, "KUBECONFIG": str(entry.kubeconfig)}), UsageError
    with pytest.raises(told) as caught:
        current_context.can_use(app.user)
    if what in ("file", "folder", "link", "name", "pipe"):
        assert "cannot be changed" in str(caught.value)
        first = "omit --use" if what in ("name", "pipe") else "make it writable, or omit --use"
        step = f'{first}: eval "$(kubectl ctrl cluster env)" changes one shell alone'
        assert caught.value.next_step == step  # type: ignore[attr-defined]


@pytest.mark.parametrize("plural", ["clusters", "users", "contexts"])
def test_an_entry_that_would_be_hidden_is_found_before_there_is_a_cluster(app: App, mine: Path, plural: str) -> None:
    content = yaml.safe_load(kubeconfig("prod", prod=PROD))
    content[plural].append({**content[plural][0], "name": "kind-new"})
    mine.write_text(yaml.safe_dump(content))
    with pytest.raises(Refused, match=f"another {plural[:-1]} 'kind-new' already"):
        asyncio.run(current_context.could_use(app.user, "new", "kind-new"))
    asyncio.run(current_context.could_use(app.user, "new", "kwok-new"))
    assert beside(mine) == ["config"]


def test_what_we_put_there_ourselves_keeps_nobody_from_using_it_again(
    app: App, mine: Path, entry: ClusterEntry
) -> None:
    asyncio.run(current_context.could_use(app.user, "ctrl", "kind-ctrl"))
    use(app, entry)
    asyncio.run(current_context.could_use(app.user, "ctrl", "kind-ctrl"))
    # The same entries, put there by hand.
    other = made(app.registry, "dev", "https://127.0.0.1:4002")
    mine.write_bytes(other.kubeconfig.read_bytes())
    asyncio.run(current_context.could_use(app.user, "dev", "kind-dev"))
    mine.write_text(kubeconfig(**{"kind-dev": "https://127.0.0.1:7777"}))
    with pytest.raises(Refused):
        asyncio.run(current_context.could_use(app.user, "dev", "kind-dev"))


@pytest.mark.parametrize("what", ["broken", "locked"])
def test_what_keeps_it_from_being_undone_is_told_with_what_helps_there(
    app: App, mine: Path, entry: ClusterEntry, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = use(app, entry)
    if what == "broken":
        mine.write_text("a: [")
    else:
        monkeypatch.setattr(lock, "_TIMEOUT", 0.0)
        lock.lock_of(mine).touch()
    with pytest.raises(ConfigError) as caught:
        asyncio.run(current_context.undo(app.user, entry, app.registry))
    advice = {
        "broken": f"mend {mine}, or move it away; then repeat this",
        "locked": f"if none of them runs: rm -f {mine}.lock",
    }
    assert caught.value.next_step == advice[what]
