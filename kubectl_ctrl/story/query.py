"""The flags that select a recording, a cluster in it, and the cluster itself."""

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


class TargetCluster(Protocol):
    """The cluster that kubectl's flags and the kubeconfig address."""

    @property
    def flags(self) -> ConfigFlags: ...

    def resolved(self) -> Resolved:
        """The cluster, without a request to it; raises ConfigError."""

    def readable(self) -> Resolved:
        """The cluster, after the guard has allowed a read."""

    async def connected(self, resolved: Resolved, clock: Clock) -> Client:
        """A client, which the caller closes."""

    def briefly(self, error: CtrlError) -> str:
        """An error as part of another sentence."""


class Query(Value, kw_only=True):
    """The common flags of the verbs that read recordings; created by cli.parsing.query."""

    user: User
    target: Unshown[TargetCluster]
    named_file: str = ""  # --from
    recorded_cluster: str = ""
    namespace: str = ""
    everywhere: bool = False  # -A
    offline: bool = False
    typed: tuple[str, ...] = ()  # all flags, each as --name=value
    pointers: tuple[str, ...] = ()  # these, and the cluster flags set by variables

    @property
    def file(self) -> Path:
        return Path(self.named_file).expanduser() if self.named_file else recording_file(self.user)
