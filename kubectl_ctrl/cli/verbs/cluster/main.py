"""The body of `cluster`: the single steps of `up` and `down`, and access to managed clusters.

Shells call `env` when they start, so modules that create clusters are only imported by the actions that need them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.progress import Progress, stopping
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.parsing.subcommands import chosen
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.cluster import ACTIONS, OWN
from kubectl_ctrl.clock import SystemClock, rfc3339
from kubectl_ctrl.clusters import names
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase
from kubectl_ctrl.errors import ClusterError, ConfigError, CtrlError, NoCluster, UsageError
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.text import counted, verbatim
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.clusters.provider import Provider


class _Call(Value, kw_only=True):
    """The call of one action."""

    app: App
    given: ParsedCommandLine
    words: tuple[str, ...]  # after the action

    @property
    def cluster(self) -> str:
        """The cluster that is named as an argument or with --name, or else the default or only one."""
        return self._or_only(new_cluster.named(self.given, self.words))

    @property
    def named(self) -> str:
        """The same, for actions whose arguments are not names of clusters."""
        return self._or_only(self.given["name"])

    def _or_only(self, name: str) -> str:
        found = name or names.only(self.app.registry)
        if not found:
            raise NoCluster("There is no managed cluster.", next_step="kubectl ctrl up creates one")
        return found


def run(app: App, given: ParsedCommandLine) -> int:
    """The body of the verb."""
    app.machine = given["progress"] == "json"
    action, words = chosen(given, "cluster", ACTIONS, OWN)
    return _BODIES[action](_Call(app=app, given=given, words=words))


def _create(call: _Call) -> int:
    from kubectl_ctrl.cli.devcluster import bring_up
    from kubectl_ctrl.devcluster.up import UpOptions

    app, given = call.app, call.given
    name = new_cluster.named(given, call.words) or names.DEFAULT
    app.registry.place(name)
    _, _, code = bring_up(
        app, given, UpOptions(name=name, provider=given["provider"], spec=new_cluster.spec(given), use=given["use"])
    )
    return code


def _delete(call: _Call) -> int:
    from kubectl_ctrl.cli import devcluster

    return devcluster.delete(call.app, call.given, call.words)


def _list(call: _Call) -> int:
    import asyncio

    from kubectl_ctrl.cli.output import answers

    if call.words:
        raise UsageError("cluster list takes no name.", next_step="kubectl ctrl cluster list shows all of them")
    form = answers.printer(call.given)
    rows = form.ordered(asyncio.run(_rows(call.app)), lambda row: row)
    if form.form not in ("", "wide"):
        answers.printed(call.app, form, {"clusters": rows}, "clusters")
    elif rows:
        columns = ["name", "provider", "state", "version", "context"]
        columns += ["server", "folder"] if form.form == "wide" else []
        cells = [[row[column] or "-" for column in columns] for row in rows]
        call.app.answer(form.table(cells, [column.upper() for column in columns]))
    else:
        call.app.narrate("there is no managed cluster")
    return 0


async def _rows(app: App) -> list[dict[str, Any]]:
    from kubectl_ctrl.clusters.providers import providers

    known = providers(names.machine(app.user, SystemClock()))
    rows = [await _row(app, entry, known.get(entry.provider)) for entry in app.registry.entries()]
    nothing = dict.fromkeys(("provider", "version", "context", "server", "began", "uid"), "")
    rows += [
        {"name": folder.name, "state": "unreadable", "folder": str(folder), **nothing}
        for folder in app.registry.damaged()
    ]
    return sorted(rows, key=lambda row: str(row["name"]))


async def _row(app: App, entry: ClusterEntry, provider: Provider | None) -> dict[str, Any]:
    return {
        "name": entry.name,
        "provider": entry.provider,
        "state": await _state(app, entry, provider),
        "version": entry.version,
        "context": entry.context,
        "server": entry.server,
        "folder": str(entry.folder),
        "began": rfc3339(entry.began),
        "uid": entry.uid,
    }


async def _state(app: App, entry: ClusterEntry, provider: Provider | None) -> str:
    """Its state according to its provider, or "?" if that is unknown."""
    if entry.phase is not Phase.READY:
        with app.registry.locked(entry.name) as free:
            return "incomplete" if free else entry.phase.value
    try:
        return (await provider.state(entry)).value if provider else "?"
    except CtrlError:
        return "?"


def _load(call: _Call) -> int:
    import asyncio

    from kubectl_ctrl.cli.interrupts import cancellable
    from kubectl_ctrl.clusters import lifecycle
    from kubectl_ctrl.devcluster.steps import waiting

    app, images = call.app, call.words
    if not images:
        raise UsageError("cluster load needs an image.", next_step="for instance: kubectl ctrl cluster load mine:dev")
    clock, name = SystemClock(), call.named
    progress = Progress.of(app, call.given, ("load",), clock)

    async def load() -> None:
        async with lifecycle.lock(app.registry, name, clock, waiting(app.registry, name, progress)):
            entry, provider = _provided(app, name, clock)
            with progress.step("load", f"load {', '.join(images)}") as step:
                await provider.load(entry, images)
                step.text = f"{counted(len(images), 'image')} loaded to {name}"

    return asyncio.run(cancellable(load(), stopping=stopping(progress)))


def _logs(call: _Call) -> int:
    import asyncio

    from kubectl_ctrl.cli.interrupts import cancellable

    app, clock, name = call.app, SystemClock(), call.cluster
    folder = Path(call.given["to"] or f"{name}-logs").expanduser()
    entry, provider = _provided(app, name, clock)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"The folder {str(folder)!r} is not empty.", next_step="choose another one with --to")
    except OSError as error:
        raise UsageError(
            f"The folder {str(folder)!r} cannot be created: {error.strerror}.",
            next_step="choose another one with --to",
        ) from error
    progress = Progress.of(app, call.given, ("logs",), clock)

    async def export() -> None:
        with progress.step("logs", f"logs of {name}"):
            await provider.logs(entry, folder)

    if code := asyncio.run(cancellable(export(), stopping=stopping(progress))):
        return code
    app.answer(str(folder))
    return 0


def _provided(app: App, name: str, clock: SystemClock) -> tuple[ClusterEntry, Provider]:
    """A completely created cluster, and its provider."""
    from kubectl_ctrl.clusters.providers import providers

    entry = names.ready(app.registry, name)
    provider = providers(names.machine(app.user, clock)).get(entry.provider)
    if provider is None:
        raise ClusterError(
            f"Cluster {name!r} was created with {entry.provider!r}, which this version does not support.",
            next_step="use the version that created it",
        )
    return entry, provider


_LINES = {
    "sh": "export KUBECONFIG={}",
    "fish": "set -gx KUBECONFIG {}",
    "pwsh": "$env:KUBECONFIG = {}",
}


def _env(call: _Call) -> int:
    shell = call.given.one_of("shell", tuple(_LINES))
    path = str(_checked_kubeconfig(call).kubeconfig)
    quoted = str(command(path)) if shell == "sh" else _single(path, shell)
    call.app.answer(_LINES[shell].format(quoted))
    return 0


def _checked_kubeconfig(call: _Call) -> ClusterEntry:
    """The cluster, if its kubeconfig still selects it: in a shell of `env`, other programs may have changed it."""
    entry, text = names.ready(call.app.registry, call.cluster), ""
    with suppress(OSError, UnicodeDecodeError):
        text = entry.kubeconfig.read_text(encoding="utf-8")
    found = re.search(r"^current-context: *(\S.*?) *$", text, re.MULTILINE)
    current = found[1].strip("'\"") if found else ""
    if current not in ("", entry.context) and current not in names.contexts_of(call.app.user, entry)[0]:
        repair = command("kubectl", "--kubeconfig", entry.kubeconfig, "config", "use-context", entry.context)
        raise ConfigError(
            f"The kubeconfig of cluster {entry.name!r} selects another context now: {current}.",
            tried=str(entry.kubeconfig),
            next_step=f"to select the cluster again: {repair}",
        )
    return entry


def _single(text: str, shell: str) -> str:
    """In single quotes, for fish or PowerShell."""
    if shell == "pwsh":
        return "'" + text.replace("'", "''") + "'"
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _kubeconfig(call: _Call) -> int:
    entry = _checked_kubeconfig(call)
    if call.given["path"]:
        call.app.answer(str(entry.kubeconfig))
        return 0
    try:
        call.app.answer(verbatim(entry.kubeconfig.read_text(encoding="utf-8").rstrip("\n")))
    except OSError as error:
        raise ClusterError(
            f"The kubeconfig of cluster {entry.name!r} cannot be read: {error.strerror}.",
            tried=str(entry.kubeconfig),
            next_step=f"make it readable, or recreate the cluster: {names.down(entry.name)}, then "
            f"{names.up(entry.name)}",
        ) from error
    return 0


_BODIES = {
    "create": _create,
    "delete": _delete,
    "list": _list,
    "load": _load,
    "env": _env,
    "kubeconfig": _kubeconfig,
    "logs": _logs,
}
