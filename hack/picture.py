"""Draws the picture of the README: records foo on a scripted cluster, and opens the page of its trace in Chromium.

Time is virtual and every jitter comes from a seed, so the recording is the same each time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from kubectl_ctrl import DEPLOYMENTS, Obj, name_of
from kubectl_ctrl.controllers import foo
from kubectl_ctrl.controllers.foo.reconciler import CONTROLLER, FOOS
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.record import RecordedController, RecordedRun, RecordedType
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage
from kubectl_ctrl.version import VERSION
from tests.browser.devtools import Page, browser

WIDTH, HEIGHT = 1200, 760
MOST = 200 * 1024  # bytes
FOO: Obj = {
    "apiVersion": FOOS.api_version,
    "kind": FOOS.kind,
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"deploymentName": "web", "replicas": 2},
}
RUN_ID = "r7f3"
SHOWN = f"{RUN_ID}-5"  # the reconcile whose details the picture shows
READ_AT = "2026-01-01 00:01:00"
AS_THE_CLUSTER = {"subresource": "status", "manager": "kube-controller-manager"}
QUOTA = "exceeded quota: pods, requested: 2, used: 4, limited: 4"


class Play:
    """Half a minute of one Foo: edits, a quota, and two changes by other people."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.server = self.stage.server
        self.stage.install(Path(foo.__file__).parent / "crd.yaml")

    async def perform(self) -> None:
        self.answer_slowly()
        async with self.stage.running(CONTROLLER, run_id=RUN_ID):
            await self.stage.rest(1)
            self.server.create(FOO, manager="kubectl-create")
            await self.roll_out(0, 2)
            self.server.change(FOOS, "web", {"spec": {"replicas": 4}}, manager="kubectl-patch")
            await self.roll_out(2, 4)
            self.refuse_for_quota(times=3)
            self.server.change(FOOS, "web", {"spec": {"replicas": 6}}, manager="kubectl-patch")
            await self.stage.rest(6)
            await self.roll_out(4, 6)
            self.server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, manager="kubectl-scale")
            await self.roll_out(6, 6)
            self.server.delete(DEPLOYMENTS, "web")
            await self.roll_out(0, 6)

    def answer_slowly(self) -> None:
        faults = self.server.faults
        faults.delay(Match(plural="foos", subresource="status"), before=0.03, after=0.02, times=None)
        faults.delay(Match(verb="create patch", plural="deployments"), before=0.05, after=0.04, times=None)

    def refuse_for_quota(self, *, times: int) -> None:
        self.server.faults.clear()
        message = f'deployments.apps "web" is forbidden: {QUOTA}'
        self.server.faults.fail(
            Match(verb="patch", plural="deployments"), 403, reason="Forbidden", message=message, times=times
        )
        self.answer_slowly()

    async def roll_out(self, before: int, replicas: int) -> None:
        """Set the Deployment's status as the cluster does: one pod after another becomes ready."""
        await self.stage.rest(0.6)
        for ready in range(before, replicas + 1):
            found = self.server.get(DEPLOYMENTS, "web")
            if found is None:
                raise LookupError("foo has not created its Deployment.")
            self.server.change(DEPLOYMENTS, name_of(found), status(found, ready, replicas), **AS_THE_CLUSTER)
            await self.stage.rest(0.7)


def status(deployment: Obj, ready: int, replicas: int) -> Obj:
    counts = dict.fromkeys(("replicas", "updatedReplicas"), replicas)
    counts |= dict.fromkeys(("readyReplicas", "availableReplicas"), ready)
    available = {"type": "Available", "status": "True" if ready == replicas else "False"}
    generation = deployment["metadata"]["generation"]
    return {"status": {**counts, "observedGeneration": generation, "conditions": [available]}}


def record(file: Path) -> None:
    """Record the play in a file."""

    async def performed() -> Stage:
        play = Play()
        await play.perform()
        return play.stage

    stage = run_virtual(performed)
    played = RecordedController(
        name="foo", word="foo", primaries=(FOOS,), owns=(DEPLOYMENTS,), manager=CONTROLLER.field_manager
    )
    run = RecordedRun(
        id=RUN_ID,
        cluster="ctrl",
        context="kind-ctrl",
        server="https://127.0.0.1:6443",
        namespace="default",
        controllers=(played,),
        pid=4121,
        host="laptop",
        program=VERSION,
        began=stage.attempts[0].start.queued_at - 1,
    )
    recorder = Recorder(file, run, clock=stage.clock)
    recorder.know(
        [RecordedType(resource=FOOS, singular="foo"), RecordedType(resource=DEPLOYMENTS, singular="deployment")]
    )
    for value in stage.observed:
        recorder.observe(value)
    recorder.close()


def page(recording: Path) -> str:
    command = [sys.executable, "-m", "kubectl_ctrl", "trace", "foo/web", "--last=0", "--utc", "--output=html"]
    command.append(f"--from={recording}")
    env = {"PATH": os.defpath, "HOME": str(recording.parent), "LANG": "C.UTF-8", "TZ": "UTC"}
    html = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=env, text=True).stdout
    # The time of reading is the only text on the page that the recording does not decide.
    return re.sub(r"\bas of [0-9: -]+ UTC", f"as of {READ_AT} UTC", html)


def draw(window: Page, html: Path, picture: Path) -> None:
    window.look_at(html, width=WIDTH, height=HEIGHT)
    window.settle()
    window.run(f"choose(byId.get('{SHOWN}'))")
    window.settle()
    window.run("scrollTo(0, 0)")
    window.picture(picture)


def main(program: str, picture: Path) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording, html = folder / "foo.db", folder / "trace.html"
        record(recording)
        html.write_text(page(recording), encoding="utf-8")
        with browser(program, folder / "profile") as window:
            draw(window, html, picture)
    size = picture.stat().st_size
    if size > MOST:
        print(f"{picture} has {size} bytes; at most {MOST} are allowed.", file=sys.stderr)
        return 1
    print(f"{picture}: {size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
