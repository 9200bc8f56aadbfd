"""A session of real kubectl prints the same on a sandbox as on a real cluster, but for ages and random names."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from e2e.kube import CHECKOUT, Cluster, Kubectl, wait_until
from e2e.session.commands import CHAPTERS
from e2e.session.play import Command, commands, played

pytestmark = pytest.mark.real

PATIENCE = 100.0  # seconds until both clusters have settled


@pytest.fixture(scope="module")
def sandbox(plain_env: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a sandbox with as many nodes as the session's cluster has."""
    folder = tmp_path_factory.mktemp("sandbox")
    command = [sys.executable, "-m", "kubectl_ctrl.sandbox", str(folder), "--nodes=10"]
    with subprocess.Popen(command, env=plain_env, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield Path(json.loads(server.stdout.readline())["kubeconfig"])
        server.terminate()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_both_clusters_print_the_same(
    chapter: str, cluster: Cluster, sandbox: Path, plain_env: Mapping[str, str], tmp_path: Path
) -> None:
    namespace, env = f"session-{chapter}", {**plain_env, "HOME": str(tmp_path)}
    both = [
        _within(namespace, source, cluster.programs / "kubectl", {**env, "KUBECONFIG": str(tmp_path / name)})
        for name, source in (("real", cluster.kubeconfig), ("sandbox", sandbox))
    ]
    with ThreadPoolExecutor(len(both)) as threads:
        found = [_difference(command, both, threads) for command in commands(CHAPTERS[chapter])]
    for kubectl in both:
        kubectl("delete", "namespace", namespace, "--wait=false")
    assert not any(found), "\n".join(filter(None, found))


def _within(namespace: str, source: Path, program: Path, env: Mapping[str, str]) -> Kubectl:
    content = yaml.safe_load(source.read_text())
    content["contexts"][0]["context"]["namespace"] = namespace
    Path(env["KUBECONFIG"]).write_text(yaml.safe_dump(content))
    kubectl = Kubectl(program, env)
    kubectl("create", "namespace", namespace)
    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=100s")
    return kubectl


def _difference(command: Command, both: list[Kubectl], threads: ThreadPoolExecutor) -> str:
    """A command that only reads is repeated until controllers have acted on both clusters."""
    outputs: list[str] = []

    def alike() -> bool:
        outputs[:] = threads.map(lambda kubectl: played(command, kubectl), both)
        return outputs[0] == outputs[1]

    patience = 0.0 if command.gap or not command.reads else PATIENCE
    with suppress(AssertionError):
        wait_until(alike, deadline=patience)
    real, ours = outputs
    if command.gap:
        return f"{command.line}: no gap any more: {command.gap}" if real == ours else ""
    lines = difflib.unified_diff(real.splitlines(), ours.splitlines(), "real", "sandbox", lineterm="", n=1)
    return "" if real == ours else "\n".join((f"kubectl {command.line}", *lines))
