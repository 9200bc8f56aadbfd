"""One runner per cluster, controller and scope: by a lock on this machine, by a Lease between machines."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import Ctrl, Started
from e2e.kube import Audit, Kubectl, wait_until
from e2e.rights import granted_by_now
from e2e.test_foo import converged, foo
from e2e.test_record import runs

ELSEWHERE = "another-machine_1_r000"
LEADS = "leader election on"


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


@pytest.fixture
def lease(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """The name of the Lease of a run in this namespace."""
    name = f"kubectl-ctrl-foo-{namespace}"
    yield name
    kubectl("delete", "lease", name, "--namespace=default", "--ignore-not-found")


def spec_of(kubectl: Kubectl, lease: str) -> dict[str, Any]:
    found = kubectl.find("lease", lease, "--namespace=default")
    spec: dict[str, Any] = found["spec"] if found else {}
    return spec


def hold(kubectl: Kubectl, lease: str, holder: str, *, seconds: int) -> None:
    """Write the Lease as another candidate would."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now, "acquireTime": now}
    metadata = {"name": lease, "namespace": "default"}
    kubectl.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def leading(kubectl: Kubectl, lease: str, running: Started) -> Started:
    """Wait until this process holds the Lease."""
    wait_until(
        lambda: f"_{running.process.pid}_" in spec_of(kubectl, lease).get("holderIdentity", ""),
        what=f"{running!r} leads",
    )
    return running


# On this machine.


def test_a_second_runner_is_refused_with_the_pid_of_the_first(ctrl: Ctrl, kubectl: Kubectl, audit: Audit) -> None:
    kubectl.apply(foo("web"))
    first = ctrl.started("run", "foo")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    wait_until(lambda: runs(ctrl), what="the recording names the cluster, so that the second is refused at once")
    second = ctrl("run", "foo")
    assert second.code == 6
    assert f"process {first.process.pid} on this machine (namespace " in second.err
    assert second.err.startswith("error[CTRL-REFUSED]: foo already runs here")
    assert first.stop() == 0
    ctrl("run", "foo", "--once").checked()


def test_another_namespace_is_another_scope(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    ctrl.started("run", "foo")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    ctrl("run", "foo", "--once", "--namespace=default").checked()


@pytest.mark.parametrize("all_first", [True, False], ids=["all-then-one", "one-then-all"])
def test_all_namespaces_and_one_of_them_are_not_both_run(
    ctrl: Ctrl, kubectl: Kubectl, namespace: str, all_first: bool
) -> None:
    kubectl.apply(foo("web"))
    scopes = [("--all-namespaces",), ()] if all_first else [(), ("--all-namespaces",)]
    first = ctrl.started("run", "foo", *scopes[0])
    wait_until(converged(kubectl, "web", 1), deadline=60)
    second = ctrl("run", "foo", *scopes[1])
    assert second.code == 6
    where = "all namespaces" if all_first else f"namespace {namespace}"
    assert f"process {first.process.pid} on this machine ({where})" in second.err


def test_a_killed_runner_leaves_its_place_free_at_once(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    first = ctrl.started("run", "foo")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    first.kill()
    ctrl("run", "foo", "--once").checked()


# Between machines.


@pytest.mark.real
def test_the_lease_names_the_holder_and_is_given_back(ctrl: Ctrl, kubectl: Kubectl, lease: str) -> None:
    running = leading(kubectl, lease, ctrl.started("run", "foo", "--leader-elect"))
    assert spec_of(kubectl, lease)["leaseDurationSeconds"] == 15
    assert LEADS in running.output()
    assert running.stop() == 0
    assert not spec_of(kubectl, lease).get("holderIdentity")


def test_a_killed_holder_of_this_machine_is_succeeded_at_once(ctrl: Ctrl, kubectl: Kubectl, lease: str) -> None:
    leading(kubectl, lease, ctrl.started("run", "foo", "--leader-elect")).kill()
    # A candidate that waits for its expiry would be too late.
    longer = '{"spec":{"leaseDurationSeconds":3600}}'
    kubectl("patch", "lease", lease, "--namespace=default", "--type=merge", f"--patch={longer}")
    kubectl.apply(foo("web"))
    ctrl("run", "foo", "--leader-elect", "--until-idle", "--timeout=90s").checked()


@contextmanager
def renewed(kubectl: Kubectl, lease: str) -> Iterator[None]:
    """Within the block, a live candidate of another machine holds the Lease."""
    over = threading.Event()

    def renew() -> None:
        while not over.is_set():
            hold(kubectl, lease, ELSEWHERE, seconds=15)
            over.wait(1)

    hold(kubectl, lease, ELSEWHERE, seconds=15)
    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()


def test_a_living_holder_of_another_machine_is_left_alone(
    ctrl: Ctrl, kubectl: Kubectl, lease: str, audit: Audit, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    with renewed(kubectl, lease):
        ran = ctrl("run", "foo", "--leader-elect")
    assert ran.code == 6
    assert ELSEWHERE in ran.err
    assert audit.writes(namespace=namespace) == []
    assert spec_of(kubectl, lease)["holderIdentity"] == ELSEWHERE


@pytest.mark.parametrize("flags", [(), ("--leader-elect",)], ids=["unelected", "elected"])
def test_a_living_holder_of_all_namespaces_is_left_alone_too(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str, flags: tuple[str, ...]
) -> None:
    """Another controller writes in this namespace too, with any Lease name, and with or without a Lease of ours."""
    kubectl.apply(foo("web"))
    mark = audit.mark()
    try:
        with renewed(kubectl, "kubectl-ctrl-foo"):
            ran = ctrl("run", "foo", *flags)
    finally:
        kubectl("delete", "lease", "kubectl-ctrl-foo", "--namespace=default")
    assert ran.code == 6
    assert f"the Lease default/kubectl-ctrl-foo is held and renewed by {ELSEWHERE}" in ran.err
    assert audit.writes(mark, namespace=namespace) == []


def test_without_election_a_living_holder_is_left_alone_and_a_dead_one_is_not_waited_for_twice(
    ctrl: Ctrl, kubectl: Kubectl, lease: str
) -> None:
    kubectl.apply(foo("web"))
    with renewed(kubectl, lease):
        assert ctrl("run", "foo").code == 6
    hold(kubectl, lease, ELSEWHERE, seconds=3)
    ctrl("run", "foo", "--once", "--timeout=90s").checked()


def test_a_lease_of_a_namespace_stops_a_run_in_all(ctrl: Ctrl, kubectl: Kubectl, lease: str) -> None:
    with renewed(kubectl, lease):
        ran = ctrl("run", "foo", "--all-namespaces")
    assert ran.code == 6
    assert f"default/{lease}" in ran.err


def test_the_lease_is_in_the_namespace_of_an_installed_controller(ctrl: Ctrl, kubectl: Kubectl, lease: str) -> None:
    # An earlier uninstall may still be deleting it.
    kubectl("wait", "--for=delete", "namespace/foo-system", "--timeout=100s")
    kubectl("create", "namespace", "foo-system")
    try:
        running = ctrl.started("run", "foo", "--leader-elect")
        found = wait_until(lambda: kubectl.find("lease", lease, "--namespace=foo-system"))
        assert found["metadata"]["labels"]["app.kubernetes.io/name"] == "foo"
        assert kubectl.find("lease", lease, "--namespace=default") is None
        assert running.stop() == 0
    finally:
        kubectl("delete", "namespace", "foo-system", "--wait", timeout=240)


def test_without_the_right_to_leases_it_warns_or_fails(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(foo("web"))  # without work it would exit before it has to lead
    kubectl("create", "serviceaccount", "poor")
    resources = "foos,foos/status,foos/finalizers,deployments,hpa,events"
    rules = ("--verb=get,list,watch,create,patch,update,delete", f"--resource={resources}")
    kubectl("create", "role", "poor", *rules)
    kubectl("create", "rolebinding", "poor", "--role=poor", f"--serviceaccount={namespace}:poor")
    granted_by_now(kubectl, f"system:serviceaccount:{namespace}:poor", "create", "events")
    me = f"--as=system:serviceaccount:{namespace}:poor"
    ran = ctrl("run", "foo", me, "--leader-elect", "--once").checked()
    assert "No permission to use Leases; running without leader election" in ran.err
    assert ctrl("run", "foo", me, "--leader-elect=required", "--once").code == 7


@pytest.mark.real
def test_a_dead_holder_of_another_machine_is_succeeded_after_its_time(
    ctrl: Ctrl, kubectl: Kubectl, lease: str, audit: Audit, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    hold(kubectl, lease, ELSEWHERE, seconds=8)
    held = spec_of(kubectl, lease)
    running = ctrl.started("run", "foo", "--leader-elect")
    running.line(f"held by {ELSEWHERE}")
    leading(kubectl, lease, running)
    taken, last = (datetime.fromisoformat(text) for text in (spec_of(kubectl, lease)["acquireTime"], held["renewTime"]))
    assert taken - last >= timedelta(seconds=8), "It took the Lease before its time was over."
    wait_until(converged(kubectl, "web", 1), deadline=60)
    assert spec_of(kubectl, lease)["leaseTransitions"] == 1


@pytest.mark.real
def test_f37_a_leader_suspended_past_its_lease_writes_nothing_afterwards(
    ctrl: Ctrl, kubectl: Kubectl, lease: str, audit: Audit, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    running = leading(kubectl, lease, ctrl.started("run", "foo", "--leader-elect"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    running.signal(signal.SIGSTOP)
    # Work for it, all of which arrives with its first event after the suspension.
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"replicas":2}}')
    wait_until(over(kubectl, lease), deadline=60)
    with renewed(kubectl, lease):
        mark = audit.mark()
        running.signal(signal.SIGCONT)
        running.line("Leadership is lost|Another process holds the Lease")
        assert running.wait() == 6
        assert audit.writes(mark, namespace=namespace) == []


def test_it_leads_again_if_its_lease_is_still_free(ctrl: Ctrl, kubectl: Kubectl, lease: str) -> None:
    running = leading(kubectl, lease, ctrl.started("run", "foo", "--leader-elect"))
    running.signal(signal.SIGSTOP)
    kubectl.apply(foo("web"))
    wait_until(over(kubectl, lease), deadline=60)
    running.signal(signal.SIGCONT)
    wait_until(converged(kubectl, "web", 1), deadline=60)


def over(kubectl: Kubectl, lease: str) -> Callable[[], bool]:
    """Its holder has not renewed it for its whole duration."""

    def check() -> bool:
        spec = spec_of(kubectl, lease)
        renewed_at = datetime.fromisoformat(spec["renewTime"])
        return datetime.now(UTC) > renewed_at + timedelta(seconds=spec["leaseDurationSeconds"])

    return check
