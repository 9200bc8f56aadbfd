"""What `doctor` says of a cluster: that it answers, what may be changed there, what controllers lack."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.clusters.registry import ClusterEntry, Phase
from kubectl_ctrl.doctor import context, controllers
from kubectl_ctrl.doctor.checks import identify
from kubectl_ctrl.errors import ConfigError, CtrlError
from kubectl_ctrl.install.parts import read_parts
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.sandbox.answers import answer
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.user import User
from tests.cli.bench import ALL, UNABLE, Layout, Toy, kubeconfig, laid_out, told

FOO_CRD = "foos.samplecontroller.k8s.io"


def foo() -> list[Obj]:
    """What install makes for it."""
    return [copy.deepcopy(obj) for obj in needs(read_parts(bundled.folder("foo"), "foo"))]


async def test_a_cluster_that_answers_is_told_with_who_we_are_there(at: Layout) -> None:
    assert told(await at.see(context.context)) == [
        ("ok", "context kind-ctrl answers at https://127.0.0.1:6443 (v1.36.3); your user is jane")
    ]


async def test_the_server_is_asked_who_we_are(at: Layout) -> None:
    server = at.stage.server
    who = {"status": {"userInfo": {"username": "system:serviceaccount:a:b"}}}
    review = Match(path="/apis/authentication.k8s.io/v1/selfsubjectreviews")
    server.faults.answer(review, answer(who, 201))
    server.faults.answer(Match(path="/version"), answer({"gitVersion": "v1.37.0"}), times=None)
    found = await identify(at.stage.client(), at.reached.resolved)
    assert (found.user, found.version) == ("system:serviceaccount:a:b", "v1.37.0")
    assert found.cluster
    server.faults.fail(review, 404)  # a server before 1.28
    assert (await identify(at.stage.client(), at.reached.resolved)).user == ""
    server.faults.fail(review, 401)
    with pytest.raises(CtrlError):
        await identify(at.stage.client(), at.reached.resolved)


async def test_what_keeps_us_from_it_is_a_failure_with_code_3(at: Layout) -> None:
    at.reachable = CtrlError("Nobody listens there.", tried="https://127.0.0.1:6443", next_step="kubectl ctrl up")
    (line,) = await at.see(context.context)
    assert (line.code, line.mark.value, line.command) == (3, "fail", "kubectl ctrl up")
    assert line.text == "context kind-ctrl: Nobody listens there (https://127.0.0.1:6443)"


async def test_no_cluster_at_all_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")

    at = laid_out(tmp_path)
    at.reachable = ConfigError("No cluster is configured.")
    (line,) = await at.see(context.context)
    assert (line.mark.value, line.command) == ("info", "kubectl ctrl up")
    at.providers = {"toy": Toy("toy", UNABLE)}
    (line,) = await at.see(context.context)
    assert (line.mark.value, line.command) == ("info", "")
    assert "KUBECONFIG" in line.advice

    at = laid_out(tmp_path)
    at.reachable = ConfigError("No cluster is configured.")
    for name in ("one", "two"):
        place = at.app.registry.place(name)
        at.app.registry.write(ClusterEntry(name=name, provider="toy", phase=Phase.READY, began=1.0, folder=place))
    (line,) = await at.see(context.context)
    assert line.text.endswith("managed clusters: one, two")
    assert line.command == 'eval "$(kubectl ctrl cluster env one)"'

    at = laid_out(tmp_path)
    lost = at.app.registry.place("lost") / "kubeconfig"
    at.app.user = User({**at.app.user.environ, "KUBECONFIG": str(lost)})
    at.reachable = ConfigError("Cluster 'lost' no longer exists.")
    (line,) = await at.see(context.context)
    assert (line.code, line.text) == (3, "Cluster 'lost' no longer exists")

    at = laid_out(tmp_path, "--context=prod")
    at.reachable = ConfigError("The context 'prod' does not exist.")
    (line,) = await at.see(context.context)
    assert line.code == 3


async def test_whether_it_may_be_changed_is_information(tmp_path: Path) -> None:
    async def freedom(at: Layout) -> str:
        (line,) = await at.see(context.permission)
        assert line.mark.value == "info"
        return line.text

    at = laid_out(tmp_path)
    assert "a local cluster" in await freedom(at)
    (tmp_path / "kubeconfig").write_text(kubeconfig("https://10.0.0.1:6443", context="prod-eu"))
    assert await freedom(at) == "verbs that change it need --allow-context prod-eu"


async def test_controllers_that_are_not_there_are_one_line(at: Layout) -> None:
    at.grant(ALL)
    (line,) = await at.see(controllers.controllers)
    assert line.text == "not installed: foo, memcached, podcount, scaler"
    assert line.command == "kubectl ctrl install"
    at.stage.install(*foo())
    first, second = await at.see(controllers.controllers)
    assert first.text == "foo is installed, and you have all its rights in namespace apps"
    assert second.command == "kubectl ctrl install memcached podcount scaler"


async def test_a_part_that_is_missing_is_named(at: Layout) -> None:
    at.grant(ALL)
    at.stage.install(*(obj for obj in foo() if obj["kind"] != "ClusterRoleBinding"))
    line = (await at.see(controllers.controllers))[0]
    assert (line.check, line.code, line.command) == ("foo", 8, "kubectl ctrl install foo")
    assert line.text.endswith("missing: clusterrolebinding.rbac.authorization.k8s.io/kubectl-ctrl-foo")


async def test_what_uninstall_leaves_is_no_failure(at: Layout) -> None:
    at.grant(ALL)
    at.stage.install(*(obj for obj in foo() if obj["kind"] == "CustomResourceDefinition"))
    line = (await at.see(controllers.controllers))[0]
    assert (line.check, line.code, line.command) == ("foo", 0, "kubectl ctrl install foo")
    assert line.text == "only the CRD of foo is installed, so it runs with your own rights"


async def test_rights_that_its_account_lost_are_named(at: Layout) -> None:
    at.grant(ALL)
    for obj in foo():
        if obj["kind"] == "ClusterRole":
            obj["rules"] = [rule for rule in obj["rules"] if "deployments" not in rule["resources"]]
        at.stage.install(obj)
    line = (await at.see(controllers.controllers))[0]
    assert (line.code, line.command) == (7, "kubectl ctrl install foo --force-conflicts")
    assert line.text.startswith("the ServiceAccount of foo lacks rights: ")
    assert "deployments.apps" in line.text


async def test_rights_that_the_user_lacks_are_named(at: Layout) -> None:
    at.stage.install(*foo())
    at.grant({**ALL, "verbs": ["get", "list", "watch"]})
    line = (await at.see(controllers.controllers))[0]
    assert (line.code, line.command) == (7, "kubectl ctrl rbac foo")
    assert line.text == (
        "foo run by jane lacks rights in namespace apps: create events, patch events, create deployments.apps, "
        "delete deployments.apps and 3 more"
    )


async def test_where_rules_are_not_listed_whole_each_right_is_asked_for(at: Layout) -> None:
    at.stage.install(*foo())
    at.grant(incomplete=True)
    asked: list[Any] = []

    def allowed(right: Any) -> bool:
        asked.append(right)
        return bool(right["resource"] != "events")

    at.allow(allowed)
    line = (await at.see(controllers.controllers))[0]
    assert line.text == "foo run by jane lacks rights in namespace apps: create events, patch events"
    assert {right["namespace"] for right in asked} == {"apps"}
    status = [right for right in asked if right["subresource"] == "status"]
    assert {(right["group"], right["resource"]) for right in status} == {("samplecontroller.k8s.io", "foos")}


async def test_who_may_not_look_at_parts_is_told_of_what_is_served(at: Layout) -> None:
    at.stage.install(*foo())
    at.grant()
    for plural in ("customresourcedefinitions", "clusterroles", "roles", "serviceaccounts"):
        at.stage.server.faults.fail(Match(plural=plural), 403, times=None)
    for plural in ("clusterrolebindings", "rolebindings"):
        at.stage.server.faults.fail(Match(plural=plural), 403, times=None)
    (line,) = await at.see(controllers.controllers)
    assert (line.check, line.code) == ("foo", 7)


def crd(at: Layout, *stored: str, storage: str = "v1", established: bool = True) -> None:
    """The CRD of foo, with versions v1 and v1alpha1, of which v0 is not served any more."""
    (obj,) = (one for one in foo() if one["kind"] == CRDS.kind)
    one = obj["spec"]["versions"][0]
    names = ("v1", "v1alpha1", "v0")
    obj["spec"]["versions"] = [
        {**copy.deepcopy(one), "name": name, "served": name != "v0", "storage": name == storage} for name in names
    ]
    at.stage.install(obj)
    conditions = [{"type": "Established", "status": str(established)}]
    obj["status"] = {"storedVersions": list(stored), "conditions": conditions}
    body = {"apiVersion": CRDS.api_version, "kind": f"{CRDS.kind}List", "metadata": {}, "items": [obj]}
    at.stage.server.faults.answer(Match(verb="list", plural=CRDS.plural), answer(body), times=None)


async def test_a_crd_of_one_version_is_well(at: Layout) -> None:
    assert await at.see(controllers.stored) == []
    crd(at, "v1")
    text = f"all objects of these CRDs are stored in one version: {FOO_CRD}"
    assert told(await at.see(controllers.stored)) == [("ok", text)]


async def test_an_old_stored_version_is_told_with_what_writes_objects_anew(at: Layout) -> None:
    crd(at, "v1alpha1", "v1")
    (line,) = await at.see(controllers.stored)
    assert (line.mark.value, line.text) == (
        "warn",
        f"objects of the CRD {FOO_CRD} may be stored in v1alpha1, which is not v1",
    )
    patch = """--patch '{"status":{"storedVersions":["v1"]}}'"""
    told_so = f"kubectl --context kind-ctrl patch crd {FOO_CRD} --subresource=status --type=merge {patch}"
    assert line.command == told_so
    body = {
        "apiVersion": "samplecontroller.k8s.io/v1",
        "kind": "Foo",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"deploymentName": "a", "replicas": 1},
    }
    at.stage.server.create(body)
    (line,) = await at.see(controllers.stored)
    anew = f"kubectl --context kind-ctrl get {FOO_CRD} --all-namespaces --output=json"
    assert line.command == f"{anew} | kubectl --context kind-ctrl replace --filename=- && {told_so}"


async def test_a_version_that_nobody_serves_is_named_first(at: Layout) -> None:
    crd(at, "v0", "v1alpha1", "v1")
    (line,) = await at.see(controllers.stored)
    assert line.text.endswith("may be stored in v0, which is no longer served")


async def test_a_crd_that_is_not_established_fails(at: Layout) -> None:
    crd(at, "v1", established=False)
    (line,) = await at.see(controllers.stored)
    assert line.code == 8


async def test_crds_that_may_not_be_looked_at_are_no_failure(at: Layout) -> None:
    at.stage.server.faults.fail(Match(plural="customresourcedefinitions"), 403, times=None)
    (line,) = await at.see(controllers.stored)
    assert line.mark.value == "info"
