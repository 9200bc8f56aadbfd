"""hack/realkube kind provides real clusters: nodes, a network, storage, and pods that are processes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import SESSION
from e2e.kube import REALKUBE, KindLane, Kubectl, run, wait_until

MEMCACHED, NGINX = "memcached:1.4.36-alpine", "nginx:stable"

TWO_NODES = """\
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes: [{role: control-plane}, {role: worker}]
"""


@pytest.fixture(scope="module")
def kind_kubectl(kind_lane: KindLane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A cluster of two nodes, created by kind alone, with the images of the examples."""
    folder = tmp_path_factory.mktemp("kind")
    env = {**kind_lane.env, "KUBECONFIG": str(folder / "kubeconfig")}
    (folder / "kind.yaml").write_text(TWO_NODES)
    words = ("--name", SESSION, "--image", kind_lane.image, "--config", folder / "kind.yaml", "--wait=3m")
    try:
        run("kind", "create", "cluster", *words, env=env, timeout=300).checked()
        run("kind", "load", "docker-image", MEMCACHED, NGINX, "--name", SESSION, env=env, timeout=300).checked()
        kubectl = Kubectl(Path("kubectl"), env)
        kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=110s")
        yield kubectl
    finally:
        run("kind", "delete", "cluster", "--name", SESSION, env=env, timeout=300).checked()


def pod(name: str, image: str, node: str = "", **container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", **container}]}
    placed = {**spec, "nodeName": f"{SESSION}-{node}"} if node else spec
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": placed}


def ready(kubectl: Kubectl, *names: str) -> None:
    kubectl("wait", "--for=condition=Ready", *(f"pod/{name}" for name in names), "--timeout=110s")


def test_nodes_are_real_ones(kind_kubectl: Kubectl) -> None:
    # kind waits only for the control plane.
    kind_kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=110s")
    nodes = kind_kubectl.json("get", "nodes")["items"]
    assert {node["metadata"]["name"] for node in nodes} == {f"{SESSION}-control-plane", f"{SESSION}-worker"}
    assert all(node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://") for node in nodes)
    kind_kubectl("wait", "--for=condition=Ready", "pods", "--all", "--namespace=kube-system", "--timeout=110s")


def test_memcached_answers_stats(kind_kubectl: Kubectl) -> None:
    strict = {"runAsNonRoot": True, "runAsUser": 1001, "capabilities": {"drop": ["ALL"]}}
    command = ["memcached", "-m", "64", "-o", "modern", "-v"]
    kind_kubectl.create(pod("cache", MEMCACHED, command=command, securityContext=strict))
    ready(kind_kubectl, "cache")

    def asked() -> dict[str, str]:
        """A pod without a probe is Ready before its program listens: then the connection is closed."""
        with (
            contextlib.suppress(OSError),
            forwarded(kind_kubectl, "pod/cache", 11211) as port,
            socket.create_connection(("127.0.0.1", port)) as cache,
        ):
            cache.sendall(b"stats\r\nquit\r\n")
            lines = cache.makefile().read().splitlines()
            assert "END" in lines, lines
            return dict(line.split()[1:3] for line in lines if line.startswith("STAT"))
        return {}

    stats = wait_until(asked, what="The statistics")
    assert int(stats["limit_maxbytes"]) == 64 * 1024 * 1024
    assert int(stats["curr_connections"]) >= 1


@contextlib.contextmanager
def forwarded(kubectl: Kubectl, target: str, port: int) -> Iterator[int]:
    """A local port that is forwarded there."""
    command = ["kubectl", "port-forward", target, f":{port}", "--address=127.0.0.1"]
    with subprocess.Popen(command, env=kubectl.env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline().split(" -> ")[0].rpartition(":")[2])
        finally:
            process.kill()


def test_nginx_answers_across_nodes_by_the_name_of_its_service(kind_kubectl: Kubectl) -> None:
    kind_kubectl.create(pod("web", NGINX, "worker"), pod("visitor", NGINX, "control-plane"))
    kind_kubectl("expose", "pod", "web", "--port=80")
    ready(kind_kubectl, "web", "visitor")

    def visit() -> str:
        name = "http://web.default.svc.cluster.local/"
        return kind_kubectl("exec", "visitor", "--", "wget", "-qO-", name)

    assert "Welcome to nginx!" in wait_until(visit, what="The answer of nginx")
    wait_until(lambda: '"GET / HTTP/1.1" 200' in kind_kubectl("logs", "web"), what="The line about the visit")


def test_a_claim_gets_a_volume(kind_kubectl: Kubectl) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    disk = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": claim}
    writer = pod("writer", NGINX, volumeMounts=[{"name": "disk", "mountPath": "/disk"}])
    writer["spec"]["volumes"] = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    kind_kubectl.create(disk, writer)
    ready(kind_kubectl, "writer")
    kind_kubectl("exec", "writer", "--", "sh", "-c", "echo kept > /disk/file")

    kind_kubectl("delete", "pod,pvc", "writer", "disk", "--ignore-not-found", "--timeout=110s")
    wait_until(lambda: not kind_kubectl.json("get", "pv")["items"], what="The volume's end")


def test_a_process_that_ends_is_started_again(kind_kubectl: Kubectl) -> None:
    kind_kubectl.create(pod("mortal", NGINX))
    ready(kind_kubectl, "mortal")

    def restarted() -> bool:
        # Process 1 ignores a signal before it has a handler, so there may be a second one.
        kind_kubectl.try_("exec", "mortal", "--", "kill", "-QUIT", "1")
        return bool(kind_kubectl.json("get", "pod", "mortal")["status"]["containerStatuses"][0]["restartCount"])

    wait_until(restarted, every=2, what="The restart by the kubelet")


# The lane itself.


def test_prepared_twice_is_the_same(kind_lane: KindLane) -> None:
    again = run(REALKUBE, "kind", "up", env=os.environ)
    facts = json.loads(again.checked().out)
    assert (facts["image"], facts["started"], again.err) == (kind_lane.image, False, "")
    assert facts["env"].items() <= kind_lane.env.items()

    shell = (
        f'eval "$({shlex.quote(str(REALKUBE))} kind env)" && docker image inspect "$KIND_LANE_IMAGE" && kind version'
    )
    assert "kind v0.33.0" in run("/bin/sh", "-c", shell, env=os.environ).checked().out


def test_images_of_the_examples_are_in_the_daemon(kind_lane: KindLane) -> None:
    inspected = run("docker", "image", "inspect", MEMCACHED, NGINX, "nginx:latest", env=kind_lane.env).checked()
    assert len(json.loads(inspected.out)) == 3
