"""The choice of a provider: the given one, the one that created the cluster, or the first that works."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubectl_ctrl.clusters.kind.provider import KindProvider
from kubectl_ctrl.clusters.kwok.provider import KwokProvider
from kubectl_ctrl.clusters.provider import ClusterSpec, Fitness, Machine, Provider
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.clusters.sandbox import SandboxProvider
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, Refused, UsageError
from kubectl_ctrl.model.suggestions import ctrl

AUTO = "auto"

# In the order of preference for `auto`.
_CLASSES: Mapping[str, Callable[[Machine], Provider]] = {
    "kind": KindProvider,
    "kwok": KwokProvider,
    "sandbox": SandboxProvider,
}

PROVIDERS = tuple(_CLASSES)


def providers(machine: Machine) -> Mapping[str, Provider]:
    return {name: make(machine) for name, make in _CLASSES.items()}


async def chosen(
    word: str, name: str, spec: ClusterSpec, providers: Mapping[str, Provider], registry: Registry
) -> tuple[Provider, str]:
    """The provider for a cluster of that name, and a line with the reason for the choice.

    For an existing cluster `auto` means its own provider, and another one is Refused. Raises PrerequisiteMissing if no
    provider works here.
    """
    if word not in (AUTO, *providers):
        raise UsageError(f"There is no provider {word!r}.", next_step=f"use one of {', '.join((AUTO, *providers))}")
    entry = registry.find(name)
    if entry is not None:
        return _of_existing(word, name, entry.provider, providers)
    if word != AUTO:
        fitness = await providers[word].fitness(spec)
        if not fitness.usable:
            if fitness.usage:
                raise UsageError(f"{word} does not support this: {fitness.text}.", next_step=fitness.next_step)
            raise PrerequisiteMissing(f"{word} cannot work here: {fitness.text}.", next_step=fitness.next_step)
        return providers[word], fitness.text
    return _first({each.name: await each.fitness(spec) for each in providers.values()}, providers)


def _of_existing(word: str, name: str, maker: str, providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    if word not in (AUTO, maker):
        raise Refused(
            f"Cluster {name!r} was created with {maker}, not {word}.",
            next_step=f"omit --provider, choose another --name, or delete it: {ctrl('down', name)}",
        )
    if maker not in providers:
        raise ClusterError(
            f"Cluster {name!r} was created with {maker!r}, which this version does not support.",
            next_step="use the version that created it",
        )
    return providers[maker], f"{maker}, which created cluster {name!r}"


def _first(found: Mapping[str, Fitness], providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    usable = [name for name, fitness in found.items() if fitness.usable]
    if not usable:
        reasons = tuple(_reason(name, fitness.text) for name, fitness in found.items())
        error = PrerequisiteMissing(
            "No program for local clusters works on this machine.",
            tried="; ".join(reasons),
            next_step="; or ".join(fitness.next_step for fitness in found.values() if fitness.next_step),
        )
        error.each = reasons
        raise error
    name = usable[0]
    beside = [f"{other} works too" for other in usable[1:]]
    beside += [_reason(other, fitness.text) for other, fitness in found.items() if not fitness.usable]
    return providers[name], found[name].text + (f" ({'; '.join(beside)})" if beside else "")


def _reason(name: str, text: str) -> str:
    """The reason with the provider's name, once."""
    return text if text.startswith(name) else f"{name}: {text}"
