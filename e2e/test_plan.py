"""plan is correct: its output equals a later run, and it changes nothing."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import PROGRAM, Ctrl
from e2e.kube import Audit, AuditedRequest, Kubectl, Ran, run, wait_until
from e2e.settling import nothing_moves

P = "ars.44smkn.github.io/"
_WRITES = frozenset({"create", "update", "patch", "apply", "delete"})
# Fields that only a server sets, and fields that other controllers add.
_SERVERS_OWN = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
_OTHERS = "deployment.kubernetes.io/revision"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def foo(name: str, *, deployment: str = "", replicas: int = 1) -> dict[str, Any]:
    spec = {"deploymentName": deployment or name, "replicas": replicas}
    meta = {"name": name}
    return {"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": meta, "spec": spec}


def memcached(name: str, size: int) -> dict[str, Any]:
    spec = {"size": size}
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec}


def workload(name: str, replicas: int = 1, **said: str) -> dict[str, Any]:
    labels = {"app": name}
    annotations = {P + key.replace("_", "-"): value for key, value in said.items()}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    meta = {"name": name, "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def autoscaler(target: str, least: int = 1, most: int = 9) -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    spec = {"scaleTargetRef": ref, "minReplicas": least, "maxReplicas": most}
    meta = {"name": f"auto-{target}"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


class Truth:
    """Plans, and the results of runs after them."""

    def __init__(self, ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str) -> None:
        self._ctrl = ctrl
        self._kubectl = kubectl
        self._audit = audit
        self._namespace = namespace
        self._customs: list[str] = []
        self.plans: dict[str, dict[str, Any]] = {}  # by the name of the planned object

    def install(self, controller: str) -> None:
        self._customs.append(install_crd(self._kubectl, controller))

    def plan(self, target: str, *flags: str, code: int) -> dict[str, Any]:
        """A plan without effects: only reads and dry runs, and all objects unchanged."""
        before, since = self.versions(), self._audit.mark()
        ran = self._ctrl("plan", target, "--diff", "-ojson", *flags)
        assert ran.code == code, ran
        asked = self._audit.requests(since)
        assert asked, "Nothing was asked."
        assert not [one for one in asked if not harmless(one)], asked
        assert self.versions() == before
        plan: dict[str, Any] = json.loads(ran.out)
        self.plans[target.partition("/")[2]] = plan
        return plan

    def versions(self) -> dict[str, str]:
        """All objects that plans here use, except autoscalers, whose controller never rests."""
        types = ["deployments", "replicasets", "pods", "configmaps", "secrets", "leases", *self._customs]
        found = self._kubectl.json("get", ",".join(types))["items"]
        return {f"{one['kind']}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in found}

    def then_run(self, controller: str) -> None:
        """Compares each plan with the attempt of `run --once` for its object."""
        since = self._audit.mark()
        ran = self._ctrl("run", controller, "--once", "--log=json")
        attempts = {one["name"]: one for one in map(json.loads, ran.out.splitlines()) if one["name"] in self.plans}
        assert attempts.keys() == self.plans.keys(), ran
        written = {one.audit_id for one in self._audit.writes(since, namespace=self._namespace)}
        for name, plan in self.plans.items():
            done = [call for call in attempts[name]["calls"] if is_done(call)]
            assert {call["id"] for call in done} <= written
            assert sent(plan) == [called(call) for call in done], name
            assert [one["outcome"] for one in plan["reconciles"]] == [attempts[name]["outcome"]]
            for planned in plan["objects"]:
                if "planned" in planned:
                    self._is(planned)

    def _is(self, planned: dict[str, Any]) -> None:
        live, expected = known(self._kubectl.find(planned["kind"], planned["name"])), known(planned["planned"])
        if planned["kind"] == "Memcached":
            # Other controllers may add pods between the attempt's write of the Deployment and its look at the pods.
            assert set(expected["status"].pop("nodes")) <= set(live["status"].pop("nodes"))
        assert expected == live, planned["name"]


def is_done(call: dict[str, Any]) -> bool:
    """It is a write that the server accepted."""
    return call["verb"] in _WRITES and not call["dryRun"] and call["code"] in (200, 201)


def harmless(asked: AuditedRequest) -> bool:
    return asked.dry_run or asked.verb in ("get", "list", "watch")


def sent(plan: dict[str, Any]) -> list[str]:
    return [called(write) for one in plan["reconciles"] for write in one["writes"]]


def called(call: dict[str, Any]) -> str:
    return " ".join(filter(None, (call["verb"], call["resource"], call["name"], call["subresource"])))


def known(obj: dict[str, Any] | None) -> Any:
    """The predictable fields of an object: without those of the server and of other controllers."""
    if obj is None:
        return None
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS_OWN}
    meta["annotations"] = {key: value for key, value in meta.get("annotations", {}).items() if key != _OTHERS}
    rest = {key: value for key, value in obj.items() if key != "metadata"}
    if obj["kind"] in ("Deployment", "ReplicaSet"):
        rest.pop("status", None)
    return json.loads(_TIME.sub("at some time", json.dumps({**rest, "metadata": meta})))


@pytest.fixture
def truth(ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str) -> Truth:
    # The controller manager creates it in every namespace, at some time.
    kubectl("wait", "--for=create", "configmap/kube-root-ca.crt", "--timeout=100s")
    return Truth(ctrl, kubectl, audit, namespace)


def at_rest(ctrl: Ctrl, controller: str) -> None:
    ctrl("run", controller, "--until-idle", "--timeout=3m").checked()


@pytest.mark.real
def test_a_run_of_foo_equals_its_plan(truth: Truth, ctrl: Ctrl, kubectl: Kubectl) -> None:
    truth.install("foo")
    kubectl.create(*(foo(name, replicas=2) for name in ("rests", "grows", "moves", "scaled", "reverts")))
    at_rest(ctrl, "foo")
    for name, spec in (("grows", {"replicas": 3}), ("moves", {"deploymentName": "moved"})):
        kubectl("patch", "foo", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")
    kubectl.create(autoscaler("scaled"), workload("taken"), foo("taken"), foo("new"), foo("wrong", deployment="a_b"))
    kubectl("patch", "foo", "scaled", "--type=merge", '--patch={"spec":{"replicas":5}}')
    kubectl("patch", "deployment", "reverts", "--type=merge", '--patch={"spec":{"replicas":0}}')
    wait_until(lambda: nothing_moves(kubectl))

    assert sent(truth.plan("foo/rests", code=0)) == []
    grown = truth.plan("foo/grows", code=1)
    changed = {one["name"]: one for one in grown["objects"] if one["kind"] == "Deployment"}["grows"]["changed"]
    assert {"path": "spec.replicas", "old": 2, "new": 3} in changed
    truth.plan("foo/moves", code=1)
    handed = truth.plan("foo/scaled", code=1)
    assert "spec.replicas" not in [one["path"] for fate in handed["objects"] for one in fate["changed"]]
    taken = truth.plan("foo/taken", code=1)
    assert [one["effect"] for one in taken["objects"] if one["kind"] == "Deployment"] == ["foreign"]
    new = truth.plan("foo/new", code=1)
    assert [one["effect"] for one in new["objects"]] == ["created", "changed"]
    assert truth.plan("foo/wrong", code=2)["reconciles"][0]["outcome"] == "terminal"
    truth.plan("foo/reverts", code=1)
    truth.then_run("foo")


def test_a_run_of_memcached_equals_its_plan(truth: Truth, ctrl: Ctrl, kubectl: Kubectl) -> None:
    truth.install("memcached")
    kubectl.create(memcached("rests", 1), memcached("grows", 1))
    at_rest(ctrl, "memcached")
    kubectl("patch", "memcached", "grows", "--type=merge", '--patch={"spec":{"size":3}}')
    kubectl.create(memcached("new", 2))
    wait_until(lambda: nothing_moves(kubectl))
    assert sent(truth.plan("memcached/rests", code=0)) == []
    truth.plan("memcacheds.cache.example.com/grows", code=1)
    truth.plan("memcached/new", code=1)
    truth.then_run("memcached")


def test_runs_of_podcount_and_the_scaler_equal_their_plans(truth: Truth, kubectl: Kubectl) -> None:
    kubectl.create(workload("plain", 2), workload("down", 3, force_down="true"), workload("auto", 3, force_down="true"))
    kubectl.create(autoscaler("auto", 2, 5))
    kubectl("rollout", "status", "deployment/plain", "deployment/down", "deployment/auto", "--timeout=3m")
    wait_until(lambda: nothing_moves(kubectl))

    def replica_sets() -> list[str]:
        found = kubectl.json("get", "replicasets")["items"]
        assert len(found) == 3
        assert all(one["status"].get("availableReplicas") == one["spec"]["replicas"] for one in found)
        return [one["metadata"]["name"] for one in found]

    sets = wait_until(replica_sets)
    for name in sets:
        plan = truth.plan(f"rs/{name}", code=1)
        assert [one["path"] for fate in plan["objects"] for one in fate["changed"]] == ["metadata.labels.pod-count"]
    truth.then_run("podcount")
    truth.plans.clear()
    for name in sets:
        truth.plan(f"replicaset.apps/{name}", code=0)
    truth.plans.clear()

    assert sent(truth.plan("deployment/plain", code=0)) == []
    truth.plan("deploy/down", code=1)
    truth.plan("deployments/auto", code=1)
    truth.plans.pop("plain")  # no event triggers the scaler for it
    truth.then_run("scaler")


@pytest.mark.real
def test_a_file_is_planned_as_if_it_were_applied(ctrl: Ctrl, kubectl: Kubectl, audit: Audit) -> None:
    install_crd(kubectl, "foo")
    there = foo("there", replicas=1)
    kubectl.apply({**there, "metadata": {**there["metadata"], "labels": {"former": "yes"}}})
    at_rest(ctrl, "foo")
    since = audit.mark()
    text = "\n---\n".join(map(json.dumps, (foo("there", replicas=4), foo("absent", replicas=2))))
    ran = ctrl("plan", "-f", "-", "-ojson", "--diff", stdin=text)
    assert ran.code == 1, ran
    assert all(map(harmless, audit.requests(since)))
    plan = json.loads(ran.out)
    assert {one["name"]: one["effect"] for one in plan["given"]} == {"there": "changed", "absent": "created"}
    former = [one for one in plan["given"][0]["changed"] if one["path"] == "metadata.labels.former"]
    assert former == [{"path": "metadata.labels.former", "old": "yes"}]
    found = {(one["kind"], one["name"]): one for one in plan["objects"]}
    assert {"path": "spec.replicas", "old": 1, "new": 4} in found["Deployment", "there"]["changed"]
    made = found["Deployment", "absent"]
    assert (made["effect"], made["planned"]["spec"]["replicas"]) == ("created", 2)
    assert found["Foo", "absent"]["checkedByServer"] is False
    assert kubectl.find("foo", "absent") is None

    settled = json.loads(ctrl("plan", "-f", "-", "-ojson", "--to-fixpoint", stdin=text).out)
    assert settled["settled"]
    assert max(one["round"] for one in settled["reconciles"]) == 2


_ABSENT = """\
from kubectl_ctrl import Resource, controller


async def reconcile(ctx, request):
    return None


CONTROLLER = controller("absent", reconcile).for_(Resource("plan.example.com", "v1", "absentees", "Absentee"))
"""


def test_a_failed_plan_has_its_exit_code(ctrl: Ctrl, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    install_crd(kubectl, "foo")
    kubectl.create(foo("one"))
    mine = tmp_path / "mine.py"
    mine.write_text(_ABSENT)
    content = json.loads(kubectl("config", "view", "--raw", "--output=json"))
    content["contexts"][0]["name"] = content["current-context"] = "prod"
    foreign = tmp_path / "foreign"
    foreign.write_text(json.dumps(content))

    def ends(code: int, word: str, *args: str) -> str:
        ran = ctrl("plan", *args)
        assert ran.code == code, ran
        assert word in ran.err
        return ran.err

    ends(4, "CTRL-NOT-FOUND", "foo/two")
    ends(4, f"kubectl create namespace {namespace}x", "foo/one", f"-n{namespace}x")
    ends(2, "No bundled controller is for configmaps", "configmap/x")
    ends(2, "CTRL-USAGE", "foo")
    ends(3, "CTRL-UNREACHABLE", "foo/one", "--server=https://127.0.0.1:1")
    assert 'resources ["foos"], verbs ["get"]' in ends(7, "CTRL-FORBIDDEN", "foo/one", "--as=nobody")
    ends(8, f"kubectl ctrl install {mine}", "absentee/one", f"--controller={mine}")
    assert "CTRL-REFUSED" not in ends(1, "on context prod", "foo/one", f"--kubeconfig={foreign}")
    ends(124, "CTRL-TIMEOUT", "foo/one", "--timeout=1ms")


_SECRETIVE = '''\
"""Keeps a Secret for each ConfigMap that is named source."""

from kubectl_ctrl import CONFIGMAPS, SECRETS, controller


async def reconcile(ctx, request):
    source = await ctx.read.get(CONFIGMAPS, request.name)
    if source is None or request.name != "source":
        return None
    child = {"metadata": {"name": "kept"}, "stringData": {"word": source["data"]["word"], "same": "as-ever-canary"}}
    await ctx.write.ensure(child, owner=source, resource=SECRETS)
    return None


CONTROLLER = controller("secretive", reconcile).for_(CONFIGMAPS).owns(SECRETS)
'''
_DIFFER = """\
#!/bin/sh
for word in "$@"; do echo "word $word"; done
for file in "$1"/* "$2"/*; do echo "file $file"; cat "$file"; done
exit "${CODE:-1}"
"""


@pytest.fixture
def differ(tmp_path: Path) -> Path:
    """A diff program that prints its arguments and input."""
    path = tmp_path / "differ"
    path.write_text(_DIFFER)
    path.chmod(0o755)
    return path


def test_secrets_are_hidden_from_every_diff(
    ctrl: Ctrl, kubectl: Kubectl, tmp_path: Path, differ: Path, namespace: str
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(_SECRETIVE)
    meta = {"name": "source"}
    kubectl.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"word": "first-canary"}})
    ctrl("run", str(mine), "--once").checked()
    kubectl("patch", "configmap", "source", "--type=merge", '--patch={"data":{"word":"second-canary"}}')
    canaries = [form for word in ("first-canary", "second-canary", "as-ever-canary") for form in _forms(word)]
    words = ("plan", "configmap/source", f"--controller={mine}")
    shown = [ctrl(*words, *more) for more in ((), ("--diff",), ("-oyaml", "--diff"), ("-ojson",), ("--diff", "-v4"))]
    env = {**ctrl.env, "KUBECTL_EXTERNAL_DIFF": str(differ)}
    shown.append(Ctrl(env, tmp_path)(*words, "--diff"))
    for ran in shown:
        assert ran.code == 1, ran
        assert [canary for canary in canaries if canary in ran.out + ran.err] == []
    assert "data.word" in shown[0].out
    assert "*** (after)" in shown[1].out
    assert "apply Secret/kept 200 (dry run)" in shown[4].err
    assert f"MERGED-{namespace}" not in shown[-1].out
    assert f"v1.Secret.{namespace}.kept" in shown[-1].out


def _forms(word: str) -> tuple[str, ...]:
    return word, base64.b64encode(word.encode()).decode()


def test_a_diff_program_is_called_as_kubectl_calls_it(
    ctrl: Ctrl, kubectl: Kubectl, tmp_path: Path, differ: Path, namespace: str
) -> None:
    install_crd(kubectl, "foo")
    kubectl.create(foo("web"))

    def called_with(program: str, *command: str, code: str = "1") -> Ran:
        env = {**ctrl.env, "KUBECTL_EXTERNAL_DIFF": program, "CODE": code}
        return run(*command, env=env, stdin=json.dumps(workload("web")))

    ours = (str(PROGRAM), "plan", "foo/web", "--diff")
    theirs = (str(kubectl.program), "diff", "--filename=-")
    program = f"{differ} -N  a/b --color=always x.y two"
    found, expected = (_heard(called_with(program, *command)) for command in (ours, theirs))
    assert [line for line in found if line.startswith("word")] == [line for line in expected if line.startswith("word")]
    web = f"apps.v1.Deployment.{namespace}.web"
    assert [line for line in expected if line.endswith(web)] == [line for line in found if line.endswith(web)] != []
    codes = [called_with(str(differ), *ours, code=code).code for code in ("0", "1", "2")]
    assert codes == [1, 1, 2]
    assert called_with(str(tmp_path / "absent"), *ours).code > 1


def _heard(ran: Ran) -> list[str]:
    """The arguments of the program and the files that it found, without the random parts."""
    lines = [line for line in ran.out.splitlines() if line.startswith(("word ", "file "))]
    return [_undrawn(line) for line in lines]


def _undrawn(line: str) -> str:
    what, _, text = line.partition(" ")
    folder = next((part for part in Path(text).parts if part.startswith(("LIVE-", "MERGED-"))), "")
    return f"{what} {text.replace(folder, folder.partition('-')[0])}" if folder else line
