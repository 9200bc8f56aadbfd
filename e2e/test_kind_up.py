"""`up`, `down` and their steps on real clusters of kind, whose pods are processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from e2e.kube import wait_until
from e2e.user import KindUser

NGINX = "nginx:stable"
FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def user(kind_user: KindUser) -> KindUser:
    return kind_user


def test_from_nothing_to_pods_that_run_and_back(user: KindUser) -> None:
    told = user.up(
        "memcached", "--name", user.name, "--example", "--until-idle", "--load", KindUser.memcached, "--timeout=2m"
    ).checked()
    for line in (
        f"context kind-{user.name}; your context prod-eu is unchanged",
        f"cluster {user.name} is kept; to delete it: kubectl ctrl down {user.name}",
    ):
        assert line in told.err.splitlines(), told.err
    kubectl = user.of(user.name)

    # A real memcached answers, from an image without a registry.
    pods = kubectl("get", "pods", "--output=name").split()
    assert len(pods) == 3
    ask = ("exec", pods[0], "--", "sh", "-c", r"printf 'stats\r\nquit\r\n' | nc 127.0.0.1 11211")
    # A pod without a probe is Ready before its program listens.
    wait_until(lambda: "STAT uptime" in kubectl(*ask), what="the statistics")

    # A second `up` changes nothing.
    again = user.up("memcached", "--name", user.name, "--example", "--until-idle").checked()
    assert "there already" in again.err
    assert kubectl("get", "pods", "--output=name").split() == pods

    # Another image, and one that is not on this machine.
    user.ctrl("cluster", "load", NGINX, "--name", user.name).checked()
    kubectl("run", "web", f"--image={NGINX}", "--image-pull-policy=Never", "--restart=Never")
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=110s")
    absent = user.ctrl("cluster", "load", "no/such:1", "--name", user.name)
    missing = "error[CTRL-PREREQUISITE]: docker has no image 'no/such:1'."
    assert (absent.code, absent.err.splitlines()[-3]) == (5, missing)

    # The logs of its parts.
    user.ctrl("cluster", "logs", user.name, "--to", str(user.state.parent / "logs")).checked()
    kept = [path.name for path in (user.state.parent / "logs").rglob("*") if path.is_file() and path.stat().st_size]
    assert {"kubelet.log", "containerd.log"} <= set(kept)

    # Another cluster beside it is deleted alone.
    user.up("--name", user.other).checked()
    assert user.of(user.other)("get", "pods", "--namespace=default", "--output=name") == ""
    user.down(user.other).checked()
    assert user.docker.nodes(user.other) == []
    assert user.network in user.docker.networks()
    assert set(pods) < set(kubectl("get", "pods", "--output=name").split())

    # As after a restart of the machine: the objects are still there.
    user.docker.stop(user.name)
    stopped = user.ctrl("cluster", "load", NGINX, "--name", user.name)
    assert (stopped.code, f"Cluster {user.name!r} is stopped." in stopped.err) == (1, True), stopped.err
    user.up("--name", user.name).checked()
    wait_until(lambda: len(kubectl("get", "memcached", "--output=name").split()) == 1, what="its type is served again")

    # With cgroup v1 a frozen process survives SIGKILL, and docker gives up after 12 s.
    number = user.docker("inspect", "--format", "{{.Id}}", f"{user.name}-control-plane").strip()
    for frozen in list(FREEZER.glob(f"docker/{number}/**/cri-containerd-*/freezer.state"))[:1]:
        frozen.write_text("FROZEN")
    user.assert_nothing_is_left(user.down(user.name))
    user.assert_nothing_is_in_docker()
    assert user.down(user.name).checked().err == f"there is no managed cluster {user.name}\n"
    traced = user.ctrl("trace", "memcached/memcached-sample").checked()
    assert traced.out.startswith(f"cluster {user.name} (kind), deleted ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_during_its_creation_it_leaves_nothing(number: signal.Signals, user: KindUser) -> None:
    pid = user.started_up()
    started = user.ctrl.all_started[-1]
    os.kill(pid, number)
    assert started.wait() == 128 + number
    user.assert_nothing_is_in_docker()
    user.up("--name", user.name).checked()
    assert user.of(user.name)("get", "--raw=/readyz") == "ok"
    user.assert_nothing_is_left(user.down(user.name))
    user.assert_nothing_is_in_docker()


def test_killed_during_its_creation_up_continues_and_down_leaves_nothing(user: KindUser) -> None:
    user.started_up()
    user.ctrl.all_started[-1].kill()
    wait_until(user.processes, what="the kind that goes on without us")
    user.assert_nothing_is_left(user.down(user.name))
    user.assert_nothing_is_in_docker()

    user.started_up()
    user.ctrl.all_started[-1].kill()
    told = user.up("--name", user.name, "--progress=json").checked()
    assert "was not completely created" in told.err
    assert user.of(user.name)("get", "--raw=/readyz") == "ok"
    assert user.killed_at("up", "load", "--name", user.name, "--load", NGINX)
    user.assert_nothing_is_left(user.down(user.name))
    user.assert_nothing_is_in_docker()
