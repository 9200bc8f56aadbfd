from __future__ import annotations

import asyncio
from copy import deepcopy

import pytest

from kubectl_ctrl.errors import ApiError, NamespaceTerminating, Refused
from kubectl_ctrl.install.apply import Applier
from kubectl_ctrl.install.kinds import CLUSTERROLEBINDINGS, CLUSTERROLES, SERVICEACCOUNTS
from kubectl_ctrl.install.marks import MANAGER
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, NAMESPACES
from kubectl_ctrl.testing.faults import Match
from tests.install.land import ACCOUNT, SYSTEM, THINGS, Land, parts, role
from tests.objects import present
from tests.runtime.world import crd

_KINDS = [
    "CustomResourceDefinition",
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
]


async def test_the_first_time_everything_is_created_and_the_second_time_nothing_is_written(land: Land) -> None:
    assert {step.outcome.value for step in await land.install()} == {"created"}
    assert land.changes() == [f"apply {kind}" for kind in _KINDS]
    sent = len(land.server.requests)
    assert {step.outcome.value for step in await land.install()} == {"unchanged"}
    assert {handled.verb for handled in land.server.requests[sent:]} == {"get"}


async def test_what_changed_is_written_and_what_is_dropped_goes(land: Land) -> None:
    await land.install()
    land.changes()
    steps = await land.install(wanted=needs(parts(rbac=(role("get"),))))
    assert [str(step) for step in steps if step.outcome.value != "unchanged"] == [
        f"clusterrole.rbac.authorization.k8s.io/{ACCOUNT} configured"
    ]
    assert land.changes() == ["apply ClusterRole"]
    assert present(land.server.get(CLUSTERROLES, ACCOUNT))["rules"] == role("get")["rules"]


async def test_ended_at_any_write_and_begun_again_it_ends_the_same(land: Land) -> None:
    await land.install()
    whole = _state(land)
    for last in range(len(_KINDS)):
        other = Land()
        applier = Applier(other.client, "mine")
        for step in (await applier.plan(needs(parts())))[:last]:
            await applier.apply(step)
        # The next one is done, and the process dies before it hears of it.
        kept = Match(verb="patch", when=lambda request: ("dryRun", "All") not in request.query)
        fault = other.server.faults.hang(kept, after_commit=True)
        dying = asyncio.create_task(other.install())
        await other.clock.sleep(1)
        dying.cancel()
        await asyncio.wait([dying])
        assert fault.hits == 1
        await other.install()
        assert _state(other) == whole
        other.server.writes.clear()
        await other.install()
        assert other.changes() == []


def _state(land: Land) -> list[Obj]:
    found = []
    for kind in (CRDS, NAMESPACES, SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS):
        for obj in land.server.objects(kind):
            obj["metadata"] = {key: obj["metadata"].get(key) for key in ("name", "namespace", "labels")}
            obj.pop("status", None)
            found.append(obj)
    return found


async def test_what_another_user_made_since_the_look_is_not_taken(land: Land) -> None:
    applier = Applier(land.client, "mine")
    steps = await applier.plan(needs(parts()))
    land.server.create(crd(THINGS))
    land.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    done = [await applier.apply(step) for step in steps]
    assert [step.outcome.value for step in done] == ["unchanged, not managed"] * 2 + ["created"] * 5
    assert "labels" not in land.crd()["metadata"]


async def test_an_equal_crd_of_others_is_used_and_a_different_one_refused_before_anything_is_written(
    land: Land,
) -> None:
    land.server.create(crd(THINGS))
    assert (await land.install())[0].outcome.value == "unchanged, not managed"
    different = deepcopy(crd(THINGS))
    different["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "ours"
    land.changes()
    with pytest.raises(Refused, match=r"was not created by install, and differs: spec\.versions.*written by test"):
        await land.install(wanted=needs(parts(crds=(different,))))
    assert land.changes() == []
    steps = await land.install(wanted=needs(parts(crds=(different,))), force=True)
    assert steps[0].outcome.value == "configured"
    assert land.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] == "ours"
    managers = [(one["manager"], one["operation"]) for one in land.crd()["metadata"]["managedFields"]]
    assert (MANAGER, "Apply") in managers
    assert (MANAGER, "Update") not in managers, "It would co-own for ever what a later apply leaves out."
    land.changes()
    await land.install(wanted=needs(parts(crds=(different,))))
    assert land.changes() == []


async def test_a_stored_version_is_never_dropped(land: Land) -> None:
    for storage in ("v1alpha1", "v1"):  # two earlier releases
        await land.install(wanted=needs(parts(crds=(_crd_of_two(storage),))))
    assert land.crd()["status"]["storedVersions"] == ["v1alpha1", "v1"]
    land.changes()
    for force in (False, True):
        with pytest.raises(Refused, match="would lose v1alpha1, but objects may be stored in it") as caught:
            await land.install(force=force)
        assert "status.storedVersions to ['v1']" in caught.value.next_step
    assert land.changes() == []


async def test_fields_of_others_are_taken_only_by_force(land: Land) -> None:
    await land.install()
    land.server.apply({**role("*")}, manager="gitops", force=True)
    land.changes()
    with pytest.raises(Refused, match=r'belong to other field managers: conflict with "gitops": \.rules'):
        await land.install()
    assert land.changes() == []
    await land.install(force=True)
    assert land.changes() == ["apply ClusterRole"]


async def test_an_object_of_others_with_other_rights_is_refused(land: Land) -> None:
    land.server.create(role("*"))
    with pytest.raises(Refused, match=r"clusterrole\.rbac.* exists, was not created by install, and differs: rules"):
        await land.install()
    assert land.server.get(NAMESPACES, SYSTEM) is None


async def test_what_is_being_deleted_takes_nothing(land: Land) -> None:
    await land.install()
    land.server.collecting = False
    land.server.delete(NAMESPACES, SYSTEM)
    land.changes()
    with pytest.raises(NamespaceTerminating, match="The namespace 'mine-system' is being deleted"):
        await land.install()
    assert land.changes() == []
    land.server.delete(CRDS, THINGS.full_name)
    land.changes()
    with pytest.raises(Refused, match="is being deleted"):
        await land.install()
    assert land.changes() == []


async def test_what_the_server_refuses_is_found_before_anything_is_written(land: Land) -> None:
    land.server.faults.fail(Match(verb="patch", plural="clusterroles"), 403, reason="Forbidden", message="no")
    with pytest.raises(ApiError):
        await land.install()
    assert land.changes() == []


async def test_without_the_servers_opinion_nothing_but_reads_is_sent(land: Land) -> None:
    await Applier(land.client, "mine", ask=False).plan(needs(parts()))
    assert {handled.verb for handled in land.server.requests} == {"get"}


async def test_what_kubectl_applied_with_our_labels_becomes_ours_with_one_write_each(land: Land) -> None:
    for obj in needs(parts()):
        land.server.create(obj, manager="kubectl-client-side-apply")
    land.changes()
    assert {step.outcome.value for step in await land.install()} == {"configured"}
    assert len(land.changes()) == len(_KINDS)
    assert {step.outcome.value for step in await land.install()} == {"unchanged"}
    assert land.changes() == []


def _crd_of_two(storage: str) -> Obj:
    found = crd(THINGS)
    (only,) = found["spec"]["versions"]
    found["spec"]["versions"] = [{**only, "name": name, "storage": name == storage} for name in ("v1alpha1", "v1")]
    return found
