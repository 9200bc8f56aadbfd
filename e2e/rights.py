"""The rights of a controller, and those that it used: from its roles, and from the API server's audit log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from e2e.kube import CHECKOUT, Audit, Cluster, Kubectl, wait_until

# A right is a verb and a resource type, with its group and subresource: ("patch", "deployments.apps/status").
Right = tuple[str, str]


def user_of(controller: str) -> str:
    return f"system:serviceaccount:{controller}-system:kubectl-ctrl-{controller}"


def roles(kubectl: Kubectl, controller: str) -> list[dict[str, Any]]:
    """Every role that install created for it."""
    which = f"--selector=app.kubernetes.io/managed-by=kubectl-ctrl,app.kubernetes.io/name={controller}"
    found: list[dict[str, Any]] = kubectl.json("get", "clusterroles,roles", "--all-namespaces", which)["items"]
    return found


def rights_in(rules: Sequence[Mapping[str, Any]]) -> set[Right]:
    """The rights of rules, one by one; `*` is not allowed, because its rights cannot be listed."""
    granted = set()
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name, slash, subresource = resource.partition("/")
                full = f"{name}.{group}" if group else name
                granted |= {(verb, f"{full}{slash}{subresource}") for verb in rule["verbs"]}
    assert "*" not in str(granted)
    return granted


def granted(kubectl: Kubectl, controller: str) -> set[Right]:
    return {right for role in roles(kubectl, controller) for right in rights_in(role["rules"])}


def used(audit: Audit, since: int, controller: str) -> set[Right]:
    """The rights that its requests needed; paths without a resource, such as discovery, need no role."""
    asked = audit.requests(since)
    return {(one.verb, one.resource) for one in asked if one.user == user_of(controller) and one.resource}


def refused(audit: Audit, since: int, controller: str) -> set[Right]:
    asked = audit.requests(since)
    return {(one.verb, one.resource) for one in asked if one.user == user_of(controller) and one.code in (401, 403)}


def without(kubectl: Kubectl, controller: str, right: Right) -> None:
    """Remove one right from its cluster role."""
    (role,) = (role for role in roles(kubectl, controller) if role["kind"] == "ClusterRole")
    rules = []
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                verbs = [
                    verb
                    for verb in rule["verbs"]
                    if rights_in([{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]) != {right}
                ]
                if verbs:
                    rules.append({"apiGroups": [group], "resources": [resource], "verbs": verbs})
    assert rights_in(rules) == rights_in(role["rules"]) - {right}
    patch = [{"op": "replace", "path": "/rules", "value": rules}]
    name = role["metadata"]["name"]
    kubectl("patch", "clusterrole", name, "--type=json", f"--patch={json.dumps(patch)}")
    # A watch that started before would continue.
    refused_by_now(kubectl, user_of(controller), *words_of(right))


def words_of(right: Right) -> tuple[str, str, str]:
    """The arguments of `kubectl auth can-i`."""
    resource, _, subresource = right[1].partition("/")
    return right[0], resource, f"--subresource={subresource}"


def granted_by_now(kubectl: Kubectl, user: str, verb: str, resource: str, *flags: str) -> None:
    """Wait until the authorizer applies a new right, a moment after its creation."""
    asked = ("auth", "can-i", verb, resource, f"--as={user}", *flags)
    wait_until(lambda: kubectl.try_(*asked).out.startswith("yes"), what=f"{user} may {verb} {resource}")


def owner_known_by_now(kubectl: Kubectl, user: str, owner: Mapping[str, Any], child: Mapping[str, Any]) -> None:
    """Wait until this user may create such children of such owners.

    The admission plugin that checks owners calls discovery every half minute, and until then refuses those of new
    types. Users who may update all finalizers pass without this check.
    """
    ref = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "x", "uid": "x", "controller": True}
    meta = {**child["metadata"], "ownerReferences": [{**ref, "blockOwnerDeletion": True}]}
    words = ("create", "--dry-run=server", "--filename=-", f"--as={user}")
    probe = json.dumps({**child, "metadata": meta})
    wait_until(
        lambda: kubectl.try_(*words, stdin=probe).code == 0,
        every=1,
        what=f"{user} may create children of a {owner['kind']}",
    )


def refused_by_now(kubectl: Kubectl, user: str, verb: str, resource: str, *flags: str) -> None:
    """Wait until the authorizer applies the removal of a right, a moment after it."""
    asked = ("auth", "can-i", verb, resource, f"--as={user}", *flags)
    wait_until(lambda: kubectl.try_(*asked).out.startswith("no"), what=f"{user} may not {verb} {resource}")


@contextmanager
def losing(cluster: Cluster, kubeconfig: Path, folder: Path, *wanted: str) -> Iterator[Path]:
    """A kubeconfig for a proxy that loses the first response to each of these requests: "PATCH /replicasets/"."""
    words = [sys.executable, "-m", "e2e.lossy", str(cluster.kubeconfig), *wanted]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as proxy:
        assert proxy.stdout is not None
        content = yaml.safe_load(kubeconfig.read_text())
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{proxy.stdout.readline().strip()}"}
        content["users"][0]["user"] = {}
        path = folder / "lossy-kubeconfig"
        path.write_text(yaml.safe_dump(content))
        try:
            yield path
        finally:
            proxy.kill()
