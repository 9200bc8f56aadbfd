from __future__ import annotations

import copy
from dataclasses import dataclass
from random import Random

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from kubectl_ctrl.cache.projection import StringPool
from kubectl_ctrl.cache.replica import Replica, Staging
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Key, Obj, namespace_of, uid_of, version_of
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.testing.clock import FakeClock
from tests.cache.history import THINGS, History, Step, selected, thing
from tests.objects import present

KEYS = [Key("a", "x"), Key("a", "y"), Key("b", "x")]
MOSTLY_ONE = st.sampled_from([KEYS[0], *KEYS, KEYS[0]])
COLOURS = ["red", "blue"]
RED = Selector.parse("colour=red")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """An own write whose answer came: readers see this version of the key or a newer one."""

    version: int
    number: int  # of the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    step: Step
    era: int  # of the server, counted by restores


class Viewer:
    """A subscriber that believes only what it is told, and complains when that makes no sense."""

    def __init__(self, replica: Replica, *, name: str) -> None:
        self.seen: dict[Key, Obj] = {}
        self.replica = replica
        self.told: list[Change] = []
        self.late = replica.synced
        self.subscription = replica.subscribe(name, self.take, resync=None, replaced=None)

    def take(self, change: Change) -> None:
        self.told.append(change)
        known = self.seen.get(change.key)
        match change.kind:
            case ChangeKind.ADDED:
                assert known is None, "an object is added once"
                assert change.new is not None
                self.seen[change.key] = change.new
            case ChangeKind.MODIFIED:
                assert change.old is known, "old is what was told before"
                assert change.new is not None
                assert uid_of(change.new) == uid_of(change.old or {"metadata": {}}), "another UID is another object"
                self.seen[change.key] = change.new
            case ChangeKind.DELETED:
                assert known is not None, "what is deleted was there"
                assert change.new is None
                assert uid_of(change.obj) == uid_of(known)
                del self.seen[change.key]
            case ChangeKind.RESYNC:
                raise AssertionError("nobody asked for a resync")
        assert not (change.initial and self.subscription.synced), "initial changes come before it is synced"


def values_of(obj: Obj) -> list[str]:
    return [str(obj["spec"]["value"]), obj["metadata"]["labels"].get("colour", "none")]


class Interleaving(RuleBasedStateMachine):
    """Writes, answers, events, lists and restores in any order, against the plain history."""

    labels = ""
    answers: Bundle[Answer] = Bundle("answers")

    @initialize(synced=st.sampled_from([True, True, False]))
    def start(self, synced: bool) -> None:
        self.clock = FakeClock()
        self.selector = Selector.parse(self.labels) if self.labels else None
        self.replica = Replica(
            Selection(THINGS, labels=self.labels),
            managers=frozenset(),
            texts=StringPool(),
            clock=self.clock,
            rng=Random(1),
            read_only_objects=False,
        )
        self.replica.add_index("values", values_of)
        self.server = History()  # as it is
        self.known = History()  # the line of time that the replica follows
        self.reached = -1  # its version there; -1: nothing yet
        self.era = 0
        self.restored = False  # and no list has told us yet
        self.uids = 0
        self.floors: dict[Key, list[Floor]] = {}
        self.answered = 0
        self.staging: tuple[Staging, int] | None = None
        self.snapshot: int | None = None
        self.viewers = [Viewer(self.replica, name="first")]
        if synced:
            for key in KEYS:
                self._write(key, "red", 0)
            self.list_goes_on(at_once=True)

    # The server.

    def _new_uid(self) -> str:
        self.uids += 1
        return f"uid-{self.uids}"

    def _write(self, key: Key, colour: str, value: int) -> Step:
        there = self.server.at(key, self.server.version)
        uid = uid_of(there) if there is not None else self._new_uid()
        version = str(self.server.version + 1)
        return self.server.put(thing(key, uid, version, labels={"colour": colour}, value=value))

    def _delete(self, key: Key) -> Step:
        if self.server.at(key, self.server.version) is None:
            self._write(key, "red", 0)
        return self.server.delete(key)

    @rule(target=answers, key=MOSTLY_ONE, colour=st.sampled_from(COLOURS), value=st.integers(0, 2))
    def we_write(self, key: Key, colour: str, value: int) -> Answer:
        return Answer(step=self._write(key, colour, value), era=self.era)

    @rule(target=answers, key=MOSTLY_ONE)
    def we_delete(self, key: Key) -> Answer:
        return Answer(step=self._delete(key), era=self.era)

    @rule(key=MOSTLY_ONE, colour=st.sampled_from([*COLOURS, None]), value=st.integers(0, 2))
    def somebody_writes(self, key: Key, colour: str | None, value: int) -> None:
        if colour is None:
            self._delete(key)
        else:
            self._write(key, colour, value)

    @rule(back=st.sampled_from([0, 0, 0, 1, 2, 5]))
    def server_is_restored(self, back: int) -> None:
        if back == 0:
            return
        self.server = self.server.until(max(0, self.server.version - back))
        self.era += 1
        self.restored = True
        self.staging = self.snapshot = None  # a list on its way breaks with everything else

    # What comes back to us.

    @rule(answer=consumes(answers))
    def answer_arrives(self, answer: Answer) -> None:
        if answer.era != self.era or self.restored:
            return  # its connection broke when the server went down; what comes before the next list is not promised
        step = answer.step
        if step.obj is not None:
            self.replica.wrote(copy.deepcopy(step.obj))
        else:
            assert step.last is not None
            known = present(self.server.at(step.key, step.version - 1))
            self.replica.removed(step.key, uid_of(step.last), version_of(known))
        self.answered += 1
        self.floors.setdefault(step.key, []).append(Floor(version=step.version, number=self.answered))

    @property
    def following(self) -> bool:
        """Whether the watch goes on in the server's present line of time."""
        return self.reached >= 0 and self.known is self.server and self.staging is None

    @precondition(lambda self: self.following)
    @rule(most=st.integers(1, 3))
    def events_arrive(self, most: int) -> None:
        steps = [step for step in self.server.steps if step.version > self.reached]
        for step in steps[:most]:
            self.reached = step.version
            event = self.server.event(step, self.selector)
            if event is None:
                self.reached = self._delivered()  # nobody told us that it was passed
                continue
            told = [len(viewer.told) + viewer.subscription.behind for viewer in self.viewers]
            kind, obj = event
            if kind == "DELETED":
                self.replica.remove(copy.deepcopy(obj))
            else:
                self.replica.put(copy.deepcopy(obj))
            now = [len(viewer.told) + viewer.subscription.behind for viewer in self.viewers]
            assert now == [count + 1 for count in told], "every watched version is told to everyone, once"

    def _delivered(self) -> int:
        return int(self.replica.store.version)

    @precondition(lambda self: self.following)
    @rule()
    def bookmark_arrives(self) -> None:
        behind = [step.version for step in self.server.steps if step.version > self.reached]
        unseen = [at for at in behind if self._is_told(at)]
        self.reached = unseen[0] - 1 if unseen else self.server.version
        assert self.replica.bookmark(str(self.reached))

    def _is_told(self, version: int) -> bool:
        step = next(step for step in self.server.steps if step.version == version)
        return self.server.event(step, self.selector) is not None

    @rule(at_once=st.booleans())
    def list_goes_on(self, at_once: bool) -> None:
        """It is asked for, answered, and taken in; all at once, or with other things in between."""
        if self.staging is None:
            self.staging = (self.replica.stage(), self.answered)
        elif self.snapshot is None:
            self.snapshot = self.server.version
        else:
            self._take_list(self.staging[0], self.staging[1], self.snapshot)
        if at_once and self.staging is not None:
            self.list_goes_on(at_once)

    def _take_list(self, staging: Staging, asked: int, version: int) -> None:
        for obj in self.server.state(version).values():
            if selected(obj, self.selector) is not None:
                self.replica.add(staging, copy.deepcopy(obj))
        self.replica.replace(staging, str(version))
        for key, floors in self.floors.items():
            self.floors[key] = [floor for floor in floors if floor.number > asked]
        self.known, self.reached, self.restored = self.server, version, False
        self.staging = self.snapshot = None

    # Subscribers.

    @rule(most=st.sampled_from([0, 1, 3, 100]))
    def subscribers_are_told(self, most: int) -> None:
        if most == 0 and len(self.viewers) < 4:
            self.viewers.append(Viewer(self.replica, name=f"viewer {len(self.viewers)}"))
        for viewer in self.viewers:
            viewer.subscription.deliver_backlog(most)

    # What must hold after every step.

    def _expected(self) -> dict[Key, Obj]:
        """What readers must see: for each key the state as of the watch, or of the newest own write that returned."""
        visible: dict[Key, Obj] = {}
        for key in KEYS:
            floor = max((floor.version for floor in self.floors.get(key, ())), default=0)
            obj = selected(self.known.at(key, max(floor, self.reached)), self.selector)
            if obj is not None:
                visible[key] = obj
        return visible

    @invariant()
    def store_holds_what_was_delivered(self) -> None:
        if self.reached < 0:
            return
        state = self.known.state(self.reached)
        expected = {key: obj for key, obj in state.items() if selected(obj, self.selector) is not None}
        assert self.replica.store.objects == expected
        assert self.replica.store.sorted_keys() == sorted(expected)
        index = self.replica.store.index("values")
        for value in ("0", "1", "2", "red", "blue", "none"):
            assert index.keys_of(value) == {key for key, obj in expected.items() if value in values_of(obj)}

    @invariant()
    def readers_see_their_writes(self) -> None:
        if self.reached < 0 or self.known is not self.server:
            return  # before the first list nothing is promised, and after a restore nothing until the next
        expected = self._expected()
        assert {key: obj for key in KEYS if (obj := self.replica.get(key)) is not None} == expected
        ordered = [expected[key] for key in sorted(expected)]
        assert self.replica.list() == ordered
        assert self.replica.list("a") == [obj for obj in ordered if namespace_of(obj) == "a"]
        assert self.replica.list(selector=RED) == [obj for obj in ordered if selected(obj, RED) is not None]
        for value in ("0", "1", "2", "red", "blue"):
            assert self.replica.by_index("values", value) == [obj for obj in ordered if value in values_of(obj)]

    @invariant()
    def overlay_is_empty_when_the_watch_has_caught_up(self) -> None:
        if self.following and self.reached >= self.server.version:
            assert not list(self.replica.overlay.entry_keys())

    @invariant()
    def subscribers_know_what_the_store_holds(self) -> None:
        for viewer in self.viewers:
            if not viewer.subscription.behind:
                assert viewer.seen == self.replica.store.objects
                assert viewer.subscription.synced is self.replica.synced
                assert viewer.subscription.errors == 0

    def teardown(self) -> None:
        for viewer in getattr(self, "viewers", ()):
            viewer.subscription.deliver_backlog(10_000)
            assert viewer.subscription.errors == 0
            assert viewer.seen == self.replica.store.objects


class NarrowedInterleaving(Interleaving):
    """The same with objects that enter and leave the selection."""

    labels = "colour=red"


TestInterleaving = Interleaving.TestCase
TestInterleaving.settings = settings(max_examples=200, stateful_step_count=50)
TestNarrowedInterleaving = NarrowedInterleaving.TestCase
TestNarrowedInterleaving.settings = settings(max_examples=200, stateful_step_count=50)
