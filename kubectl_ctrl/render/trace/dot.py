"""A story as a graph of causes for Graphviz: who wrote what, what that woke, and what it wrote in turn.

An attempt is a rounded box; a change of an object is a note. Arrows lead from cause to effect: from a change to what it
woke, from an attempt to what it changed, from a change to the next one of that object, and from an attempt to its retry
or timer. So each chain of causes becomes a row, to be read from left to right.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Recorded, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempts import call_text, cause_text, difference_text, outcome_text
from kubectl_ctrl.render.style import Style, timestamp
from kubectl_ctrl.render.trace.links import Writers, all_calls, writers
from kubectl_ctrl.text import cut, escaped
from kubectl_ctrl.value import Struct, field

_STYLE = Style(unicode=True, zone=UTC)
_WIDEST = 60


class _Graph(Struct):
    """What was found on the way through the attempts."""

    wrote: Writers
    changes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node -> lines of its label
    edges: list[str] = field(default_factory=list)
    steps: set[tuple[str, str]] = field(default_factory=set)
    names: dict[tuple[str, str], str] = field(default_factory=dict)  # (UID, version) -> node

    def change(self, uid: str, version: str, *lines: str) -> str:
        """The node of a change; one version of an object is one change, whoever tells of it."""
        known = self.names.get((uid, version)) if uid and version else None
        if known is not None:
            return known
        node = f"c{len(self.changes) + 1}"
        self.changes[node] = tuple(filter(None, (*lines, f"version {version}" if version else "")))
        if uid and version:
            self.names[uid, version] = node
        return node

    def follows(self, uid: str, version: str, node: str) -> None:
        """A change of a version that is known: an arrow, where there is none yet."""
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
    # Graphviz puts what it meets first lowest.
    for attempt in reversed(story.attempts):
        yield f"  {nodes[attempt.id]} [{_looks(attempt)}, label={quoted(*_label(attempt))}]\n"
    for node, label in graph.changes.items():
        yield f"  {node} [shape=note, label={quoted(*label)}]\n"
    yield from (f"  {edge}\n" for edge in graph.edges)
    yield "}\n"


def quoted(*lines: str) -> str:
    """A string of several lines. Within quotes Graphviz reads backslashes, and entities as in HTML."""
    safe = (cut(escaped(line), _WIDEST).replace("&", "&amp;").replace("\\", "\\\\") for line in lines)
    return '"' + "\\n".join(safe).replace('"', '\\"') + '"'


def _looks(attempt: Recorded) -> str:
    """A failure has a doubled border: on paper there is no red."""
    failed = attempt.verdict is None or attempt.failed or attempt.outcome == Outcome.DROPPED
    return "shape=box, style=rounded, peripheries=2, color=firebrick" if failed else "shape=box, style=rounded"


def _label(attempt: Recorded) -> tuple[str, ...]:
    return (f"{attempt.id} {attempt.request}", timestamp(attempt.started, _STYLE), outcome_text(attempt))


def _causes(attempt: Recorded, nodes: dict[str, str], graph: _Graph) -> None:
    for cause in attempt.causes:
        if cause.attempt:
            # One outside of what is told here gets its node by being named.
            source = nodes.get(cause.attempt) or quoted(cause.attempt)
            graph.edge(source, nodes[attempt.id], cause.kind.value, "dashed")
        else:
            about = _object(cause.resource, cause.key) if cause.key else ""
            node = graph.change(cause.uid, cause.new_version, about, cause_text(cause, _STYLE, cause.resource))
            graph.edge(node, nodes[attempt.id])
            if cause.old_version and not cause.relisted:
                graph.follows(cause.uid, cause.old_version, node)


def _writes(attempt: Recorded, node: str, graph: _Graph) -> None:
    for made in all_calls(attempt):
        call = made.call
        if not call.write or (call.uid, call.new_version) not in graph.wrote:
            continue
        about = _object(call.resource, Key(call.namespace, call.name))
        changed = ", ".join(difference_text(one, _STYLE) for one in made.changes.shown[:2])
        graph.edge(node, graph.change(call.uid, call.new_version, about, changed), call_text(call))


def _object(resource: Resource | None, key: Key) -> str:
    return f"{resource.kind if resource else ''} {key}"
