"""One recorded attempt as a file, for bug reports and tests.

A case has the input of the reconciler (request, objects that it read, times, seed) and its output (requested changes,
events, outcome). `dumps` writes one JSON document for people to read and compare: fields in order of time, each object
once and under its name, no empty fields. `loads` reads edited documents, and reports the place of an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from kubectl_ctrl.errors import RecordingError, StatusCause
from kubectl_ctrl.model.attempt import Intent, ObjectRead, Outcome, OutsideResult, RaisedError, Verdict, WriteRequest
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.masking import masked, masked_value
from kubectl_ctrl.model.objects import Key, Obj, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.record import Changes, RecordedAttempt, RecordedCause, RecordedRun
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.casetext import DocumentPart, is_too_deep, read_difference, shown_difference
from kubectl_ctrl.value import Value, replace

SCHEMA = "kubectl-ctrl.case/v1"

# Characters that JSON does not escape, and that control a terminal or the direction of text.
_INVISIBLE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class ReplayCase(Value, kw_only=True):
    """One attempt with everything that a replay needs, including the objects that it read and was answered with."""

    controller: str
    word: str = ""  # the controller as the user typed it
    code: str = ""  # path of the code of a user's controller
    settings: tuple[tuple[str, str], ...] = ()  # of the controller
    primaries: tuple[Resource, ...] = ()
    program: str = ""  # version of kubectl-ctrl
    attempt: RecordedAttempt


def case_of(attempt: RecordedAttempt, run: RecordedRun | None = None) -> ReplayCase:
    """The case of an attempt from `Recording.replayable`, and of its run."""
    played = next((one for one in (run.controllers if run else ()) if one.name == attempt.controller), None)
    if run is None or played is None:
        return ReplayCase(controller=attempt.controller, attempt=attempt)
    return ReplayCase(
        controller=attempt.controller,
        word=played.word,
        code=played.code,
        settings=played.settings,
        primaries=played.primaries,
        program=run.program,
        attempt=attempt,
    )


def dumps(case: ReplayCase) -> str:
    """The case as a document, with a newline at its end."""
    text = json.dumps(_Document().case(case), indent=2, ensure_ascii=False) + "\n"
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def loads(text: str | bytes, name: str = "the case file") -> ReplayCase:
    """The case of a document; raises RecordingError."""
    try:
        plain = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{name} is not JSON: {error}.", next_step=_MAKE) from None
    if is_too_deep(plain):
        raise RecordingError(f"{name} cannot be read: it is nested too deeply.", next_step=_MAKE)
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != SCHEMA:
        if isinstance(schema, str) and schema.startswith("kubectl-ctrl.case/"):
            text = f"{name} has the schema {schema!r}, and this version of kubectl-ctrl supports {SCHEMA!r}."
        else:
            text = f"{name} is not a case file: its schema is {schema!r}, expected {SCHEMA!r}."
        raise RecordingError(text, next_step=_MAKE)
    try:
        return _Loading(DocumentPart(plain)).case()
    except ValueError as error:
        raise RecordingError(f"{name} cannot be read: {error}.", next_step=_MAKE) from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON")


_MAKE = "create a case file with kubectl ctrl record export RUN-N"


def _full(fields: dict[str, Any]) -> dict[str, Any]:
    """Without empty fields."""
    return {name: value for name, value in fields.items() if value not in ("", None, [], {}, ())}


class _Document:
    """A document being written, with the types and objects that are listed at its end."""

    def __init__(self) -> None:
        self._types: dict[str, Resource] = {}
        self._objects: dict[str, Obj] = {}

    def case(self, case: ReplayCase) -> dict[str, Any]:
        attempt = case.attempt
        document = {
            "schema": SCHEMA,
            "attempt": attempt.id,
            "program": case.program,
            "controller": _full(
                {
                    "name": case.controller,
                    "word": case.word,
                    "code": case.code,
                    "settings": dict(case.settings),
                    "for": [self._type(one) for one in case.primaries],
                }
            ),
            "request": _full({"namespace": attempt.request.namespace, "name": attempt.request.name}),
            "uid": attempt.uid,
            "why": [self._why(one) for one in attempt.causes],
            "causes": attempt.causes_total,
            "try": attempt.try_no,
            "queued": attempt.queued_at,
            "started": attempt.started,
            "waited": attempt.waited,
            "took": attempt.took,
            "seed": str(attempt.seed),
            "times": list(attempt.times),
            "reads": [self._read(one) for one in attempt.reads],
            "outside": [_outside(one) for one in attempt.outside],
            "wishes": [self._wish(one) for one in attempt.wishes],
            "events": [
                {"type": one.type, "reason": one.reason, "message": one.message, "about": list(one.about)}
                for one in attempt.intents
            ],
            "outcome": _outcome(attempt.verdict),
        }
        kept = _full(document)
        parts = ("group", "version", "plural", "kind", "namespaced")
        kept["types"] = {
            name: {part: getattr(self._types[name], part) for part in parts} for name in sorted(self._types)
        }
        kept["objects"] = {name: self._objects[name] for name in sorted(self._objects)}
        return kept

    def _type(self, resource: Resource | None) -> str:
        if resource is None:
            return ""
        # As kubectl writes it: deployments.v1.apps.
        name = ".".join(filter(None, (resource.plural, resource.version, resource.group)))
        self._types[name] = resource
        return name

    def _object(self, obj: Obj, resource: Resource) -> str:
        """The name of the object in the document; another form of the same version gets a number."""
        shown, _ = masked(obj, resource)
        place = "/".join(filter(None, (namespace_of(obj), name_of(obj))))
        plain = f"{resource.kind} {place} @{version_of(obj)}"
        label, number = plain, 1
        while label in self._objects and self._objects[label] != shown:
            number += 1
            label = f"{plain} ({number})"
        self._objects[label] = shown
        return label

    def _found(self, found: Iterable[tuple[str, str]], objects: Iterable[Obj], resource: Resource) -> list[Any]:
        """The names of the objects; UID and version of those that are not stored."""
        kept = {(uid_of(obj), version_of(obj)): self._object(obj, resource) for obj in objects}
        return [kept.get(one) or {"uid": one[0], "version": one[1]} for one in found]

    def _read(self, read: ObjectRead) -> dict[str, Any]:
        fields: dict[str, Any] = {"verb": read.verb, "of": self._type(read.resource), "query": read.query}
        fields |= {"wishes": read.wishes} if read.wishes else {}
        if read.raised is not None:
            return fields | {"error": _error(read.raised)}
        return fields | {"found": self._found(read.found, read.objects, read.resource)}

    def _wish(self, wish: WriteRequest) -> dict[str, Any]:
        fields = _full(
            {
                "verb": wish.verb,
                "of": self._type(wish.resource),
                "namespace": wish.key.namespace,
                "name": wish.key.name,
                "options": dict(wish.options),
            }
        )
        if wish.body:
            fields["body"] = masked(json.loads(wish.body), wish.resource)[0]
        if wish.raised is not None:
            return fields | {"error": _error(wish.raised)}
        answer = _full({"how": wish.how})
        if wish.uid and wish.how != "given":
            objects = () if wish.answer is None else (wish.answer,)
            answer["object"] = self._found([(wish.uid, wish.version)], objects, wish.resource)[0]
        return fields | {"answer": answer}

    def _why(self, why: RecordedCause) -> dict[str, Any]:
        return _full(
            {
                "kind": why.kind.value,
                "at": why.at,
                "of": self._type(why.resource),
                "object": list(why.key) if why.key is not None else None,
                "uid": why.uid,
                "from": why.old_version,
                "to": why.new_version,
                "relisted": why.relisted or None,
                "attempt": why.attempt,
                "count": why.count or None,
                "detail": why.detail,
                "by": list(why.writers),
                "changes": [shown_difference(one) for one in why.changes.shown],
                "changed": why.changes.total or None,
            }
        )


def _outside(one: OutsideResult) -> dict[str, Any]:
    if one.raised is not None:
        return {"name": one.name, "error": _error(one.raised)}
    if not one.value:
        return {"name": one.name}
    value = json.loads(one.value)
    return {"name": one.name, "value": masked_value(value, one.name)}


def _error(raised: RaisedError) -> dict[str, Any]:
    causes = [_full({"reason": one.reason, "message": one.message, "field": one.field}) for one in raised.causes]
    return _full(
        {
            "class": raised.error,
            "message": raised.message,
            "code": raised.code or None,
            "reason": raised.reason,
            "causes": causes,
            "verb": raised.verb,
            "target": raised.target,
            "retryAfter": raised.retry_after,
            "next": raised.next_step,
        }
    )


def _outcome(verdict: Verdict | None) -> dict[str, Any]:
    if verdict is None:
        return {}
    return _full(
        {
            "outcome": verdict.outcome.value,
            "delay": verdict.delay or None,
            "message": verdict.message,
            "error": verdict.error_id,
            "where": verdict.where,
            "last": verdict.last or None,
        }
    )


class _Loading:
    """A document being read; a ValueError names the invalid place."""

    def __init__(self, document: DocumentPart) -> None:
        self._document = document
        self._types = {name: _load_type(part) for name, part in document.part("types", {}).items()}
        self._objects: dict[str, Obj] = {}
        for name, part in document.part("objects", {}).items():
            meta = part.part("metadata")
            meta.text("namespace", "")  # raises if it is not a string
            for field in ("name", "uid", "resourceVersion"):
                meta.name(field)
            self._objects[name] = part.an_object()

    def case(self) -> ReplayCase:
        of = self._document
        controller = of.part("controller")
        return ReplayCase(
            controller=controller.name("name"),
            word=controller.text("word", ""),
            code=controller.text("code", ""),
            settings=tuple((name, part.a_text()) for name, part in controller.part("settings", {}).items()),
            primaries=tuple(self._type(part) for part in controller.parts("for")),
            program=of.text("program", ""),
            attempt=self._attempt(of, controller.name("name")),
        )

    def _attempt(self, of: DocumentPart, controller: str) -> RecordedAttempt:
        request = of.part("request")
        return RecordedAttempt(
            id=of.name("attempt"),
            controller=controller,
            request=Request(request.text("namespace", ""), request.name("name")),
            uid=of.text("uid", ""),
            causes=tuple(self._why(part) for part in of.parts("why")),
            causes_total=of.number("causes", 0),
            try_no=of.number("try", 1),
            queued_at=of.moment("queued", 0.0),
            started=of.moment("started", 0.0),
            waited=of.moment("waited", 0.0),
            took=of.moment("took", 0.0) if of.has("took") else None,
            seed=of.seed("seed"),
            times=tuple(part.a_moment() for part in of.parts("times")),
            reads=tuple(self._read(part) for part in of.parts("reads")),
            outside=tuple(_load_outside(part) for part in of.parts("outside")),
            wishes=tuple(self._wish(part) for part in of.parts("wishes")),
            intents=tuple(_load_event(part) for part in of.parts("events")),
            verdict=_load_outcome(of.part("outcome")) if of.has("outcome") else None,
        )

    def _type(self, part: DocumentPart) -> Resource:
        return part.one_of(self._types, "a name among `types`")

    def _found(self, part: DocumentPart) -> tuple[tuple[str, str], Obj | None]:
        if isinstance(part.value, str):
            obj = part.one_of(self._objects, "a name among `objects`")
            return (uid_of(obj), version_of(obj)), obj
        return (part.text("uid"), part.text("version")), None

    def _read(self, part: DocumentPart) -> ObjectRead:
        found = [self._found(one) for one in part.parts("found")]
        return ObjectRead(
            verb=part.text("verb"),
            resource=self._type(part.part("of")),
            query=part.text("query"),
            wishes=part.number("wishes", 0),
            found=tuple(version for version, _ in found),
            objects=tuple(obj for _, obj in found if obj is not None),
            raised=_load_error(part.part("error")) if part.has("error") else None,
        )

    def _wish(self, part: DocumentPart) -> WriteRequest:
        answer = part.part("answer", {})
        wish = WriteRequest(
            verb=part.name("verb"),
            resource=self._type(part.part("of")),
            key=Key(part.text("namespace", ""), part.text("name", "")),
            body=part.part("body").as_json() if part.has("body") else "",
            options=tuple((name, one.a_text()) for name, one in part.part("options", {}).items()),
            how=answer.text("how", ""),
            raised=_load_error(part.part("error")) if part.has("error") else None,
        )
        if not answer.has("object"):
            return wish
        (uid, version), obj = self._found(answer.part("object"))
        return replace(wish, uid=uid, version=version, answer=obj)

    def _why(self, part: DocumentPart) -> RecordedCause:
        changes = tuple(read_difference(one) for one in part.parts("changes"))
        total = part.number("changed", len(changes))
        if total < len(changes):
            raise part.part("changed").wrong(f"at least {len(changes)}, the number of changes listed")
        return RecordedCause(
            kind=CauseKind(part.word("kind", [kind.value for kind in CauseKind])),
            at=part.moment("at", 0.0),
            resource=self._type(part.part("of")) if part.has("of") else None,
            key=_load_key(part.part("object")) if part.has("object") else None,
            uid=part.text("uid", ""),
            old_version=part.text("from", ""),
            new_version=part.text("to", ""),
            relisted=part.flag("relisted"),
            attempt=part.text("attempt", ""),
            count=part.number("count", 0),
            detail=part.text("detail", ""),
            writers=tuple(one.a_text() for one in part.parts("by")),
            changes=Changes(shown=changes, total=total),
        )


def _load_type(part: DocumentPart) -> Resource:
    names = (part.text("group"), part.text("version"), part.text("plural"), part.text("kind"))
    return Resource(*names, namespaced=part.flag("namespaced"))


def _load_key(part: DocumentPart) -> Key:
    namespace, name = part.two_texts()
    return Key(namespace, name)


def _load_event(part: DocumentPart) -> Intent:
    return Intent(
        type=part.text("type"),
        reason=part.text("reason"),
        message=part.text("message"),
        about=_load_key(part.part("about")),
    )


def _load_outside(part: DocumentPart) -> OutsideResult:
    if part.has("error"):
        return OutsideResult(name=part.text("name"), raised=_load_error(part.part("error")))
    return OutsideResult(name=part.text("name"), value=part.part("value").as_json() if part.has("value") else "")


def _load_error(part: DocumentPart) -> RaisedError:
    causes = tuple(
        StatusCause(reason=one.text("reason", ""), message=one.text("message", ""), field=one.text("field", ""))
        for one in part.parts("causes")
    )
    return RaisedError(
        error=part.name("class"),
        message=part.text("message", ""),
        code=part.number("code", 0),
        reason=part.text("reason", ""),
        causes=causes,
        verb=part.text("verb", ""),
        target=part.text("target", ""),
        retry_after=part.moment("retryAfter", 0.0) if part.has("retryAfter") else None,
        next_step=part.text("next", ""),
    )


def _load_outcome(part: DocumentPart) -> Verdict:
    return Verdict(
        outcome=Outcome(part.word("outcome", [one.value for one in Outcome])),
        delay=part.moment("delay", 0.0),
        message=part.text("message", ""),
        error_id=part.text("error", ""),
        where=part.text("where", ""),
        last=part.flag("last"),
    )
