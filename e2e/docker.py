"""The containers, volumes and networks of a kind cluster in docker, independent of the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from e2e.kube import Ran, run, wait_until

_LABEL = "io.x-k8s.kind.cluster"


@dataclass(frozen=True, slots=True)
class Docker:
    """The docker daemon of an environment."""

    env: Mapping[str, str]

    def __call__(self, *words: str) -> str:
        return self.try_(*words).checked().out

    def try_(self, *words: str) -> Ran:
        return run("docker", *words, env=self.env)

    def nodes(self, cluster: str) -> list[str]:
        """The names of its containers, running or not."""
        return sorted(self("ps", "-a", "--filter", f"label={_LABEL}={cluster}", "--format", "{{.Names}}").split())

    def stop(self, cluster: str) -> None:
        self("stop", "-t", "1", *self.nodes(cluster))

    def remove(self, cluster: str) -> None:
        if nodes := self.nodes(cluster):
            self("rm", "-f", "-v", *nodes)

    def imitate_node(self, cluster: str, image: str) -> None:
        """Create a container with the name and the label of a node of that cluster."""
        self("create", "--name", f"{cluster}-control-plane", "--label", f"{_LABEL}={cluster}", image)

    def unused_volumes(self) -> set[str]:
        return set(self("volume", "ls", "-q", "--filter", "dangling=true").split())

    def assert_no_new_volumes(self, before: set[str]) -> None:
        """No unused volumes but those; docker removes a container a moment before its volumes."""
        wait_until(lambda: self.unused_volumes() <= before, what="the removal of all new volumes")

    def networks(self) -> set[str]:
        return set(self("network", "ls", "--format", "{{.Name}}").split())
