"""`--use` and its undo on kubeconfigs of every kind, without a cluster: the file is all that it is about."""

from __future__ import annotations

import asyncio
import os
import resource
import stat
import sys
from itertools import permutations
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig import lock as filelock
from kubectl_ctrl.user import User
from kubectl_ctrl.value import replace
from tests.cli.ours import kubeconfig, made
from tests.cli.theirs import MINE, PROD, SERVER, beside, names, read, undo, use
from tests.objects import present


def test_s10_the_file_is_byte_for_byte_as_before_where_nobody_wrote_since(
    app: App, mine: Path, entry: ClusterEntry
) -> None:
    used = use(app, entry)
    assert read(mine)["current-context"] == "kind-ctrl"
    assert [names(mine, one) for one in ("contexts", "clusters", "users")] == [
        ["prod", "staging", "kind-ctrl"],
        ["prod", "kind-ctrl"],
        ["me", "kind-ctrl"],
    ]
    assert stat.S_IMODE(mine.stat().st_mode) == 0o640
    assert stat.S_IMODE((entry.folder / "kubeconfig.before").stat().st_mode) == 0o600
    assert beside(mine) == ["config"]
    assert "is readable by other users" in app.err.getvalue()  # type: ignore[attr-defined]
    assert undo(app, used) == f"{mine} is unchanged: current-context prod"
    assert mine.read_text() == MINE
    assert stat.S_IMODE(mine.stat().st_mode) == 0o640
    assert beside(mine) == ["config"]


def test_s10_what_it_does_not_understand_is_kept(app: App, mine: Path, entry: ClusterEntry) -> None:
    before = read(mine)
    use(app, entry)
    after = read(mine)
    for plural in ("clusters", "contexts", "users"):
        assert after.pop(plural)[:-1] == before.pop(plural), plural
    assert after == before | {"current-context": "kind-ctrl"}
    assert "token: '12e5'" in mine.read_text(), "a reader of YAML 1.2 would take it for a number"


def test_s10_of_a_file_that_others_wrote_since_only_ours_goes_out(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    others = read(mine)
    others["contexts"][2]["context"]["namespace"] = "apps"
    others["contexts"].append({"name": "new", "context": {"cluster": "prod", "user": "me"}})
    mine.write_text(yaml.safe_dump(others))
    assert undo(app, used) == f"kind-ctrl is removed from {mine}; current-context is prod again"
    assert [names(mine, one) for one in ("contexts", "clusters", "users")] == [
        ["prod", "staging", "new"],
        ["prod"],
        ["me"],
    ]
    assert read(mine)["of-nobody-we-know"] == {"kept": "0x10"}


def test_s10_a_user_of_theirs_with_whom_they_tried_our_context_stays(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    others = read(mine)
    others["contexts"][2]["context"]["user"] = "me"
    mine.write_text(yaml.safe_dump(others))
    undo(app, used)
    assert (names(mine), names(mine, "clusters"), names(mine, "users")) == (["prod", "staging"], ["prod"], ["me"])


def test_s10_a_context_that_the_user_chose_since_stays(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    mine.write_text(mine.read_text().replace("current-context: kind-ctrl", "current-context: staging"))
    assert undo(app, used) == f"kind-ctrl is removed from {mine}; current-context is still staging"
    assert read(mine)["current-context"] == "staging"


def test_a_previous_context_that_is_gone_leaves_none(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    content = read(mine)
    content["contexts"] = content["contexts"][1:]
    mine.write_text(yaml.safe_dump(content))
    assert undo(app, used).endswith("; there is no current-context now")
    assert "current-context" not in read(mine)


def test_of_a_cluster_that_was_made_anew_the_old_entries_go_out(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry).used
    (entry.folder / "kubeconfig.before").unlink()
    anew = replace(made(app.registry, "ctrl", "https://127.0.0.1:4009"), used=used)
    again = use(app, anew)
    assert read(mine)["clusters"][-1]["cluster"]["server"] == "https://127.0.0.1:4009"
    assert names(mine) == ["prod", "staging", "kind-ctrl"]
    assert undo(app, again).endswith("current-context prod")
    assert names(mine) == ["prod", "staging"]


def test_one_that_could_not_be_made_anew_is_taken_out_by_the_name_that_it_had(
    app: App, mine: Path, entry: ClusterEntry
) -> None:
    used = use(app, entry)
    (entry.folder / "kubeconfig.before").unlink()
    assert undo(app, replace(used, phase=Phase.CREATING, context="")) == (
        f"kind-ctrl is removed from {mine}; current-context is prod again"
    )


def test_a_context_that_is_left_without_its_cluster_is_told(app: App, mine: Path, entry: ClusterEntry) -> None:
    """As after `kubectl config rename-context kind-ctrl play`."""
    used = use(app, entry)
    content = read(mine)
    content["contexts"][-1]["name"] = content["current-context"] = "play"
    mine.write_text(yaml.safe_dump(content))
    assert undo(app, used) == (
        f"kind-ctrl is removed from {mine}; current-context is still play, whose cluster no longer exists"
    )
    assert names(mine) == ["prod", "staging", "play"]


def test_a_cluster_that_took_the_name_since_is_not_touched(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    mine.write_text(mine.read_text().replace(SERVER, "https://127.0.0.1:5005"))
    text = mine.read_text()
    assert undo(app, used) == f"{mine} is unchanged: kind-ctrl is the name of another cluster now"
    assert mine.read_text() == text


def test_two_clusters_one_over_the_other_give_back_what_was_there_first(
    app: App, mine: Path, entry: ClusterEntry
) -> None:
    first = use(app, entry)
    second = use(app, made(app.registry, "dev", "https://127.0.0.1:4002"))
    assert undo(app, first) == f"kind-ctrl is removed from {mine}; current-context is still kind-dev"
    assert undo(app, second) == f"kind-dev is removed from {mine}; current-context is prod again"
    assert names(mine) == ["prod", "staging"]
    third = use(app, replace(entry, used={}))
    text = mine.read_text()
    assert undo(app, use(app, made(app.registry, "dev", "https://127.0.0.1:4002"))).endswith(
        "current-context kind-ctrl"
    )
    assert mine.read_text() == text
    undo(app, third)
    assert names(mine) == ["prod", "staging"]


@pytest.mark.parametrize("order", list(permutations(("ctrl", "dev", "two"))))
def test_the_comments_come_back_in_whatever_order_clusters_go(
    app: App, mine: Path, entry: ClusterEntry, order: tuple[str, ...]
) -> None:
    used = {"ctrl": use(app, entry)}
    for number, name in enumerate(("dev", "two")):
        used[name] = use(app, made(app.registry, name, f"https://127.0.0.1:500{number}"))
    for name in order:
        undo(app, used[name])
    assert mine.read_text() == MINE


def test_the_comments_come_back_where_others_wrote_and_nothing_else_is_left_of_it(
    app: App, mine: Path, entry: ClusterEntry
) -> None:
    """As after `kubectl config use-context` there and back; what somebody changed for good stays changed."""
    used = use(app, entry)
    content = read(mine)
    for key in ("contexts", "clusters", "users"):
        content[key].reverse()
    mine.write_text(yaml.safe_dump({**content, "extensions": None}))
    undo(app, used)
    assert mine.read_text() == MINE
    used = use(app, replace(entry, used={}))
    content = read(mine)
    content["users"][0]["user"]["token"] = "another"
    mine.write_text(yaml.safe_dump(content))
    undo(app, used)
    assert read(mine)["users"] == [{"name": "me", "user": {"token": "another"}}]


def test_a_file_that_was_not_there_goes_again_with_its_folder(app: App, entry: ClusterEntry) -> None:
    file = app.user.home / ".kube" / "config"
    used = use(app, entry)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert read(file)["current-context"] == "kind-ctrl"
    undo(app, used)
    assert not file.parent.exists()
    used = use(app, replace(entry, used={}))
    file.write_text(yaml.safe_dump(read(file) | {"preferences": {}}))  # as kubectl writes it, when it does
    undo(app, used)
    assert not file.parent.exists()
    used = use(app, replace(entry, used={}))
    file.write_text(yaml.safe_dump(read(file) | {"preferences": {"colors": True}}))
    undo(app, used)
    assert read(file)["preferences"] == {"colors": True}


def test_links_stay_links_and_are_written_through(app: App, mine: Path, entry: ClusterEntry, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "kubeconfig"
    real.parent.mkdir()
    mine.rename(real)
    mine.symlink_to(real)
    used = use(app, entry)
    assert mine.is_symlink()
    assert read(real)["current-context"] == "kind-ctrl"
    undo(app, used)
    assert mine.is_symlink()
    assert real.read_text() == MINE
    assert beside(real) == ["kubeconfig"]


@pytest.mark.skipif(sys.platform != "linux", reason="attributes are read by calls of Linux")
def test_what_the_system_keeps_beside_the_mode_stays(app: App, mine: Path, entry: ClusterEntry) -> None:
    try:
        os.setxattr(mine, "user.label", b"mine")
    except OSError:
        pytest.skip("this disk keeps no attributes")
    used = use(app, entry)
    assert os.getxattr(mine, "user.label") == b"mine"
    undo(app, used)
    assert os.getxattr(mine, "user.label") == b"mine"


def test_the_file_is_the_one_in_which_kubectl_would_write_it(app: App, tmp_path: Path, entry: ClusterEntry) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    app.user = User({**app.user.environ, "KUBECONFIG": f"{first}{os.pathsep}{second}"})
    second.write_text(kubeconfig("prod", prod=PROD))
    used = use(app, entry)
    assert read(second)["current-context"] == "kind-ctrl"
    undo(app, used)
    first.write_text(kubeconfig(dev="https://10.0.0.2:6443"))
    used = use(app, entry)
    assert (read(first)["current-context"], read(second)["current-context"]) == ("kind-ctrl", "prod")
    first.write_text(first.read_text() + "\n")
    undo(app, used)
    assert "current-context" not in read(first)  # so that the second one's counts again


def test_used_twice_is_used_once_and_anew_after_a_switch(app: App, mine: Path, entry: ClusterEntry) -> None:
    used = use(app, entry)
    at = mine.stat().st_mtime_ns
    assert use(app, used) == used
    assert mine.stat().st_mtime_ns == at
    mine.write_text(mine.read_text().replace("current-context: kind-ctrl", "current-context: staging"))
    used = use(app, used)
    assert read(mine)["current-context"] == "kind-ctrl"
    assert undo(app, used) == f"{mine} is unchanged: current-context staging"


# Locks.


def test_a_lock_that_stays_is_named_with_its_age_and_left_alone(app: App, mine: Path, entry: ClusterEntry) -> None:
    lock = mine.with_name("config.lock")
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0))  # as client-go makes it
    with pytest.raises(ConfigError, match="has been locked"):
        asyncio.run(current_context.could_use(app.user, "new", "kind-new"))
    with pytest.raises(ConfigError, match="has been locked") as caught:
        use(app, entry)
    assert caught.value.next_step == f"if none of them runs: rm -f {lock}"
    old = lock.stat().st_mtime - 3600
    os.utime(lock, (old, old))
    with pytest.raises(ConfigError, match="has been locked for 1h"):
        current_context.can_use(app.user)
    [found] = current_context.stale_locks(app.user)
    assert found.path == lock
    assert found.age >= 3600
    assert mine.read_text() == MINE
    assert lock.exists()


@pytest.mark.real_loop
async def test_a_lock_is_waited_for(app: App, mine: Path, entry: ClusterEntry) -> None:
    lock = mine.with_name("config.lock")
    lock.touch()
    asyncio.get_running_loop().call_later(0.2, lock.unlink)
    await current_context.use(app.user, entry, app.registry, app.narrate)
    assert read(mine)["current-context"] == "kind-ctrl"
    assert not lock.exists()


def test_a_lock_that_one_of_us_left_when_it_was_killed_is_taken_over(app: App, mine: Path, entry: ClusterEntry) -> None:
    mine.with_name("config.lock").write_text("kubectl-ctrl 4121")
    assert current_context.stale_locks(app.user) == ()
    use(app, entry)
    assert beside(mine) == ["config"]


def test_a_full_disk_leaves_no_lock_behind(mine: Path) -> None:
    async def locked() -> None:
        async with filelock.locked(mine, SystemClock()):
            assert beside(mine) == ["config", "config.lock"]

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        asyncio.run(locked())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert beside(mine) == ["config"]


def test_a_lock_is_taken_also_where_a_file_cannot_be_made_before_it_has_a_name(
    app: App, mine: Path, entry: ClusterEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    used = use(app, entry)
    undo(app, used)
    assert mine.read_text() == MINE
    mine.with_name("config.lock").touch()
    with pytest.raises(ConfigError, match="has been locked"):
        use(app, entry)


@pytest.mark.parametrize("moment", ["locked", "noted", "drafted", "replaced"])
def test_f58_killed_at_any_moment_it_can_be_undone(
    app: App, mine: Path, entry: ClusterEntry, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends there, and what it would still have done is not done."""

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if moment == "locked":
            patched.setattr(current_context, "_put_in", killed)
        elif moment == "noted":
            patched.setattr(current_context, "replaced", killed)
        elif moment == "drafted":
            patched.setattr(Path, "replace", _only_of_the_book)
        else:
            patched.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        if moment == "replaced":
            use(app, entry)
        else:
            with pytest.raises(KeyboardInterrupt):
                use(app, entry)
    mine.with_name("config.lock").write_text("kubectl-ctrl 4121")
    mine.with_name(".config.kubectl-ctrl").write_text("half of it")
    found = present(app.registry.find("ctrl"))
    assert found.used["file"] == str(mine)
    undo(app, found)
    assert mine.read_text() == MINE
    assert beside(mine) == ["config"]


_replace = Path.replace


def _only_of_the_book(self: Path, target: Path) -> Path:
    if self.name == ".config.kubectl-ctrl":
        raise KeyboardInterrupt
    return _replace(self, target)


def test_files_that_our_kubeconfig_names_are_found_from_the_users_too(
    app: App, mine: Path, entry: ClusterEntry
) -> None:
    content = read(entry.kubeconfig)
    content["clusters"][0]["cluster"] = {"server": SERVER, "certificate-authority": "pki/ca.crt"}
    entry.kubeconfig.write_text(yaml.safe_dump(content))
    use(app, entry)
    assert read(mine)["clusters"][-1]["cluster"]["certificate-authority"] == str(entry.folder / "pki/ca.crt")


def test_json_is_taken_and_given_back(app: App, mine: Path, entry: ClusterEntry) -> None:
    mine.write_text('{"apiVersion": "v1", "kind": "Config", "current-context": ""}')
    before = mine.read_bytes()
    used = use(app, entry)
    assert names(mine) == ["kind-ctrl"]
    undo(app, used)
    assert mine.read_bytes() == before
