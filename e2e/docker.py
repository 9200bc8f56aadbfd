"""What docker has of a kind cluster, asked without the package: containers, volumes, networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from e2e.kube import Ran, run, wait_until

_LABEL = "io.x-k8s.kind.cluster"


@dataclass(frozen=True, slots=True)
class Docker:
    """The daemon that an environment points to."""

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

    def pretend(self, cluster: str, image: str) -> None:
        """A container that is labelled and named as a node of that cluster."""
        self("create", "--name", f"{cluster}-control-plane", "--label", f"{_LABEL}={cluster}", image)

    def forgotten_volumes(self) -> set[str]:
        """Those that no container uses."""
        return set(self("volume", "ls", "-q", "--filter", "dangling=true").split())

    def assert_none_is_forgotten(self, before: set[str]) -> None:
        """Of those that are not of before. A container that somebody removes goes a moment before its volumes."""
        wait_until(lambda: self.forgotten_volumes() <= before, what="no volume but those of before")

    def networks(self) -> set[str]:
        return set(self("network", "ls", "--format", "{{.Name}}").split())
