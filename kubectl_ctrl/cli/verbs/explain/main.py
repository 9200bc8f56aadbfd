"""`explain`: finds the object in the recording, and prints the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document, note_of, style_of
from kubectl_ctrl.cli.parsing.query import query_of
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import NotRecorded, UsageError
from kubectl_ctrl.findings.account import Account, Finding
from kubectl_ctrl.findings.case import Body, Case, Place
from kubectl_ctrl.findings.explanation import explain, explain_attempt, foremost
from kubectl_ctrl.findings.health import health
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.render.account import account_lines, single_lines
from kubectl_ctrl.render.account_json import account_json, single_json
from kubectl_ctrl.render.health import health_json, health_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.story import lookup
from kubectl_ctrl.story.cases import CaseQuery, Cases
from kubectl_ctrl.story.lookup import SelectedRecording
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.text import Text, nearest
from kubectl_ctrl.value import replace

_FORMS = ("text", "json", "yaml")
_MOST_CHILDREN = 8


def run(app: App, given: ParsedCommandLine) -> int:
    if given["exit_code"]:
        app.general_error = 2
    form = given.one_of("output", _FORMS)
    words = given.arguments
    if not words or len(words) > 2:
        raise UsageError("explain takes TYPE/NAME [N], or a CONTROLLER.", next_step="kubectl ctrl explain --help")
    query = query_of(app, given)
    try:
        meant = lookup.open_recording(query, words)
        with meant.recording:
            return _Explaining(app, given, query, meant, form).explain(words)
    except NotRecorded as error:
        return _unrecorded(app, given, query, words, form=form, error=error)


def _unrecorded(
    app: App, given: ParsedCommandLine, query: Query, words: Sequence[str], *, form: str, error: NotRecorded
) -> int:
    """For an object without a recording: print the answer of the cluster, or raise the error."""
    if (
        given["from"]
        or given["recorded_cluster"]
        or not lookup.split_words(words)[1]
        or ("/" in words[0] and len(words) == 2)
    ):
        raise error
    from kubectl_ctrl.findings.inference import unrecorded
    from kubectl_ctrl.story.cluster_view import infer_object

    found, problem = infer_object(query, words)
    if found is None:
        raise problem or error
    place = tuple(flag for flag in given.typed if flag.startswith("--namespace="))
    account = unrecorded(found, lookup.split_words(words)[0], place)
    tries = tuple(replace(one, command=app.pin.into(one.command)) for one in account.tries)
    _print(app, given, replace(account, tries=tries), form)
    return 1 if given["exit_code"] else 0


def _print(app: App, given: ParsedCommandLine, account: Account, form: str, note: str = "") -> None:
    if form == "text":
        if note:
            app.answer(note)
        app.answer_all(map(Text, account_lines(account, style_of(app, given), all_evidence=given["all_evidence"])))
    else:
        app.answer(document(account_json(account), form))


class _Explaining:
    """One call of the verb."""

    def __init__(self, app: App, given: ParsedCommandLine, query: Query, meant: SelectedRecording, form: str) -> None:
        self._app = app
        self._given = given
        self._query = query
        self._meant = meant
        self._form = form
        self._now = SystemClock().now()
        self._cases = Cases(query, meant, self._now)

    def explain(self, words: Sequence[str]) -> int:
        first = words[0]
        if len(words) == 1 and "/" not in first:
            if lookup.is_attempt(first):
                return self._attempt(lookup.attempt_of(self._meant, first), None)
            return self._controller(first)
        resource, key = lookup.object_of(self._meant, words[:1] if "/" in first else words)
        asked = CaseQuery(
            resource=resource,
            key=key,
            word=first.partition("/")[0],
            uid=self._given["uid"],
            controller=self._given["controller"],
        )
        if "/" in first and len(words) == 2:
            return self._attempt(lookup.attempt_of(self._meant, words[1], (resource, key)), asked)
        return self._object(asked)

    # An object.

    def _object(self, asked: CaseQuery) -> int:
        if not self._cases.controllers(asked):
            primary = self._primary_of(asked)
            if primary is None:
                raise lookup.not_recorded(self._meant, asked.resource, asked.key)
            return self._object(primary)
        live = self._live([(asked.resource, asked.key)]) if self._given["live"] else {}
        accounts = self._accounts(asked, live)
        if not live and not any(one.attempts for one in accounts) and not _has_evidence(accounts):
            if not self._given["offline"]:
                live = self._live([(asked.resource, asked.key)])
            accounts = self._accounts(asked, live)
        body = live.get((asked.resource, asked.key))
        known = body is not None and body.obj is not None
        if not any(one.attempts for one in accounts) and not _has_evidence(accounts) and not known:
            raise lookup.not_recorded(self._meant, asked.resource, asked.key)
        account = foremost(accounts)
        if account.finding is Finding.NOT_SEEN and not asked.controller and (primary := self._primary_of(asked)):
            return self._object(primary)  # its owner's verdict helps more than NOT SEEN
        account = replace(account, tries=self._cases.places.pinned(account.tries))
        _print(self._app, self._given, account, self._form, note_of(self._meant, self._style))
        return 1 if self._given["exit_code"] and not account.good else 0

    def _accounts(self, asked: CaseQuery, live: dict[Place, Body]) -> list[Account]:
        names = self._cases.controllers(asked)
        cases = [self._cases.case(asked, name, live) for name in names]
        if live and cases[0].attempts:
            cases = [self._with_children(case, live) for case in cases]
        met = [case for case in cases if case.attempts]
        return [explain(case) for case in met or cases[:1]]

    def _with_children(self, case: Case, live: dict[Place, Body]) -> Case:
        """The case with the current state of the objects that its attempts read."""
        places = [place for place in case.bodies if place not in live][:_MOST_CHILDREN]
        asked = CaseQuery(resource=case.resource, key=case.key, word=case.word, uid=case.uid)
        return self._cases.case(asked, case.controller.name if case.controller else "", {**live, **self._live(places)})

    def _live(self, places: Sequence[Place]) -> dict[Place, Body]:
        from kubectl_ctrl.story.cluster_view import read_live

        found, note = read_live(self._query, self._meant.cluster, places)
        if note:
            self._app.narrate(note)
        return found

    def _primary_of(self, asked: CaseQuery) -> CaseQuery | None:
        """For an object that no controller reconciles: the object whose reconcile last read or wrote it."""
        uids = self._meant.recording.uids(self._meant.cluster.key, asked.resource, asked.key)
        related = self._meant.recording.related(cluster=self._meant.cluster.key, uid=uids[0]) if uids else []
        if not related:
            return None
        last = related[-1]
        primary = self._primary(last)
        if primary is None or (primary, last.request) == (asked.resource, asked.key):
            return None
        self._app.narrate(
            f"{asked.resource.kind} {asked.key} is reconciled through {primary.kind} {last.request}"
            f" ({last.controller}), explained below."
        )
        return CaseQuery(resource=primary, key=last.request, word=primary.kind.lower(), controller=last.controller)

    def _primary(self, attempt: RecordedAttempt) -> Resource | None:
        run = self._meant.recording.run(attempt.run)
        played = [one for one in run.controllers if one.name == attempt.controller] if run else []
        return played[0].primaries[0] if played else None

    # One reconcile.

    def _attempt(self, attempt: RecordedAttempt, asked: CaseQuery | None) -> int:
        primary = asked.resource if asked is not None else self._primary(attempt)
        if primary is None:
            raise NotRecorded(f"The run of {attempt.id} is not recorded.")
        word = asked.word if asked is not None else primary.kind.lower()
        of = CaseQuery(resource=primary, key=attempt.request, word=word, uid=attempt.uid)
        case = self._cases.case(of, attempt.controller, {})
        recording, cluster = self._meant.recording, self._meant.cluster.key
        triggered = {
            made.call.id: recording.triggered_by(cluster, made.call.uid, made.call.new_version)
            for made in attempt.writes
            if made.call.uid and made.call.new_version
        }
        result = explain_attempt(case, attempt, triggered)
        result = replace(result, tries=self._cases.places.pinned(result.tries))
        if self._form == "text":
            self._print(single_lines(result, self._style, all_evidence=self._given["all_evidence"]))
        else:
            self._answer(single_json(result))
        return 0

    # A controller.

    def _controller(self, word: str) -> int:
        runs = self._cases.runs_of(word)
        if not runs:
            raise self._unknown(word)
        run = next((one for one in runs if self._cases.lives.life(one, word).here), runs[0])
        result = health(self._cases.work(run, word))
        result = replace(result, tries=self._cases.places.pinned(result.tries))
        if self._form == "text":
            self._print(health_lines(result, self._style))
        else:
            self._answer(health_json(result))
        bad = bool(result.failing or result.unready) or result.qualifier is not None
        return 1 if self._given["exit_code"] and bad else 0

    def _unknown(self, word: str) -> UsageError:
        names = sorted({one.name for run in self._meant.recording.runs() for one in run.controllers})
        types = {one.resource.plural for one in self._meant.known} | {one.singular for one in self._meant.known}
        if word.lower() in types:
            return UsageError(
                f"{word!r} is a type; the name of the object is missing.",
                next_step=str(ctrl("explain", f"{word}/NAME")),
            )
        hint = nearest(word, names) or f"recorded controllers: {', '.join(names)}"
        return UsageError(f"No controller {word!r} is recorded.", next_step=hint)

    # The answer.

    @property
    def _style(self) -> Style:
        return style_of(self._app, self._given)

    def _print(self, lines: Sequence[str]) -> None:
        if note := note_of(self._meant, self._style):
            self._app.answer(note)
        self._app.answer_all(map(Text, lines))

    def _answer(self, result: dict[str, Any]) -> None:
        self._app.answer(document(result, self._form))


def _has_evidence(accounts: Sequence[Account]) -> bool:
    """Whether there is evidence without attempts: the object was filtered out, or is queued."""
    return any(fact.at is not None for account in accounts for fact in account.evidence) or any(
        "in the queue" in fact.text or "is not installed" in fact.text for account in accounts for fact in account.why
    )
