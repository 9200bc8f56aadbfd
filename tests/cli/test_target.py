"""By which key a cluster is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from kubectl_ctrl.cli.target import cluster_id
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.kubeconfig import ConfigFlags, Resolved, load
from kubectl_ctrl.history import writer
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.server import ScriptedServer
from tests.history.made import RUN, recording

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: kind-dev
clusters: [{name: kind-dev, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: kind-dev, context: {cluster: kind-dev, user: me}}]
users: [{name: me, user: {token: not-a-token}}]
"""


def resolved(folder: Path) -> Resolved:
    config = folder / "kubeconfig"
    config.write_text(KUBECONFIG)
    return load(ConfigFlags(kubeconfig=str(config)), {}, folder)


def asked(place: Resolved, *known: str, forbidden: bool = True) -> str:
    async def main() -> str:
        clock = FakeClock()
        server = ScriptedServer(clock)
        if forbidden:
            server.faults.fail(Match(verb="get", plural="namespaces"), 403, times=None)
        return await cluster_id(Client(server, clock=clock, rng=Random(1), user_agent="test"), place, known)

    return run_virtual(main)


def test_who_may_not_look_goes_by_the_key_that_others_found(tmp_path: Path) -> None:
    place = resolved(tmp_path)
    said = asked(place)
    assert len(said) == 64, "nobody has looked: a hash of what the kubeconfig says"
    assert asked(place, said, "uid-new", "uid-old") == "uid-new"
    assert asked(place, "uid-old", forbidden=False) not in ("uid-old", said), "who may look does"


def test_a_recording_tells_the_keys_by_server_and_ca(tmp_path: Path) -> None:
    for at, (cluster, ca) in enumerate((("uid-old", "ca1"), ("uid-new", "ca1"), ("x", "ca2"))):
        recording(tmp_path, run=replace(RUN, id=f"r{at}", cluster=cluster, ca=ca, began=RUN.began + at))
    file = writer.prepare(tmp_path / "history.db")
    assert file.clusters == {(RUN.server, "ca1"): ("uid-new", "uid-old"), (RUN.server, "ca2"): ("x",)}
