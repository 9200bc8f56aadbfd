from __future__ import annotations

import pytest

from kubectl_ctrl.client.options import DeleteOptions, ListQuery, PatchKind, WriteOptions
from kubectl_ctrl.errors import AlreadyExists, BadAnswer, Conflict, Expired, ServerError, TooManyRequests, UsageError
from kubectl_ctrl.model.objects import Obj, name_of, uid_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import CONFIGMAPS, Rig, answer, configmap, on_answers, status

REF = CONFIGMAPS.ref("one", "default")
LIST = Match(verb="list", plural="configmaps")


def fill(server: ScriptedServer, count: int) -> list[str]:
    names = [f"m{number:03}" for number in range(count)]
    for name in names:
        server.create(configmap(name))
    return names


def names(items: list[Obj]) -> list[str]:
    return [name_of(item) for item in items]


def deployment(replicas: int = 1) -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}


async def test_an_object_from_birth_to_death(rig: Rig, server: ScriptedServer) -> None:
    client, ref = rig.client, DEPLOYMENTS.ref("d", "default")
    made = await client.create(DEPLOYMENTS, deployment())
    assert made["kind"] == "Deployment"
    assert await client.get(ref) == made
    changed = await client.replace(ref, {**made, "spec": {**made["spec"], "replicas": 2}})
    assert changed["metadata"]["generation"] == 2
    with pytest.raises(Conflict):
        await client.replace(ref, made)
    merged = await client.patch(ref, {"spec": {"replicas": 3}}, PatchKind.MERGE)
    assert merged["spec"]["replicas"] == 3
    step = [{"op": "replace", "path": "/spec/replicas", "value": 4}]
    assert (await client.patch(ref, step, PatchKind.JSON))["spec"]["replicas"] == 4
    status_ = await client.patch(ref.sub("status"), {"status": {"replicas": 4}}, PatchKind.MERGE)
    assert status_["status"] == {"replicas": 4}
    scale = await client.get(ref.sub("scale"))
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 4)
    applied = await client.patch(ref, deployment(5), PatchKind.APPLY, WriteOptions(manager="me", force=True))
    assert applied["spec"]["replicas"] == 5
    gone = await client.delete(ref, DeleteOptions(uid=uid_of(made), propagation="Background"))
    assert gone["status"] == "Success"
    assert server.objects(DEPLOYMENTS) == []


async def test_an_apply_without_force_reports_the_conflict(rig: Rig, server: ScriptedServer) -> None:
    server.create({**deployment(), "apiVersion": "apps/v1", "kind": "Deployment"}, manager="other")
    with pytest.raises(Conflict) as caught:
        await rig.client.patch(
            DEPLOYMENTS.ref("d", "default"), deployment(5), PatchKind.APPLY, WriteOptions(manager="me")
        )
    assert {cause.reason for cause in caught.value.causes} == {"FieldManagerConflict"}


async def test_raw(rig: Rig, server: ScriptedServer) -> None:
    response = await rig.client.raw("GET", "/version")
    assert b"gitVersion" in response.body
    assert rig.calls[0].name == "/version"
    with pytest.raises(Exception, match=r"get /nowhere, 404"):
        await rig.client.raw("GET", "/nowhere")


# --- lists


@pytest.mark.parametrize("count", [0, 1, 3, 7])
async def test_a_list_follows_its_pages(count: int, rig: Rig, server: ScriptedServer) -> None:
    expected = fill(server, count)
    listed = await rig.client.list(CONFIGMAPS, ListQuery(limit=3))
    assert names(listed.items) == expected
    assert listed.version == str(server.version)
    assert not listed.more
    assert len(rig.calls) == max(1, -(-count // 3))
    assert all((item["kind"], item["apiVersion"]) == ("ConfigMap", "v1") for item in listed.items)


async def test_a_list_looks_like_a_get(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap(a="1"))
    listed = await rig.client.list(CONFIGMAPS, ListQuery(namespace="default"))
    assert listed.items == [await rig.client.get(REF)]


async def test_a_list_of_metadata(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap(a="1"))
    listed = await rig.client.list(CONFIGMAPS, ListQuery(metadata_only=True))
    assert [set(item) for item in listed.items] == [{"kind", "apiVersion", "metadata"}]
    assert listed.items[0]["kind"] == "PartialObjectMetadata"


async def test_a_page_that_expires_is_followed_by_one_whole_list(rig: Rig, server: ScriptedServer) -> None:
    expected = fill(server, 7)

    def second(request: object) -> bool:
        return dict(getattr(request, "query", ())).get("continue") is not None

    server.faults.fail(Match(verb="list", plural="configmaps", when=second), 410, reason="Expired")
    listed = await rig.client.list(CONFIGMAPS, ListQuery(limit=3))
    assert names(listed.items) == expected
    assert rig.told == ["list 200 1", "list 410 1", "list 200 1"]
    assert "limit" not in dict(server.requests[-1].query)


async def test_a_first_page_that_is_too_old_is_expired(rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(LIST, 410, reason="Expired", times=None)
    with pytest.raises(Expired):
        await rig.client.list(CONFIGMAPS)
    assert len(server.requests) == 1


async def test_a_list_retries_and_pages_do_not(rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(LIST, 429, retry_after=1, times=2)
    await rig.client.list(CONFIGMAPS)
    assert rig.told == ["list 200 3"]
    server.faults.fail(LIST, 429, retry_after=7)
    with pytest.raises(TooManyRequests) as caught:
        await anext(rig.client.pages(CONFIGMAPS))
    assert caught.value.retry_after == 7.0
    server.faults.lose(LIST)
    with pytest.raises(Exception, match="There was no answer"):
        await anext(rig.client.pages(CONFIGMAPS))
    assert rig.told[1:] == ["list 429 1", "list None 1"]


async def test_pages_come_one_by_one_and_end_with_their_error(rig: Rig, server: ScriptedServer) -> None:
    fill(server, 7)
    pages = rig.client.pages(CONFIGMAPS, ListQuery(limit=3))
    first = await anext(pages)
    assert (names(first.items), first.more) == (["m000", "m001", "m002"], True)
    assert len(server.requests) == 1
    server.create(configmap("later"))
    server.expire_pages()
    with pytest.raises(Expired):
        await anext(pages)


async def test_pages_that_lead_nowhere_end() -> None:
    page = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"continue": "t"}, "items": []}
    rig, _canned = on_answers(answer(page), answer(page))
    with pytest.raises(BadAnswer, match="continue token points to itself"):
        await rig.client.list(CONFIGMAPS)


async def test_a_list_has_a_minute_for_each_page(rig: Rig, server: ScriptedServer) -> None:
    server.answer_delay = 50.0
    fill(server, 4)
    assert len((await rig.client.list(CONFIGMAPS, ListQuery(limit=2))).items) == 4


# --- create


async def test_generated_names_are_drawn_here(rig: Rig, server: ScriptedServer) -> None:
    obj = {"metadata": {"generateName": "one-", "namespace": "default"}}
    made = [name_of(await rig.client.create(CONFIGMAPS, obj)) for _ in range(5)]
    assert len(dict.fromkeys(made)) == 5
    assert all(name.startswith("one-") and len(name) == 9 for name in made)
    assert [write.key.name for write in server.writes] == made
    long = {"metadata": {"generateName": "x" * 80, "namespace": "default"}}
    assert len(name_of(await rig.client.create(CONFIGMAPS, long))) == 63


async def test_a_generated_name_that_is_taken_is_drawn_again(rig: Rig, server: ScriptedServer) -> None:
    obj = {"metadata": {"generateName": "one-", "namespace": "default"}}
    create = Match(verb="create", plural="configmaps")
    server.faults.fail(create, 409, reason="AlreadyExists", times=7)
    made = await rig.client.create(CONFIGMAPS, obj)
    assert server.objects(CONFIGMAPS) == [made]
    server.faults.fail(create, 409, reason="AlreadyExists", times=None)
    with pytest.raises(AlreadyExists):
        await rig.client.create(CONFIGMAPS, obj)
    assert len(server.requests) == 16


async def test_a_given_name_wins_over_a_generated_one(rig: Rig, server: ScriptedServer) -> None:
    obj = {"metadata": {"name": "one", "generateName": "x-", "namespace": "default"}}
    assert name_of(await rig.client.create(CONFIGMAPS, obj)) == "one"
    with pytest.raises(AlreadyExists):
        await rig.client.create(CONFIGMAPS, obj)
    with pytest.raises(UsageError, match="cannot be a name"):
        await rig.client.create(CONFIGMAPS, {"metadata": {"namespace": "default"}})


async def test_create_in_a_subresource() -> None:
    budget = "Cannot evict pod as it would violate the pod's disruption budget."
    rig, canned = on_answers(
        answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201),
        answer(status(429, "TooManyRequests", budget), 429),
    )
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "x"}}
    done = await rig.client.create(PODS.ref("p", "x").sub("eviction"), eviction)
    assert done["status"] == "Success"
    assert canned.requests[0].path == "/api/v1/namespaces/x/pods/p/eviction"
    with pytest.raises(TooManyRequests, match="disruption budget"):
        await rig.client.create(PODS.ref("p", "x").sub("eviction"), eviction)


async def test_a_delete_that_has_no_name_is_refused(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap())
    with pytest.raises(UsageError):
        await rig.client.delete(CONFIGMAPS.ref("", "default"))
    with pytest.raises(UsageError):
        await rig.client.delete(NAMESPACES.ref(""))
    assert server.requests == []


async def test_an_answer_that_is_no_list() -> None:
    rig, _canned = on_answers(answer(configmap()), answer(status(500), 500))
    with pytest.raises(BadAnswer, match="is not a list, but 'ConfigMap'"):
        await rig.client.list(CONFIGMAPS)
    with pytest.raises(ServerError):
        await rig.client.list(CONFIGMAPS)


async def test_closing_closes_the_transport(rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS)
    server.create(configmap())
    await anext(watch)
    await rig.base.close()
    assert server.watches == []
    await watch.aclose()
