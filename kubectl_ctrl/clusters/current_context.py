"""`--use`: makes a managed cluster the current-context in the user's own kubeconfig, and reverts that.

No other code writes that file. The file is the one in which kubectl would write current-context; it is written
atomically, under kubectl's lock. All fields beside our three entries and current-context are kept, also unknown ones;
only comments are lost. So the original bytes are saved, and restored if nobody wrote to the file since, or if the file
without our entries has the same contents.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubectl_ctrl import files
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
from kubectl_ctrl.errors import ConfigError, Refused, UsageError
from kubectl_ctrl.kubeconfig import files as kubefiles
from kubectl_ctrl.kubeconfig.files import Merged
from kubectl_ctrl.kubeconfig.lock import (
    KubeconfigLocked,
    age_of,
    check_plain,
    check_writable,
    held_by_another,
    lock_of,
    locked,
    replaced,
    target,
    unwritable,
)
from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value, replace

_NEVER = "your kubeconfig was not changed"
_SAVED = "kubeconfig.before"
_FIRST = "kubeconfig.first"  # from before both, if --use of another managed cluster came first
_LISTS = ("clusters", "contexts", "users")
_CURRENT = "current-context"
# An older lock is stale: its holder only writes a small file.
_STALE_AFTER = 10.0
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class StaleLock(Value, kw_only=True):
    """The lock file of a kubeconfig, left by a program that was killed."""

    path: Path
    age: float  # seconds
    seen: Unshown[os.stat_result]  # distinguishes it from a later lock


class _Parts(Value, kw_only=True):
    """The entries of a managed cluster for a kubeconfig."""

    context: str
    items: tuple[tuple[str, str, str, dict[str, Any]], ...]  # list, name in it, kind, fields

    @property
    def server(self) -> str:
        return str(self.items[0][3].get("server"))


def can_use(user: User) -> None:
    """Raise if `use` would fail, before a cluster is created for it."""
    file = _file(user)
    if file.parent.parent == Registry.of(user).folder.absolute():
        raise UsageError(
            f"--use changes your own kubeconfig, and {str(file)!r} is that of cluster {file.parent.name!r}.",
            next_step="unset KUBECONFIG, or omit --use",
        )
    check_plain(file)
    _merged(user)
    check_writable(file)
    now = SystemClock().now()
    if (age := age_of(lock_of(file), now)) is not None and age > _STALE_AFTER:
        raise held_by_another(file, now)


async def could_use(user: User, name: str, context: str) -> None:
    """Raise if `use` of that cluster, which need not exist yet, would be refused; waits for the lock."""
    can_use(user)
    file, entry = _file(user), Registry.of(user).find(name)
    if file.parent.is_dir():
        async with locked(file, SystemClock()):
            pass
    if entry is not None and entry.used:
        return  # its entries are in the file already
    merged = _merged(user)
    if entry is not None and entry.kubeconfig.exists():
        _check_free(merged, _parts(user, entry))
        return
    for plural, entries in _in_merged(merged).items():
        if context in entries:
            raise _hidden(plural.removesuffix("s"), entries[context])


def stale_locks(user: User) -> tuple[StaleLock, ...]:
    now, (files, _) = SystemClock().now(), kubefiles.candidates("", user.environ, user.home)
    found = []
    for lock in dict.fromkeys(map(lock_of, files)):
        with suppress(OSError):
            seen = lock.lstat()
            if (age := age_of(lock, now)) is not None and age > _STALE_AFTER:
                found.append(StaleLock(path=lock, age=age, seen=seen))
    return tuple(found)


async def use(user: User, entry: ClusterEntry, registry: Registry, note: Callable[[str], None]) -> ClusterEntry:
    """Make it the user's current-context; returns the new registry entry, which has the data for `undo`."""
    can_use(user)
    file, parts = _file(user), _parts(user, entry)
    if entry.used:
        if entry.used.get("file") == str(file) and _is_used(user, parts):
            return entry
        await undo(user, entry, registry)
    missing = [folder for folder in file.parents if not folder.exists()]  # innermost first
    entry = replace(entry, used={"file": str(file), "folder": str(missing[-1]) if missing else ""})
    registry.write(entry)
    try:
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise unwritable(file, error) from error
    async with locked(file, SystemClock()):
        return _put_in(user, entry, registry, parts, note)


async def undo(user: User, entry: ClusterEntry, registry: Registry) -> str:
    """Revert `use`; returns a description of the change."""
    if not entry.used:
        return _NEVER
    file, text = Path(entry.used["file"]), _NEVER
    if file.parent.is_dir():
        try:
            async with locked(file, SystemClock()):
                text = _taken_out(user, entry, file)
        except KubeconfigLocked:
            raise
        except ConfigError as error:
            # Not the next step of `use`, which can be omitted: this cannot.
            broken = "make it readable and writable" if isinstance(error.__cause__, OSError) else f"mend {file}"
            error.next_step = f"{broken}, or move it away; then repeat this"
            raise
        _remove_folders(file, entry.used.get("folder", ""))
    registry.write(replace(entry, used={}))
    for name in (_SAVED, _FIRST):
        (entry.folder / name).unlink(missing_ok=True)
    return text


# The file.


def _file(user: User) -> Path:
    """The file in which kubectl would write current-context: the first existing one of the list, or else the last."""
    files, _ = kubefiles.candidates("", user.environ, user.home)
    return next((file for file in files if os.access(file, os.F_OK)), files[-1]).absolute()


def _remove_folders(file: Path, outermost: str) -> None:
    """Remove the folders that were created for it, unless they have other files."""
    with suppress(OSError):
        for folder in file.parents if outermost else ():
            folder.rmdir()
            if str(folder) == outermost:
                return


# Adding the entries.


def _parts(user: User, entry: ClusterEntry) -> _Parts:
    own = kubefiles.read(str(entry.kubeconfig), user.environ, user.home)
    context = own.contexts[entry.context]
    found = (
        ("clusters", "cluster", own.clusters[context.text("cluster")]),
        ("users", "user", own.users[context.text("user")]),
        ("contexts", "context", context),
    )
    items = tuple((plural, one.name, kind, _absolute(one)) for plural, kind, one in found)
    return _Parts(context=entry.context, items=items)


def _absolute(one: kubefiles.KubeconfigEntry) -> dict[str, Any]:
    """Its fields, with absolute paths."""
    return {key: one.path(key) if key in _PATHS else value for key, value in one.fields.items()}


def _merged(user: User) -> Merged:
    return kubefiles.read("", user.environ, user.home)


def _in_merged(merged: Merged) -> dict[str, Mapping[str, kubefiles.KubeconfigEntry]]:
    return {"clusters": merged.clusters, "users": merged.users, "contexts": merged.contexts}


def _is_used(user: User, parts: _Parts) -> bool:
    """Whether kubectl uses it already."""
    merged = _merged(user)
    lists = _in_merged(merged)
    there = all(name in lists[plural] for plural, name, *_ in parts.items)
    same = there and lists["clusters"][parts.items[0][1]].fields == parts.items[0][3]
    return same and merged.current_context == parts.context


def _check_free(merged: Merged, parts: _Parts) -> None:
    """Raise if the user has a different entry with one of our names."""
    lists = _in_merged(merged)
    for plural, name, kind, fields in parts.items:
        there = lists[plural].get(name)
        if there is not None and there.fields != fields:
            raise _hidden(kind, there)


def _hidden(kind: str, there: kubefiles.KubeconfigEntry) -> Refused:
    return Refused(
        f"Your kubeconfig has another {kind} {there.name!r} already, which --use would hide.",
        tried=str(there),
        next_step="give the cluster another --name, or omit --use; or, if yours is no longer needed: "
        f"{command('kubectl', 'config', f'delete-{kind}', there.name)}",
    )


def _put_in(
    user: User, entry: ClusterEntry, registry: Registry, parts: _Parts, note: Callable[[str], None]
) -> ClusterEntry:
    """Needs the lock. The data for `undo` is in the registry before the file is written."""
    file = Path(entry.used["file"])
    there = file.exists()
    _check_free(_merged(user), parts)
    raw = file.read_bytes() if there else b""
    content = _content(file, raw)
    previous = content.get(_CURRENT) or ""
    # If that is a managed cluster too, it may be deleted before this one. Then the context before it is restored.
    under = next((one for one in registry.entries() if previous and one.used.get("context") == previous), None)
    before = [name for name in (under.used.get("previous", ""), under.used.get("before", "")) if name] if under else []
    for plural, name, kind, fields in parts.items:
        others = [one for one in content.get(plural) or [] if one.get("name") != name]
        content[plural] = [*others, {"name": name, kind: fields}]
    new = _text(file, {**content, _CURRENT: parts.context})
    _save(entry.folder / _SAVED, raw)
    if under and (first := _earliest(under)) is not None:
        _save(entry.folder / _FIRST, first)
    # The cluster may be recreated with other values before this is undone, so the present ones are stored.
    names = {kind: name for _, name, kind, _ in parts.items}
    left = {"server": parts.server, "was": "there" if there else "", "left": _digest(new)}
    entry = replace(entry, used={**entry.used, **names, **left, "previous": previous, "before": "\n".join(before)})
    registry.write(entry)
    replaced(file, new)
    if there and stat.S_IMODE(file.stat().st_mode) & 0o077:
        note(
            f"{file} is readable by other users, and now contains the keys of this cluster: "
            f"{command('chmod', 'go=', file)}"
        )
    return entry


def _content(file: Path, raw: bytes) -> dict[str, Any]:
    """Its contents; the loader has checked before that it is a kubeconfig."""
    content = kubefiles.parse(raw, f"The kubeconfig {str(file)!r}")
    return content or {"apiVersion": "v1", "kind": "Config"}


def _text(file: Path, content: dict[str, Any]) -> bytes:
    try:
        return manifests.text([content]).encode()
    except RecursionError:  # a YAML alias can contain itself
        raise ConfigError(f"The kubeconfig {str(file)!r} is nested too deeply.") from None


def _save(saved: Path, raw: bytes) -> None:
    try:
        files.replace(saved, raw)
    except OSError as error:
        raise unwritable(saved, error) from error


def _earliest(entry: ClusterEntry) -> bytes | None:
    """The file before the first --use, if there were several in a row."""
    for name in (_FIRST, _SAVED):
        with suppress(OSError):
            return (entry.folder / name).read_bytes()
    return None


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


# Removing the entries.


def _taken_out(user: User, entry: ClusterEntry, file: Path) -> str:
    """Needs the lock. Restores the whole file if nobody wrote to it since, otherwise removes our entries only."""
    used, real = entry.used, target(file)
    files.draft_of(real).unlink(missing_ok=True)
    if "left" not in used:
        return _NEVER
    if not real.exists():
        return f"{file} no longer exists"
    check_plain(file)
    try:
        raw = real.read_bytes()
    except OSError as error:
        raise ConfigError(f"The kubeconfig {str(file)!r} cannot be read: {error.strerror}.") from error
    saved = entry.folder / _SAVED
    before = saved.read_bytes() if saved.exists() else None
    if raw == before and used["was"]:
        return _NEVER
    if _digest(raw) == used["left"] and before is not None:
        _put_back(file, before, there=bool(used["was"]))
        return f"{file} is unchanged" + (f": current-context {used['previous']}" if used["previous"] else "")
    return _taken_apart(user, entry, file, raw)


def _put_back(file: Path, before: bytes, *, there: bool) -> None:
    if there:
        replaced(file, before)
        return
    try:
        target(file).unlink()
    except OSError as error:
        raise unwritable(file, error) from error


def _taken_apart(user: User, entry: ClusterEntry, file: Path, raw: bytes) -> str:
    """Another program wrote to the file since, so everything but our entries stays as it is now."""
    content = _content(file, raw)
    if not _is_kubeconfig(content):
        raise ConfigError(f"The kubeconfig {str(file)!r} is not a kubeconfig any more.")
    if not _without_ours(content, entry):
        return f"{file} is unchanged: {entry.used['context']} is the name of another cluster now"
    text = f"{entry.used['context']} is removed from {file}"
    if content.get(_CURRENT) == entry.used["context"]:
        names, earlier = _names(user, content), [entry.used["previous"], *entry.used["before"].split("\n")]
        kept = next((name for name in earlier if name in names), "")
        content = {**content, _CURRENT: kept} if kept else {key: content[key] for key in content if key != _CURRENT}
        text += f"; current-context is {kept} again" if kept else "; there is no current-context now"
    elif content.get(_CURRENT):
        at = _find(content, "contexts", content[_CURRENT]).get("context") or {}
        text += f"; current-context is still {content[_CURRENT]}"
        text += ", whose cluster no longer exists" if at.get("cluster") == entry.used["cluster"] else ""
    if not entry.used["was"] and not any(content[key] for key in content if key not in ("apiVersion", "kind")):
        _put_back(file, b"", there=False)
    else:
        same = _as_it_was(entry, file, content)
        replaced(file, _text(file, content) if same is None else same)
    return text


def _as_it_was(entry: ClusterEntry, file: Path, content: dict[str, Any]) -> bytes | None:
    """The original bytes, with the user's comments, if they have the same contents as what is left; else None."""
    for name in (_SAVED, _FIRST):
        with suppress(OSError, ConfigError):
            raw = (entry.folder / name).read_bytes()
            if _normal(_content(file, raw)) == _normal(content):
                return raw
    return None


def _normal(content: dict[str, Any]) -> dict[str, Any]:
    """Without empty fields, and with sorted lists: kubectl sorts them when it writes a file."""
    by_name = {key: sorted(content.get(key) or [], key=lambda one: str(one.get("name"))) for key in _LISTS}
    return {key: value for key, value in {**content, **by_name}.items() if value}


def _is_kubeconfig(content: Any) -> bool:
    """Whether the types of the fields that are used here are right."""
    if not isinstance(content, dict):
        return False
    lists = [(kind, content.get(f"{kind}s") or []) for kind in ("context", "cluster", "user")]
    return all(isinstance(entries, list) for _, entries in lists) and all(
        isinstance(one, dict) and isinstance(one.get("name") or "", str) and isinstance(one.get(kind) or {}, dict)
        for kind, entries in lists
        for one in entries
    )


def _without_ours(content: dict[str, Any], entry: ClusterEntry) -> bool:
    """Remove our three entries, even if they were changed; False, without a change, if they are of another cluster."""
    used = entry.used
    named = _find(content, "contexts", used["context"]).get("context") or {}
    cluster = _find(content, "clusters", named.get("cluster", used["cluster"])).get("cluster") or {}
    if cluster.get("server", used["server"]) != used["server"]:
        return False
    # By their original names: if our context refers to other entries now, these may be the user's own.
    for plural, name in (("contexts", used["context"]), ("clusters", used["cluster"]), ("users", used["user"])):
        if plural in content:
            content[plural] = [one for one in content[plural] or [] if one.get("name") != name]
    return True


def _find(content: dict[str, Any], plural: str, name: str) -> dict[str, Any]:
    return next((one for one in content.get(plural) or [] if one.get("name") == name), {})


def _names(user: User, content: dict[str, Any]) -> set[str]:
    """The contexts in this file and in the user's other files."""
    found = {one["name"] for one in content.get("contexts") or [] if one.get("name")}
    with suppress(ConfigError):
        found |= set(_merged(user).contexts)
    return found
