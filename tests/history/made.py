"""Recordings for tests, made by the real Recorder from values of the model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.attempt import Observed
from kubectl_ctrl.model.record import Known, Played, Run
from kubectl_ctrl.model.resources import DEPLOYMENTS, Resource

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")
NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
FOO = Played(name="foo", word="foo", primaries=(FOOS,), owns=(DEPLOYMENTS,), manager="kubectl-ctrl-foo")
KNOWN = (
    Known(resource=FOOS, singular="foo"),
    Known(resource=DEPLOYMENTS, singular="deployment", short_names=("deploy",)),
)
# `tests/render/samples.py` has attempts of this run.
RUN = Run(
    id="r7f3",
    cluster="c1",
    context="kind-dev",
    server="https://127.0.0.1:6443",
    ca="ca1",
    namespace="default",
    controllers=(FOO,),
    pid=4121,
    host="laptop",
    holder="laptop.0_4121_r7f3",
    program="0.1.0",
    began=NOON,
)


def recording(folder: Path, *values: Observed, run: Run = RUN, known: Iterable[Known] = KNOWN) -> Path:
    """The path of a recording in which a run told this and ended; again with another run, it is in the same file."""
    path = folder / "history.db"
    recorder = Recorder(path, run, clock=SystemClock())
    recorder.know(known)
    for value in values:
        recorder.observe(value)
    recorder.close()
    assert not recorder.gaps
    return path
