"""`trace` of an object without a recording: what its current state in the cluster shows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document, style_of
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.errors import CtrlError, NotFound, NotServed
from kubectl_ctrl.findings.inference import InferredState
from kubectl_ctrl.render.inference import inferred_json, inferred_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.trace.tree import tree_lines
from kubectl_ctrl.story.cluster_view import infer_object
from kubectl_ctrl.story.lookup import split_words
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.story.tree import TreeRoot, owner_tree
from kubectl_ctrl.text import Text

_FORMS = ("text", "wide", "json", "jsonl", "yaml")


def instead(
    app: App, given: ParsedCommandLine, query: Query, words: Sequence[str], error: CtrlError, *, form: str
) -> int:
    """Print what the object's state shows, or raise the error."""
    _, name = split_words(words)
    # With --from, only that file counts: the current cluster may be another one.
    if not name or form not in _FORMS or given.flags.get("watch") or given["from"]:
        raise error
    found, why = infer_object(query, words)
    if found is None:
        raise _combined(error, why)
    match form:
        case "json" | "yaml":
            app.answer(document(inferred_json(found), form))
        case "jsonl":
            app.answer(json.dumps(inferred_json(found)))
        case _:
            app.answer_all(_lines(given, query, found, style_of(app, given)))
    return 0


def _lines(given: ParsedCommandLine, query: Query, found: InferredState, style: Style) -> Sequence[str]:
    lines = [Text(line) for line in inferred_lines(found, style, now=found.at)]
    if not given.flags.get("tree"):
        return lines
    tree = owner_tree(query, TreeRoot(cluster=None, resource=found.resource, key=found.key, uid=found.uid))
    notes = [tree.note] if tree.note else []
    return [*map(Text, tree_lines(tree.tree, style, now=found.at)), *notes, "", *lines]


def _combined(error: CtrlError, why: CtrlError | None) -> CtrlError:
    """The error for the user: NotFound of the object, or else NotRecorded with the error of the cluster."""
    if why is None:
        return error
    if isinstance(why, NotFound) and not isinstance(why, NotServed):
        why.tried = error.message
        return why
    asked = f"the cluster did not answer: {why.message}"
    error.tried = f"{error.tried.rstrip('.')}; {asked}" if error.tried else asked
    return error
