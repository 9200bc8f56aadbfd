"""`record export`: writes one attempt as a case file, or runs and attempts as a new recording."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from kubectl_ctrl.cli.output.answers import note_of, style_of
from kubectl_ctrl.cli.parsing.query import query_of
from kubectl_ctrl.cli.verbs.record.main import RecordArguments
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import NotRecorded, UsageError
from kubectl_ctrl.history.extract import CopyResult, RowSelection, copy, create
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.replay.casefile import case_of, dumps
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.story import lookup
from kubectl_ctrl.text import counted, size_text, verbatim

_RUN = re.compile(r"r[0-9a-z]+")


def export(asked: RecordArguments) -> int:
    words = asked.words
    if bool(words) == asked.given["all"] or len(words) > 2:
        raise UsageError(
            "record export takes RUN-N, RUN, TYPE/NAME or --all.", next_step="kubectl ctrl record list names the runs"
        )
    if words and lookup.is_attempt(words[0]):
        _case(asked, words[0])
        return 0
    if asked.app.terminal and not asked.given["to"]:
        raise UsageError(
            "A recording is a binary file, and standard output is a terminal.",
            next_step=f"{asked.given.again('record')} > recording.db",
        )
    copied = _recording(asked, _chosen(asked))
    for table in copied.damaged:
        asked.app.narrate(f"The recording is damaged: only a part of its table {table!r} is readable.")
    runs, attempts = counted(copied.runs, "run"), counted(copied.attempts, "attempt")
    asked.app.narrate(f"{runs}, {attempts}, {size_text(copied.size)}.")
    return 0


def _case(asked: RecordArguments, word: str) -> None:
    if "-" not in word:
        raise UsageError(f"The run of attempt {word} is missing.", next_step="write RUN-N, like r7f3-12")
    with opened(asked.file, SystemClock().now()) as recording:
        attempt = recording.replayable(word.removeprefix("#"), cluster=asked.cluster_in(recording))
        text = dumps(case_of(attempt, recording.run(attempt.run)))
    if not asked.given["to"]:
        asked.app.answer(verbatim(text), end="")
        return
    target = _target(asked)
    create(target, text.encode())


def _target(asked: RecordArguments) -> Path:
    return Path(asked.given["to"]).expanduser()


def _chosen(asked: RecordArguments) -> RowSelection:
    words = asked.words
    if not words and not asked.cluster:
        return RowSelection(every=True)  # without reading a file that may be damaged
    with opened(asked.file, SystemClock().now()) as recording:
        cluster = asked.cluster_in(recording)
        if not words:
            return RowSelection(every=True, cluster=cluster)
        if len(words) == 1 and "/" not in words[0]:
            return RowSelection(runs=(_run(recording, words[0], cluster),), cluster=cluster)
    return _of_object(asked)


def _run(recording: Recording, word: str, cluster: str) -> str:
    if any(run.id == word for run in recording.runs(cluster=cluster)):
        return word
    if not _RUN.fullmatch(word):
        raise UsageError(f"{word!r} is neither RUN-N, RUN nor TYPE/NAME.", next_step="kubectl ctrl record --help")
    raise NotRecorded(
        f"The recording {str(recording.path)!r} holds no run {word!r}.",
        next_step="kubectl ctrl record list names those that are",
    )


def _of_object(asked: RecordArguments) -> RowSelection:
    """The attempts of an object, and those that it triggered or that wrote it."""
    meant = lookup.open_recording(query_of(asked.app, asked.given), asked.words)
    with meant.recording as recording:
        if note := note_of(meant, style_of(asked.app, asked.given)):
            asked.app.narrate(note)
        resource, key = lookup.object_of(meant, asked.words)
        cluster = meant.cluster.key
        found = {one.id for one in recording.attempts(cluster=cluster, resource=resource, key=key)}
        for uid in recording.uids(cluster, resource, key):
            found.update(one.id for one in recording.related(cluster=cluster, uid=uid))
        if not found:
            raise lookup.not_recorded(meant, resource, key)
    return RowSelection(attempts=tuple(sorted(found)), cluster=cluster)


def _recording(asked: RecordArguments, chosen: RowSelection) -> CopyResult:
    if asked.given["to"]:
        return copy(asked.file, _target(asked), chosen)
    # In a temporary folder until it is complete: a partial database cannot be opened.
    with TemporaryDirectory(prefix="kubectl-ctrl-") as folder:
        made = Path(folder) / "recording.db"
        copied = copy(asked.file, made, chosen)
        asked.app.out.flush()
        with made.open("rb") as whole, os.fdopen(os.dup(asked.app.out.fileno()), "wb") as out:
            shutil.copyfileobj(whole, out)
    return copied
