"""No bundled controller acts beyond an object's namespace, or holds rights beyond its work."""

from __future__ import annotations

import pytest

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.install.parts import read_parts
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.testing.loop import run_virtual
from tests.controllers.test_faults import Play, Trouble, undisturbed

ELSEWHERE = "elsewhere"
# With each of these a holder can obtain further rights, read credentials, or run programs in other containers.
_VERBS = {"*", "escalate", "bind", "impersonate", "approve", "sign"}
_GROUPS = {"*", "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "certificates.k8s.io"}
_RESOURCES = {"*", "secrets", "nodes", "nodes/proxy", "pods/exec", "pods/attach", "serviceaccounts/token"}

each = pytest.mark.parametrize("name", BUNDLED)


@each
def test_s02_objects_of_another_namespace_that_name_this_owner_change_nothing(name: str) -> None:
    """A UID is no secret: whoever may read an object can name it as the owner of objects in another namespace."""
    expected = undisturbed(name)[1][1]

    async def main() -> None:
        play = Play(name, Trouble())
        await play.settled()
        server, primary = play.stage.server, play.primary
        assert primary is not None
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}})
        server.collecting = False  # the garbage collector deletes such objects, but only after a while
        for obj in _claims(play, primary):
            server.create(obj)
        play.change()
        await play.stage.rest(5)
        server.collecting = True
        assert await play.settled() == expected
        assert [write for write in play.stage.writes() if write.key.namespace == ELSEWHERE] == []
        await play.stop()

    run_virtual(main)


def _claims(play: Play, primary: Obj) -> list[Obj]:
    """Another namespace's objects with the names of this one's, and the primary as their owner."""
    names = {obj["metadata"]["name"] for obj in (primary, *play.stage.server.objects(DEPLOYMENTS))}
    container = {"name": "c", "image": "busybox:1"}
    template = {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": [container]}}
    deployment = {"replicas": 7, "selector": {"matchLabels": {"app": "theirs"}}, "template": template}
    found = []
    for name in sorted(names):
        meta = {"name": name, "namespace": ELSEWHERE, "ownerReferences": [owner_reference(primary)]}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        scaled = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 9}
        found += [
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": deployment},
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}},
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": scaled},
        ]
    return found


@each
def test_s03_a_role_has_no_right_that_leads_to_further_rights(name: str) -> None:
    rules = [rule for role in read_parts(bundled.folder(name), name).rbac for rule in role["rules"]]
    assert rules
    for rule in rules:
        assert _VERBS.isdisjoint(rule["verbs"]), rule
        assert _GROUPS.isdisjoint(rule["apiGroups"]), rule
        assert _RESOURCES.isdisjoint(rule["resources"]), rule
        assert "nonResourceURLs" not in rule, rule
