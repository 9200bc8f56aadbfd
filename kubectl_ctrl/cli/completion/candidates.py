"""Completions from other sources than the recording: kubeconfig files, the cluster registry, and kubectl.

kubectl is called only for names that are not known locally. It has 0.3 seconds, and its answer is cached for ten, so
that holding Tab down does not query the cluster repeatedly. Every failure is an empty answer.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl import files
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.kubeconfig import files as kubefiles
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags
from kubectl_ctrl.runs import background_notes, runners
from kubectl_ctrl.value import asdict, replace

Pairs = Iterable[tuple[str, str]]

_TIMEOUT = 0.3
_CACHE_AGE = 10.0
# Actions of `cluster` that take the name of an existing one.
_TAKE_NAMES = ("delete", "env", "kubeconfig", "logs")
# A type; nothing that kubectl could take for a flag or a file.
_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")


def offered(what: str, app: App, given: ParsedCommandLine) -> list[tuple[str, str]]:
    """The candidates of this sort (a key of `SORTS`)."""
    return list(SORTS[what](app, given))


def names(app: App, given: ParsedCommandLine, kind: str) -> list[tuple[str, str]]:
    """The objects of a type in the selected namespace of the cluster, each with its type."""
    if not _TYPE.fullmatch(kind):
        return []
    lines = _asked(app, given, "get", kind, "--output=name")
    return [(name, found) for found, _, name in (line.rpartition("/") for line in lines)]


def kinds(app: App, given: ParsedCommandLine) -> list[tuple[str, str]]:
    """The types that the cluster serves: plural and group."""
    return [(kind, "") for kind in _asked(app, given, "api-resources", "--output=name", "--verbs=get", "--cached")]


def _contexts(app: App, given: ParsedCommandLine) -> Pairs:
    """The user's own first, which take precedence."""
    found = {name: f"Cluster {entry.text('cluster')}" for name, entry in _files(app, given).contexts.items()}
    ours = ((entry.context, f"Managed cluster {entry.name}") for entry in app.registry.entries() if entry.context)
    return [*found.items(), *(pair for pair in ours if pair[0] not in found)]


def _named(kind: str) -> Callable[[App, ParsedCommandLine], Pairs]:
    return lambda app, given: [(name, "") for name in getattr(_files(app, given), kind)]


def _files(app: App, given: ParsedCommandLine) -> kubefiles.Merged:
    return kubefiles.read(given["kubeconfig"], app.user.environ, app.user.home)


def _clusters(app: App, given: ParsedCommandLine) -> Pairs:
    return [(entry.name, " ".join((entry.provider, entry.version or entry.phase))) for entry in app.registry.entries()]


def _logged(app: App, given: ParsedCommandLine) -> Pairs:
    """Controllers with a log, on the cluster of --name or on any managed cluster."""
    for entry in () if given.arguments else _named_entries(app, given):
        yield from ((name, f"In the background of cluster {entry.name}") for name in background_notes.logged(entry))


def _running(app: App, given: ParsedCommandLine) -> Pairs:
    """Controllers that run on this machine, or that were started in the background."""
    entries = _named_entries(app, given)
    keys = {key for entry in entries for key in runners.keys(entry)}
    for runner in runners.runners(app.user.state):
        if runner.cluster in keys or not given["name"]:
            yield runner.controller, "" if runner.unreadable else f"Process {runner.pid} on {runner.context}"
    for entry in entries:
        yield from ((name, f"On cluster {entry.name}") for name, _ in background_notes.notes(entry))


def _named_entries(app: App, given: ParsedCommandLine) -> Sequence[ClusterEntry]:
    return [entry for entry in app.registry.entries() if given["name"] in ("", entry.name)]


def _behind_an_action(app: App, given: ParsedCommandLine) -> Pairs:
    """Existing clusters, after an action of `cluster` that takes one."""
    return _clusters(app, given) if given.arguments[:1] in [(one,) for one in _TAKE_NAMES] else ()


def _namespaces(app: App, given: ParsedCommandLine) -> Pairs:
    """The namespaces of the cluster, or those of the contexts if it does not answer."""
    asked = names(app, given, "namespaces")
    named = (entry.text("namespace") for entry in _files(app, given).contexts.values())
    return [(name, "") for name in [name for name, _ in asked] or dict.fromkeys(filter(None, named))]


SORTS: dict[str, Callable[[App, ParsedCommandLine], Pairs]] = {
    "contexts": _contexts,
    "kubeconfig clusters": _named("clusters"),
    "logged": _logged,
    "named behind an action": _behind_an_action,
    "namespaces": _namespaces,
    "our clusters": _clusters,
    "running": _running,
    "users": _named("users"),
}


def _asked(app: App, given: ParsedCommandLine, *words: str) -> list[str]:
    """The lines of kubectl's answer, possibly cached; none after a timeout."""
    kubectl = app.user.environ.get("KUBECTL_PATH") or shutil.which("kubectl", path=app.user.environ.get("PATH", ""))
    if not kubectl:
        return []
    try:
        resolved = app.pointed(given)
    except CtrlError:
        return []
    flags = replace(resolved.origin.flags, context=resolved.context or "")
    if flags.token or flags.password:
        return []  # kubectl takes them only as arguments, which every user of the machine can read
    argv = [kubectl, *words, *_typed(flags)]
    key = hashlib.sha256("\0".join([resolved.server, *argv]).encode()).hexdigest()
    return _cached(
        app.user.cache / "names" / key,
        lambda: programs.quickly(argv, env=app.user.environ, timeout=_TIMEOUT) or "",
    ).splitlines()


def _typed(flags: ConfigFlags) -> Sequence[str]:
    """kubectl's own flags as words of its command line."""
    words = []
    for (field, value), default in zip(asdict(flags).items(), asdict(ConfigFlags()).values(), strict=True):
        name = "as" if field == "as_user" else field.replace("_", "-")
        values = value if isinstance(value, tuple) else ("true",) if value is True else (value,)
        words += [f"--{name}={item}" for item in values if item and value != default]
    return words


def _cached(file: Path, ask: Callable[[], str]) -> str:
    """The content of the file if it is recent, else a new answer, which replaces it. Old answers are deleted."""
    now = SystemClock().now()
    with suppress(OSError, UnicodeDecodeError):
        if 0 <= now - file.stat().st_mtime < _CACHE_AGE:
            return file.read_text(encoding="utf-8")
    answer = ask()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in file.parent.iterdir():
            if now - old.stat().st_mtime > _CACHE_AGE:
                old.unlink(missing_ok=True)
        files.replace(file, answer.encode(), sync=False)
    return answer
