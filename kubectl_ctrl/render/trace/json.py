"""A story for machines: one document (`kubectl-ctrl.trace/v1`), or one attempt on each line.

docs/schemas/trace.v1.json describes every field. The document has one attempt to a line too, so that a long one is made
piece by piece and can be looked through with grep.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.attempt import Waiting
from kubectl_ctrl.model.record import Branch, Cluster, Lived, Moment, Played, Run, Story, Subject
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempt_json import attempt_json, said, stamp, time_json
from kubectl_ctrl.render.trace.links import Link, links

SCHEMA = "kubectl-ctrl.trace/v1"

Fields = dict[str, Any]


def lines(story: Story) -> Iterator[str]:
    for attempt in story.attempts:
        yield json.dumps(attempt_json(attempt, source=story.source)) + "\n"


def document(story: Story) -> Iterator[str]:
    """Fields in order; lists one item to a line."""
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
    """The document's fields; a list is an iterator, whose items are made when they are taken."""
    yield "schema", SCHEMA
    yield "time", stamp(story.at)
    yield "source", story.source.value
    yield "cluster", None if story.cluster is None else cluster_json(story.cluster)
    yield "resource", None if story.resource is None else resource_json(story.resource)
    yield "namespace", story.key.namespace if story.key else None
    yield "name", story.key.name if story.key else None
    yield "uid", story.uid
    yield "older", map(_lived_json, story.older)
    yield "runs", map(run_json, story.runs)
    yield "attempts", (attempt_json(attempt, source=story.source) for attempt in story.attempts)
    yield "links", map(link_json, links(story.attempts))
    yield "objects", map(_subject_json, story.subjects)
    yield "queue", (one for moment in story.moments for one in _queue_json(moment, story))
    yield "tree", None if story.tree is None else _branch_json(story.tree)


def cluster_json(cluster: Cluster) -> Fields:
    return {
        "key": cluster.key,
        "contexts": list(cluster.contexts),
        "servers": [server for server, _ in cluster.servers],
        "lastSeen": stamp(cluster.seen),
        "name": cluster.name or None,
        "provider": cluster.provider or None,
        "deleted": time_json(cluster.ended),
    }


def resource_json(resource: Resource) -> Fields:
    return {
        "name": resource.full_name,
        "kind": resource.kind,
        "group": resource.group,
        "version": resource.version,
        "namespaced": resource.namespaced,
    }


def run_json(run: Run) -> Fields:
    return {
        "id": run.id,
        "context": run.context,
        "server": run.server,
        "namespace": run.namespace,
        "selector": run.labels,
        "controllers": [_played_json(played) for played in run.controllers],
        "pid": run.pid,
        "host": run.host,
        "program": run.program,
        "began": stamp(run.began),
        "lastSeen": stamp(run.seen) if run.seen else None,
        "ended": time_json(run.ended),
        "lostRows": run.gaps,
    }


def _played_json(played: Played) -> Fields:
    return {
        "name": played.name,
        "code": played.code,
        "primaries": [resource.full_name for resource in played.primaries],
        "owns": [resource.full_name for resource in played.owns],
        "watches": [resource.full_name for resource in played.watches],
        "manager": played.manager,
    }


def _lived_json(lived: Lived) -> Fields:
    return {
        "uid": lived.uid,
        "first": stamp(lived.first),
        "last": stamp(lived.last),
        "attempts": lived.attempts,
    }


def link_json(link: Link) -> Fields:
    """From cause to effect."""
    shown = {"kind": link.kind, "from": link.source, "to": link.target, "cause": link.cause}
    return shown | said({"call": link.call})


def _subject_json(subject: Subject) -> Fields:
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


def _queue_json(moment: Moment, story: Story) -> Iterator[Fields]:
    """What the queue held of the object, or of every object, when it was last heard of."""
    for entry in moment.state.entries:
        if story.key in (None, entry.request):
            yield _entry_json(moment, entry)


def _entry_json(moment: Moment, entry: Waiting) -> Fields:
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
