"""What a run is to be, as its words and the kubeconfig say; made before anything is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader.reload import Shelf
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.value import Unshown, Value


class Program(Protocol):
    """A controller of a run, and where its code comes from."""

    @property
    def word(self) -> str:
        """The name or path that means it on a command line."""

    @property
    def spec(self) -> ControllerSpec: ...

    @property
    def folder(self) -> Path:
        """The folder of its manifests, if it has any."""

    @property
    def file(self) -> str:
        """The file of its code; "" for a bundled controller."""

    @property
    def settings(self) -> dict[str, str]: ...


class RunPlan(Value, kw_only=True):
    """What is to run, where, and how it is to be told."""

    clock: Clock
    rng: Random
    controllers: tuple[Program, ...]
    resolved: Resolved
    all_namespaces: bool
    options: RunOptions
    elect: str  # auto, true, false or required
    local: bool
    ours: str  # the cluster of ours that it is, "" for none
    takeover: bool
    holder_gone: bool  # the user confirms that the holder of an earlier takeover is gone
    again: Unshown[Callable[..., str]]  # the same command line with more flags, to be copied
    as_installed: bool
    metrics_address: str
    health_address: str
    record: Path | None  # the file; None: nothing is recorded
    caps: Caps  # of what is recorded
    shelves: tuple[Shelf, ...] = ()  # of code to be reloaded when it changes

    @property
    def specs(self) -> tuple[ControllerSpec, ...]:
        return tuple(program.spec for program in self.controllers)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    @property
    def namespace(self) -> str:
        return "" if self.all_namespaces else self.resolved.namespace

    @property
    def trusted(self) -> bool:
        """Whether the cluster is nobody's but the user's own, to play with."""
        return self.local or bool(self.ours)

    @property
    def elects(self) -> bool:
        return self.elect in ("true", "required") or (self.elect == "auto" and not self.trusted)
