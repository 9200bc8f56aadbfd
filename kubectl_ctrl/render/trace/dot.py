"""A recording as a graph of causes for Graphviz: writers, changes, and the attempts that they triggered.

An attempt is a rounded box; a change of an object is a note. Arrows lead from cause to effect: from a change to the
attempt that it triggered, from an attempt to its changes, from a change to the next one of the object, and from an
attempt to its retry or timer. So each chain of causes is a row, to be read from left to right.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedAttempt, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempts import call_text, cause_text, difference_text, outcome_text
from kubectl_ctrl.render.style import Style, timestamp
from kubectl_ctrl.render.trace.links import Writers, all_calls, writers
from kubectl_ctrl.text import cut, escaped
from kubectl_ctrl.value import Struct, field

_STYLE = Style(unicode=True, zone=UTC)
_WIDEST = 60


class _Graph(Struct):
    """The nodes and edges found so far."""

    wrote: Writers
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node -> lines of its label
    edges: list[str] = field(default_factory=list)
    steps: set[tuple[str, str]] = field(default_factory=set)
    names: dict[tuple[str, str], str] = field(default_factory=dict)  # (UID, version) -> node

    def change(self, uid: str, version: str, *lines: str) -> str:
        """The node of a change; a write and a cause with the same version are the same change."""
        known = self.names.get((uid, version)) if uid and version else None
        if known is not None:
            return known
        node = f"c{len(self.changes) + 1}"
        self.changes[node] = tuple(filter(None, (*lines, f"version {version}" if version else "")))
        if uid and version:
            self.names[uid, version] = node
        return node

    def follows(self, uid: str, version: str, node: str) -> None:
        """An arrow from the change before, if that is known and has none yet."""
        before = self.names.get((uid, version))
        if before not in (None, node) and (before, node) not in self.steps:
            self.steps.add((before, node))
            self.edge(before, node, "then", "dotted")

    def edge(self, source: str, target: str, label: str = "", style: str = "solid") -> None:
        shown = f"label={quoted(label)}, " if label else ""
        self.edges.append(f"{source} -> {target} [{shown}style={style}]")


def document(story: Story) -> Iterator[str]:
    graph = _Graph(writers(story.attempts))
    nodes = {attempt.id: f"a{place}" for place, attempt in enumerate(story.attempts, 1)}
    yield 'digraph "kubectl-ctrl" {\n'
    yield '  graph [rankdir=LR, fontname="sans-serif", fontsize=11]\n'
    yield '  node [fontname="sans-serif", fontsize=10]\n  edge [fontname="sans-serif", fontsize=9]\n'
    for attempt in story.attempts:
        _causes(attempt, nodes, graph)
        _writes(attempt, nodes[attempt.id], graph)
    # Graphviz puts the first node lowest.
    for attempt in reversed(story.attempts):
        label = (f"{attempt.id} {attempt.request}", timestamp(attempt.started, _STYLE), outcome_text(attempt))
        failed = attempt.verdict is None or attempt.failed or attempt.outcome == Outcome.DROPPED
        double = ", peripheries=2, color=firebrick" if failed else ""  # visible on paper too
        yield f"  {nodes[attempt.id]} [shape=box, style=rounded{double}, label={quoted(*label)}]\n"
    for node, lines in graph.changes.items():
        yield f"  {node} [shape=note, label={quoted(*lines)}]\n"
    yield from (f"  {edge}\n" for edge in graph.edges)
    yield "}\n"


def quoted(*lines: str) -> str:
    """A string of several lines. Within quotes Graphviz interprets backslashes and HTML entities."""
    safe = (cut(escaped(line), _WIDEST).replace("&", "&amp;").replace("\\", "\\\\") for line in lines)
    return '"' + "\\n".join(safe).replace('"', '\\"') + '"'


def _causes(attempt: RecordedAttempt, nodes: dict[str, str], graph: _Graph) -> None:
    for cause in attempt.causes:
        if cause.attempt:
            # An attempt that is not part of this graph gets a node by its name.
            source = nodes.get(cause.attempt) or quoted(cause.attempt)
            graph.edge(source, nodes[attempt.id], cause.kind.value, "dashed")
        else:
            about = _object(cause.resource, cause.key) if cause.key else ""
            node = graph.change(cause.uid, cause.new_version, about, cause_text(cause, _STYLE, cause.resource))
            graph.edge(node, nodes[attempt.id])
            if cause.old_version and not cause.relisted:
                graph.follows(cause.uid, cause.old_version, node)


def _writes(attempt: RecordedAttempt, node: str, graph: _Graph) -> None:
    for made in all_calls(attempt):
        call = made.call
        if not call.write or (call.uid, call.new_version) not in graph.wrote:
            continue
        about = _object(call.resource, Key(call.namespace, call.name))
        changed = ", ".join(difference_text(one, _STYLE) for one in made.changes.shown[:2])
        graph.edge(node, graph.change(call.uid, call.new_version, about, changed), call_text(call))


def _object(resource: Resource | None, key: Key) -> str:
    return f"{resource.kind if resource else ''} {key}"
