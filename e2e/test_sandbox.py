"""The README's first command where no cluster program is installed, and real kubectl on a sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from e2e.kube import CHECKOUT
from e2e.user import USER_KUBECONFIG, User


@pytest.fixture
def user(plain_env: Mapping[str, str], tmp_path: Path) -> Iterator[User]:
    """Without kind, kwok and docker."""
    env = {**plain_env, "PATH": f"{CHECKOUT / 'bin'}:/usr/bin:/bin", "KUBECTL_CTRL_PROVIDER": "sandbox"}
    user = User(tmp_path, env)
    yield user
    user.clean()
    assert user.kubeconfig.read_text() == USER_KUBECONFIG, "The test changed the user's kubeconfig."


def test_from_nothing_to_idle_and_back(user: User, programs: Path) -> None:
    made = user.up("memcached", "--example", "--until-idle").checked()
    assert re.search(r"memcached-sample .* done$", made.out, re.MULTILINE), made.out
    steps = [line.split()[1] for line in made.err.splitlines() if line.startswith((" ✓", " ok"))]
    assert steps == ["sandbox,", "cluster", "memcached", "example"], made.err
    for told in (
        "context sandbox-ctrl; your context prod-eu is unchanged",
        "its pods are simulated: they become ready, and nothing runs in them",
        "cluster ctrl is kept; to delete it: kubectl ctrl down",
    ):
        assert told in made.err.splitlines(), made.err
    kubectl = user.kubectl(programs)
    assert len(kubectl("get", "pods", "--field-selector=status.phase=Running", "--output=name").split()) == 3
    assert "CONVERGED" in user.ctrl("explain", "memcached/memcached-sample").checked().out
    again = user.up("memcached", "--example", "--until-idle").checked()
    assert "no writes" in again.out

    # What was acknowledged survives a kill, and the cluster comes back.
    kubectl("create", "configmap", "kept", "--from-literal=a=b")
    before = kubectl.json("get", "namespace/kube-system")["metadata"]["uid"]
    user.end_all()
    user.up("memcached", "--until-idle").checked()
    assert kubectl.find("configmap", "kept")["data"] == {"a": "b"}
    assert kubectl.json("get", "namespace/kube-system")["metadata"]["uid"] == before

    user.assert_nothing_is_left(user.down())
    traced = user.ctrl("trace", "memcached/memcached-sample").checked()
    assert traced.out.startswith("cluster ctrl (sandbox), deleted ")


def test_a_controller_in_the_background_and_its_stop(user: User, programs: Path) -> None:
    user.up("foo", "--example", "--detach").checked()
    kubectl = user.kubectl(programs)
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=1", "foo/example-foo", "--timeout=60s")
    kubectl("delete", "deployment", "example-foo")
    kubectl("wait", "--for=create", "deployment/example-foo", "--timeout=60s")
    assert json.loads(user.ctrl("queue", "-o", "json").checked().out)
    user.ctrl("stop", "foo", "--name", "ctrl").checked()
    user.assert_nothing_is_left(user.down())


def test_a_manifest_of_everyday_objects(user: User, programs: Path, tmp_path: Path) -> None:
    """What a tutorial types first: apply, rollout, scale, diff, explain, events, describe, can-i."""
    user.up().checked()
    kubectl = user.kubectl(programs)
    kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=2", "--port=80")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("set", "image", "deployment/web", "nginx=nginx:1.28")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert "2 " in kubectl("rollout", "history", "deployment/web")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl.find("deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl("wait", "--for=jsonpath={.status.readyReplicas}=4", "deployment/web", "--timeout=60s")
    kubectl("expose", "deployment", "web")
    kubectl("create", "job", "once", "--image=busybox")
    kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=60s")
    assert re.search(r"web\s+4/4\s+4\s+4", kubectl("get", "deployments"))
    assert "Scaled up replica set" in kubectl("describe", "deployment", "web")
    assert "replicas" in kubectl("explain", "deployment.spec")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "sandbox" in kubectl("auth", "whoami") or "admin" in kubectl("auth", "whoami")
    refused = kubectl.try_("get", "pods", "--as=jane")
    assert 'pods is forbidden: User "jane" cannot list resource "pods"' in refused.err
    kubectl("delete", "namespace", "kube-node-lease", "--dry-run=server")
    kubectl("delete", "deployment,service", "web", "--cascade=foreground", "--timeout=60s")
    assert kubectl("get", "pods", "-l", "app=web", "-o", "name") == ""
