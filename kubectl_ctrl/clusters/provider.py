"""What a provider is: the eight things that one can do, and the values that they take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.value import Unshown, Value, field

if TYPE_CHECKING:
    from random import Random

# Told of what a provider is doing right now, one short line at a time.
Note = Callable[[str], None]


class Machine(Value, kw_only=True):
    """What a provider may use of this machine; the environment may hold secrets."""

    clock: Clock
    rng: Random
    environ: Unshown[Mapping[str, str]]
    cache: Path  # what may be deleted at any time, as downloads


class Wish(Value, kw_only=True):
    """What a cluster is to be like; what is empty is the provider's own choice."""

    image: str = ""  # of kind's nodes
    config: Path | None = None  # the provider's own file
    wait: float = 180.0  # seconds until its nodes are ready
    keep_on_failure: bool = False
    bin_dir: Path | None = None  # programs that are there already
    offline: bool = False  # nothing is to be downloaded
    nodes: int | None = None
    load: bool = False  # its nodes are to be given images


class Fitness(Value, kw_only=True):
    """Whether a provider can work here: with what, or what it lacks and how to get it."""

    usable: bool
    text: str  # "kind v0.33.0 with docker 28.2.2", or "no docker, podman or nerdctl answers"
    next_step: str = ""
    usage: bool = False  # the wish itself is in the way, and no program would help
    missing: Mapping[str, str] = field(default_factory=dict)  # program -> what is wrong with it, for doctor


class Life(StrEnum):
    """How a cluster stands, as its provider sees it."""

    ABSENT = "absent"
    PARTIAL = "partial"  # made in part, or parts of it are gone: only taking it away helps
    STOPPED = "stopped"  # all there and not running, as after a restart of the machine
    RUNNING = "running"


class Made(Value, kw_only=True):
    """A cluster that was made."""

    context: str
    kubeconfig: Unshown[str]  # the content of its own file
    version: str  # of Kubernetes
    notes: Mapping[str, str] = field(default_factory=dict)  # what the provider will want to know to find it again


class Provider(Protocol):
    """One way to make clusters. What it raises is PrerequisiteMissing, ClusterError, TimedOut or Refused."""

    @property
    def name(self) -> str: ...

    async def fitness(self, wish: Wish) -> Fitness:
        """Whether it could make that here and now. Never raises for what is missing."""

    async def foreign(self, name: str) -> str:
        """What stands in the way of a new cluster of that name, as a clause that names its owner; "" for nothing."""

    async def life(self, entry: Entry) -> Life: ...

    async def create(self, entry: Entry, wish: Wish, note: Note) -> Made:
        """Make it, with its API server answering and its nodes ready.

        Failed, cancelled or killed, it leaves what `delete` can find; `making` calls that, unless it is to be kept.
        """

    async def start(self, entry: Entry, note: Note) -> None:
        """Have one that is STOPPED run again."""

    async def load(self, entry: Entry, images: Sequence[str]) -> None:
        """Give its nodes these images of the local container runtime."""

    async def logs(self, entry: Entry, folder: Path) -> None:
        """Write what its parts logged below an empty folder."""

    async def delete(self, entry: Entry, note: Note) -> None:
        """Leave nothing of it: no process, container, network or file outside its folder in the book. Twice is fine."""


def anew(name: str) -> str:
    """The commands that have a cluster made anew, for who is to give up what is in it."""
    return f"{ctrl('down', name)}, then {ctrl('up', '--name', name)}"
