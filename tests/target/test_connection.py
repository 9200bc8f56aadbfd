"""By which key a cluster is known, and what is said where it does not answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.history import writer
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, load
from kubectl_ctrl.runs.runners import only_runner
from kubectl_ctrl.target.connection import cluster_id
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.server import ScriptedServer
from kubectl_ctrl.value import replace
from tests.cli.ours import made, runner_on, trusting_a_real_authority
from tests.client.loopback import server_tls
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


@pytest.mark.parametrize("verb", ["install foo", "run foo --once", "plan foo/web", "uninstall foo"])
def test_what_starts_it_again_is_named_of_a_cluster_of_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    registry = Registry(tmp_path / "state" / "kubectl-ctrl" / "clusters")
    entry = trusting_a_real_authority(made(registry, "lab", "https://127.0.0.1:1"))
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    for ca, helps in (
        (entry.ca, "kubectl ctrl up --name lab"),
        ("of another", "Check that the cluster runs and that this machine reaches its address."),
    ):
        registry.write(replace(entry, ca=ca))
        assert cli.main(verb.split()) == 3
        error, step = capsys.readouterr().err.splitlines()[-2:]
        assert error.startswith("error[CTRL-UNREACHABLE]: There was no answer to ")
        assert step == f"next: {helps}"


@pytest.fixture
def paused() -> Iterator[str]:
    """A server that takes connections and says nothing, as one does whose process is stopped."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def strange() -> Iterator[str]:
    """Another program with a certificate of its own, which has the port now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tls = server_tls("alone", ask=False)

        def greet() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with suppress(OSError), tls.wrap_socket(caller, server_side=True):
                    pass

        greeting = threading.Thread(target=greet)
        greeting.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        greeting.join()


def test_what_starts_it_again_is_named_where_it_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], paused: str
) -> None:
    lab, of_another = steps(tmp_path, monkeypatch, capsys, paused, "--request-timeout=200ms")
    assert lab == ("CTRL-DEADLINE", "kubectl ctrl up --name lab")
    assert of_another == (
        "CTRL-DEADLINE",
        "Check the connection; a slow admission webhook can be the reason too.",
    )


def test_only_the_time_that_has_run_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], paused: str
) -> None:
    entry = trusting_a_real_authority(made(Registry(tmp_path), "lab", paused))
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    assert cli.main(["plan", "foo/web", "--request-timeout=200ms"]) == 3
    error = capsys.readouterr().err.splitlines()[-2]
    assert error.startswith("error[CTRL-DEADLINE]: The server did not answer get ")
    assert error.endswith(f" in time. {paused.removeprefix('https://')} did not answer within 0.2 s.")


def test_what_starts_it_again_is_named_where_another_program_has_its_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], strange: str
) -> None:
    lab, of_another = steps(tmp_path, monkeypatch, capsys, strange)
    assert lab == ("CTRL-TLS", "kubectl ctrl up --name lab")
    assert of_another == ("CTRL-TLS", "Check the cluster's address and certificate-authority in the kubeconfig.")


def steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], server: str, *words: str
) -> list[tuple[str, str]]:
    """The error, and what is to be done next, where that server is a cluster of ours, and where it is none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    registry = Registry(tmp_path / "state" / "kubectl-ctrl" / "clusters")
    entry = trusting_a_real_authority(made(registry, "lab", server))
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    told = []
    for ca in (entry.ca, "of another"):
        registry.write(replace(entry, ca=ca))
        assert cli.main(["plan", "foo/web", *words]) == 3
        error, step = capsys.readouterr().err.splitlines()[-2:]
        told.append((error.removeprefix("error[").partition("]")[0], step.removeprefix("next: ")))
    return told


@pytest.mark.parametrize("whose", ["ours", "recorded"])
def test_a_second_run_is_refused_before_it_says_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], whose: str
) -> None:
    state = tmp_path / "state" / "kubectl-ctrl"
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    entry = made(Registry(state / "clusters"), "lab", "https://127.0.0.1:1")
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    if whose == "recorded":
        Registry(state / "clusters").write(replace(entry, ca="of another"))
        state.mkdir(exist_ok=True)
        recording(state, run=replace(RUN, cluster=entry.uid, server=entry.server, ca=entry.ca))
    with only_runner(state, runner_on(entry, "r1")):
        assert cli.main(["run", "foo"]) == 6
        assert cli.main(["run", "foo", "-A"]) == 6
        error, step, *more = capsys.readouterr().err.splitlines()
    assert error.startswith("error[CTRL-REFUSED]: foo already runs here for this cluster: process ")
    assert step == "next: stop that run, or select another namespace with -n"
    assert len(more) == 2


def test_a_run_on_another_cluster_behind_the_same_address_is_not_taken_for_a_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As behind a proxy that tells its clusters by the user: only the server itself can say which one it is."""
    state = tmp_path / "state" / "kubectl-ctrl"
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    entry = trusting_a_real_authority(made(Registry(state / "clusters"), "lab", "https://127.0.0.1:1"))
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    Registry(state / "clusters").write(replace(entry, ca="of another"))
    recording(state, run=replace(RUN, cluster=entry.uid, server=entry.server, ca=entry.ca))
    with only_runner(state, replace(runner_on(entry, "r1"), context="prod")):
        assert cli.main(["run", "foo", "--once"]) == 3
        assert "error[CTRL-UNREACHABLE]" in capsys.readouterr().err
    with only_runner(state, runner_on(entry, "r2")):
        assert cli.main(["run", "foo", "--once"]) == 6
