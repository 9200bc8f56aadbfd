"""`up` to an idle controller: a new cluster, the installed controller, an example and its pods."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from figure import Figure

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "hack" / "realkube.d"))

from realkube.cluster import BINARIES, EXTRA_ARGS  # noqa: E402 - after the path is set

_CTRL = str(_ROOT / "bin" / "kubectl-ctrl")
_TIMES = 3


def figures() -> Iterable[Figure]:
    built = subprocess.run([str(_ROOT / "hack" / "realkube"), "build"], check=True, capture_output=True, text=True)
    programs = Path(built.stdout.strip())
    with TemporaryDirectory() as folder:
        # Alternately, under the same load of the machine; the first pair fills its caches.
        pairs = [(_ours(programs, Path(folder)), _theirs(programs, Path(folder))) for _ in range(_TIMES)][1:]
    yield Figure(
        name="up memcached --example --until-idle, from nothing",
        value=min(ours for ours, _ in pairs),
        unit="s",
        baseline=min(theirs for _, theirs in pairs),
        against="s kwokctl create cluster alone",
        bar="<= 15",
    )


def _ours(programs: Path, folder: Path) -> float:
    own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    env = {**os.environ, **own, "KUBECONFIG": str(folder / "kubeconfig"), "KUBECTL_CTRL_BIN_DIR": str(programs)}
    words = ["up", "memcached", "--example", "--until-idle", "--provider=kwok", "--name=bench"]
    try:
        return _timed([_CTRL, *words], env)
    finally:
        subprocess.run([_CTRL, "down", "bench"], env=env, check=True, capture_output=True)


def _theirs(programs: Path, folder: Path) -> float:
    """Only the servers: no node, no controller, no waiting for readiness."""
    env = {"PATH": str(programs), "HOME": str(folder), "KWOK_WORKDIR": str(folder / "kwok")}
    config = folder / "kwokctl.json"
    config.write_text(json.dumps(_configuration(programs)))
    kwokctl = str(programs / "kwokctl")
    words = ["--config", str(config), "--kubeconfig", str(folder / "theirs"), "--wait=60s", "--name=bench"]
    try:
        return _timed([kwokctl, "create", "cluster", *words], env)
    finally:
        subprocess.run([kwokctl, "delete", "cluster", "--name=bench"], env=env, check=True, capture_output=True)


def _configuration(programs: Path) -> Mapping[str, object]:
    options = {option: str(programs / program) for option, (_, program) in BINARIES.items()}
    address = [{"key": "advertise-address", "value": EXTRA_ARGS["kube-apiserver"]["advertise-address"]}]
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {"runtime": "binary", "bindAddress": "127.0.0.1", **options},
        "componentsPatches": [{"name": "kube-apiserver", "extraArgs": address}],
    }


def _timed(command: list[str], env: Mapping[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True)
    return time.perf_counter() - started
