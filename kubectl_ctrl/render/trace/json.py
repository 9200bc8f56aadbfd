"""A trace as JSON: one document (`kubectl-ctrl.trace/v1`), or one attempt on each line.

docs/schemas/trace.v1.json describes every field. The document too has one attempt on each line, so that a long one is
written piece by piece and can be searched with grep.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.attempt import WaitingRequest
from kubectl_ctrl.model.record import Branch, Incarnation, RecordedObject, RecordedRun, RecordedState, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempt_json import attempt_json, cluster_fields, nonempty, stamp, time_json
from kubectl_ctrl.render.trace.links import Link, links

SCHEMA = "kubectl-ctrl.trace/v1"

Fields = dict[str, Any]


def lines(story: Story) -> Iterator[str]:
    for attempt in story.attempts:
        yield json.dumps(attempt_json(attempt, source=story.source)) + "\n"


def document(story: Story) -> Iterator[str]:
    """One field on each line, and one item of a list."""
    lead = "{"
    for name, value in fields(story):
        yield f"{lead}\n  {json.dumps(name)}: "
        lead = ","
        if not isinstance(value, Iterator):
            yield json.dumps(value)
            continue
        between = "["
        for item in value:
            yield f"{between}\n    {json.dumps(item)}"
            between = ","
        yield "[]" if between == "[" else "\n  ]"
    yield "\n}\n"


def fields(story: Story) -> Iterator[tuple[str, Any]]:
    """The fields of the document; a list is an iterator, to be written piece by piece."""
    queue = ((moment, entry) for moment in story.moments for entry in moment.state.entries)
    yield "schema", SCHEMA
    yield "time", stamp(story.at)
    yield "source", story.source.value
    yield "cluster", None if story.cluster is None else {"key": story.cluster.key, **cluster_fields(story.cluster)}
    yield "resource", None if story.resource is None else _resource_json(story.resource)
    yield "namespace", story.key.namespace if story.key else None
    yield "name", story.key.name if story.key else None
    yield "uid", story.uid
    yield "older", map(_lived_json, story.older)
    yield "runs", map(_run_json, story.runs)
    yield "attempts", (attempt_json(attempt, source=story.source) for attempt in story.attempts)
    yield "links", map(_link_json, links(story.attempts))
    yield "objects", map(_subject_json, story.subjects)
    yield "queue", (_entry_json(*each) for each in queue if story.key in (None, each[1].request))
    yield "tree", None if story.tree is None else _branch_json(story.tree)


def _resource_json(resource: Resource) -> Fields:
    return {
        "name": resource.full_name,
        "kind": resource.kind,
        "group": resource.group,
        "version": resource.version,
        "namespaced": resource.namespaced,
    }


def _run_json(run: RecordedRun) -> Fields:
    return {
        "id": run.id,
        "context": run.context,
        "server": run.server,
        "namespace": run.namespace,
        "selector": run.labels,
        "controllers": [
            {
                "name": played.name,
                "code": played.code,
                "primaries": [resource.full_name for resource in played.primaries],
                "owns": [resource.full_name for resource in played.owns],
                "watches": [resource.full_name for resource in played.watches],
                "manager": played.manager,
            }
            for played in run.controllers
        ],
        "pid": run.pid,
        "host": run.host,
        "program": run.program,
        "began": stamp(run.began),
        "lastSeen": stamp(run.seen) if run.seen else None,
        "ended": time_json(run.ended),
        "lostRows": run.gaps,
    }


def _lived_json(lived: Incarnation) -> Fields:
    return {"uid": lived.uid, "first": stamp(lived.first), "last": stamp(lived.last), "attempts": lived.attempts}


def _link_json(link: Link) -> Fields:
    shown = {"kind": link.kind, "from": link.source, "to": link.target, "cause": link.cause}
    return shown | nonempty({"call": link.call})


def _subject_json(subject: RecordedObject) -> Fields:
    return {
        "controller": subject.controller,
        "resource": subject.resource.full_name,
        "kind": subject.resource.kind,
        "namespace": subject.key.namespace,
        "name": subject.key.name,
        "uid": subject.uid,
        "attempts": subject.attempts,
        "failures": subject.failures,
        "first": stamp(subject.first),
        "last": attempt_json(subject.last),
    }


def _entry_json(moment: RecordedState, entry: WaitingRequest) -> Fields:
    return {
        "run": moment.run,
        "controller": moment.state.controller,
        "time": stamp(moment.state.at),
        "namespace": entry.request.namespace,
        "name": entry.request.name,
        "state": entry.state,
        "since": stamp(entry.since),
        "due": time_json(entry.due),
        "failures": entry.failures,
        "causes": entry.causes,
    }


def _branch_json(branch: Branch) -> Fields:
    return {
        "resource": branch.resource.full_name,
        "kind": branch.resource.kind,
        "namespace": branch.key.namespace,
        "name": branch.key.name,
        "uid": branch.uid,
        "ready": branch.ready,
        "reason": branch.reason,
        "created": time_json(branch.created),
        "source": branch.source.value,
        "time": stamp(branch.at),
        "owned": [_branch_json(one) for one in branch.branches],
    }
