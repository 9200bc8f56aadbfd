"""Rights derived from a recording: sufficient for the same work, no more than it used, and the refused ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.ctrl import Ctrl
from e2e.kube import COLLECTION_SECONDS, Audit, Kubectl, manifest, wait_until
from e2e.rights import Right, granted_by_now, refused, refused_by_now, rights_in, used, user_of, without, words_of
from e2e.test_foo import converged, foo
from e2e.test_rbac import ADMISSION, installed, lossy, walk_foo, working

pytestmark = pytest.mark.real

__all__ = ["lossy"]  # a fixture


@pytest.fixture(autouse=True)
def _installed(ctrl: Ctrl, kubectl: Kubectl) -> Iterator[None]:
    yield from (None for _ in installed(ctrl, kubectl, "foo"))


def derived(ctrl: Ctrl) -> list[dict[str, Any]]:
    """The roles that cover the recorded calls of foo."""
    return list(yaml.safe_load_all(ctrl("rbac", "foo", "--from-trace").checked().out))


def bound(role: dict[str, Any], namespace: str = "foo-system") -> dict[str, Any]:
    """The bindings of the role to foo's account."""
    meta = role["metadata"]
    return {
        "apiVersion": role["apiVersion"],
        "kind": "RoleBinding",
        "metadata": {"name": f"{meta['name']}-derived", "namespace": meta["namespace"]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": meta["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "kubectl-ctrl-foo", "namespace": namespace}],
    }


def test_the_least_role_has_the_used_rights_and_suffices(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str, lossy: Callable[[str], Path]
) -> None:
    mark = audit.mark()
    # The first response to a create is lost, so that the rare read is recorded.
    running = working(ctrl, "foo", "--as-installed", "--leader-elect=required", f"--kubeconfig={lossy('foo')}")
    walk_foo(kubectl, ctrl)
    assert running.stop() == 0
    roles = derived(ctrl)
    rights = {right for role in roles for right in rights_in(role["rules"])}
    truth = used(audit, mark, "foo")
    # This server streams lists; on other servers, caches also need the right to list.
    lists = {("list", resource) for verb, resource in truth if verb == "watch"}
    assert rights == truth | lists | {("update", f"foos.samplecontroller.k8s.io{ADMISSION}")}

    # The run was for one namespace, so it needs nothing outside but its Lease, by name.
    assert {(role["kind"], role["metadata"]["namespace"]) for role in roles} == {
        ("Role", namespace),
        ("Role", "foo-system"),
    }
    [lease] = [role for role in roles if role["metadata"]["namespace"] == "foo-system"]
    assert {one for rule in lease["rules"] for one in rule.get("resourceNames", ())} == {
        f"kubectl-ctrl-foo-{namespace}"
    }

    # Now only with these rights.
    kubectl("delete", "clusterrolebinding", "kubectl-ctrl-foo")
    kubectl("delete", "rolebinding", "kubectl-ctrl-foo", "--namespace=foo-system")
    kubectl("delete", "role", "kubectl-ctrl-foo", "--namespace=foo-system")
    these = (*roles, *map(bound, roles))
    kubectl.apply(*these)
    try:
        kubectl("delete", "foos,deployments,events", "--all", "--wait", timeout=COLLECTION_SECONDS)
        refused_by_now(kubectl, user_of("foo"), "list", "foos", "--namespace=default")
        granted_by_now(kubectl, user_of("foo"), "create", "events")
        granted_by_now(kubectl, user_of("foo"), "create", "leases", "--namespace=foo-system")
        mark = audit.mark()
        running = working(ctrl, "foo", "--as-installed", "--leader-elect=required")
        walk_foo(kubectl, ctrl)
        assert running.stop() == 0
        assert refused(audit, mark, "foo") == set()
    finally:
        # They have the names of the objects of install, and do not belong to it.
        kubectl("delete", "--filename=-", stdin=manifest(*these))


TAKEN = (
    ("create", "deployments.apps"),
    ("update", f"foos.samplecontroller.k8s.io{ADMISSION}"),  # the refusal does not name it
    ("watch", "deployments.apps"),  # of a cache, not of a reconcile
)


@pytest.mark.parametrize("right", TAKEN, ids=["a call", "an owner", "a cache"])
def test_the_missing_rights_can_be_applied_and_suffice(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, right: Right
) -> None:
    without(kubectl, "foo", right)
    kubectl.apply(foo("web"))
    running = working(ctrl, "foo", "--as-installed")

    def missing() -> str:
        ran = ctrl("rbac", "foo", "--missing", "-o", "yaml").checked()
        assert ran.out, ran.err
        return ran.out

    text = wait_until(missing)
    role, binding = yaml.safe_load_all(text)
    assert rights_in(role["rules"]) == {right}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "kubectl-ctrl-foo", "namespace": "foo-system"}]
    told = ctrl("rbac", "foo", "--missing", "-o", "text").checked().out
    assert user_of("foo") in told
    kubectl("apply", "--filename=-", stdin=text)
    granted_by_now(kubectl, user_of("foo"), *words_of(right))
    kubectl("annotate", "foo", "web", "look=again")  # instead of waiting for the retry
    wait_until(converged(kubectl, "web", 1))
    assert running.stop() == 0
    ran = ctrl("rbac", "foo", "--missing").checked()
    assert (ran.out, "Nothing is missing" in ran.err) == ("", True)
    kubectl("delete", "--filename=-", stdin=text)


def test_unused_rights_are_listed_with_the_evidence(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    ctrl("run", "foo", "--until=foo/web=condition=Ready", "--timeout=3m").checked()
    ran = ctrl("rbac", "foo", "--unused").checked()
    rows = {row.split()[0]: row.split()[-1].split(",") for row in ran.out.splitlines()[1:]}
    assert "delete" in rows["deployments.apps"]
    assert not {"create", "list", "watch"} & set(rows["deployments.apps"])
    assert "from 1 run and" in ran.err
    document = json.loads(ctrl("rbac", "foo", "--unused", "-o", "json").checked().out)
    assert {"apiGroup": "apps", "resource": "deployments", "verb": "delete", "name": ""} in document["unused"]


def test_without_flags_it_prints_the_granted_rights(ctrl: Ctrl) -> None:
    [role] = yaml.safe_load_all(ctrl("rbac", "foo").checked().out)
    assert role["kind"] == "ClusterRole"
    assert ("patch", "foos.samplecontroller.k8s.io/status") in rights_in(role["rules"])
