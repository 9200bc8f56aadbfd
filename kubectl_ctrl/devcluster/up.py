"""The steps of `up`: the cluster, what controllers need on it, and controllers in the background.

Each step keeps what exists already, so that an `up` that failed or was interrupted is simply repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters import current_context, lifecycle, names
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, Provider
from kubectl_ctrl.clusters.providers import chosen, providers
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.devcluster import contents
from kubectl_ctrl.devcluster.steps import Steps, waiting
from kubectl_ctrl.kubeconfig.resolution import Resolved, load_again
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs import background, holder
from kubectl_ctrl.runs.runners import Runner, runners
from kubectl_ctrl.story import lookup
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.connection import Connect
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.text import counted
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value, replace


class UpOptions(Value, kw_only=True):
    """The cluster to bring up, and what to do on it."""

    name: str
    provider: str
    spec: ClusterSpec
    use: bool
    images: tuple[str, ...] = ()
    sourced: tuple[SourcedController, ...] = ()
    example: bool = False
    detach: bool = False  # run the controllers in the background
    namespace: str = ""  # of examples and controllers; "" is that of the cluster's context
    everywhere: bool = False  # the controllers work in all namespaces

    @property
    def creation_flags(self) -> tuple[str, ...]:
        """The given flags that shape a new cluster and do not change an existing one."""
        given = {"--image": self.spec.image, "--config": self.spec.config, "--nodes": self.spec.nodes is not None}
        return tuple(flag for flag, is_given in given.items() if is_given)

    @property
    def steps(self) -> tuple[str, ...]:
        wanted = {
            "provider": True,
            "cluster": True,
            "use": self.use,
            "load": bool(self.images),
            "install": bool(self.sourced),
            "example": self.example,
            "controllers": self.detach,
        }
        return tuple(name for name, is_wanted in wanted.items() if is_wanted)

    @property
    def controllers(self) -> tuple[str, ...]:
        return tuple(one.spec.name for one in self.sourced)


class UpSurroundings(Value, kw_only=True):
    """What `Up` gets from its caller."""

    user: User
    clock: Clock
    steps: Unshown[Steps]
    resolve: Unshown[Callable[[ClusterEntry], Resolved]]  # from a managed cluster to its server and credentials
    connect: Unshown[Connect]
    environ: Unshown[Mapping[str, str]]  # of controllers in the background


class Up:
    """One `up`, without controllers in the foreground; `entry` is the cluster once everything is done."""

    def __init__(self, options: UpOptions, surroundings: UpSurroundings) -> None:
        self.options = options
        self.entry: ClusterEntry | None = None
        self._registry = Registry.of(surroundings.user)
        self._user = surroundings.user
        self._clock = surroundings.clock
        self._steps = surroundings.steps
        self._surroundings = surroundings
        self._providers = providers(names.machine(self._user, self._clock))
        self._changing = False  # from here on, something may have been changed
        self._started: list[background.BackgroundController] = []

    def __repr__(self) -> str:
        return f"Up({self.options.name}, {', '.join(self.options.steps)})"

    async def run(self) -> None:
        options, registry = self.options, self._registry
        if options.use:
            current_context.can_use(self._user)
        async with lifecycle.lock(registry, options.name, self._clock, waiting(registry, options.name, self._steps)):
            registry.check(options.name)
            with self._steps.step("provider", "provider", error_tells=True) as step:
                provider, step.text = await chosen(
                    options.provider, options.name, options.spec, self._providers, registry
                )
            if options.use:
                await current_context.could_use(self._user, options.name, f"{provider.name}-{options.name}")
            entry = await self._cluster(provider)
            if options.use:
                with self._steps.step("use", f"context {entry.context}") as step:
                    entry = await current_context.use(self._user, entry, registry, self._steps.warn)
                    step.text = f"context {entry.context}, the current one in your kubeconfig"
            if options.images:
                with self._steps.step("load", f"load {', '.join(options.images)}") as step:
                    await provider.load(entry, options.images)
                    step.text = f"{counted(len(options.images), 'image')} loaded"
            if options.sourced:
                await self._furnish(entry)
            self.entry = entry

    async def _cluster(self, provider: Provider) -> ClusterEntry:
        options, registry = self.options, self._registry
        before = registry.find(options.name)
        with self._steps.step("cluster", f"cluster {options.name} ({provider.name})") as step:
            ready = before is not None and before.phase is Phase.READY
            state = await provider.state(before) if before is not None and ready else ClusterState.ABSENT
            if state is ClusterState.ABSENT:
                names.check_kubeconfig(self._user, before)
            self._changing = True
            machine = names.machine(self._user, self._clock)
            entry = await lifecycle.ensure(
                registry, self._providers, provider.name, options.name, options.spec, machine=machine, note=step.note
            )
            found = before is not None and before.began == entry.began
            how = (", started again" if state is ClusterState.STOPPED else ", there already") if found else ""
            step.text = f"cluster {entry.name} ({entry.provider}, {entry.version}{how})"
        if found and options.creation_flags:
            self._steps.say(f"{', '.join(options.creation_flags)}: ignored, because the cluster exists already")
        if before is not None and before.uid and not found:
            # The old cluster of that name was gone or broken: end its recordings, and its --use.
            if problem := lookup.cluster_deleted(self._user, before, self._clock.now()):
                self._steps.say(problem)
            if before.used and not options.use:
                self._steps.say(await current_context.undo(self._user, entry, registry))
            return registry.find(options.name) or entry
        return entry

    async def _furnish(self, entry: ClusterEntry) -> None:
        """Install what the controllers need, create their examples, and start those that run in the background."""
        options, listed = self.options, ", ".join(self.options.controllers)
        resolved = self.resolved(entry)
        client = await self._surroundings.connect(resolved)
        try:
            with self._steps.step("install", f"install {listed}") as step:
                await contents.install(client, options.sourced, step)
                if options.namespace:
                    await contents.have_namespace(client, options.namespace, step)
            if options.example:
                with self._steps.step("example", f"example of {listed}") as step:
                    await contents.exemplify(client, options.sourced, resolved.namespace, step)
        finally:
            await client.close()
        await background.drained(self._user, entry, options.controllers, self._clock, self._steps.say)
        if options.detach:
            await self._detach(entry, resolved)

    async def _detach(self, entry: ClusterEntry, resolved: Resolved) -> None:
        running = self.running(entry, resolved)
        with self._steps.step("controllers", "in the background") as step:
            for each in self.options.sourced:
                if each.spec.name not in running:
                    self._started.append(
                        background.started(
                            self._surroundings.environ, entry, resolved, each, everywhere=self.options.everywhere
                        )
                    )
            for one in self._started:
                await background.settled(self._user, one, self._clock, step.note)
            there = [already_runs(running[name]) for name in self.options.controllers if name in running]
            step.text = "; ".join([*(str(one) for one in self._started), *there])

    def resolved(self, entry: ClusterEntry) -> Resolved:
        """The cluster through its own kubeconfig, which must still address the cluster of the registry."""
        resolved = self._surroundings.resolve(entry)
        if namespace := self.options.namespace:
            origin = replace(resolved.origin, flags=replace(resolved.origin.flags, namespace=namespace))
            resolved = load_again(replace(resolved, origin=origin))
        guard.check(CommandEffect.WRITE, resolved, allow="", standing=(), registry=self._registry)
        return resolved

    def running(self, entry: ClusterEntry, resolved: Resolved) -> Mapping[str, Runner]:
        """The processes that run these controllers on the cluster already, by controller."""
        scope = "" if self.options.everywhere else resolved.namespace
        found = runners(self._user.state, cluster=entry.uid)
        return {runner.controller: runner for runner in found if runner.overlaps(scope)}

    def report_state(self) -> None:
        """After a failure or an interrupt: report what exists now, and how to delete it."""
        for one in self._started:
            if holder.runs(one.pid):
                self._steps.say(f"{one}; to stop it: {ctrl('stop', one.controller, '--name', self.options.name)}")
        self._steps.say(names.left(self._registry, self.options.name))

    @property
    def has_left_something(self) -> bool:
        return self._changing and self._registry.find(self.options.name) is not None


def already_runs(runner: Runner) -> str:
    return f"{runner.controller} already runs here: {runner.text}"
