"""The plan of a run, made from the command line and the kubeconfig before the run changes anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Protocol

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader.reload import CodeGroup
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.value import Unshown, Value


class Program(Protocol):
    """A controller of a run, and where its code comes from."""

    @property
    def word(self) -> str:
        """Its name or path on a command line."""

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
    """The controllers to run, their cluster, and all options."""

    clock: Clock
    rng: Random
    controllers: tuple[Program, ...]
    resolved: Resolved
    all_namespaces: bool
    options: RunOptions
    elect: str  # auto, true, false or required
    local: bool
    ours: str  # the name of the managed cluster, "" for another
    takeover: bool
    holder_gone: bool  # the user confirms that the holder of an earlier takeover is gone
    again: Unshown[Callable[..., str]]  # the same command line with more flags, for suggestions
    as_installed: bool
    metrics_address: str
    health_address: str
    record: Path | None  # the recording; None for no recording
    caps: Caps  # of the recording
    reloadable: tuple[CodeGroup, ...] = ()  # code that is reloaded when it changes

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
        """Whether it is a local or a managed cluster."""
        return self.local or bool(self.ours)

    @property
    def elects(self) -> bool:
        return self.elect in ("true", "required") or (self.elect == "auto" and not self.trusted)
