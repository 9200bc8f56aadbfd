"""Memcached with refusals of a real API server: by a quota, a policy, a rule for names or numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import AssertRests, Ctrl, Started
from e2e.kube import Audit, Kubectl, set_quota, wait_until
from e2e.test_memcached import (
    SAMPLE,
    condition,
    container,
    converged,
    degraded,
    deployment,
    memcached,
    patch,
)


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "memcached")


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    return ctrl.started("run", "memcached")


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_it_runs_where_only_restricted_pods_may(kubectl: Kubectl, namespace: str) -> None:
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    plain = ("run", "plain", "--image=busybox:1", "--dry-run=server")
    wait_until(lambda: "violates PodSecurity" in kubectl.try_(*plain).err, what="a plain pod is refused")
    kubectl.apply(memcached(containerPort=11212))
    wait_until(converged(kubectl, 3), deadline=60)


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f30_a_quota_refuses_the_deployment_until_it_is_lifted(kubectl: Kubectl, audit: Audit, namespace: str) -> None:
    set_quota(kubectl, "few", "count/deployments.apps=0")
    mark = audit.mark()
    kubectl.apply(memcached())
    wait_until(lambda: degraded(kubectl).get("reason") == "QuotaExceeded")
    assert "exceeded quota: few" in degraded(kubectl)["message"]
    assert condition(kubectl.json("get", "memcached", SAMPLE))["status"] == "False"
    tried = [one for one in audit.requests(mark, namespace=namespace) if one.resource == "deployments.apps"]
    assert len([one for one in tried if one.verb == "create"]) <= 2
    kubectl("delete", "quota", "few")
    wait_until(converged(kubectl, 3), deadline=90)


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f30_a_quota_refuses_some_pods_until_it_is_raised(kubectl: Kubectl) -> None:
    set_quota(kubectl, "few", "pods=1")
    kubectl.apply(memcached())
    wait_until(lambda: degraded(kubectl).get("reason") == "FailedCreate")
    assert "exceeded quota: few" in degraded(kubectl)["message"]
    wait_until(lambda: kubectl.json("get", "memcached", SAMPLE)["status"]["readyReplicas"] == 1)
    assert condition(kubectl.json("get", "memcached", SAMPLE))["status"] == "False"
    kubectl("delete", "quota", "few")
    wait_until(converged(kubectl, 3), deadline=120)


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f30_a_policy_refuses_the_deployment_until_it_is_lifted(kubectl: Kubectl, namespace: str) -> None:
    """A ValidatingAdmissionPolicy responds with 422, as for an invalid Deployment."""
    rules = [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]
    match = {"resourceRules": rules, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    validation = {"expression": "object.spec.replicas < 3", "message": "Three are too many."}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}}
    policy = {**kind, "kind": "ValidatingAdmissionPolicy"}
    binding = {**kind, "kind": "ValidatingAdmissionPolicyBinding"}
    kubectl.create({**policy, "spec": {"matchConstraints": match, "validations": [validation]}})
    kubectl.create({**binding, "spec": {"policyName": namespace, "validationActions": ["Deny"]}})
    probe = ("create", "deployment", "probe", "--image=busybox:1", "--replicas=3", "--dry-run=server")
    wait_until(lambda: "too many" in kubectl.try_(*probe).err)
    kubectl.apply(memcached())
    wait_until(lambda: degraded(kubectl).get("reason") == "Denied", deadline=60)
    assert "Three are too many." in degraded(kubectl)["message"]
    kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", namespace)
    wait_until(converged(kubectl, 3), deadline=90)


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f29_the_namespace_goes(kubectl: Kubectl, audit: Audit, assert_rests: AssertRests, namespace: str) -> None:
    held = memcached()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl.apply(held)
    wait_until(converged(kubectl, 3), deadline=60)
    mark = audit.mark()
    kubectl("delete", "namespace", namespace, "--wait=false")
    # The namespaces of earlier tests may be deleted first.
    wait_until(lambda: kubectl.find("deployment", SAMPLE) is None)
    assert_rests()
    tried = [one for one in audit.writes(mark, namespace=namespace) if one.resource == "deployments.apps"]
    assert {one.code for one in tried} <= {403}
    assert len(tried) <= 8, "each change of what goes is one attempt, and none repeats it"
    kubectl("patch", "memcached", SAMPLE, "--type=merge", '--patch={"metadata":{"finalizers":null}}')


@pytest.mark.usefixtures("running")
def test_m12_a_name_that_is_too_long_for_a_label(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    fits, long = "m" * 63, "m" * 64
    kubectl.apply(memcached(fits, 1), memcached(long, 1))
    wait_until(converged(kubectl, 1, fits), deadline=60)
    wait_until(lambda: degraded(kubectl, long).get("reason") == "NameTooLong")
    assert_rests()
    assert kubectl.find("deployment", long) is None


@pytest.mark.parametrize("name", ["UPPER", "under_score", "-dash", "a..b", "ü", "m" * 254])
def test_m12_an_invalid_name(kubectl: Kubectl, name: str) -> None:
    refused = kubectl.try_("create", "--filename=-", stdin=json.dumps(memcached(name)))
    assert refused.code != 0
    assert "metadata.name: Invalid value" in refused.err


@pytest.mark.parametrize(
    ("size", "words"),
    [(-1, "greater than or equal to 0"), (1.5, "integer"), ("3", "integer"), (None, "Required"), (2**31, "less than")],
)
def test_m15_a_size_that_is_no_number_in_range(kubectl: Kubectl, size: Any, words: str) -> None:
    refused = kubectl.try_("create", "--filename=-", stdin=json.dumps(memcached(size=size)))
    assert refused.code != 0
    assert "spec.size" in refused.err
    assert words in refused.err


def test_m17_an_unknown_field(kubectl: Kubectl) -> None:
    refused = kubectl.try_("create", "--filename=-", stdin=json.dumps(memcached(siez=3)))
    assert 'unknown field "spec.siez"' in refused.err


def test_m20_a_live_selector_that_fits_none_of_our_pods(
    kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests
) -> None:
    kubectl.apply(memcached())
    odd = deployment(SAMPLE, kubectl.json("get", "memcached", SAMPLE))
    odd["spec"]["selector"] = {"matchExpressions": [{"key": "memcached_cr", "operator": "DoesNotExist"}]}
    kubectl.create(odd)
    ctrl.started("run", "memcached")
    wait_until(lambda: degraded(kubectl).get("reason") == "Invalid", deadline=60)
    assert "`selector` does not match template `labels`" in degraded(kubectl)["message"]
    assert_rests()
    kubectl("delete", "deployment", SAMPLE)
    wait_until(converged(kubectl, 3), deadline=60)


def test_m37_odd_words_stay_data(kubectl: Kubectl, running: Started) -> None:
    odd = "-x;$(reboot)\x1b[31m\u202egpj"
    kubectl.apply(memcached(size=1, image=odd))
    wait_until(converged(kubectl, 1), deadline=60)
    assert container(kubectl)["image"] == odd
    patch(kubectl, image=f"{odd}2")
    wait_until(converged(kubectl, 1), deadline=60)
    assert not {"\x1b", "\u202e"} & set(running.output())
