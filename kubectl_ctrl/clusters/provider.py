"""The interface of providers, which create and manage clusters with one program each, and its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.value import Unshown, Value, field

if TYPE_CHECKING:
    from random import Random

# Receives what a provider is doing right now, one short line at a time.
Note = Callable[[str], None]


class Machine(Value, kw_only=True):
    """The parts of this machine that providers use; the environment may hold secrets."""

    clock: Clock
    rng: Random
    environ: Unshown[Mapping[str, str]]
    cache: Path  # for files that may be deleted at any time, such as downloads


class ClusterSpec(Value, kw_only=True):
    """A cluster to be created. Empty fields are the provider's choice."""

    image: str = ""  # of kind's nodes
    config: Path | None = None  # the provider's own file
    wait: float = 180.0  # seconds until its nodes are ready
    keep_on_failure: bool = False
    bin_dir: Path | None = None  # folder of the programs to use
    offline: bool = False  # download nothing
    nodes: int | None = None
    load: bool = False  # images will be loaded into its nodes


class Fitness(Value, kw_only=True):
    """Whether a provider works on this machine, and with which programs, or what is missing and how to get it."""

    usable: bool
    text: str  # "kind v0.33.0 with docker 28.2.2", or "no docker, podman or nerdctl answers"
    next_step: str = ""
    usage: bool = False  # the spec itself is unsupported, and no program would help
    missing: Mapping[str, str] = field(default_factory=dict)  # program -> what is wrong with it, for doctor


class ClusterState(StrEnum):
    """The state of a cluster, as its provider sees it."""

    ABSENT = "absent"
    PARTIAL = "partial"  # parts were never created, or are gone: it can only be deleted
    STOPPED = "stopped"  # complete but not running, as after a restart of the machine
    RUNNING = "running"


class CreatedCluster(Value, kw_only=True):
    context: str
    kubeconfig: Unshown[str]  # the content of its own file
    version: str  # of Kubernetes
    notes: Mapping[str, str] = field(default_factory=dict)  # with which the provider finds it again


class Provider(Protocol):
    """One way to create clusters. It raises PrerequisiteMissing, ClusterError, TimedOut or Refused."""

    @property
    def name(self) -> str: ...

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        """Whether it could create that here and now. Missing programs do not raise."""

    async def foreign(self, name: str) -> str:
        """The owner of containers or other parts with that name, which prevent a new cluster, as a clause; or ""."""

    async def state(self, entry: ClusterEntry) -> ClusterState: ...

    async def create(self, entry: ClusterEntry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        """Create it, and return when its API server answers and its nodes are ready.

        After a failure, a cancellation or a kill, `delete` finds everything that was created; `lifecycle` calls it,
        unless the spec keeps failed clusters.
        """

    async def start(self, entry: ClusterEntry, note: Note) -> None:
        """Start a STOPPED cluster."""

    async def load(self, entry: ClusterEntry, images: Sequence[str]) -> None:
        """Load these images of the local container runtime into its nodes."""

    async def logs(self, entry: ClusterEntry, folder: Path) -> None:
        """Write the logs of its components to an empty folder."""

    async def delete(self, entry: ClusterEntry, note: Note) -> None:
        """Leave no process, container, network or file of it outside its folder in the registry. Can be repeated."""


def recreate(name: str) -> str:
    """The commands that recreate a cluster; its contents are lost."""
    return f"{ctrl('down', name)}, then {ctrl('up', '--name', name)}"
