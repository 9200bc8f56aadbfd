"""On a real API server: the first reconcile of a new process, and 1,000 Foos from creation to convergence."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from figure import Figure, processor

_ROOT = Path(__file__).resolve().parents[2]
_REALKUBE = str(_ROOT / "hack" / "realkube")
CTRL = str(_ROOT / "bin" / "kubectl-ctrl")
FOOS_FOLDER = _ROOT / "kubectl_ctrl" / "controllers" / "foo"
_FOOS = 1_000


@contextmanager
def cluster() -> Iterator[tuple[Callable[..., None], Mapping[str, str]]]:
    """kubectl and the environment of a new cluster with the CRD of foo."""
    name = f"bench-{os.getpid()}"
    programs = subprocess.run([_REALKUBE, "build"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([_REALKUBE, "up", name, "--nodes=12"], check=True, capture_output=True)
    try:
        shown = subprocess.run([_REALKUBE, "kubeconfig", name], check=True, capture_output=True, text=True)
        env = {**os.environ, "KUBECONFIG": shown.stdout.strip()}

        def kubectl(*args: str, given: str = "") -> None:
            command = [f"{programs}/kubectl", *args]
            subprocess.run(command, env=env, input=given, text=True, check=True, capture_output=True)

        kubectl("apply", f"--filename={FOOS_FOLDER / 'crd.yaml'}")
        kubectl("wait", "--for=condition=Established", "crd/foos.samplecontroller.k8s.io")
        yield kubectl, env
    finally:
        subprocess.run([_REALKUBE, "down", name], check=True, capture_output=True)


def foos(count: int) -> str:
    spec = {"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo"}
    return "\n---\n".join(
        json.dumps({**spec, "metadata": {"name": f"foo-{at}"}, "spec": {"deploymentName": f"foo-{at}", "replicas": 1}})
        for at in range(count)
    )


def until_idle(env: Mapping[str, str]) -> tuple[float, float, float]:
    """Seconds to the first line of a new process, to its exit, and of processor time."""
    started = time.perf_counter()
    words = [CTRL, "run", "foo", "--until-idle", "--timeout=10m"]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        first = time.perf_counter() - started
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"run exited with code {process.returncode}"
    return first, time.perf_counter() - started, usage.ru_utime + usage.ru_stime


def figures() -> Iterable[Figure]:
    with cluster() as (kubectl, env):
        kubectl("apply", "--filename=-", given=foos(1))
        started = time.perf_counter()
        kubectl("get", "foos")
        baseline = time.perf_counter() - started
        first, _, _ = until_idle(env)
        yield Figure(
            name="run foo to its first reconcile",
            value=first * 1000,
            unit="ms",
            baseline=baseline * 1000,
            against="ms kubectl get foos",
        )
        started = time.perf_counter()
        kubectl("create", "--filename=-", given=foos(_FOOS).split("\n---\n", 1)[1])
        created = time.perf_counter() - started
        _, whole, used = until_idle(env)
        (version,) = processor([[CTRL, "version"]], env)
        yield Figure(
            name=f"{_FOOS:,} Foos to converged and idle",
            value=whole,
            unit="s",
            baseline=created,
            against="s kubectl create of them",
        )
        yield Figure(
            name=f"{_FOOS:,} Foos to converged and idle, processor time",
            value=used * 1000,
            unit="ms CPU",
            baseline=version,
            against="ms its version",
        )
