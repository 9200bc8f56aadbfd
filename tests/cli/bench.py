"""What `doctor` looks at, as its tests lay it out: programs that stand in for real ones, and a cluster in memory."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.query import CommandTarget
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.doctor import VERB
from kubectl_ctrl.cli.verbs.doctor.fixes import FixResult, fix_all
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster, Fitness, Note
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.doctor.checks import CheckInput, ClusterConnection, ConnectedCluster
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, load
from kubectl_ctrl.sandbox.answers import answer
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from kubectl_ctrl.user import User
from tests.objects import present

REVIEWS = "/apis/authorization.k8s.io/v1/self*reviews"
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def kubeconfig(server: str, *, context: str = "kind-ctrl") -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "contexts": [{"name": context, "context": {"cluster": "c", "user": "u", "namespace": "apps"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
    )


def program(folder: Path, name: str, script: str) -> Path:
    """A program of that name, as a script for sh."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


class Toy:
    """A provider whose clusters are as a test says."""

    def __init__(self, name: str, fitness: Fitness, lives: Mapping[str, ClusterState] | None = None) -> None:
        self.name = name
        self.lives = dict(lives or {})
        self.silent = False
        self.error: CtrlError | None = None
        self._fitness = fitness

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        return self._fitness

    async def foreign(self, name: str) -> str:
        return ""

    async def state(self, entry: ClusterEntry) -> ClusterState:
        if self.silent:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return self.lives.get(entry.name, ClusterState.ABSENT)

    async def create(self, entry: ClusterEntry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        raise NotImplementedError

    async def start(self, entry: ClusterEntry, note: Note) -> None:
        raise NotImplementedError

    async def load(self, entry: ClusterEntry, images: Sequence[str]) -> None:
        raise NotImplementedError

    async def logs(self, entry: ClusterEntry, folder: Path) -> None:
        raise NotImplementedError

    async def delete(self, entry: ClusterEntry, note: Note) -> None:
        self.lives[entry.name] = ClusterState.ABSENT


ABLE = Fitness(usable=True, text="toy v1 with a box")
UNABLE = Fitness(
    usable=False, text="nothing answers", next_step="start a box", missing={"box": "not installed", "lid": "not there"}
)


def app(folder: Path, **environ: str) -> App:
    """A process of a user whose home and state are that folder."""
    return App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(folder), "PATH": "", **environ}))


def given(*words: str) -> ParsedCommandLine:
    return present(VERB.parse(words, {}))


Look = Callable[[CheckInput], Coroutine[Any, Any, Sequence[Line]]]


class Layout:
    """A bench on a stage; `resolved` is what the kubeconfig means."""

    def __init__(self, stage: Stage, folder: Path, *words: str, version: str = "v1.36.3", **environ: str) -> None:
        self.stage = stage
        self.folder = folder
        path = folder / "kubeconfig"
        if not path.exists():
            path.write_text(kubeconfig("https://127.0.0.1:6443"))
        self.app = app(folder, KUBECONFIG=str(path), **environ)
        self.given = given(*words)
        self.version = version
        self.clock: Clock = stage.clock
        self.providers: dict[str, Toy] = {"toy": Toy("toy", ABLE)}
        self.reachable: BaseException | None = None

    @property
    def reached(self) -> ConnectedCluster:
        return ConnectedCluster(
            client=self.stage.client(),
            resolved=load(ConfigFlags(), self.app.user.environ, self.folder),
            cluster="c",
            user="jane",
            version=self.version,
        )

    def grant(self, *rules: Mapping[str, Any], incomplete: bool = False) -> None:
        """What the server says that we may do."""
        status = {"resourceRules": list(rules), "nonResourceRules": [], "incomplete": incomplete}
        body = {"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "status": status}
        rule = Match(path="/apis/authorization.k8s.io/v1/selfsubjectrulesreviews")
        self.stage.server.faults.answer(rule, answer(body, 201), times=None)

    def allow(self, allowed: Callable[[Mapping[str, Any]], bool]) -> None:
        """What it says of each single right."""
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        for may in (True, False):
            body = {"kind": "SelfSubjectAccessReview", "status": {"allowed": may}}
            rule = Match(
                path=path,
                when=lambda request, may=may: (  # type: ignore[misc]
                    allowed(json.loads(request.body or b"{}")["spec"]["resourceAttributes"]) is may
                ),
            )
            self.stage.server.faults.answer(rule, answer(body, 201), times=None)

    async def see(self, look: Look) -> list[Line]:
        """What a check says of it."""
        return list(await look(await self.bench()))

    async def bench(self) -> CheckInput:
        async def reached() -> ConnectedCluster:
            if self.reachable is not None:
                raise self.reachable
            return self.reached

        fits = {name: asyncio.create_task(one.fitness(ClusterSpec())) for name, one in self.providers.items()}
        task = asyncio.create_task(reached())
        await asyncio.gather(task, return_exceptions=True)
        return CheckInput(
            user=self.app.user,
            target=CommandTarget(self.app, self.given),
            clock=self.clock,
            narrate=self.app.narrate,
            providers=self.providers,
            fits=fits,
            reach=ClusterConnection(task),
        )

    async def fix_all(self) -> FixResult:
        return await fix_all(self.app, self.given, await self.bench())


def laid_out(folder: Path, *words: str, **environ: str) -> Layout:
    """A layout on a stage of its own."""
    return Layout(Stage(), folder, *words, **environ)


def told(lines: Sequence[Line]) -> list[tuple[str, str]]:
    return [(line.mark.value, line.text) for line in lines]
