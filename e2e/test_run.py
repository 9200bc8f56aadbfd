"""`run` on a real API server: where it may run, when and how it stops, and what it waits for."""

from __future__ import annotations

import base64
import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.crds import install_crd, is_served, wait_until_served
from e2e.ctrl import Ctrl, Started
from e2e.kube import CHECKOUT, Audit, Kubectl, manifest, set_quota, wait_until
from e2e.test_foo import MANIFESTS, converged, foo

OTHER_AUTHORITY = CHECKOUT / "tests" / "client" / "certificates" / "ca.pem"
CRD = "foos.samplecontroller.k8s.io"


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


def uninstall(kubectl: Kubectl) -> None:
    kubectl("delete", "crd", CRD, "--ignore-not-found")
    wait_until(lambda: not is_served(kubectl, CRD), what=f"{CRD} is no longer served")


# The same cluster under other names and with other credentials.


Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def elsewhere(ctrl: Ctrl, kubeconfig: Path, tmp_path: Path) -> Callable[[Change], Ctrl]:
    """The program with a changed kubeconfig."""

    def changed(change: Change) -> Ctrl:
        content = yaml.safe_load(kubeconfig.read_text())
        change(content)
        path = tmp_path / "other-kubeconfig"
        path.write_text(yaml.safe_dump(content))
        other = Ctrl({**ctrl.env, "KUBECONFIG": str(path)}, tmp_path)
        other.all_started = ctrl.all_started
        return other

    return changed


def _as_production(content: dict[str, Any]) -> None:
    content["contexts"][0]["name"] = content["current-context"] = "prod-eu"


def _server(content: dict[str, Any]) -> str:
    return str(content["clusters"][0]["cluster"]["server"])


def _unreachable(content: dict[str, Any]) -> None:
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"


def _of_another_authority(content: dict[str, Any]) -> None:
    cluster = content["clusters"][0]["cluster"]
    cluster.pop("certificate-authority", None)
    cluster["certificate-authority-data"] = base64.b64encode(OTHER_AUTHORITY.read_bytes()).decode()


def _with_token(content: dict[str, Any]) -> None:
    content["users"][0]["user"] = {"token": "not-a-token"}


# The guard.


def test_a_foreign_context_is_refused_before_any_request(
    elsewhere: Callable[[Change], Ctrl], kubeconfig: Path, audit: Audit, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    server = _server(yaml.safe_load(kubeconfig.read_text()))
    mark = audit.mark()
    ran = elsewhere(_as_production)("run", "foo", "--once")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err.splitlines() == [
        "error[CTRL-REFUSED]: This cluster is not local, and changes to it are not allowed.",
        f"tried: context 'prod-eu', server {server}, namespace '{namespace}'",
        "next: repeat with --allow-context prod-eu if that is the cluster you mean",
    ]
    assert audit.requests(mark) == []


def test_naming_the_context_is_permission_and_only_the_right_name_is(
    elsewhere: Callable[[Change], Ctrl], audit: Audit, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    prod = elsewhere(_as_production)
    mark = audit.mark()
    for words in (["--allow-context=prod"], ["--context=prod-eu"], ["--allow-context="]):
        assert prod("run", "foo", "--once", *words).code == 6
    assert audit.requests(mark) == []
    assert prod("run", "foo", "--once", "--allow-context=prod-eu").code == 0
    assert audit.count(mark, namespace=namespace)["create", "deployments.apps"] == 1


def test_an_override_of_the_server_makes_a_local_context_foreign(ctrl: Ctrl, kubeconfig: Path, audit: Audit) -> None:
    server = _server(yaml.safe_load(kubeconfig.read_text()))
    mark = audit.mark()
    ran = ctrl("run", "foo", "--once", "--server", server)
    assert ran.code == 6
    assert server in ran.err
    assert audit.requests(mark) == []


def test_the_standing_list_of_the_user_is_permission_for_that_context_and_server(
    elsewhere: Callable[[Change], Ctrl], kubeconfig: Path
) -> None:
    prod = elsewhere(_as_production)
    server = _server(yaml.safe_load(kubeconfig.read_text()))
    settings = Path(prod.env["XDG_CONFIG_HOME"]) / "kubectl-ctrl" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"allowContexts": [{"context": "prod-eu", "server": "https://elsewhere:6443"}]}))
    assert prod("run", "foo", "--once").code == 6
    settings.write_text(json.dumps({"allowContexts": [{"context": "prod-eu", "server": server}]}))
    assert prod("run", "foo", "--once").code == 0


# Exits.


@pytest.mark.real
def test_once_reconciles_existing_objects_and_exits(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(foo("one"), foo("two"))
    ran = ctrl("run", "foo", "--once").checked()
    assert len(ran.out.splitlines()) == 2
    assert all("create Deployment/" in line for line in ran.out.splitlines())


@pytest.mark.real
def test_once_ends_with_1_when_an_attempt_failed(kubectl: Kubectl, ctrl: Ctrl, namespace: str) -> None:
    kubectl.apply(foo("web"))
    set_quota(kubectl, "none", "count/deployments.apps=0")
    ran = ctrl("run", "foo", "--once")
    assert ran.code == 1
    assert "create Deployment/web 403" in ran.out
    assert "failed in the last attempt: 1" in ran.err
    assert f"foo {namespace}/web" in ran.err


@pytest.mark.parametrize("words", [["--once"], ["--once", "--log=json"]])
def test_once_without_the_crd_exits_with_8_and_names_the_install_command(
    kubectl: Kubectl, ctrl: Ctrl, words: list[str]
) -> None:
    uninstall(kubectl)
    ran = ctrl("run", "foo", *words)
    assert ran.code == 8
    assert "Nothing was reconciled: foos.samplecontroller.k8s.io" in ran.err
    assert "is not installed" in ran.err
    assert "kubectl ctrl install foo" in ran.err


def test_once_on_the_originals_crd_exits_with_8_and_names_its_gaps(kubectl: Kubectl, ctrl: Ctrl) -> None:
    uninstall(kubectl)
    crd = yaml.safe_load((MANIFESTS / "crd.yaml").read_text())
    for version in crd["spec"]["versions"]:
        version.pop("subresources")
    kubectl("apply", "--filename=-", stdin=manifest(crd))
    wait_until_served(kubectl, CRD)
    kubectl.apply(foo("web"))
    ran = ctrl("run", "foo", "--once")
    uninstall(kubectl)
    assert ran.code == 8
    assert "is served without a status subresource" in ran.err


def test_until_idle_exits_with_124_and_names_the_awaited_objects(kubectl: Kubectl, ctrl: Ctrl) -> None:
    uninstall(kubectl)
    ran = ctrl("run", "foo", "--until-idle", "--timeout=12s")
    assert ran.code == 124
    # A slow cluster may not have listed the other types by then.
    assert re.search(r"waited for: \d\n  foos.samplecontroller.k8s.io is not installed \(since 2", ran.err), ran.err
    assert "error[CTRL-TIMEOUT]: The run timed out: foos.samplecontroller.k8s.io is not" in ran.err


@pytest.mark.real
def test_until_idle_ends_when_all_is_rolled_out(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(foo("web", replicas=2))
    ctrl("run", "foo", "--until-idle", "--timeout=3m").checked()
    assert converged(kubectl, "web", 2)()


@pytest.mark.real
def test_it_waits_for_the_crd_and_again_when_it_is_deleted(kubectl: Kubectl, ctrl: Ctrl, audit: Audit) -> None:
    uninstall(kubectl)
    running = ctrl.started("run", "foo")
    running.line("foos.samplecontroller.k8s.io is not installed; waiting for it")
    _assert_patient(audit)
    install_crd(kubectl, "foo")
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1))
    before = _lines_of_its_absence(running)  # a new CRD is often not ready at once, and missing for a second time
    uninstall(kubectl)
    wait_until(lambda: _lines_of_its_absence(running) > before)
    _assert_patient(audit)
    install_crd(kubectl, "foo")
    kubectl.apply(foo("later"))
    wait_until(converged(kubectl, "later", 1))
    assert running.stop() == 0


def _lines_of_its_absence(running: Started) -> int:
    return sum("is not installed" in line for line in running.err)


def _assert_patient(audit: Audit, *, seconds: float = 10, most: int = 20) -> None:
    """While it waits it checks the served types every 5 s (3 requests), and tries few lists."""
    mark = audit.mark()
    audit.assert_no_writes(seconds=seconds)
    asked = audit.requests(mark)
    assert 1 <= len(asked) <= most, asked


def test_a_signal_while_it_waits_for_the_crd_ends_it(kubectl: Kubectl, ctrl: Ctrl) -> None:
    uninstall(kubectl)
    running = ctrl.started("run", "foo")
    running.line("waiting for it")
    assert running.stop() == 0


# Invalid arguments, no access to a cluster.


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "run needs a controller"),
        (["fo"], "did you mean foo?"),
        (["foo", "--workers=0"], "--workers: it must be a whole number from 1 to 1000"),
        (["foo", "--workers=many"], "--workers: 'many' is not a valid integer"),
        (["foo", "--timeout=5"], "--timeout: '5' is not a duration; write it like"),
        (["foo", "--timeout=-1s"], "--timeout: it must be more than zero"),
        (["foo", "--resync=1ms"], "--resync: it must be at least 1s, or 0 for never"),
        (["foo", "--log=xml"], "--log: 'xml'"),
        (["foo", "--leader-elect=maybe"], "--leader-elect: 'maybe'"),
        (["foo", "--selector=a=b=c"], "a=b=c"),
        (["foo", "--metrics-bind-address=127.0.0.1:99999"], "'127.0.0.1:99999' is not an address to listen on"),
        (["foo", "--once", "--until-idle"], "--once and --until-idle exclude each other"),
    ],
)
def test_invalid_arguments_exit_with_2_before_any_request(
    ctrl: Ctrl, audit: Audit, words: list[str], told: str
) -> None:
    mark = audit.mark()
    ran = ctrl("run", *words)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert len(ran.err.splitlines()) <= 3
    assert audit.requests(mark) == []


def test_without_a_kubeconfig_it_ends_with_3(ctrl: Ctrl, tmp_path: Path) -> None:
    ran = Ctrl({**ctrl.env, "KUBECONFIG": str(tmp_path / "nothing")}, tmp_path)("run", "foo")
    assert ran.code == 3
    assert "No cluster is configured" in ran.err


def test_a_wrong_token_ends_it_with_3(elsewhere: Callable[[Change], Ctrl]) -> None:
    ran = elsewhere(_with_token)("run", "foo")
    assert ran.code == 3
    assert "error[CTRL-UNAUTHORIZED]" in ran.err
    assert "not-a-token" not in ran.err


def test_a_server_of_another_authority_ends_it_with_3_at_once(elsewhere: Callable[[Change], Ctrl]) -> None:
    ran = elsewhere(_of_another_authority)("run", "foo")
    assert ran.code == 3
    assert "error[CTRL-TLS]" in ran.err
    assert "it was not signed by the certificate authority of the kubeconfig" in ran.err
    assert "next: Check the cluster's address and certificate-authority in the kubeconfig." in ran.err


def test_m07_an_unreachable_server_ends_once_with_3(elsewhere: Callable[[Change], Ctrl]) -> None:
    ran = elsewhere(_unreachable)("run", "foo", "--once")
    assert ran.code == 3
    assert "error[CTRL-UNREACHABLE]" in ran.err
    assert "127.0.0.1:1: Connection refused" in ran.err


def test_an_unreachable_server_is_waited_for_and_a_signal_ends_that(elsewhere: Callable[[Change], Ctrl]) -> None:
    running = elsewhere(_unreachable).started("run", "foo")
    running.line("The cluster does not answer yet; retrying: .*Connection refused")
    running.signal(signal.SIGTERM)
    assert running.wait() == 0


def test_an_unreachable_server_does_not_outlast_the_timeout(elsewhere: Callable[[Change], Ctrl]) -> None:
    ran = elsewhere(_unreachable)("run", "foo", "--until-idle", "--timeout=1s")
    assert ran.code == 124
    assert "https://127.0.0.1:1" in ran.err


def test_m14_a_namespace_that_is_not_there_ends_it_with_4(ctrl: Ctrl) -> None:
    ran = ctrl("run", "foo", "-n", "mistyped")
    assert ran.code == 4
    assert ran.err.splitlines()[-2:] == [
        "error[CTRL-NOT-FOUND]: Namespace 'mistyped' does not exist.",
        "next: kubectl create namespace mistyped, or select another one with -n",
    ]


@pytest.mark.real
def test_m14_a_terminating_namespace_is_named(kubectl: Kubectl, ctrl: Ctrl, namespace: str) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["example.com/kept"]}, "apiVersion": "v1", "kind": "ConfigMap"}
    kubectl.apply(held)
    kubectl("delete", "namespace", namespace, "--wait=false")
    ran = ctrl("run", "foo", "--once").checked()
    assert f"Namespace '{namespace}' is being deleted: no objects can be created in it." in ran.err
    kubectl("patch", "configmap", "held", "--type=merge", '--patch={"metadata": {"finalizers": []}}')


# Scope.


@pytest.fixture
def neighbour(kubectl: Kubectl, namespace: str) -> str:
    """A second namespace with a Foo in it."""
    name = f"{namespace}-b"
    kubectl("create", "namespace", name)
    kubectl("apply", f"--namespace={name}", "--filename=-", stdin=manifest(foo("far")))
    return name


def _made(audit: Audit, mark: int) -> set[tuple[str, str]]:
    return {(one.namespace, one.name) for one in audit.writes(mark) if one.resource == "deployments.apps"}


def test_it_works_in_the_namespace_of_the_context(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str, neighbour: str
) -> None:
    kubectl.apply(foo("near"))
    mark = audit.mark()
    ran = ctrl("run", "foo", "--once").checked()
    assert _made(audit, mark) == {(namespace, "near")}
    assert f"namespace {namespace} (-A for all)" in ran.err
    kubectl("delete", "namespace", neighbour, "--wait=false")


def test_the_namespace_flag_means_that_one(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, neighbour: str) -> None:
    kubectl.apply(foo("near"))
    mark = audit.mark()
    ctrl("run", "foo", "--once", "-n", neighbour).checked()
    assert _made(audit, mark) == {(neighbour, "far")}
    kubectl("delete", "namespace", neighbour, "--wait=false")


def test_all_namespaces_means_all(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str, neighbour: str) -> None:
    kubectl.apply(foo("near"))
    mark = audit.mark()
    ran = ctrl("run", "foo", "--once", "-A")
    assert {(namespace, "near"), (neighbour, "far")} <= _made(audit, mark)
    assert "all namespaces" in ran.err
    kubectl("delete", "namespace", neighbour, "--wait=false")


def test_a_selector_leaves_the_others_alone(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
    chosen = foo("chosen")
    chosen["metadata"]["labels"] = {"app": "web"}
    kubectl.apply(chosen, foo("other"))
    mark = audit.mark()
    ctrl("run", "foo", "--once", "-l", "app=web").checked()
    assert _made(audit, mark) == {(namespace, "chosen")}
