"""`trace`: finds an object, an attempt or a type in the recording, and prints its story."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import note_of, style_of
from kubectl_ctrl.cli.parsing.query import query_of
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock, parse_rfc3339
from kubectl_ctrl.errors import NotRecorded, UsageError
from kubectl_ctrl.history.documents import encoded
from kubectl_ctrl.model.durations import parse_duration
from kubectl_ctrl.model.record import RecordedAttempt, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.trace.formats import FILES, FORMS, export
from kubectl_ctrl.render.trace.rows import TraceOptions
from kubectl_ctrl.render.trace.text import subject_lines, trace_lines
from kubectl_ctrl.render.trace.waterfall import waterfall_lines
from kubectl_ctrl.story import lookup
from kubectl_ctrl.story.chronicle import Chronicle, FollowedObjects, ObjectStory
from kubectl_ctrl.story.lookup import SelectedRecording
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.text import Text, verbatim
from kubectl_ctrl.value import replace

_TEXTS = ("text", "wide")
_ON_A_TERMINAL = 20
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")


def run(app: App, given: ParsedCommandLine) -> int:
    form = given.one_of("output", (*_TEXTS, *FORMS))
    words, query = _checked(app, given, form), query_of(app, given)
    try:
        meant = lookup.open_recording(query, words)
        with meant.recording:
            return _Tracing(app, given, query, meant, form).print(words)
    except NotRecorded as error:
        if given["id"] or given["uid"] or ("/" in words[0] and len(words) > 1):
            raise  # the object may be recorded; a part of it is not
        from kubectl_ctrl.cli.verbs.trace.unrecorded import (
            instead,  # it needs an event loop, whose import takes time
        )

        return instead(app, given, query, words, error, form=form)
    except KeyboardInterrupt:
        if given["watch"]:
            return 0
        raise


def _checked(app: App, given: ParsedCommandLine, form: str) -> tuple[str, ...]:
    """The arguments, after checks of the flags."""
    words = given.arguments
    if not 1 <= len(words) <= 2:
        raise UsageError(
            "trace takes TYPE/NAME [N], or a TYPE.", next_step="kubectl ctrl trace TYPE/NAME, like foo/example-foo"
        )
    if form in FILES and app.terminal:
        raise UsageError(
            f"-o {form} writes a file for a program, and standard output is a terminal.",
            next_step=f"{given.again('trace')} > trace.{FILES[form]}",
        )
    if given["watch"] and (form not in (*_TEXTS, "jsonl") or given["id"] or given["tree"]):
        raise UsageError("-w goes with -o text, wide or jsonl, and with neither --id nor --tree.")
    if given["last"] is not None and given["last"] < 0:
        raise UsageError(f"Invalid value for --last: {given['last']}.", next_step="use a number, or 0 for all")
    return words


class _Tracing:
    """One call of the verb."""

    def __init__(self, app: App, given: ParsedCommandLine, query: Query, meant: SelectedRecording, form: str) -> None:
        self._app = app
        self._given = given
        self._query = query
        self._meant = meant
        self._form = form
        self._now = SystemClock().now()
        self._style = style_of(app, given)
        self._since = since(given["since"], self._now, utc=given["utc"])
        self._chronicle = Chronicle(app.user, meant, self._now, controller=given["controller"], uid=given["uid"])

    def print(self, words: Sequence[str]) -> int:
        """Print an object, one reconcile, or the objects of a type."""
        kind, name = lookup.split_words(words)
        number = self._given["id"] or (words[1] if "/" in words[0] and len(words) > 1 else "")
        if not name and not number and lookup.is_attempt(kind):
            return self._one(lookup.attempt_of(self._meant, kind), None)
        if not name:
            if number:
                return self._one(lookup.attempt_of(self._meant, number), None)
            return self._objects(kind)
        resource, key = lookup.object_of(self._meant, words)
        if number:
            return self._one(self._chronicle.numbered(number, resource, key), resource)
        if self._given["watch"]:
            return self._follow(
                FollowedObjects(chronicle=self._chronicle, resource=resource, key=key, since=self._since)
            )
        shown = self._chronicle.object_story(resource, key, last=self._last, since=self._since)
        if shown is None:
            raise lookup.not_recorded(self._meant, resource, key)
        shown = self._with_tree(shown) if self._given["tree"] else shown
        self._show(self._with_live_object(shown) if self._given["live"] and not self._given["offline"] else shown)
        return 0

    def _follow(self, followed: FollowedObjects) -> int:
        from kubectl_ctrl.cli.verbs.trace.follow import follow

        self._note()
        if self._given["last"]:
            followed = replace(followed, first=self._given["last"])
        return follow(self._app, followed, self._showing(None), self._form, self._style)

    @property
    def _last(self) -> int | None:
        if self._given["last"] is not None:
            return self._given["last"] or None
        text = self._form in _TEXTS and not self._given["raw"]
        return _ON_A_TERMINAL if self._app.terminal and text and not self._given["since"] else None

    # An object.

    def _show(self, shown: ObjectStory) -> None:
        if self._given["raw"]:
            self._raw(shown.story.attempts)
            return
        if self._form in FORMS:
            self._export(shown.story)
            return
        self._note()
        style = replace(self._style, primaries=shown.primaries)
        lines = trace_lines(shown.story, shown.scene, self._showing(shown), style)
        self._app.answer_all(map(Text, lines))
        if shown.story.tree is not None:
            from kubectl_ctrl.render.trace.tree import tree_lines

            self._app.answer_all(["", *map(Text, tree_lines(shown.story.tree, style, now=self._now))])

    def _with_tree(self, shown: ObjectStory) -> ObjectStory:
        """With the objects that it owns, from the cluster or the recording."""
        from kubectl_ctrl.story.tree import TreeRoot, owner_tree

        story = shown.story
        if story.resource is None or story.key is None:
            return shown
        owns = [one for run in story.runs for played in run.controllers for one in played.owns]
        asked = TreeRoot(
            cluster=story.cluster,
            resource=story.resource,
            key=story.key,
            uid=story.uid,
            owns=tuple(dict.fromkeys(owns)),
            attempts=story.attempts,
        )
        found = owner_tree(self._query, asked)
        if found.note:
            self._app.narrate(found.note)
        return replace(shown, story=replace(story, tree=found.tree))

    def _with_live_object(self, shown: ObjectStory) -> ObjectStory:
        """With the current object, if the cluster answers within two seconds."""
        from kubectl_ctrl.story.cluster_view import read_live

        story = shown.story
        if story.resource is None or story.key is None:
            return shown
        place = (story.resource, story.key)
        found, note = read_live(self._query, self._meant.cluster, [place])
        if note:
            self._app.narrate(note)
        body = found.get(place)
        if body is None:
            return shown
        gone = shown.scene.gone if body.obj is not None else shown.scene.gone or body.at
        live = body.obj is not None
        return replace(
            shown, scene=replace(shown.scene, object=body.obj, seen=body.at, live=live, gone=None if live else gone)
        )

    def _showing(self, shown: ObjectStory | None) -> TraceOptions:
        story = shown.story if shown is not None else None
        # The rows of an object that no controller reconciles belong to others, and name them.
        about = (story.resource, story.key) if story and shown and not shown.scene.related else None
        about = (about[0], about[1]) if about and about[0] and about[1] else None
        return TraceOptions(
            now=self._now,
            about=about,
            calls=self._given["calls"],
            diff=self._given["diff"],
            wide=self._form == "wide",
            body=self._chronicle.body,
        )

    # One reconcile.

    def _one(self, attempt: RecordedAttempt, resource: Resource | None) -> int:
        story = self._chronicle.story_of(attempt, resource)
        if self._given["raw"]:
            self._raw([attempt])
        elif self._form in FORMS:
            self._export(story)
        else:
            self._note()
            primaries = self._chronicle.primaries(story.runs, resource)
            primary = primaries.get(attempt.controller)
            showing = replace(self._showing(None), about=(primary, attempt.request) if primary else None)
            where = lookup.name_of(self._meant.cluster)
            style = replace(self._style, primaries=primaries)
            self._app.answer_all(Text(line) for line in waterfall_lines(attempt, showing, style, where=where))
        return 0

    # Objects of a type.

    def _objects(self, word: str) -> int:
        try:
            resource, controller = lookup.type_of(self._meant, word), ""
        except NotRecorded:
            # `trace scaler`: the name of a controller selects all its objects.
            if not self._chronicle.knows(word):
                raise
            resource, controller = None, word
        namespace = "" if self._meant.everywhere else self._meant.namespace
        if self._given["watch"]:
            if resource is None:
                raise UsageError(f"-w follows a type, and {word!r} is a controller.")
            return self._follow(
                FollowedObjects(
                    chronicle=self._chronicle, resource=resource, key=None, namespace=namespace, since=self._since
                )
            )
        subjects = self._chronicle.subjects(resource, controller, namespace)
        if self._form in FORMS or self._given["raw"]:
            story = self._chronicle.story_of_all(resource, subjects, last=self._last, since=self._since)
            if self._given["raw"]:
                self._raw(story.attempts)
            else:
                self._export(story)
            return 0
        self._note()
        if not subjects:
            where = f"namespace {namespace} (-A for all)" if namespace else "any namespace"
            what = resource.plural if resource else word
            self._app.narrate(f"No {what} are recorded in {where} of {lookup.cluster_text(self._meant.cluster)}.")
            return 0
        lines = subject_lines(
            subjects,
            now=self._now,
            namespaces=self._meant.everywhere,
            wide=self._form == "wide",
            style=replace(self._style, primaries=self._chronicle.primaries(self._chronicle.runs, resource)),
        )
        self._app.answer_all(map(Text, lines))
        return 0

    # The answer.

    def _note(self) -> None:
        if note := note_of(self._meant, self._style):
            self._app.answer(note)

    def _raw(self, attempts: Iterable[RecordedAttempt]) -> None:
        # Encoded again as ASCII: JSON allows some control characters that a terminal must not get.
        self._app.answer_all(json.dumps(json.loads(encoded(attempt)), separators=(",", ":")) for attempt in attempts)

    def _export(self, story: Story) -> None:
        if note := note_of(self._meant, self._style):
            self._app.narrate(note)
        self._app.answer_all(map(verbatim, export(self._form, story)), end="")


def since(text: str, now: float, *, utc: bool) -> float | None:
    """The time of --since."""
    if not text:
        return None
    for reading in (_age, _date, _time_of_day):
        moment = reading(text, now, utc)
        if moment is not None:
            return moment
    raise UsageError(
        f"Invalid value for --since: {text!r}.", next_step="write it like 90s, 1h30m, 10:04 or 2026-01-31T10:04:00Z"
    )


_Reading = Callable[[str, float, bool], float | None]


def _age(text: str, now: float, utc: bool) -> float | None:
    try:
        return now - parse_duration(text)
    except ValueError:
        return None


def _date(text: str, now: float, utc: bool) -> float | None:
    try:
        return parse_rfc3339(text)
    except ValueError:
        pass
    try:
        plain = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (plain.replace(tzinfo=UTC) if utc else plain.astimezone()).timestamp()


def _time_of_day(text: str, now: float, utc: bool) -> float | None:
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    today = datetime.fromtimestamp(now, UTC) if utc else datetime.fromtimestamp(now, UTC).astimezone()
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    moment = today.replace(hour=hour, minute=minute, second=second, microsecond=0).timestamp()
    return moment if moment <= now else moment - 86400
