"""replay with recordings of a real API server: the same with the same code, and the difference with other code."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import install_crd, wait_until_served
from e2e.ctrl import Ctrl, Started
from e2e.kube import Kubectl, wait_until
from e2e.test_foo import converged, foo
from e2e.test_podcount import workload

GREETER = """\
from kubectl_ctrl import CONFIGMAPS, SECRETS, Context, Request, Result, controller, labels_of


async def reconcile(ctx: Context, request: Request) -> Result | None:
    settings = await ctx.read.get(CONFIGMAPS, request.name)
    if settings is None or labels_of(settings).get("greet") != "yes":
        return None
    text = f"Hello, {settings['data']['whom']}!"
    hello = {"metadata": {"name": f"{request.name}-hello"}, "data": {"text": text, "at": str(ctx.now())}}
    made = await ctx.write.ensure(hello, owner=settings, resource=CONFIGMAPS)
    ctx.write.event(settings, reason="Greeted", message=f"The greeting is {made.how}.")
    if "from" in settings["data"]:
        await ctx.read.live(SECRETS, settings["data"]["from"])
    return Result(after=3600 + ctx.random.random())


CONTROLLER = controller("greeter", reconcile).for_(CONFIGMAPS)
"""
LOUDER = GREETER.replace('!"', '!!"')


def ended(started: Started) -> list[str]:
    """The attempts that finished, in order."""
    return list(dict.fromkeys(found[0] for line in started.out if (found := re.search(r"r[0-9a-f]{3,}-\d+", line))))


def saw_deletion(ctrl: Ctrl, target: str) -> bool:
    """A recorded reconcile has the deletion of the object among its causes."""
    told = json.loads(ctrl("trace", target, "--offline", "--output=json").checked().out)
    causes = [(cause["kind"], cause.get("resource", "")) for one in told["attempts"] for cause in one["causes"]]
    return ("deleted", "foos.samplecontroller.k8s.io") in causes


def assert_all_replay(ctrl: Ctrl, attempts: list[str]) -> None:
    with ThreadPoolExecutor(3) as pool:
        for attempt, ran in zip(attempts, pool.map(lambda one: ctrl("replay", one), attempts), strict=True):
            assert ran.code == 0, (attempt, ran.out, ran.err)
            assert "SAME: " in ran.out


def settings(name: str = "web", **data: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {"greet": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"whom": "world", **data}}


def text_of(kubectl: Kubectl, name: str) -> str:
    found = kubectl.find("configmap", name)
    return str(found["data"]["text"]) if found else ""


@pytest.mark.real
def test_every_attempt_of_the_bundled_controllers_is_the_same_again(kubectl: Kubectl, ctrl: Ctrl) -> None:
    install_crd(kubectl, "foo")
    ctrl("install", "memcached").checked()
    wait_until_served(kubectl, "memcacheds.cache.example.com")
    started = ctrl.started("run", "foo", "memcached", "podcount", "scaler")
    started.line("leader election")
    kubectl.apply(foo("web"), {**workload("Deployment", "night", 2)})
    kubectl("apply", "--filename=-", stdin=ctrl("example", "memcached").checked().out)
    kubectl("annotate", "deployment", "night", "ars.44smkn.github.io/stop=* * * * *", "ars.44smkn.github.io/start=x")
    wait_until(converged(kubectl, "web", 1))
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"replicas":3}}')
    kubectl("annotate", "deployment", "night", "--overwrite", "ars.44smkn.github.io/start=0 0 1 1 *")
    wait_until(converged(kubectl, "web", 3))
    kubectl("delete", "foo", "web")
    wait_until(lambda: saw_deletion(ctrl, "foo/web"), what="a reconcile after the deletion of the Foo")
    for name in ("memcached", "podcount", "scaler"):
        started.line(rf" {name} .* r[0-9a-f]{{3,}}-\d+ ")
    assert started.stop() == 0
    attempts = ended(started)
    controllers = {line.split()[1] for line in started.out if re.search(r" r[0-9a-f]{3,}-\d+ ", line)}
    assert {"foo", "memcached", "podcount", "scaler"} <= controllers
    # Each kind once, and some of the repeated ones.
    assert_all_replay(ctrl, attempts[:12] + attempts[12::4])


def test_code_of_ones_own_from_a_recording_to_a_test(
    kubectl: Kubectl, ctrl: Ctrl, env: Mapping[str, str], tmp_path: Path
) -> None:
    code, case = tmp_path / "greeter.py", tmp_path / "case.json"
    code.write_text(GREETER)
    kubectl("create", "secret", "generic", "key", "--from-literal=password=canary-7h2")
    started = ctrl.started("run", str(code))
    started.line("leader election")
    kubectl.apply(settings())
    wait_until(lambda: text_of(kubectl, "web-hello") == "Hello, world!")
    greeted = started.line(r"web r[0-9a-f]+-\d+ .*create ConfigMap/web-hello 201")
    kubectl.apply(settings("nosy", **{"from": "key"}))
    nosy = started.line(r"nosy r[0-9a-f]+-\d+ .*create ConfigMap/nosy-hello 201")
    assert started.stop() == 0
    attempt, secret = (re.findall(r"r[0-9a-f]{3,}-\d+", line)[0] for line in (greeted, nosy))
    with_secret = re.findall(r"nosy (r[0-9a-f]{3,}-\d+) ", "\n".join(started.out))
    assert_all_replay(ctrl, [one for one in ended(started) if one not in with_secret])

    ran = ctrl("replay", secret)
    assert (ran.code, "it reads a Secret" in ran.err) == (4, True)

    code.write_text(LOUDER)
    ran = ctrl("replay", attempt)
    assert ran.code == 9
    assert re.search(r"ensure ConfigMap/web-hello +DIFFERS +\S*/greeter.py:10\n +data.text +Hello, world! → ", ran.out)
    told = json.loads(ctrl("replay", attempt, "--output=json").out)
    assert [one["changes"] for one in told["writes"]] == [
        [{"path": "data.text", "recorded": "Hello, world!", "today": "Hello, world!!"}]
    ]
    case.write_text(ctrl("record", "export", attempt).checked().out)
    assert ctrl("replay", attempt, "--bless").code == 2

    # Only the file is left.
    shutil.rmtree(Path(env["XDG_STATE_HOME"]) / "kubectl-ctrl")
    assert ctrl("replay", attempt).code == 4
    case_with_code = (str(case), f"--code={code}")
    assert ctrl("replay", *case_with_code).code == 9
    ctrl("replay", *case_with_code, "--bless").checked()
    ctrl("replay", *case_with_code).checked()
    code.write_text(GREETER)
    assert ctrl("replay", *case_with_code).code == 9
    assert "canary" not in case.read_text()


@pytest.mark.parametrize("flag", ["--context=nowhere", "--kubeconfig=/nonexistent"])
def test_no_cluster_is_needed(ctrl: Ctrl, tmp_path: Path, flag: str) -> None:
    ran = ctrl("replay", "r000-1", flag)
    assert (ran.code, "error[CTRL-NOT-RECORDED]" in ran.err) == (4, True)
