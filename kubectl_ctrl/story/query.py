"""The question of a command line to a recording: which file, which cluster in it, and the way to the cluster itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.clock import Clock


class Target(Protocol):
    """The cluster that kubectl's flags and the kubeconfig address."""

    @property
    def flags(self) -> ConfigFlags: ...

    def resolved(self) -> Resolved:
        """The cluster, without a request to it; ConfigError where there is none."""

    def readable(self) -> Resolved:
        """The cluster, after the guard has let a read pass."""

    async def connected(self, resolved: Resolved, clock: Clock) -> Client:
        """A client of it, which the caller closes."""

    def briefly(self, error: CtrlError) -> str:
        """An error as a part of a sentence on something else."""


class Query(Value, kw_only=True):
    """The flags that several verbs of the past share, as they were given; cli.parsing.query makes it."""

    user: User
    target: Unshown[Target]
    named_file: str = ""  # --from
    recorded_cluster: str = ""
    namespace: str = ""
    everywhere: bool = False  # -A
    offline: bool = False
    typed: tuple[str, ...] = ()  # all flags, each as --name=value
    pointers: tuple[str, ...] = ()  # these, and those that address a cluster by a variable

    @property
    def file(self) -> Path:
        return Path(self.named_file).expanduser() if self.named_file else recording_file(self.user)
