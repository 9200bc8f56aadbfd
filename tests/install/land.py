"""What this room's tests share: a server, a client of it, and the parts of a made-up controller."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.install.apply import Applier, ApplyStep
from kubectl_ctrl.install.kinds import CLUSTERROLES
from kubectl_ctrl.install.parts import Parts
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, Resource
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.runtime.world import crd

THINGS = Resource("example.com", "v1", "things", "Thing")
ACCOUNT = "kubectl-ctrl-mine"
SYSTEM = "mine-system"


def role(*verbs: str) -> Obj:
    rule = {"apiGroups": ["example.com"], "resources": ["things"], "verbs": list(verbs)}
    return {
        "apiVersion": CLUSTERROLES.api_version,
        "kind": "ClusterRole",
        "metadata": {"name": ACCOUNT},
        "rules": [rule],
    }


def parts(**changed: Any) -> Parts:
    return Parts(**{"name": "mine", "crds": (crd(THINGS),), "rbac": (role("get", "list"),), **changed})


def thing(name: str, *finalizers: str, namespace: str = "default") -> Obj:
    meta: Obj = {"name": name, "namespace": namespace, "finalizers": list(finalizers)}
    return {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": meta, "spec": {}}


class Land:
    """Made inside run_virtual."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.server = ScriptedServer(self.clock)
        self.client = Client(self.server, clock=self.clock, rng=Random(1), user_agent="test")

    async def install(self, *, wanted: Sequence[Obj] | None = None, force: bool = False) -> list[ApplyStep]:
        """Look at everything, then do it; the steps as they were done."""
        applier = Applier(self.client, "mine", force=force)
        steps = await applier.plan(needs(parts()) if wanted is None else wanted)
        return [await applier.apply(step) for step in steps]

    def changes(self) -> list[str]:
        """Every write since the last call that changed something, by kind."""
        told = [f"{write.verb} {write.resource.kind}" for write in self.server.writes if write.changed]
        self.server.writes.clear()
        return told

    def crd(self) -> Obj:
        return present(self.server.get(CRDS, THINGS.full_name))
