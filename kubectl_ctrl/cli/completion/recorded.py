"""Completions from the recording: controllers, types, names, runs and attempts.

They must take less than a tenth of a second, so they use queries of their own (`history.hints`). Errors are ignored.
The cluster is queried for the names of a type (`candidates`) only if none are recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.completion import candidates
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.errors import ConfigError, CtrlError
from kubectl_ctrl.history.hints import AttemptHint, Hints, RunHint, TypeHint, TypeScope
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.kubeconfig.resolution import ca_fingerprint
from kubectl_ctrl.value import Value, replace

Pairs = Iterable[tuple[str, str]]

# A prefix of RUN-N of at least this length is distinguishable from a type.
_MIN_RUN_PREFIX = 2


class _Scene(Value, kw_only=True):
    """A recording, the selected cluster in it, the namespace, and the command line."""

    hints: Hints
    app: App
    given: ParsedCommandLine
    runs: Sequence[RunHint]
    cluster: str
    namespace: str
    arguments: tuple[str, ...]
    last: str


def recalled(what: str, app: App, given: ParsedCommandLine, last: str) -> list[tuple[str, str]]:
    """The candidates of this sort (a key of `SORTS`) for the word `last`."""
    file = given.flags.get("from")
    try:
        hints = Hints(Path(file).expanduser() if file else recording_file(app.user))
    except CtrlError:
        hints = Hints(None)
    with hints:
        runs = hints.runs()
        context = _context(app, given)
        scene = _Scene(
            hints=hints,
            app=app,
            given=given,
            runs=runs,
            cluster=_cluster(runs, context, given.flags.get("recorded_cluster", "")),
            namespace=given["namespace"] or context[2] or "default",
            arguments=given.arguments,
            last=last,
        )
        return list(SORTS[what](scene))


def _context(app: App, given: ParsedCommandLine) -> tuple[str, str, str]:
    """(server, CA, namespace) of the selected context; empty strings after an error."""
    try:
        resolved = app.pointed(given)
        return resolved.server, ca_fingerprint(resolved), resolved.namespace
    except ConfigError:
        return "", "", ""


def _cluster(runs: Sequence[RunHint], context: tuple[str, str, str], named: str) -> str:
    """The cluster that a verb would select, as far as that is known without the object; else the newest."""
    if named:
        return next((run.cluster for run in runs if named in (run.context, run.cluster, run.server)), "")
    ours = [run.cluster for run in runs if context[0] and (run.server, run.ca) == context[:2]]
    return (ours or [run.cluster for run in runs] or [""])[0]


def _controllers(scene: _Scene) -> Pairs:
    names = dict.fromkeys(name for run in scene.runs if run.cluster == scene.cluster for name in run.controllers)
    return [(name, "Recorded here") for name in names]


def _clusters(scene: _Scene) -> Pairs:
    return dict.fromkeys((run.context or run.cluster, run.server) for run in scene.runs)


def _runs(scene: _Scene) -> Pairs:
    return [(run.name, ", ".join(run.controllers)) for run in scene.runs if run.cluster == scene.cluster]


def _attempts(scene: _Scene) -> Pairs:
    found = scene.hints.attempts(scene.cluster, scene.last)
    return [(f"{one.run}-{one.number}", _text(one)) for one in found]


def _text(one: AttemptHint) -> str:
    return " ".join(filter(None, (one.controller, one.name, one.outcome)))


def _objects(scene: _Scene) -> Pairs:
    """TYPE, TYPE/NAME, NAME after TYPE, and the number of an attempt after TYPE/NAME."""
    if not scene.arguments and "/" not in scene.last:
        types = list(_types(scene)) or _asked(scene, candidates.kinds)
        return [*types, *(_attempts(scene) if len(scene.last) >= _MIN_RUN_PREFIX else ())]
    return _of_a_type(scene)


def _of_a_type(scene: _Scene) -> Pairs:
    """TYPE/NAME, and NAME after TYPE."""
    if scene.arguments:
        return _names(scene, scene.arguments[0], scene.last) if len(scene.arguments) == 1 else ()
    kind, slash, prefix = scene.last.partition("/")
    return [(f"{kind}/{name}", text) for name, text in _names(scene, kind, prefix)] if slash else ()


def _looked_at(scene: _Scene) -> Pairs:
    """As `_objects`, followed by the numbers of the object's attempts."""
    if len(scene.arguments) == 1 and "/" in scene.arguments[0]:
        return _numbers(scene)
    return _objects(scene)


def _numbers(scene: _Scene) -> Pairs:
    if not scene.arguments:
        return ()
    kind, slash, name = scene.arguments[0].partition("/")
    name = name if slash else "".join(scene.arguments[1:2])
    return [
        (str(one.number), _text(one))
        for found in _meant(scene, kind)
        for one in scene.hints.attempts_of(scene.cluster, _place(scene, found), name)
    ]


def _types(scene: _Scene) -> Pairs:
    """The singular of each type, with the group if two types have the same."""
    types = scene.hints.types(scene.cluster)
    words = [found.singular or found.kind.lower() for found in types]
    return [
        (
            word if words.count(word) == 1 else f"{word}.{found.group}".rstrip("."),
            f"{found.kind} {found.group}".rstrip(),
        )
        for word, found in zip(words, types, strict=True)
    ]


def _names(scene: _Scene, kind: str, prefix: str) -> Pairs:
    """The recorded names of a type; if there are none, those in the cluster."""
    places = [(_place(scene, found), found.kind) for found in _meant(scene, kind)]
    recorded = [(name, text) for place, text in places for name in scene.hints.names(scene.cluster, place, prefix)]
    if recorded or any(scene.hints.names(scene.cluster, place, "") for place, _ in places):
        return recorded
    return _asked(scene, lambda app, given: candidates.names(app, given, kind))


def _asked(scene: _Scene, question: Callable[[App, ParsedCommandLine], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """The answer of the cluster; none if the flags select a recording or forbid queries."""
    elsewhere = any(scene.given.flags.get(name) for name in ("from", "recorded_cluster", "offline"))
    return [] if elsewhere else question(scene.app, scene.given)


def _meant(scene: _Scene, kind: str) -> Iterable[TypeHint]:
    plain, _, group = kind.lower().partition(".")
    for found in scene.hints.types(scene.cluster):
        names = (found.plural, found.singular, found.kind.lower(), *found.short_names)
        if plain in names and found.group.startswith(group):
            yield found


def _place(scene: _Scene, found: TypeHint) -> TypeScope:
    return TypeScope(found.group, found.plural, scene.namespace if found.namespaced else "")


def _explained(scene: _Scene) -> Pairs:
    return [*(() if scene.arguments else _controllers(scene)), *_looked_at(scene)]


def _kept(scene: _Scene) -> Pairs:
    """For the arguments of the actions of `record`."""
    if scene.arguments == ("show",):
        return _runs(scene)
    if scene.arguments[:1] != ("export",):
        return ()
    rest = replace(scene, arguments=scene.arguments[1:])
    return [*(_runs(rest) if not rest.arguments else ()), *_objects(rest)]


SORTS: dict[str, Callable[[_Scene], Pairs]] = {
    "any controller": _controllers,
    "attempts": lambda scene: () if scene.arguments else _attempts(scene),
    "clusters": _clusters,
    "controllers": lambda scene: () if scene.arguments else _controllers(scene),
    "explained": _explained,
    "goals": lambda scene: _objects(replace(scene, arguments=())),
    "kept": _kept,
    "looked at": _looked_at,
    "names": _of_a_type,
    "numbers": _numbers,
    "objects": _objects,
    "runs": _runs,
}
