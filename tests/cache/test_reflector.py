from __future__ import annotations

import pytest

from kubectl_ctrl.cache.recovery import InformerState
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.model.change import ChangeKind
from kubectl_ctrl.model.objects import key_of, name_of, uid_of, version_of
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import settle
from tests.cache.site import MAPS, Site, config, running
from tests.objects import present

LISTS = Match(verb="list", plural="configmaps")
WATCHES = Match(verb="watch", plural="configmaps")
STREAMS = Match(verb="watch", plural="configmaps", when=lambda request: "sendInitialEvents" in dict(request.query))
RESUMES = Match(verb="watch", plural="configmaps", when=lambda request: "sendInitialEvents" not in dict(request.query))


def _change_everything(site: Site) -> None:
    """A change, a deletion, a new object, and one that is replaced under its name."""
    site.server.change(MAPS, "map-0", {"data": {"value": "1"}})
    site.server.delete(MAPS, "map-1")
    site.server.create(config("new"))
    site.server.delete(MAPS, "map-2")
    site.server.create(config("map-2", "other"))


async def test_first_list_is_streamed_and_its_stream_goes_on_as_the_watch(site: Site) -> None:
    assert site.agrees()
    assert all(change.initial and change.kind is ChangeKind.ADDED for change in site.told)
    _change_everything(site)
    await site.agree(within=0.1)
    assert site.wire.kinds() == ["stream"]
    assert site.informer.version == str(site.server.version)
    assert not any(change.relisted for change in site.told)


async def test_server_that_does_not_stream_lists_is_listed_in_pages_and_remembered() -> None:
    async with running(streaming=False, objects=1203) as site:
        assert site.agrees()
        assert site.wire.kinds() == ["stream", "list", "list", "list", "watch"]
        site.server.compact()
        site.server.drop_watches()
        site.server.create(config("new"))
        site.server.compact()
        await site.agree()
        assert "stream" not in site.wire.kinds()[1:]


async def test_server_that_ignores_the_wish_for_a_stream_is_found_out_by_its_bookmark() -> None:
    def plain(line: bytes) -> bytes:
        return line.replace(b"k8s.io/initial-events-end", b"example.com/something")

    async with running(objects=0, synced=False) as site:
        while not site.server.watches:
            site.server.garble(make=plain)
            await site.clock.sleep(0)
        site.server.garble(make=plain)
        await site.agree(within=5)
        site.server.create(config("new"))
        await site.agree(within=5)
        assert site.wire.kinds() == ["stream", "list", "watch"]


@pytest.mark.parametrize("streaming", [True, False])
async def test_f16_expired_version_on_resume_leads_to_a_new_list_with_its_deletions(streaming: bool) -> None:
    async with running(streaming=streaming) as site:
        before = dict(site.mirror)
        site.server.drop_watches()
        _change_everything(site)
        site.server.compact()
        assert await site.agree() < 5
        assert site.informer.epoch == 2
        told = {(change.kind, change.key.name) for change in site.told if change.relisted}
        assert (ChangeKind.DELETED, "map-1") in told
        gone = next(change for change in site.told if change.kind is ChangeKind.DELETED and change.key.name == "map-1")
        assert gone.old is before[gone.key]
        assert gone.version == ""
        replaced = [change.kind for change in site.told if change.key.name == "map-2"]
        assert replaced == [ChangeKind.ADDED, ChangeKind.DELETED, ChangeKind.ADDED]


async def test_expiry_in_the_middle_of_a_stream_leads_to_a_new_list(site: Site) -> None:
    site.server.watch_delay = 2.0
    _change_everything(site)
    site.server.compact()
    await site.agree()
    assert site.informer.epoch == 2
    assert site.wire.kinds() == ["stream", "stream"]


async def test_expiry_of_the_very_first_request_is_tried_again() -> None:
    async with running(synced=False) as site:
        site.server.faults.fail(WATCHES, 410)
        await site.agree(within=3)


async def test_f22_expired_page_token_never_leaves_half_a_list() -> None:
    async with running(streaming=False, objects=1203, synced=False) as site:
        sizes: list[int] = []
        site.informer.subscribe("sizes", lambda _: sizes.append(len(site.informer)))
        delayed = site.server.faults.delay(Match(verb="list", plural="configmaps"), before=1.0, times=None)
        while site.wire.kinds().count("list") < 2:
            await site.clock.sleep(0.1)
        site.server.create(config("new"))
        site.server.expire_pages()
        await site.agree()
        delayed.stop()
        assert set(sizes) == {1204}, "nobody ever saw a part of it"
        last = [dict(request.query) for _, request in site.wire.sent if "watch" not in dict(request.query)][-1]
        assert "limit" not in last, "the second try asks for everything at once"
        assert "continue" not in last


@pytest.mark.parametrize("cleanly", [True, False])
async def test_f15_dropped_watch_resumes_where_it_was(cleanly: bool, site: Site) -> None:
    await site.clock.sleep(30)
    site.server.drop_watches(cleanly=cleanly)
    _change_everything(site)
    assert await site.agree() < 2
    assert site.informer.epoch == 1
    assert int(dict(site.wire.sent[-1][1].query)["resourceVersion"]) < site.server.version
    kinds = [change.kind for change in site.told if change.key.name == "map-2"]
    assert kinds == [ChangeKind.ADDED, ChangeKind.DELETED, ChangeKind.ADDED]


async def test_f21_bookmarks_keep_an_idle_watch_from_expiring(site: Site) -> None:
    for number in range(5):
        site.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{number}"}})
    await site.clock.sleep(61)
    assert site.informer.version == str(site.server.version)
    site.server.drop_watches()
    site.server.compact()
    await site.clock.sleep(10)
    assert site.wire.kinds() == ["stream", "watch"]


async def test_f20_half_open_watch_is_noticed_within_75_seconds(site: Site) -> None:
    await site.clock.sleep(61)
    site.server.hang_watches()
    _change_everything(site)
    assert await site.agree(within=75) <= 75
    assert site.wire.kinds() == ["stream", "watch"], "the first retry resumes"


async def test_second_silence_in_a_row_lists_again(site: Site) -> None:
    site.server.hang_watches()
    while len(site.wire.sent) < 2:
        await site.clock.sleep(1)
    site.server.hang_watches()
    while len(site.wire.sent) < 3:
        await site.clock.sleep(1)
    assert site.wire.kinds() == ["stream", "watch", "stream"]
    assert "resourceVersion" not in dict(site.wire.sent[-1][1].query)


async def test_f21_truncated_frame_loses_nothing(site: Site) -> None:
    site.server.truncate_frame()
    _change_everything(site)
    assert await site.agree() < 3
    assert site.informer.epoch == 1


@pytest.mark.parametrize(
    ("code", "state"), [(401, InformerState.RETRYING), (403, InformerState.FORBIDDEN), (404, InformerState.MISSING)]
)
async def test_f25_refusals_are_shown_and_recovered_from(code: int, state: InformerState) -> None:
    async with running(synced=False) as site:
        seen: list[InformerState] = []
        site.informer.on_health(lambda informer: seen.append(informer.health.state))
        fault = site.server.faults.fail(Match(plural="configmaps"), code, message="not you", times=None)
        await site.clock.sleep(40)
        assert site.informer.health.state is state
        assert "not you" in site.informer.health.message
        assert not site.informer.synced
        fault.stop()
        site.informer.retry_now()
        await settle()
        await site.agree(within=1)
        assert site.informer.health.state is InformerState.SYNCED
        assert seen == [state, InformerState.SYNCED]


async def test_type_that_vanishes_and_comes_back_keeps_its_objects_until_a_list_tells(site: Site) -> None:
    fault = site.server.faults.fail(Match(plural="configmaps"), 404, times=None)
    site.server.drop_watches()
    await site.clock.sleep(100)
    assert site.informer.health.state is InformerState.MISSING
    assert len(site.cached()) == 3
    site.server.delete(MAPS, "map-0")
    fault.stop()
    await site.agree(within=60)
    assert site.informer.epoch == 2


async def test_after_an_outage_the_first_answer_that_only_a_list_helps_is_followed_by_that_list(site: Site) -> None:
    site.server.down()
    await site.clock.sleep(200)
    site.server.up()
    _change_everything(site)
    site.server.compact()
    asked = len(site.wire.sent)
    while len(site.wire.sent) == asked:
        await site.clock.sleep(0.1)
    await site.agree(within=2)


async def test_who_is_poked_begins_its_pace_anew(site: Site) -> None:
    gone = site.server.faults.fail(Match(plural="configmaps"), 404, times=None)
    site.server.drop_watches()
    await site.clock.sleep(200)
    gone.stop()
    # What a server says of a type that came back a moment ago.
    site.server.faults.fail(Match(plural="configmaps"), 429, message="storage is (re)initializing")
    site.informer.retry_now()
    await site.clock.sleep(2)
    assert site.informer.health.state is InformerState.SYNCED


async def test_type_that_is_back_and_not_ready_is_asked_for_again_soon(site: Site) -> None:
    gone = site.server.faults.fail(Match(plural="configmaps"), 404, times=None)
    site.server.drop_watches()
    await site.clock.sleep(200)
    gone.stop()
    site.server.faults.fail(Match(plural="configmaps"), 429, message="storage is (re)initializing")
    asked = len(site.wire.sent)
    while len(site.wire.sent) == asked:
        await site.clock.sleep(0.1)
    await site.clock.sleep(2)
    assert site.informer.health.state is InformerState.SYNCED, "nobody pokes what is not missing any more"


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_failing_resume_backs_off_and_resumes(code: int, site: Site) -> None:
    site.server.faults.fail(RESUMES, code, times=2)
    site.server.drop_watches()
    _change_everything(site)
    await site.agree(within=10)
    assert site.informer.epoch == 1
    assert site.wire.kinds() == ["stream", "watch", "watch", "watch"]


async def test_retry_after_is_honoured_and_leads_to_no_list(site: Site) -> None:
    site.server.faults.fail(WATCHES, 429, retry_after=17, times=1)
    site.server.drop_watches()
    await site.clock.sleep(30)
    first, second = (at for at, _ in site.wire.sent[-2:])
    assert second - first >= 17
    assert site.wire.kinds() == ["stream", "watch", "watch"]


async def test_version_that_only_breaks_watches_is_left_by_a_list(site: Site) -> None:
    fault = site.server.faults.fail(RESUMES, 500, times=None)
    site.server.drop_watches()
    _change_everything(site)
    await site.agree(within=30)
    assert site.informer.epoch == 2
    fault.stop()


@pytest.mark.parametrize("spare", [0, 3])
async def test_f26_restored_server_is_followed_back_in_time(spare: int, site: Site) -> None:
    """Fewer versions are given out again than we have seen, so our watch lies in the future and is silent for ever."""
    epoch_begins: list[int] = []
    site.informer.subscribe("epochs", lambda _: None, replaced=lambda: epoch_begins.append(site.informer.epoch))
    back = site.server.version
    _change_everything(site)
    await site.agree(within=1)
    own = site.server.change(MAPS, "new", {"data": {"value": "mine"}})
    site.informers.wrote(MAPS, own)
    site.server.restore(back)
    for number in range(spare):
        site.server.change(MAPS, "map-0", {"data": {"value": f"again {number}"}})
    assert await site.agree(within=150) <= 150
    assert site.informer.version == str(site.server.version)
    assert site.informer.pending == 0
    assert epoch_begins == [1, 2]


@pytest.mark.parametrize("streaming", [True, False])
async def test_server_down_for_minutes_costs_no_more_than_client_go(streaming: bool) -> None:
    async with running(streaming=streaming) as site:
        before = len(site.wire.sent)
        down_at = site.clock.elapsed()
        site.server.down()
        await site.clock.sleep(600)
        times = [at - down_at for at, _ in site.wire.sent[before:]]
        assert sum(at < 60 for at in times) <= 7
        for minute in range(1, 10):
            assert sum(minute * 60 <= at < minute * 60 + 60 for at in times) <= 2
        assert len(times) >= 10, "it does not give up"
        assert site.informer.health.state is InformerState.RETRYING
        assert len(site.cached()) == 3, "what was known stays readable"
        site.server.up()
        _change_everything(site)
        await site.agree(within=61)
        assert site.informer.epoch == 1


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize("streaming", [True, False])
async def test_no_error_class_costs_more_than_the_envelope(code: int, streaming: bool) -> None:
    async with running(streaming=streaming, synced=False) as site:
        site.server.faults.fail(Match(plural="configmaps"), code, times=None)
        start = site.clock.elapsed()
        await site.clock.sleep(600)
        times = [at - start for at, _ in site.wire.sent]
        assert 5 <= sum(at < 60 for at in times) <= 7
        assert sum(at >= 60 for at in times) <= 18


async def test_watches_that_end_at_once_are_backed_off(site: Site) -> None:
    start, before = site.clock.elapsed(), len(site.wire.sent)
    while site.clock.elapsed() < start + 60:
        site.server.drop_watches()
        await site.clock.sleep(0.01)
    assert len(site.wire.sent) - before <= 8


async def test_watches_ask_for_bookmarks_and_end_at_different_times(site: Site) -> None:
    await site.clock.sleep(6000)
    queries = [dict(request.query) for _, request in site.wire.sent]
    timeouts = [int(query["timeoutSeconds"]) for query in queries]
    assert all(300 <= timeout <= 600 for timeout in timeouts)
    assert len(frozenset(timeouts)) > 5
    assert all(query["allowWatchBookmarks"] == "true" for query in queries)
    assert site.wire.kinds().count("stream") == 1


async def test_metadata_only_informer_keeps_metadata_only() -> None:
    async with running(Selection(MAPS, metadata_only=True), synced=False) as site:
        await site.synced()
        site.server.create(config("new"))
        await settle()
        found = site.informer.list()
        assert [name_of(obj) for obj in found] == ["map-0", "map-1", "map-2", "new"]
        assert all(obj.keys() == {"apiVersion", "kind", "metadata"} for obj in found)
        answer = site.server.change(MAPS, "new", {"data": {"value": "x"}})
        site.informers.wrote(MAPS, answer)
        assert site.informer.list()[-1].keys() == {"apiVersion", "kind", "metadata"}


async def test_narrowed_selection_sees_objects_enter_and_leave() -> None:
    async with running(Selection(MAPS, labels="app=web"), objects=0) as site:
        site.server.create(config("in", labels={"app": "web"}))
        site.server.create(config("out"))
        await settle()
        assert site.cached() == {"in": "0"}
        site.server.change(MAPS, "in", {"metadata": {"labels": {"app": "db"}}})
        site.server.change(MAPS, "out", {"metadata": {"labels": {"app": "web"}}})
        await settle()
        assert site.cached() == {"out": "0"} == site.mirrored()


async def test_own_writes_are_read_before_the_watch_delivers_them(site: Site) -> None:
    site.server.watch_delay = 5.0
    answer = site.server.change(MAPS, "map-0", {"data": {"value": "mine"}})
    gone = site.informer.list()[1]
    site.server.delete(MAPS, "map-1")
    site.informers.wrote(MAPS, answer)
    site.informers.removed(MAPS, key_of(gone), uid_of(gone), version_of(gone))
    assert site.cached() == {"map-0": "mine", "map-2": "0"}
    assert site.informer.pending == 2
    assert site.mirrored() == {"map-0": "0", "map-1": "0", "map-2": "0"}, "changes come from the watch alone"
    await site.agree(within=6)
    assert site.informer.pending == 0


async def test_own_write_that_the_watch_never_reaches_leads_to_a_list(site: Site) -> None:
    ahead = present(site.server.get(MAPS, "map-0"))
    ahead["metadata"]["resourceVersion"] = "999999"
    ahead["data"]["value"] = "from another past"
    site.informers.wrote(MAPS, ahead)
    assert site.cached()["map-0"] == "from another past"
    await site.agree(within=250)
    assert site.wire.kinds() == ["stream", "stream"]


async def test_own_write_outside_of_the_selection_is_waited_for_by_nobody() -> None:
    async with running(Selection(MAPS, labels="app=web"), objects=0) as site:
        site.informers.wrote(MAPS, site.server.create(config("out")))
        await settle()
        assert site.informer.pending == 0, "no event will ever tell of it"
