"""The body of `rbac`: compares the roles of a controller with its recorded calls and refusals."""

from __future__ import annotations

import json
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import note_of, style_of
from kubectl_ctrl.cli.parsing.query import query_of
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CtrlError, NotRecorded, UsageError
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.install.marks import labels
from kubectl_ctrl.install.parts import Parts, read_parts
from kubectl_ctrl.install.requirements import account as account_name
from kubectl_ctrl.install.requirements import needs, system_namespace
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import RecordedController, RecordedRun
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.rbac.rights import CallOf, ControllerRights, rights_in, roles
from kubectl_ctrl.rbac.usage import account
from kubectl_ctrl.render.rights import as_table, as_yaml, missing_objects, missing_table, unused_json
from kubectl_ctrl.render.style import moment_text
from kubectl_ctrl.story import lookup
from kubectl_ctrl.text import counted, verbatim
from kubectl_ctrl.value import Value

_FORMS = ("", "yaml", "json", "text")
_QUESTIONS = ("from_trace", "missing", "unused")


class _About(Value, kw_only=True):
    """A controller, its manifests and its recorded runs."""

    name: str
    parts: Parts
    plays: tuple[tuple[RecordedRun, RecordedController], ...] = ()

    @property
    def role(self) -> str:
        return account_name(self.name)

    @property
    def user(self) -> str:
        """Its user name when it runs with its ServiceAccount."""
        return f"system:serviceaccount:{system_namespace(self.name)}:{self.role}"


def run(app: App, given: ParsedCommandLine) -> int:
    """The body of the verb."""
    form = given.one_of("output", _FORMS)
    if len(given.arguments) != 1:
        raise UsageError("rbac takes one controller.", next_step=f"for instance: {ctrl('rbac', next(iter(BUNDLED)))}")
    asked = [name for name in _QUESTIONS if given[name]]
    if len(asked) > 1:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise UsageError(f"{flags} exclude each other.", next_step="use one after the other")
    [word] = given.arguments
    if not asked:
        parts = _parts(app, given, word)
        _show(app, list(parts.rbac), form or "yaml", f"{parts.name} has no rbac.yaml.")
        return 0
    meant = lookup.open_recording(query_of(app, given))
    with meant.recording as recording:
        if note := note_of(meant, style_of(app, given)):
            app.narrate(note)
        about = _about(recording, meant.cluster.key, word)
        found = _account(recording, meant.cluster.key, about)
    match asked[0]:
        case "from_trace":
            _from_trace(app, given, about, found, form or "yaml")
        case "missing":
            _missing(app, about, found, form or "yaml")
        case _:
            _unused(app, given, found, form or "text")
    return 0


# The recorded calls and refusals.


def _about(recording: Recording, cluster: str, word: str) -> _About:
    """The recorded controller with this name, argument of `run`, or path of its code."""
    code = str(Path(word).resolve())
    plays = [
        (run, played)
        for run in recording.runs(cluster=cluster)
        for played in run.controllers
        if word in (played.name, played.word) or code == played.code or code == str(Path(played.code).parent)
    ]
    if not plays:
        raise NotRecorded(
            f"No run of {word!r} is recorded on this cluster.", next_step=f"{ctrl('run', word)} records one"
        )
    newest = plays[0][1]
    same = tuple((run, played) for run, played in plays if played.name == newest.name)
    folder = Path(newest.code).parent if newest.code else bundled.folder(newest.name)
    return _About(name=newest.name, parts=read_parts(folder, newest.name), plays=same)


def _account(recording: Recording, cluster: str, about: _About) -> ControllerRights:
    calls: list[CallOf] = []
    for attempt in recording.of_controller(cluster=cluster, controller=about.name):
        calls += [
            CallOf(run=attempt.run, attempt=attempt.id, request=attempt.request, call=made.call)
            for made in (*attempt.calls, *attempt.background)
        ]
    lease = about.role
    for run, _ in about.plays:
        for made in recording.background(run=run.id):
            # A run can have several controllers, each with its own Lease.
            if made.call.name == lease or made.call.name.startswith(f"{lease}-"):
                calls.append(CallOf(run=run.id, call=made.call))
    moments = [one.state for one in recording.moments(cluster=cluster) if one.state.controller == about.name]
    names = {role["metadata"]["name"] for role in about.parts.rbac}
    granted = frozenset(right for role in about.parts.rbac for right in rights_in(role))
    made_by_install = [one for one in needs(about.parts, crds=False) if one["kind"] in ("Role", "ClusterRole")]
    beside = frozenset(
        right
        for role in made_by_install
        if role["metadata"]["name"] not in names or role["kind"] == "Role"
        for right in rights_in(role)
    )
    return account(about.name, about.plays, calls, states=moments[:1], granted=granted, beside=beside, user=about.user)


def _parts(app: App, given: ParsedCommandLine, word: str) -> Parts:
    """The manifests of a controller, which need not have run; one that has run is also found by its name."""
    if word in BUNDLED:
        return read_parts(bundled.folder(word), word)
    try:
        meant = lookup.open_recording(query_of(app, given))
        with meant.recording as recording:
            return _about(recording, meant.cluster.key, word).parts
    except NotRecorded:
        pass
    from kubectl_ctrl.loader import sources

    [sourced] = sources.resolve([word])
    return sourced.parts()


# The output.


def _from_trace(app: App, given: ParsedCommandLine, about: _About, found: ControllerRights, form: str) -> None:
    app.narrate(_evidence(app, given, found))
    if form == "text":
        app.answer(as_table(found.used))
    else:
        _show(app, roles(found.used, about.role), form, "No recorded call needs a right.")


def _missing(app: App, about: _About, found: ControllerRights, form: str) -> None:
    if not found.missing:
        app.narrate(f"Nothing is missing: {about.name} had the rights for all its recorded calls.")
    elif form == "text":
        app.answer(missing_table(found))
    else:
        _show(app, missing_objects(found, about.role, labels(about.name)), form, "")


def _unused(app: App, given: ParsedCommandLine, found: ControllerRights, form: str) -> None:
    app.narrate(_evidence(app, given, found))
    if not found.granted:
        raise CtrlError(f"{found.controller} has no rbac.yaml, so nothing can be unused.")
    if form == "text":
        if found.unused:
            app.answer(as_table(found.unused))
        else:
            app.narrate("Everything that rbac.yaml grants was used.")
        return
    document = unused_json(found)
    app.answer(verbatim(json.dumps(document, indent=2) if form == "json" else as_yaml([document])))


def _evidence(app: App, given: ParsedCommandLine, found: ControllerRights) -> str:
    runs, attempts = counted(found.runs, "run"), counted(found.attempts, "reconcile")
    since = moment_text(found.since or 0.0, SystemClock().now(), style_of(app, given))
    return f"{found.controller}: from {runs} and {attempts} with calls, recorded since {since}"


def _show(app: App, objects: list[Obj], form: str, nothing: str) -> None:
    if not objects:
        app.narrate(nothing)
    elif form == "text":
        app.answer(as_table(right for role in objects for right in rights_in(role)))
    elif form == "json":
        whole = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
        app.answer(verbatim(json.dumps(whole, indent=2)))
    else:
        app.answer(verbatim(as_yaml(objects)))
