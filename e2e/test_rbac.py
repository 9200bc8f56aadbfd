"""Each bundled controller under its own account: no request is refused, and no right is superfluous."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e import test_memcached, test_podcount
from e2e.ctrl import Ctrl, Started
from e2e.kube import COLLECTION_SECONDS, Audit, Cluster, Kubectl, Ran, wait_until
from e2e.rights import Right, granted, granted_by_now, losing, refused, rights_in, used, user_of, without
from e2e.test_foo import MANIFESTS, condition, converged, deployment, foo, owned
from kubectl_ctrl.controllers import BUNDLED

pytestmark = pytest.mark.real

# No request uses it, but admission checks it when an owner reference is set; it has its own test.
ADMISSION = "/finalizers"
PREFIX = "ars.44smkn.github.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Steps that reach every branch of a controller, and the responses that must be lost for some of them."""

    walk: Callable[[Kubectl, Ctrl], None]
    lost: tuple[str, ...] = ()


def walk_foo(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.create(deployment("taken"))
    kubectl.apply(foo("late", deployment="taken"))
    told_of_the_taken_name(kubectl, 1)
    rename(kubectl, "late", "free")
    wait_until(converged(kubectl, "late", 1))
    rename(kubectl, "late", "taken")
    # The same message again: the first event is patched.
    told_of_the_taken_name(kubectl, 2)
    kubectl.apply(foo("web", deployment="old"))
    wait_until(converged(kubectl, "web", 1))
    rename(kubectl, "web", "new")
    wait_until(lambda: owned(kubectl, "web") == ["new"])
    kubectl("delete", "deployment", "new")
    wait_until(converged(kubectl, "web", 1))
    kubectl("set", "image", "deployment/new", "nginx=nginx:other")
    wait_until(lambda: image(kubectl, "new") == "nginx:latest")


def image(kubectl: Kubectl, name: str) -> str:
    found: str = kubectl.json("get", "deployment", name)["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


def rename(kubectl: Kubectl, name: str, deployment_name: str) -> None:
    patch = {"spec": {"deploymentName": deployment_name}}
    kubectl("patch", "foo", name, "--type=merge", f"--patch={json.dumps(patch)}")


def told_of_the_taken_name(kubectl: Kubectl, times: int) -> None:
    def told() -> bool:
        assert condition(kubectl.json("get", "foo", "late")).get("reason") == "ErrResourceExists"
        assert told_of(kubectl, "ErrResourceExists") == [times]
        return True

    wait_until(told)


def told_of(kubectl: Kubectl, reason: str) -> list[int]:
    """The counts of the events with that reason."""
    events = kubectl.json("get", "events", f"--field-selector=reason={reason}")["items"]
    return [event.get("count", 1) for event in events]


def walk_memcached(kubectl: Kubectl, ctrl: Ctrl) -> None:
    test_memcached.find_the_name_taken(kubectl)
    test_memcached.find_it_gone(kubectl)
    sample = f"deployment/{test_memcached.SAMPLE}"
    # Its owner reference is removed: the same message again, so the first event is patched.
    kubectl("patch", sample, "--type=json", '--patch=[{"op":"remove","path":"/metadata/ownerReferences"}]')
    wait_until(lambda: told_of(kubectl, "ErrResourceExists") == [2])
    kubectl("delete", sample)
    wait_until(test_memcached.converged(kubectl, 3))
    former = test_memcached.uid(kubectl, "deployment")
    kubectl("delete", sample)
    # At first the status is still that of the deleted one, whose pods exist until they are collected.
    wait_until(lambda: test_memcached.uid(kubectl, "deployment") not in ("", former))
    wait_until(test_memcached.converged(kubectl, 3))
    test_memcached.leave_the_replicas_to_an_autoscaler(kubectl)
    kubectl("delete", f"hpa/{test_memcached.SAMPLE}", f"memcached/{test_memcached.SAMPLE}")
    wait_until(lambda: test_memcached.nothing_left(kubectl), deadline=COLLECTION_SECONDS)
    test_memcached.walk(kubectl)


def walk_podcount(kubectl: Kubectl, ctrl: Ctrl) -> None:
    test_podcount.label_the_example(kubectl, ctrl)


def walk_scaler(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl("apply", "--filename=-", stdin=ctrl("example", "scaler").checked().out)
    for kind in ("deployment", "statefulset"):
        body = test_podcount.workload(kind.capitalize() if kind == "deployment" else "StatefulSet", kind, 2)
        if kind == "statefulset":
            body["spec"]["serviceName"] = kind
        kubectl.apply(body)
        kubectl("annotate", kind, kind, f"{PREFIX}/force-down=true")
        wait_until(lambda kind=kind: count(kubectl, kind) == 0)  # type: ignore[misc]
    for times in (1, 2):
        # The same message again: the first event is patched.
        kubectl("annotate", "deployment/deployment", f"{PREFIX}/start=nonsense at noon", f"{PREFIX}/exclude-")
        wait_until(lambda times=times: warnings(kubectl) == [times])  # type: ignore[misc]
        # Meanwhile it has to see the repaired state, which the returned pods show.
        kubectl("annotate", "deployment/deployment", f"{PREFIX}/start-", f"{PREFIX}/exclude=true")
        wait_until(lambda: count(kubectl, "deployment") == 2)
    scaled = test_podcount.workload("Deployment", "led", 3)
    scaled["metadata"]["annotations"] = {f"{PREFIX}/force-down": "true", f"{PREFIX}/stop-replicas": "1"}
    kubectl("create", "deployment", "led", "--image=busybox:1", "--replicas=3")
    kubectl("autoscale", "deployment/led", "--min=2", "--max=9", "--cpu=80%")
    annotations = [f"{key}={value}" for key, value in scaled["metadata"]["annotations"].items()]
    kubectl("annotate", "deployment", "led", *annotations)
    wait_until(lambda: kubectl.json("get", "hpa", "led")["spec"]["maxReplicas"] == 1)


def warnings(kubectl: Kubectl) -> list[int]:
    """The count of each Warning."""
    found = kubectl.json("get", "events", "--field-selector=type=Warning,involvedObject.name=deployment")["items"]
    return [event.get("count", 1) for event in found if event["source"].get("component") == "kubectl-ctrl-scaler"]


def count(kubectl: Kubectl, kind: str) -> int:
    found: int = kubectl.json("get", kind, kind)["spec"]["replicas"]
    return found


FLOWS = {
    "foo": Flow(walk=walk_foo, lost=("POST /deployments",)),
    "memcached": Flow(walk=walk_memcached, lost=("POST /deployments",)),
    "podcount": Flow(walk=walk_podcount, lost=("PATCH /replicasets/",)),
    "scaler": Flow(walk=walk_scaler),
}


@pytest.fixture(params=BUNDLED)
def controller(request: pytest.FixtureRequest, ctrl: Ctrl, kubectl: Kubectl) -> Iterator[str]:
    """Installed for the test."""
    name: str = request.param
    yield from installed(ctrl, kubectl, name)


@pytest.fixture
def foo_installed(ctrl: Ctrl, kubectl: Kubectl) -> Iterator[None]:
    for _ in installed(ctrl, kubectl, "foo"):
        yield


def installed(ctrl: Ctrl, kubectl: Kubectl, name: str) -> Iterator[str]:
    ctrl("install", name).checked()
    wait_until(lambda: owners_are_known(kubectl, name), every=1)
    verb, resource = min(right for right in granted(kubectl, name) if "/" not in right[1])
    granted_by_now(kubectl, user_of(name), verb, resource, f"--namespace={name}-system")
    granted_by_now(kubectl, user_of(name), "update", "leases", f"--namespace={name}-system")
    yield name
    ctrl("uninstall", name).checked()


def owners_are_known(kubectl: Kubectl, name: str) -> bool:
    """The admission plugin calls discovery every half minute, and until then refuses owners of new types."""
    for crd in kubectl.json("get", "crds", f"--selector=app.kubernetes.io/name={name}")["items"]:
        spec = crd["spec"]
        version = f"{spec['group']}/{spec['versions'][0]['name']}"
        owner = {"apiVersion": version, "kind": spec["names"]["kind"], "name": "x", "uid": "x", "controller": True}
        probe = deployment("probe")
        probe["metadata"]["ownerReferences"] = [{**owner, "blockOwnerDeletion": True}]
        # As the account: users who may update all finalizers pass without this check.
        words = ("create", "--dry-run=server", "--filename=-", f"--as={user_of(name)}")
        if kubectl.try_(*words, stdin=json.dumps(probe)).code:
            return False
    return True


def working(ctrl: Ctrl, *flags: str) -> Started:
    started = ctrl.started("run", *flags)
    started.line("^acting as system:serviceaccount:")
    return started


@pytest.fixture
def lossy(cluster: Cluster, kubeconfig: Path, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """The kubeconfig for a controller whose flow needs lost responses."""
    with ExitStack() as held:
        yield lambda name: held.enter_context(losing(cluster, kubeconfig, tmp_path, *FLOWS[name].lost))


def test_s01_every_right_is_used_and_none_is_missing(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, lossy: Callable[[str], Path], controller: str
) -> None:
    mark = audit.mark()
    running = working(
        ctrl, controller, "--as-installed", "--leader-elect=required", f"--kubeconfig={lossy(controller)}"
    )
    FLOWS[controller].walk(kubectl, ctrl)
    assert running.stop() == 0
    rules = {right for right in granted(kubectl, controller) if not right[1].endswith(ADMISSION)}
    assert refused(audit, mark, controller) == set()
    assert used(audit, mark, controller) == rules


@pytest.mark.usefixtures("foo_installed")
def test_an_owner_needs_the_right_to_its_finalizers(ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str) -> None:
    """No call needs it, but admission does: without it no child can have an owner reference."""
    without(kubectl, "foo", ("update", "foos.samplecontroller.k8s.io/finalizers"))
    kubectl.apply(foo("web"))
    running = working(ctrl, "foo", "--as-installed")
    running.line("create Deployment/web 403")
    running.line("blockOwnerDeletion")
    assert kubectl.find("deployment", "web") is None
    assert ("create", "deployments.apps") in refused(audit, 0, "foo")


# Each right of foo that a call needs, and the objects that must exist for that call.
CALLS = sorted(
    right
    for role in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text())
    for right in rights_in(role["rules"])
    if not right[1].endswith(ADMISSION)
)


class Seen(Exception):
    """The awaited event happened."""


class Alert(Kubectl):
    """A kubectl that stops its user as soon as an event has happened."""

    def __init__(self, kubectl: Kubectl, happened: Callable[[], bool]) -> None:
        super().__init__(kubectl.program, kubectl.env)
        self._happened = happened

    def try_(self, *args: str, stdin: str = "", timeout: float = 60) -> Ran:
        if self._happened():
            raise Seen
        return super().try_(*args, stdin=stdin, timeout=timeout)


@pytest.mark.parametrize("right", CALLS, ids=[f"{verb} {resource}" for verb, resource in CALLS])
@pytest.mark.usefixtures("foo_installed")
def test_s01_a_removed_right_is_missed(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, lossy: Callable[[str], Path], right: Right
) -> None:
    without(kubectl, "foo", right)
    mark = audit.mark()
    working(ctrl, "foo", "--as-installed", f"--kubeconfig={lossy('foo')}")
    with pytest.raises(Seen):
        walk_foo(Alert(kubectl, lambda: right in refused(audit, mark, "foo")), ctrl)


def test_without_the_account_it_is_not_installed(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl("delete", "serviceaccount", "kubectl-ctrl-foo", "--namespace=foo-system", "--ignore-not-found")
    ran = ctrl("run", "foo", "--as-installed")
    assert ran.code == 8
    assert "kubectl ctrl install foo" in ran.err


@pytest.mark.usefixtures("foo_installed")
def test_the_missing_right_to_impersonate_is_named(
    ctrl: Ctrl, kubectl: Kubectl, kubeconfig: Path, tmp_path: Path
) -> None:
    content = yaml.safe_load(kubeconfig.read_text())
    content["users"][0]["user"] = {"token": kubectl("create", "token", "default").strip()}
    limited = tmp_path / "limited-kubeconfig"
    limited.write_text(yaml.safe_dump(content))
    ran = ctrl("run", "foo", "--as-installed", f"--kubeconfig={limited}")
    assert ran.code == 7
    assert "verb impersonate, resource serviceaccounts, name kubectl-ctrl-foo, in namespace foo-system" in ran.err


def test_with_as_it_is_a_contradiction(ctrl: Ctrl) -> None:
    ran = ctrl("run", "foo", "--as-installed", "--as=jane")
    assert ran.code == 2
    assert "'jane'" in ran.err


@pytest.mark.usefixtures("foo_installed")
def test_only_the_controllers_calls_are_impersonated(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    mark = audit.mark()
    ctrl("run", "foo", "--as-installed", "--until=foo/web=condition=Ready", "--timeout=3m").checked()
    writers = {one.user for one in audit.writes(mark, namespace=namespace)}
    assert writers == {user_of("foo")}
    asked = [one for one in audit.requests(mark) if one.resource == "namespaces" and one.name == "kube-system"]
    assert {one.user for one in asked} == {kubectl.json("auth", "whoami")["status"]["userInfo"]["username"]}
