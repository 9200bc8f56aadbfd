"""`up` and `down` on real clusters of kwok: from nothing to a running controller and back, with all interruptions."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from e2e.ctrl import PROGRAM, Started
from e2e.kube import Kubectl, run, wait_until
from e2e.terminal import at_terminal
from e2e.user import USER_KUBECONFIG, User, never_ready
from kubectl_ctrl.runs.holder import is_stopped

pytestmark = pytest.mark.real

_EVERYTHING = ("memcached", "--example", "--detach", "--use")


def test_from_nothing_to_idle_and_back(user: User, programs: Path) -> None:
    made = user.up("memcached", "--example", "--until-idle").checked()
    assert re.search(r"memcached-sample .* done$", made.out, re.MULTILINE), "stdout has what the controller did."
    steps = [line.split()[1:3] for line in made.err.splitlines() if line.startswith((" ✓", " ok"))]
    assert steps == [["kwok", "v0.8.0"], ["cluster", "ctrl"], ["memcached", "installed:"], ["example", "of"]], made.err
    for told in (
        "context kwok-ctrl; your context prod-eu is unchanged",
        'for this shell: eval "$(kubectl ctrl cluster env)"',
        "cluster ctrl is kept; to delete it: kubectl ctrl down",
    ):
        assert told in made.err.splitlines()
    assert user.kubeconfig.read_text() == USER_KUBECONFIG
    kubectl = user.kubectl(programs)
    assert len(kubectl("get", "pods", "--field-selector=status.phase=Running", "--output=name").split()) == 3

    # A second `up` changes nothing.
    before = _versions(kubectl)
    assert {line.partition("/")[0] for line in before} >= {"Memcached", "Deployment", "CustomResourceDefinition"}
    again = user.up("memcached", "--example", "--until-idle").checked()
    assert "no writes" in again.out
    assert "there already" in again.err
    assert _versions(kubectl) == before

    # A changed example belongs to the user.
    kubectl("patch", "memcached", "memcached-sample", "--type=merge", '--patch={"spec":{"size":1}}')
    user.up("memcached", "--example", "--until-idle").checked()
    assert kubectl.json("get", "memcached/memcached-sample")["spec"]["size"] == 1

    # The steps: the logs of its parts, and the list of clusters.
    folder = user.ctrl("cluster", "logs", "--to", str(user.state.parent / "logs")).checked().out.strip()
    assert (Path(folder) / "kube-apiserver.log").stat().st_size > 0
    assert user.ctrl("cluster", "logs", "--to", folder).code == 2, "It writes over nothing."
    assert user.ctrl("cluster", "load", "mine:dev").code == 2, "There is nothing to load it into."
    assert user.ctrl("cluster", "list", "--no-headers").checked().out.split()[:3] == ["ctrl", "kwok", "running"]

    # A shell selects it, and the output fits the terminal.
    line = 'eval "$(kubectl ctrl cluster env)" && kubectl config current-context && kubectl ctrl list'
    shell = run("bash", "-c", line, env={**user.env, "PATH": f"{programs}:{user.env['PATH']}"}).checked()
    assert shell.out.startswith("kwok-ctrl\n")
    code, shown = at_terminal(PROGRAM, "up", env={**user.env, "TERM": "xterm"}, columns=72)
    assert code == 0
    assert max(len(line.replace("\x1b[K", "")) for line in re.split(r"[\r\n]+", shown)) <= 72

    # A cluster that was deleted by other means is a new one afterwards, and the recording of the first reports that.
    first = kubectl.json("get", "namespace/kube-system")["metadata"]["uid"]
    user.end_all()
    shutil.rmtree(user.state / "clusters" / "ctrl" / "kwok")
    user.up("memcached", "--until-idle").checked()
    assert kubectl.json("get", "namespace/kube-system")["metadata"]["uid"] != first
    runs = json.loads(user.ctrl("record", "list", "--output=json").checked().out)
    ended = {cluster["uid"]: cluster["deleted"] for cluster in runs["clusters"]}
    assert ended.pop(first) is not None
    assert list(ended.values()) == [None]

    user.assert_nothing_is_left(user.down())
    twice = user.down().checked()
    assert twice.err == "there is no managed cluster\n"
    traced = user.ctrl("trace", "memcached/memcached-sample").checked()
    assert traced.out.startswith("cluster ctrl (kwok), deleted ")


def _versions(kubectl: Kubectl) -> list[str]:
    """Of all objects that kubectl ctrl has written; the cluster's own controllers create others meanwhile."""
    kinds = "memcacheds,deployments,crds,clusterroles,serviceaccounts,namespaces"
    listed = kubectl.json("get", kinds, "--all-namespaces", "--show-managed-fields")
    metas = [(obj["kind"], obj["metadata"]) for obj in listed["items"]]
    return sorted(f"{kind}/{meta['name']} {meta['resourceVersion']}" for kind, meta in metas if _is_written(meta))


def _is_written(meta: Mapping[str, Any]) -> bool:
    return any(entry["manager"].startswith("kubectl-ctrl") for entry in meta.get("managedFields", ()))


_MINE = """\
from kubectl_ctrl import CONFIGMAPS, Context, Request, Result, controller


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""


def test_in_the_background_and_in_the_foreground(user: User, programs: Path, tmp_path: Path) -> None:
    user.up(*_EVERYTHING).checked()
    kubectl = user.kubectl(programs)

    def pods() -> int:
        return len(kubectl("get", "pods", "--field-selector=status.phase=Running", "--output=name").split())

    wait_until(lambda: pods() == 3, what="three pods")
    assert "current-context: kwok-ctrl" in user.kubeconfig.read_text(), "--use was asked for."

    # Printed, and nothing else happens, in both modes; an invalid --until is refused as run refuses it.
    for words in (("memcached",), ("memcached", "--detach")):
        told = user.up(*words).checked()
        assert re.search(r"memcached already runs here: process \d+ on this machine", told.err)
    assert user.up("memcached", "--until-idle").code == 6

    # The user's own controller beside it, until Ctrl-C stops only that one.
    (tmp_path / "mine.py").write_text(dedent(_MINE))
    mine = user.ctrl.started("up", str(tmp_path / "mine.py"))
    mine.line(r"ConfigMap|kube-root-ca")
    assert mine.stop() == 0
    with_all = user.ctrl.started("up", str(tmp_path / "mine.py"), "-A")
    with_all.line("kube-system/")
    assert with_all.stop() == 0
    apart = user.up("foo", "--example", "--until-idle", "-n", "apart").checked()
    assert "; namespace apart created" in apart.err
    assert "on context kwok-ctrl" in apart.err
    # kubectl may know the new type a moment later.
    foos = wait_until(lambda: kubectl("get", "foos", "--namespace=apart", "--output=name").split())
    assert foos == ["foo.samplecontroller.k8s.io/example-foo"]
    assert mine.err[-1] == "cluster ctrl is kept; to delete it: kubectl ctrl down"
    kubectl("patch", "memcached", "memcached-sample", "--type=merge", '--patch={"spec":{"size":4}}')
    wait_until(lambda: pods() == 4, what="the one in the background still works")

    # down also stops a controller in the foreground; killed at the start of each step, it continues each time.
    mine = user.ctrl.started("up", str(tmp_path / "mine.py"))
    mine.line(r"ConfigMap|kube-root-ca")
    for step in ("controllers", "use", "cluster", "recording", "files"):
        if not user.killed_at("down", step):
            # The one before was killed a moment too late, and had finished.
            user.up("--use").checked()
            assert user.killed_at("down", step), never_came(user, step)
    user.assert_nothing_is_left(user.down())
    assert mine.wait() == 0


def never_came(user: User, step: str) -> str:
    return f"It never came to {step}.\n{user.ctrl.all_started[-1].output()}"


def test_killed_at_each_step_up_continues_and_down_leaves_nothing(user: User, programs: Path) -> None:
    steps = ("provider", "cluster", "use", "install", "example", "controllers")
    for step in steps:
        assert user.killed_at("up", step, *_EVERYTHING), never_came(user, step)
        # Every second time with an existing cluster, the others without.
        if steps.index(step) % 2:
            user.assert_nothing_is_left(user.down("ctrl"))
    user.up(*_EVERYTHING).checked()
    kubectl = user.kubectl(programs)
    wait_until(lambda: kubectl.json("get", "deployment/memcached-sample")["status"].get("readyReplicas") == 3)
    assert sum("background_main" in line for line in user.processes()) == 1
    user.assert_nothing_is_left(user.down())


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_any_moment_nothing_is_left(user: User, seed: int) -> None:
    moments = random.Random(seed)
    _killed_after(user.ctrl.started("up", *_EVERYTHING), moments.uniform(0.2, 6))
    _killed_after(user.ctrl.started("down"), moments.uniform(0.2, 0.9))
    user.assert_nothing_is_left(user.down("ctrl"))


def _killed_after(started: Started, seconds: float) -> None:
    with suppress(AssertionError):  # nearly always it is still running
        started.wait(deadline=seconds)
    started.kill()


def test_two_at_once_make_one(user: User) -> None:
    first = user.ctrl.started("up", *_EVERYTHING)
    first.line("kwok v")
    suspend(first)
    second = user.ctrl.started("up", *_EVERYTHING)
    second.line(rf"waiting for process {first.process.pid}, which is changing cluster 'ctrl'; that process is stopped")
    first.signal(signal.SIGCONT)
    assert (first.wait(), second.wait()) == (0, 0)
    assert any("there already" in line for line in second.err)
    assert sum("background_main" in line for line in user.processes()) == 1
    downs = [user.ctrl.started("down") for _ in range(2)]
    assert [down.wait() for down in downs] == [0, 0]
    user.assert_nothing_is_left(user.down())


def suspend(started: Started) -> None:
    """Suspend it with SIGSTOP, unless it has exited."""
    started.signal(signal.SIGSTOP)
    process = started.process
    wait_until(lambda: process.poll() is not None or is_stopped(process.pid), what=f"the stop of {started!r}")


def test_a_read_only_kubeconfig_is_not_changed_and_no_cluster_is_created(user: User) -> None:
    user.kubeconfig.chmod(0o400)
    refused = user.up("--use")
    assert refused.code == 3
    assert "is read-only" in refused.err
    assert not user.files()
    user.kubeconfig.chmod(0o600)
    lock = user.kubeconfig.with_name("kubeconfig.lock")
    lock.touch()
    os.utime(lock, (0, 0))
    refused = user.up("--use")
    assert refused.code != 0
    assert str(lock) in refused.err
    assert not user.files()
    lock.unlink()
    user.kubeconfig.write_text(USER_KUBECONFIG.replace("prod-eu", "kwok-ctrl"))
    refused = user.up("--use")
    assert refused.code == 6
    assert "kwok-ctrl" in refused.err
    assert not user.files()
    user.kubeconfig.write_text(USER_KUBECONFIG)
    user.assert_nothing_is_left(user.down())


def test_while_it_is_stopped_verbs_name_the_command_that_starts_it(user: User) -> None:
    user.up("foo", "--example", "--until-idle", "--name=lab").checked()
    meant = "--context=kwok-lab"
    user.end_all()
    for words in ("run foo --once", "plan foo/example-foo", "install foo", "uninstall foo"):
        refused = user.ctrl(*words.split(), meant)
        assert refused.code == 3, refused.err
        assert "error[CTRL-UNREACHABLE]: There was no answer to " in refused.err
        assert refused.err.splitlines()[-1] == "next: kubectl ctrl up --name lab"
    reads = ("trace foo/example-foo --live", "trace foo/example-foo --tree", "explain foo/example-foo --live")
    for words in ("list", *reads):
        told = user.ctrl(*words.split(), meant).checked().err
        assert re.search(
            r"There was no answer to .* refused\. Next: kubectl ctrl up --name lab$", told, re.MULTILINE
        ), told
    checks = json.loads(user.ctrl("doctor", meant, "--output=json").out)["checks"]
    [failed] = [check for check in checks if check["state"] == "fail"]
    assert (failed["check"], failed["command"]) == ("context", "kubectl ctrl up --name lab")

    # A run waits for it, reports that at once, and works as soon as it is there.
    waiting = user.ctrl.started("run", "foo", meant, "--until-idle")
    waiting.line("The cluster does not answer yet; retrying: .* Next: kubectl ctrl up --name lab$")
    user.ctrl("up", "--name", "lab").checked()
    assert waiting.wait() == 0
    user.assert_nothing_is_left(user.down("lab"))


def test_a_lock_of_a_dead_process_is_free(user: User) -> None:
    lock = user.state / "clusters" / "ctrl.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("1")
    assert user.down("ctrl").checked().err == "there is no managed cluster ctrl\n"
    assert not lock.exists()
    lock.write_text("1")
    assert user.up("--bin-dir=/", "--wait=1s").code == 5, "It was not waited for."
    user.assert_nothing_is_left(user.down())


def test_a_port_in_use_and_a_foreign_name(user: User, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokctlConfiguration"}
        file = tmp_path / "kwok.yaml"
        file.write_text(json.dumps({**config, "options": {"kubeApiserverPort": port}}))
        failed = user.up("--config", str(file))
    assert failed.code == 1
    assert str(port) in failed.err
    user.assert_nothing_is_left(user.down())
    home = tmp_path / "home"
    (home / ".kwok" / "clusters" / "ctrl").mkdir(parents=True)
    theirs = run(PROGRAM, "up", env={**user.env, "HOME": str(home)})
    assert theirs.code == 6
    assert "error[CTRL-REFUSED]: The name 'ctrl' is in use: kwokctl has a cluster of that name" in theirs.err
    user.assert_nothing_is_left(user.down())


@pytest.mark.parametrize("kilobytes", [0, 4_000])
def test_a_full_disk_fails_clearly_and_leaves_nothing(user: User, kilobytes: int) -> None:
    """Files that cannot grow: the registry entry of the cluster, or the files of its servers."""
    line = f'ulimit -f {kilobytes} && exec "$0" up --wait 60s 2>&1 | cat'
    full = run("bash", "-o", "pipefail", "-c", line, str(PROGRAM), env=user.env)
    assert full.code == 1
    assert re.search(r"^error\[CTRL-\w+\]: ", full.out, re.MULTILINE), full.out
    assert "next: " in full.out
    user.assert_nothing_is_left(user.down("ctrl"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_interrupted_during_its_creation_it_is_deleted(
    user: User, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    started = user.ctrl.started("up", "memcached", "--use", "--progress=json", never_ready(tmp_path))
    started.line("starting the control plane|waiting")
    started.signal(number)
    assert started.wait() == code
    assert json.loads(started.err[-1])["text"] == "nothing is left of cluster ctrl"
    user.assert_nothing_is_left(user.down())


def test_the_second_ctrl_c_exits_at_once_and_names_the_remains(user: User, tmp_path: Path) -> None:
    started = user.ctrl.started("up", "--progress=json", never_ready(tmp_path))
    started.line("starting the control plane|waiting")
    started.signal(signal.SIGINT)
    # Two signals that come before the first is handled count as one.
    wait_until(lambda: "Ctrl-C again exits at once" in started.output(), every=0.005, what="the first was heard")
    started.signal(signal.SIGINT)
    assert started.wait() == 130
    assert re.search(r"to delete the rest|nothing is left of cluster ctrl", started.err[-1])
    user.assert_nothing_is_left(user.down("ctrl"))


def test_interrupted_at_each_step_the_remains_are_named_correctly(user: User) -> None:
    for step in ("provider", "cluster", "use", "install", "example", "controllers"):
        up = user.started_to("up", step, *_EVERYTHING)
        # While it is stopped, it does not begin another step.
        suspend(up)
        reached = user.steps(up)[-1]
        up.signal(signal.SIGINT)
        up.signal(signal.SIGCONT)
        code = up.wait()
        # A nearly finished up finishes.
        assert code in ((0, 130) if reached in ("example", "controllers") else (130,)), up.output()
        there = user.ctrl("cluster", "list", "--no-headers").checked().out.split()[:3]
        stays = json.dumps("cluster ctrl is kept; to delete it: kubectl ctrl down")
        nothing = json.dumps("nothing is left of cluster ctrl")
        if there:
            assert there == ["ctrl", "kwok", "running"]
            assert code == 0 or stays in up.err[-1], up.output()
        else:
            assert nothing in up.err[-1], up.output()
    user.up(*_EVERYTHING).checked()
    for step in ("controllers", "use", "cluster"):
        down = user.started_to("down", step)
        down.signal(signal.SIGINT)
        assert down.wait() in (0, 130), down.output()
        assert "kubectl ctrl down" in down.err[-1] or not user.files(), down.output()
    user.assert_nothing_is_left(user.down("ctrl"))
