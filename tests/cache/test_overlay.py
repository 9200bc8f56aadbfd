"""What the interleavings of test_replica cannot reach: versions without an order, restores, what is overdue."""

from __future__ import annotations

import pytest

from kubectl_ctrl.cache.overlay import Overlay
from kubectl_ctrl.cache.store import Store
from kubectl_ctrl.model.objects import Key, Obj, version_of
from kubectl_ctrl.testing.clock import FakeClock
from tests.cache.history import THINGS, thing

KEY = Key("a", "x")


class Layers:
    """A store and its overlay, with `read` as a reader sees them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = Store(THINGS)
        self.overlay = Overlay(self.store, clock=self.clock, narrowed=False)

    def read(self) -> str:
        obj = self.overlay.visible(KEY, self.store.get(KEY))
        return "" if obj is None else version_of(obj)

    def wrote(self, obj: Obj) -> None:
        self.overlay.put(obj, obj)

    def event(self, obj: Obj, *, deleted: bool = False) -> None:
        if deleted:
            self.store.remove(obj)
        else:
            self.store.put(obj)
        self.store.version = version_of(obj)
        self.overlay.saw(obj, deleted=deleted)

    def listed(self, version: str, *objects: Obj, mark: int | None = None) -> None:
        mark = self.overlay.mark() if mark is None else mark
        before, self.store.version = self.store.version, version
        self.store.replace(dict.fromkeys([KEY], *objects), initial=not before)
        self.overlay.replaced(mark, before)


def at(version: str, uid: str = "one") -> Obj:
    return thing(KEY, uid, version)


@pytest.fixture
def layers() -> Layers:
    layers = Layers()
    layers.listed("5", at("5"))
    return layers


def test_version_without_order_hides_the_store_until_that_very_version(layers: Layers) -> None:
    layers.wrote(at("v-b"))
    layers.event(at("v-a"))
    assert layers.read() == "v-b"
    layers.event(at("v-b"))
    assert layers.read() == "v-b"
    layers.event(at("v-c"))
    assert layers.read() == "v-c"


def test_version_without_order_ends_with_its_object(layers: Layers) -> None:
    layers.wrote(at("v-b"))
    layers.event(at("v-z"), deleted=True)
    assert layers.read() == ""


def test_answer_without_order_may_come_after_its_event_and_after_the_deletion(layers: Layers) -> None:
    layers.event(at("v-b"))
    layers.event(at("v-c"))
    layers.wrote(at("v-b"))
    assert layers.read() == "v-c"
    layers.event(at("v-d"), deleted=True)
    layers.wrote(at("v-x"))
    assert layers.read() == ""
    layers.overlay.delete(KEY, "one", "")
    assert not layers.overlay


def test_list_that_has_the_very_version_ends_it(layers: Layers) -> None:
    mark = layers.overlay.mark()
    layers.wrote(at("v-b"))
    layers.listed("v-l", at("v-b"), mark=mark)
    assert not layers.overlay
    layers.wrote(at("v-b"))
    assert not layers.overlay, "it is in the store already"


def test_list_from_before_a_restore_takes_everything_with_it(layers: Layers) -> None:
    mark = layers.overlay.mark()
    layers.wrote(at("9"))
    layers.overlay.delete(KEY, "other", "")
    layers.listed("3", at("3"), mark=mark)
    assert layers.read() == "3"
    assert not layers.overlay


def test_entry_is_overdue_after_three_minutes_of_a_working_watch(layers: Layers) -> None:
    layers.wrote(at("9"))
    layers.clock.suspend(179)
    assert not layers.overlay.overdue()
    layers.clock.suspend(2)
    assert layers.overlay.overdue()


def test_grave_of_what_is_not_there_is_forgotten_and_one_of_what_is_there_is_overdue(layers: Layers) -> None:
    layers.overlay.delete(KEY, "gone-long-ago", "")
    layers.clock.suspend(181)
    assert not layers.overlay.overdue()
    assert not layers.overlay
    layers.overlay.delete(KEY, "one", "")
    layers.clock.suspend(181)
    assert layers.overlay.overdue()


def test_deletion_hides_what_had_the_name_before(layers: Layers) -> None:
    layers.overlay.delete(KEY, "two", "8")
    assert layers.read() == "", "the store has an object that the deleted one had replaced"
    layers.event(at("9", "two"), deleted=True)
    layers.event(at("10", "three"))
    assert layers.read() == "10"


def test_pending_counts_what_the_watch_has_not_reached(layers: Layers) -> None:
    layers.wrote(at("9"))
    layers.overlay.delete(KEY, "one", "")
    layers.overlay.delete(KEY, "not-there", "")
    assert layers.overlay.pending == 2
    layers.event(at("10"), deleted=True)
    assert layers.overlay.pending == 0


def test_pending_counts_what_left_the_selection_only_where_the_store_still_has_it(layers: Layers) -> None:
    elsewhere = thing(Key("a", "never-selected"), "two", "8")
    layers.overlay.put(elsewhere, None)
    assert layers.overlay.pending == 0, "no event will ever tell of it"
    layers.overlay.put(at("9"), None)
    assert layers.overlay.pending == 1
    assert layers.read() == ""
    layers.event(at("9"), deleted=True)
    assert layers.overlay.pending == 0
