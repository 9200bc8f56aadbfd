"""What every bundled controller survives: each fault at each of its calls in turn, and the same end as without it.

A play puts a controller's example there, changes it, and deletes it. It is played once undisturbed, which says how many
calls there are and how each act ends. Then a fault strikes at the first call, in another play at the second, and so on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.install.parts import read_parts
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.objects import Obj, generation_of, uid_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS, HPAS, PODS, REPLICASETS, STATEFULSETS, Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.runtime.builder import View
from kubectl_ctrl.sandbox.requests import understand
from kubectl_ctrl.sandbox.storage import StoredChange
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual, settle
from kubectl_ctrl.testing.stage import Running, Stage
from tests.objects import workload

# What a user changes in the example; a label where nothing else is known to matter.
CHANGES: dict[str, Obj] = {
    "foo": {"spec": {"deploymentName": "example-foo-2", "replicas": 3}},
    "memcached": {"spec": {"size": 5}},
    "podcount": {"spec": {"replicas": 2}},
    "scaler": {"metadata": {"annotations": {"ars.44smkn.github.io/stop": "0 21 * * mon-fri"}}},
}
_ANY_CHANGE: Obj = {"metadata": {"labels": {"changed": "yes"}}}

_LONG = 200.0  # seconds in which everything settles: a call's deadline, an attempt's, and slow retries
_SEEN = (DEPLOYMENTS, STATEFULSETS, REPLICASETS, PODS, HPAS)
_NOISE = {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "lastTransitionTime"}
_FOREIGN = "faults.example.com/somebody-else"

State = dict[str, Any]
Act = Callable[["Play", HttpRequest], None]


@dataclass
class Trouble:
    """What happens at the call number `at`: `act` behind the server's scenes, `arm` to the request itself."""

    at: int = 0  # 0: never
    act: Act | None = None
    arm: Callable[[Stage, Match], object] = lambda stage, match: stage.server.faults.delay(match)
    writes_only: bool = False
    kills: bool = False
    struck: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0

    def arm_on(self, play: Play) -> None:
        def this(request: HttpRequest) -> bool:
            self.calls += 1
            if self.calls != self.at:
                return False
            if self.act is not None:
                self.act(play, request)
            self.struck.set()
            return True

        verbs = "create update patch delete" if self.writes_only else ""
        self.arm(play.stage, Match(user_agent="kubectl-ctrl/*", verb=verbs, when=this))


class Play:
    """One controller, its example, and a bystander that looks like a child of it."""

    def __init__(self, name: str, trouble: Trouble) -> None:
        self.name = name
        self.trouble = trouble
        self.stage = Stage()
        self.spec = bundled.load(name)
        self.changed = False
        self.desired, *others = _examples(name)
        self.stage.install(*read_parts(bundled.folder(name), name).crds)
        self.stage.server.play_deployments()
        self.stage.server.storage.listeners.append(_check_generations)
        self.stage.install(_bystander(), *others, self.desired)
        self.start()

    async def acts(self) -> list[State]:
        """How each act ends; in between nothing may be written for an hour."""
        self.trouble.arm_on(self)
        states = [await self.settled()]
        self.change()
        states.append(await self.settled())
        written = len(self.stage.server.writes)
        await self.stage.rest(3600)
        assert len(self.stage.server.writes) == written, "it writes at rest"
        if self.primary is not None:
            self.stage.server.delete(self.spec.primary, self.primary["metadata"]["name"])
        states.append(await self.settled())
        self._check_calls()
        await self.stop()
        return states

    def start(self) -> None:
        """Run the controller."""
        self._stop = asyncio.Event()
        self._run = asyncio.create_task(self._running())

    async def stop(self) -> None:
        self._stop.set()
        await self._run

    @property
    def primary(self) -> Obj | None:
        return self.stage.server.get(self.spec.primary, self.desired["metadata"]["name"])

    def change(self) -> None:
        """What the user changes, once."""
        if self.changed:
            return
        self.changed = True
        change = CHANGES.get(self.name, _ANY_CHANGE)
        self.desired = apply_merge(self.desired, change)
        if self.primary is not None:
            self.stage.server.change(self.spec.primary, self.desired["metadata"]["name"], change)
            self._surround()

    def _surround(self) -> None:
        """What other controllers do about the change, as far as the server does not play them."""
        if self.spec.primary != REPLICASETS or self.primary is None:
            return
        for number in range(self.primary["spec"]["replicas"]):
            name = f"pod-{number}"
            if self.stage.server.get(PODS, name):
                self.stage.server.delete(PODS, name)
            self.stage.server.create(_pod(name, self.primary))

    def delete(self) -> None:
        if self.primary is not None:
            self.stage.server.delete(self.spec.primary, self.desired["metadata"]["name"])

    def replace(self) -> None:
        """Delete it and make it again, while what the old one had is still to be collected."""
        self.stage.server.collecting = False
        self.delete()
        self.stage.server.create(self.desired)
        if self.changed:
            self._surround()
        asyncio.get_running_loop().call_later(5, self._collect)

    def _collect(self) -> None:
        self.stage.server.collecting = True
        self.stage.server.settle()

    async def settled(self) -> State:
        await self.stage.rest(_LONG)
        found = self._objects()
        names = {uid_of(obj): f"the {obj['kind']} that is there" for obj in found}
        return {f"{obj['kind']} {obj['metadata']['name']}": _plain(obj, obj, names) for obj in found}

    def uids(self) -> set[str]:
        return {uid_of(obj) for obj in self._objects()}

    def _objects(self) -> list[Obj]:
        resources = dict.fromkeys((self.spec.primary, *_SEEN))
        return [obj for resource in resources for obj in self.stage.server.objects(resource, "default")]

    async def _running(self) -> None:
        """Run the controller; where the trouble kills it, it is started again a little later."""
        running = Running(self.stage.manager(self.spec))
        if self.trouble.kills:
            ends = {asyncio.create_task(event.wait()) for event in (self.trouble.struck, self._stop)}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
            if self.trouble.struck.is_set():
                await settle()
                running.task.cancel()
                await asyncio.wait([running.task])
                await self.stage.rest(1)
                running = Running(self.stage.manager(self.spec))
        await self._stop.wait()
        await running.stopped()

    def _check_calls(self) -> None:
        """Nothing is made a second time while the first is there, and nobody else's is touched."""
        written = [write for write in self.stage.writes() if write.resource != EVENTS]
        assert [write for write in written if write.key.name == "bystander"] == []
        created = Counter((one.resource, one.key) for one in written if one.verb == "create")
        deleted = Counter((one.resource, one.key) for one in self.stage.server.writes if one.verb == "delete")
        assert [one for one, times in created.items() if times > 1 + deleted[one]] == []


def _examples(name: str) -> list[Obj]:
    """The example, the primary object first."""
    spec, parts = bundled.load(name), read_parts(bundled.folder(name), name)
    return sorted(parts.example, key=lambda obj: bool(obj["kind"] != spec.primary.kind))


def _bystander() -> Obj:
    labels = {"app": "nginx", "controller": "example-foo"}
    return workload("bystander", selector=labels, labels=labels)


def _pod(name: str, owner: Obj) -> Obj:
    meta = {"name": name, "ownerReferences": [owner_reference(owner)]}
    spec = {"containers": [{"name": "c", "image": "busybox:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _check_generations(table: str, step: StoredChange) -> None:
    """A status never speaks of a generation that is still to come."""
    if step.new is not None:
        seen = (step.new.get("status") or {}).get("observedGeneration") or 0
        assert seen <= generation_of(step.new), step.new


def _plain(value: Any, obj: Obj, names: dict[str, str]) -> Any:
    """What a user would compare: without what the server assigns, owners by what they are."""
    if isinstance(value, list):
        return [_plain(item, obj, names) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {
        key: _plain(item, obj, names)
        for key, item in value.items()
        if key not in _NOISE and not key.startswith(_FOREIGN) and not (key.endswith("Time") and isinstance(item, str))
    }
    if "observedGeneration" in plain:
        plain["observedGeneration"] = value["observedGeneration"] == generation_of(obj) or value["observedGeneration"]
    if "uid" in value and "controller" in value:
        plain["uid"] = names.get(value["uid"], "gone")
    return {key: item for key, item in plain.items() if item not in ({}, [])}


def played(name: str, trouble: Trouble) -> tuple[list[State], Play]:
    async def main() -> tuple[list[State], Play]:
        play = Play(name, trouble)
        return await play.acts(), play

    return run_virtual(main)


@cache
def undisturbed(name: str, *, writes_only: bool = False) -> tuple[int, list[State]]:
    """How many calls a play has, and how its acts end."""
    trouble = Trouble(writes_only=writes_only)
    states, play = played(name, trouble)
    assert trouble.calls
    assert _failures(play) == []
    assert states[0] != states[1] != states[2]
    return trouble.calls, states


def survives(
    name: str, make: Callable[[int], Trouble], *, writes_only: bool = False, quiet: bool = False, since: int = 0
) -> None:
    """The same end of every act `since` that one, whichever call is struck.

    `quiet`: also without an error that is worth a traceback.
    """
    calls, expected = undisturbed(name, writes_only=writes_only)
    for at in range(1, calls + 1):
        trouble = make(at)
        trouble.at, trouble.writes_only = at, writes_only
        states, play = played(name, trouble)
        assert trouble.struck.is_set(), f"there was no call {at}"
        assert states[since:] == expected[since:], f"struck at call {at} of {calls}"
        if quiet:
            assert _failures(play) == [], f"struck at call {at} of {calls}"


def _failures(play: Play) -> list[str]:
    """Attempts that somebody would have to look at: a conflict is looked at by the next attempt."""
    return [str(attempt.verdict) for attempt in play.stage.attempts if attempt.traceback]


each = pytest.mark.parametrize("name", BUNDLED)


@each
def test_f01_it_dies_before_a_call(name: str) -> None:
    survives(name, lambda _: Trouble(kills=True, arm=lambda stage, match: stage.server.faults.hang(match)))


@each
def test_f02_it_dies_after_a_call_took_effect(name: str) -> None:
    def hang(stage: Stage, match: Match) -> object:
        return stage.server.faults.hang(match, after_commit=True)

    survives(name, lambda _: Trouble(kills=True, arm=hang))


@each
def test_f04_an_answer_is_lost(name: str) -> None:
    survives(name, lambda _: Trouble(arm=lambda stage, match: stage.server.faults.lose(match)))


@each
@pytest.mark.parametrize("how", ["no answer", "reset", "500"])
def test_f05_a_call_does_not_arrive(name: str, how: str) -> None:
    def arm(stage: Stage, match: Match) -> object:
        faults = stage.server.faults
        if how == "500":
            return faults.fail(match, 500)
        return faults.hang(match) if how == "no answer" else faults.lose(match, after_commit=False)

    survives(name, lambda _: Trouble(arm=arm))


@each
def test_f06_a_conflict_is_answered(name: str) -> None:
    def arm(stage: Stage, match: Match) -> object:
        return stage.server.faults.fail(match, 409, reason="Conflict", message="Please apply your changes again.")

    survives(name, lambda _: Trouble(arm=arm), writes_only=True)


@each
def test_f06_somebody_else_changes_what_is_about_to_be_written(name: str) -> None:
    def act(play: Play, request: HttpRequest) -> None:
        ask = understand(request, play.stage.server.served)
        if ask.resource != EVENTS and ask.name and play.stage.server.get(ask.resource, ask.name):
            play.stage.server.change(ask.resource, ask.name, {"metadata": {"annotations": {_FOREIGN: "mine"}}})

    survives(name, lambda _: Trouble(act=act), writes_only=True, quiet=True)


@each
def test_f09_what_is_to_be_written_is_gone(name: str) -> None:
    calls, expected = undisturbed(name, writes_only=True)

    def act(play: Play, request: HttpRequest) -> None:
        ask = understand(request, play.stage.server.served)
        if ask.resource != EVENTS and ask.name and play.stage.server.get(ask.resource, ask.name):
            play.stage.server.delete(ask.resource, ask.name)

    for at in range(1, calls + 1):
        states, play = played(name, Trouble(at=at, act=act, writes_only=True))
        gone = play.primary is None and f"{play.desired['kind']} {play.desired['metadata']['name']}" not in states[1]
        assert states[1] == expected[2 if gone else 1], f"struck at call {at} of {calls}"
        assert _failures(play) == []


@each
def test_f10_it_is_deleted_while_it_is_reconciled(name: str) -> None:
    calls, expected = undisturbed(name)
    for at in range(1, calls + 1):
        states, play = played(name, Trouble(at=at, act=lambda play, _: play.delete()))
        assert states[2] == expected[2], f"struck at call {at} of {calls}"
        assert _failures(play) == []


@each
def test_f11_it_is_deleted_and_made_again_while_it_is_reconciled(name: str) -> None:
    survives(name, lambda _: Trouble(act=lambda play, _: play.replace()))


@each
async def test_f13_a_view_that_is_older_than_what_it_wrote_destroys_nothing(name: str) -> None:
    """After a restart every first list is from before the change, and what came since is told much later."""
    play = Play(name, Trouble())
    await play.settled()
    stage = play.stage
    stage.server.streaming_lists = False
    before = {resource: _listed(stage, resource, play.spec.view(resource)) for resource in play.spec.resources}
    play.change()
    changed = await play.settled()
    await play.stop()
    stage.server.watch_delay = 30.0
    for resource, response in before.items():
        stage.server.faults.answer(Match(verb="list", plural=resource.plural), response)
    uids = play.uids()
    play.start()
    assert await play.settled() == changed
    assert play.uids() == uids, "they are the same objects as before"
    await play.stop()


@each
async def test_f13_what_is_listed_first_is_never_from_a_stale_cache_of_the_server(name: str) -> None:
    """A version of 0 would let the API server answer from whatever it has."""
    play = Play(name, Trouble())
    await play.settled()
    await play.stop()
    firsts = [dict(one.query) for one in play.stage.server.requests if one.verb in ("list", "watch")]
    assert firsts
    assert [query for query in firsts if query.get("resourceVersion") == "0"] == []


@each
def test_f17_events_come_again(name: str) -> None:
    """Every change is told as an addition, then the watches break, and then everything has to be listed again."""
    expected = undisturbed(name)[1][1]

    async def main() -> None:
        play = Play(name, Trouble())
        await play.settled()
        server = play.stage.server
        for _ in range(20):
            server.garble(None, lambda line: line.replace(b'"type":"MODIFIED"', b'"type":"ADDED"'))
        play.change()
        changed = await play.settled()
        assert changed == expected
        written = len(server.writes)
        for again in range(3):
            server.drop_watches(cleanly=bool(again % 2))
            if again:
                server.compact()
            assert await play.settled() == changed
        await play.stop()
        play.start()
        assert await play.settled() == changed
        assert len(server.writes) == written
        await play.stop()

    run_virtual(main)


@each
def test_f18_what_came_and_went_was_never_seen(name: str) -> None:
    def unseen(play: Play) -> None:
        play.delete()
        play.stage.server.create(play.desired)
        play.delete()
        play.stage.server.create(play.desired)
        play.change()

    assert _after_an_absence(name, unseen) == undisturbed(name)[1][1]


@each
def test_f19_its_deletion_was_never_seen(name: str) -> None:
    assert _after_an_absence(name, Play.delete) == undisturbed(name)[1][2]


def _after_an_absence(name: str, meanwhile: Callable[[Play], None]) -> State:
    """Where it comes to rest when something happened while it saw nothing and history was thrown away."""

    async def main() -> State:
        play = Play(name, Trouble())
        await play.settled()
        server = play.stage.server
        blind = server.faults.fail(Match(verb="watch list"), 503, times=None)
        server.drop_watches(cleanly=False)
        meanwhile(play)
        await play.stage.rest(30)
        server.compact()
        blind.stop()
        found = await play.settled()
        written = len(server.writes)
        await play.stage.rest(3600)
        assert len(server.writes) == written, "it writes at rest"
        await play.stop()
        return found

    return run_virtual(main)


def _listed(stage: Stage, resource: Resource, view: View) -> HttpResponse:
    """What a list answers now."""
    selectors = {"labelSelector": view.labels, "fieldSelector": view.fields}
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" if view.metadata_only else ""
    query = tuple((key, value) for key, value in selectors.items() if value)
    path = f"{resource.root}/{resource.plural}"
    return stage.server.handle_now(HttpRequest(method="GET", path=path, query=query, headers={"accept": accept}))


@each
def test_f55_it_is_changed_while_it_is_reconciled(name: str) -> None:
    survives(name, lambda _: Trouble(act=lambda play, _: play.change()), since=1)
