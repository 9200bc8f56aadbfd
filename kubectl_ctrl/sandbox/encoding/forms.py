"""The form of an answer, as the Accept header requests it: the object, its metadata alone, or a Table; JSON or YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson
import yaml

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.encoding import bodies, tables
from kubectl_ctrl.sandbox.intake import converted
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.sandbox.storage import StoredObject
from kubectl_ctrl.value import Value, replace

_STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_TARGETS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_INCLUDED = ("", "Metadata", "Object", "None")
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")
_TYPE = ("kind", "apiVersion")
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Clause(Value):
    """One part of an Accept header."""

    media: str
    options: Mapping[str, str]

    @property
    def target(self) -> str:
        return self.options.get("as", "")


class Form:
    """The form of the answers to one request. Raises the refusal of a form that is not offered."""

    def __init__(self, ask: ParsedRequest, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._headed = False  # a Table with columns was sent; later ones in a watch have none
        self._clause = _negotiated(ask)
        self._indented = _is_indented(self._clause, ask.query, ask.headers)
        self._rewritten = self._indented or self._clause.media == bodies.YAML
        self._head = b'{"kind":"%b","apiVersion":"%b",' % (
            ask.resource.kind.encode(),
            ask.resource.api_version.encode(),
        )
        self._include = ask.query.get("includeObject", "") if self._clause.target == "Table" else ""
        if self._include not in _INCLUDED:
            why = f"Invalid value: \"{self._include}\": must be 'Metadata', 'Object', 'None', or empty"
            raise answers.bad_request(f"Unable to convert to Table as requested: includeObject: {why}")

    @property
    def plain(self) -> bool:
        """Whether an answer has the form of the stored object."""
        return not self._clause.target and self._ask.resource.api_version == self._ask.kind.storage_api_version

    def of(self, obj: Obj) -> Obj:
        """The answer with one object."""
        if obj.get("kind") == "Status":
            return obj
        match self._clause.target:
            case "Table":
                meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
                return self._table([self._versioned(obj)], meta)
            case "PartialObjectMetadata":
                return self._partial(obj)
            case "PartialObjectMetadataList" if self._ask.verb != "watch":
                kind = self._ask.kind
                if kind.custom:
                    raise answers.unparsed("content is not a list")
                raise _unfit(f"PartialObjectMetadataList, but the requested object is not a list (*{_go_name(kind)})")
        return self._versioned(obj)

    def of_stored(self, stored: StoredObject) -> Any:
        """The answer with a stored object, whose JSON is not made again where it is the answer."""
        return orjson.Fragment(stored.encoded) if self._is_exact(stored) else self.of(stored.obj)

    def _is_exact(self, stored: StoredObject) -> bool:
        kind = self._ask.kind
        return self.plain and not self._rewritten and (not kind.custom or stored.version > kind.since)

    def listed(self, objects: list[StoredObject], meta: Obj) -> Obj:
        """The answer with a list of objects."""
        kind = self._ask.kind
        match self._clause.target:
            case "Table":
                return self._table([self._versioned(one.obj) for one in objects], meta)
            case "PartialObjectMetadata":
                name = "unstructured.UnstructuredList" if kind.custom else f"{_go_name(kind)}List"
                raise _unfit(f"PartialObjectMetadata, but the requested object is a list (*{name})")
            case "PartialObjectMetadataList":
                items = [self._partial(one.obj) for one in objects]
                return {"kind": self._clause.target, "apiVersion": self._meta_version, "metadata": meta, "items": items}
        resource = kind.resource
        if kind.custom:  # the encoder of lists of custom resources never omits it
            meta = {**meta, "continue": meta.get("continue", "")}
        items = [self._item(one) for one in objects]
        return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta, "items": items}

    def _item(self, stored: StoredObject) -> Any:
        """The items of built-in lists have no apiVersion and kind."""
        if self._ask.kind.custom:
            return self.of_stored(stored)
        if self._is_exact(stored) and stored.encoded.startswith(self._head):
            return orjson.Fragment(b"{" + stored.encoded[len(self._head) :])
        return {name: value for name, value in self._versioned(stored.obj).items() if name not in _TYPE}

    def response(self, shown: Any, status: int = 200) -> HttpResponse:
        return _shown(answers.answer(shown, status), shown, self._clause, self._indented)

    @property
    def _meta_version(self) -> str:
        return f"meta.k8s.io/{self._clause.options.get('v', 'v1')}"

    def _versioned(self, obj: Obj) -> Obj:
        if obj.get("kind") != self._ask.resource.kind or (self.plain and not self._ask.kind.custom):
            return obj
        return converted(self._ask.kind, obj)

    def _partial(self, obj: Obj) -> Obj:
        return {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version, "metadata": obj["metadata"]}

    def _table(self, objects: list[Obj], meta: Obj) -> Obj:
        now, kind = self._clock.now(), self._ask.kind
        table = tables.table(kind, objects, now, headers=not self._headed)
        self._headed = self._ask.verb == "watch"
        for row, obj in zip(table["rows"], objects, strict=True):
            row["object"] = self._included(obj)
        return {"kind": "Table", "apiVersion": self._meta_version, "metadata": meta, **table}

    def _included(self, obj: Obj) -> Obj | None:
        if self._include == "Object":
            return obj
        ends = _INITIAL_EVENTS_END in (obj["metadata"].get("annotations") or {})
        return None if self._include == "None" and not ends else self._partial(obj)


def refused(refusal: answers.Refusal, query: Mapping[str, str], headers: Mapping[str, str]) -> HttpResponse:
    """A refusal in the form that the client likes best."""
    response = refusal.response()
    clause = next(iter(_clauses(headers.get("accept", ""))), Clause(bodies.JSON, {}))
    if isinstance(refusal.body, str):
        return response
    return _shown(response, refusal.body, clause, _is_indented(clause, query, headers))


def _shown(response: HttpResponse, body: Any, clause: Clause, indented: bool) -> HttpResponse:
    """The response in YAML or with indents, if it is to have them."""
    media = bodies.YAML if clause.media == bodies.YAML else bodies.JSON
    if media == bodies.JSON and not indented:
        return response
    if media == bodies.YAML:
        encoded = yaml.dump(body, Dumper=_Dumper, allow_unicode=True)
    else:
        encoded = json.dumps(body, indent=2, ensure_ascii=False)
    return replace(response, body=encoded.encode(), headers={**response.headers, "content-type": media})


def _is_indented(clause: Clause, query: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    if clause.options.get("pretty") == "1":
        return True
    if given := query.get("pretty"):
        return given in ("1", "t", "T", "true", "TRUE", "True")
    return headers.get("user-agent", "").startswith(_BROWSERS)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Text that a YAML reader could take for a number or a time is in double quotes, and lines are kept."""
    style = "|" if "\n" in text else '"' if text[:1] in "0123456789.+-" else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def _negotiated(ask: ParsedRequest) -> Clause:
    """The first clause that the server can serve."""
    header, kind = ask.headers.get("accept", ""), ask.kind
    clauses = _clauses(header)
    if not clauses:
        return Clause(bodies.JSON, {})
    if not kind.custom and not any(clause.media in ("*/*", *bodies.MEDIA) for clause in clauses):
        # Refused before any code that knows of Tables.
        several = _STREAMS if ask.verb in ("list", "watch") else ()
        why = f"406: Not Acceptable\n\nAvailable representations: {', '.join((*bodies.MEDIA, *several))}"
        raise answers.Refusal(406, {**answers.status(406, "NotAcceptable", why), "details": {}})
    for clause in clauses:
        for media in bodies.MEDIA:
            if clause.media in (media, "application/*", "*/*") and _offered(clause, media, kind):
                return _streamed(ask, Clause(media, clause.options))
    raise _unacceptable(bodies.MEDIA)


def _streamed(ask: ParsedRequest, clause: Clause) -> Clause:
    if ask.verb == "watch" and clause.media == bodies.YAML:
        raise _unacceptable(_STREAMS)
    return clause


def _offered(clause: Clause, media: str, kind: ServedKind) -> bool:
    """Whether this media type is sent in this form. JSON is sent to those who would take protobuf."""
    options = clause.options
    stream = options.get("stream", "")
    if options.get("sv") or stream not in ("watch", "") or (stream and media == bodies.YAML):
        return False
    if not options.keys() & {"as", "g", "v"}:
        return not (kind.custom and media == bodies.PROTOBUF)
    if options.get("g") != "meta.k8s.io" or options.get("v") not in ("v1", "v1beta1"):
        return False
    return clause.target in _TARGETS and not (clause.target == "Table" and (media == bodies.PROTOBUF or kind.virtual))


def _clauses(header: str) -> list[Clause]:
    """The parts of an Accept header, best first."""
    found = []
    for part in filter(None, (part.strip() for part in header.split(","))):
        media, *pairs = (word.strip() for word in part.split(";"))
        options = {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in pairs)}
        found.append((_quality(options.pop("q", "1")), Clause("*/*" if media == "*" else media, options)))
    found.sort(key=lambda one: (-one[0], one[1].media.startswith("*"), one[1].media.endswith("*")))
    return [clause for _, clause in found]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _unacceptable(offered: tuple[str, ...]) -> answers.Refusal:
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return answers.Refusal(406, answers.status(406, "NotAcceptable", message))


def _unfit(what: str) -> answers.Refusal:
    return answers.Refusal(406, answers.status(406, "NotAcceptable", f"you requested {what}"))


def _go_name(kind: Any) -> str:
    """The internal Go type of a kind: `core.Pod`."""
    group = kind.resource.group.partition(".")[0]
    return f"{'core' if group in ('', 'events') else group}.{kind.resource.kind}"
