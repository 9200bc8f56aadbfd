"""`record`: runs its actions; list, show and path are here."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output import answers
from kubectl_ctrl.cli.output.answers import style_of
from kubectl_ctrl.cli.parsing.subcommands import chosen
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.record import ACTIONS, OWN
from kubectl_ctrl.cli.verbs.table import attribute
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import NotRecorded, UsageError
from kubectl_ctrl.history.database import too_open
from kubectl_ctrl.history.inventory import Inventory, RunNumbers
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.pruning import file_size
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.render.inventory import inventory_json, run_json, run_lines, runs_table
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.story import lookup
from kubectl_ctrl.text import Text, nearest, size_text, verbatim
from kubectl_ctrl.value import Value, replace

_FORMS = (*answers.WORDS, "text")

_BODIES = {
    "list": "kubectl_ctrl.cli.verbs.record.main:show_all",
    "show": "kubectl_ctrl.cli.verbs.record.main:show_one",
    "path": "kubectl_ctrl.cli.verbs.record.main:show_path",
    "export": "kubectl_ctrl.cli.verbs.record.export:export",
    "prune": "kubectl_ctrl.cli.verbs.record.prune:prune",
}


def run(app: App, given: ParsedCommandLine) -> int:
    action, words = chosen(given, "record", ACTIONS, OWN)
    asked = RecordArguments(app=app, given=given, words=words)
    code: int = attribute(_BODIES[action])(asked)
    return code


class RecordArguments(Value, kw_only=True):
    """The command line of an action."""

    app: App
    given: ParsedCommandLine
    words: tuple[str, ...]  # after the action

    @property
    def file(self) -> Path:
        return Path(self.given["from"]).expanduser() if self.given["from"] else recording_file(self.app.user)

    @property
    def style(self) -> Style:
        return style_of(self.app, self.given)

    @property
    def cluster(self) -> str:
        """The name of the recorded cluster in the flags. kubectl's own flags also select a recorded one here."""
        return next((self.given[name] for name in ("recorded_cluster", "cluster", "context") if self.given[name]), "")

    def cluster_in(self, recording: Recording) -> str:
        """The key of the named cluster, the newest if several have the name; "" for all clusters."""
        return lookup.all_of_name(self.cluster, recording.clusters())[0].key if self.cluster else ""

    def no_more_words(self) -> None:
        if self.words:
            raise UsageError(
                f"record {self.given.arguments[0]} takes no {self.words[0]!r}.",
                next_step="kubectl ctrl record --help",
            )


def show_path(asked: RecordArguments) -> int:
    asked.no_more_words()
    asked.app.answer(str(asked.file))
    return 0


def show_all(asked: RecordArguments) -> int:
    asked.no_more_words()
    form = answers.printer(asked.given, _FORMS)
    try:
        found = _inventory(asked)
    except NotRecorded as error:
        if asked.given["from"] or asked.cluster:
            raise
        asked.app.narrate(f"{error.message} {error.next_step}.")
        found = Inventory(path=str(asked.file), size=0, now=SystemClock().now())
    pairs = zip(found.runs, inventory_json(found)["runs"], strict=True)
    found = replace(found, runs=tuple(run for run, _ in form.ordered(list(pairs), lambda pair: pair[1])))
    if form.form not in ("", "text", "wide"):
        answers.printed(asked.app, form, inventory_json(found), "runs", "run")
    elif found.runs:
        asked.app.answer(form.beheaded(runs_table(found, asked.style, wide=form.form == "wide")))
        asked.app.narrate(f"{found.path}: {size_text(found.size)}")
    return 0


def _inventory(asked: RecordArguments) -> Inventory:
    now = SystemClock().now()
    with opened(asked.file, now) as recording:
        cluster = asked.cluster_in(recording)
        if warning := too_open(asked.file):
            asked.app.narrate(warning)
        clusters = tuple(one for one in recording.clusters() if cluster in ("", one.key))
        return Inventory(
            path=str(asked.file),
            size=file_size(asked.file),
            clusters=clusters,
            runs=recording.filled(cluster=cluster),
            now=now,
        )


def show_one(asked: RecordArguments) -> int:
    form = answers.printer(asked.given, _FORMS)
    if len(asked.words) != 1:
        raise UsageError("record show takes one run.", next_step="kubectl ctrl record list names them")
    found = _inventory(asked)
    filled = run_of(found, asked.words[0])
    if form.form not in ("", "text", "wide"):
        fields = run_json(filled, found)
        asked.app.answer(verbatim(form.text(fields, [fields], [filled.run.id])), end="")
    else:
        asked.app.answer_all(map(Text, run_lines(filled, found, asked.style)))
    return 0


def run_of(found: Inventory, name: str) -> RunNumbers:
    """The run with that id, the newest if there are several."""
    for filled in found.runs:
        if filled.run.id == name:
            return filled
    names = [filled.run.id for filled in found.runs]
    hint = nearest(name, names) or "kubectl ctrl record list names those that are"
    raise NotRecorded(f"The recording {found.path!r} holds no run {name!r}.", next_step=hint)
