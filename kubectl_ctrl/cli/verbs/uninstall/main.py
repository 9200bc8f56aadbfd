"""The body of `uninstall`: reads everything, refuses what it must not do, and then deletes step by step.

The order is: the cleanup, with --clean; rights; namespaces. Processes that still run the controller are reported, and
not stopped. With --crds=delete the custom resources are deleted first, while the controller still runs; then it is
asked to stop; rights; namespaces; CRDs.
No state is kept between two calls: the rest is found again, so an interrupted command is simply repeated.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.uninstall.cleanup import CleanupEnvironment, clean, running
from kubectl_ctrl.client.options import DeleteOptions
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import NotFound, Refused, TimedOut, UsageError
from kubectl_ctrl.install.drain import Drain, HeldObject, marked_by
from kubectl_ctrl.install.kinds import ref_of, shown
from kubectl_ctrl.install.marks import is_marked, is_ours
from kubectl_ctrl.install.removal import InstalledObjects, Remover, installed, wait_until_gone
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj, name_of, uid_of
from kubectl_ctrl.runs.instances import Instance, InstanceKind, asked_to_stop, deployments_of, leases, look
from kubectl_ctrl.target.connection import cluster_id
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.target.guard import context_name
from kubectl_ctrl.text import counted
from kubectl_ctrl.value import Unshown, Value

_SHOWN = 10
_STOPPING = 45.0
_GOING = 60.0
_ASK_AGAIN = 0.5


class UninstallOptions(Value, kw_only=True):
    crds: bool  # delete them
    yes: bool
    drain: float
    drain_with_run: bool
    clean: bool
    dry_run: str
    namespace: str
    going: tuple[str, ...]  # all controllers of this command
    again: str  # the command with --yes

    @property
    def suffix(self) -> str:
        return {"none": "", "client": " (dry run)", "server": " (server dry run)"}[self.dry_run]


def run(app: App, given: ParsedCommandLine) -> int:
    """The body of the verb."""
    delete = given.one_of("crds", ("keep", "delete")) == "delete"
    dry_run = given.one_of("dry_run", ("none", "client", "server"))
    if not given.arguments:
        names = ", ".join(BUNDLED)
        raise UsageError("uninstall needs a controller.", next_step=f"the bundled controllers are: {names}")
    prefix = given["annotation_prefix"]
    sourced = sources.resolve(given.arguments, {"annotation_prefix": prefix} if prefix else None)
    effect = CommandEffect.DRY_RUN if dry_run != "none" else CommandEffect.DESTROY if delete else CommandEffect.WRITE
    resolved = app.meant(given, effect)
    options = UninstallOptions(
        crds=delete,
        yes=given["yes"],
        drain=given["drain"],
        drain_with_run=given["drain_with_run"],
        clean=given["clean"],
        dry_run=dry_run,
        namespace=given["namespace"],
        going=tuple(one.spec.name for one in sourced),
        # The list is about this cluster, and current-context may change before the command is repeated.
        again=given.again("uninstall", *([f"--context={resolved.context}"] if resolved.context else []), "--yes"),
    )
    with logging_to(app.narrate, form="text", verbosity=app.verbosity):
        asyncio.run(_uninstall(app, resolved, sourced, options))
    return 0


async def _uninstall(
    app: App, resolved: Resolved, sourced: Sequence[SourcedController], options: UninstallOptions
) -> None:
    client = await app.connected(resolved, clock=SystemClock(), rng=random.SystemRandom())
    try:
        here = CleanupEnvironment(app=app, client=client, resolved=resolved, cluster=await cluster_id(client, resolved))
        found = [await _found(here, one, options) for one in sourced]
        jobs = [Uninstallation(here, one, options) for one in found]
        if options.crds and not options.yes and options.dry_run == "none" and any(one.installed.crds for one in found):
            for job in jobs:
                job.show()
            raise Refused(
                f"CRDs and all their objects would be deleted on context {context_name(resolved)!r}, server "
                f"{resolved.server}.",
                next_step=options.again,
            )
        for job in jobs:
            job.check()
        for job in jobs:
            await job.run()
    finally:
        await client.close()


class FoundController(Value, kw_only=True):
    """The state of one controller in the cluster."""

    sourced: SourcedController
    installed: InstalledObjects
    holding: tuple[HeldObject, ...]  # the objects of the CRDs that would be deleted
    marked: tuple[HeldObject, ...]  # objects that are kept, with a finalizer of the controller
    places: tuple[Instance, ...]  # where it runs
    deployments: Unshown[tuple[Obj, ...]]  # with our labels

    @property
    def name(self) -> str:
        return self.sourced.spec.name

    @property
    def ours(self) -> tuple[Obj, ...]:
        """The Deployments that install created."""
        return tuple(one for one in self.deployments if is_ours(one, self.name))


async def _found(here: CleanupEnvironment, sourced: SourcedController, options: UninstallOptions) -> FoundController:
    client, spec = here.client, sourced.spec
    there = await installed(client, spec.name, options.namespace)
    going = there.crds if options.crds else ()
    runners = await look(client, state_dir=here.app.user.state, cluster=here.cluster, name=spec.name)
    ours = await deployments_of(client, spec.name)
    kept = await _kept_crds(here, sourced, there) if options.crds else []
    gone = {name_of(crd) for crd in going}
    staying = [resource for resource in spec.primaries if resource.full_name not in gone]
    marked, hidden = await marked_by(client, staying, spec.name)
    uncounted = [f"You may not list {resource}, so their finalizers are not counted." for resource in hidden]
    for sentence in (*there.left, *kept, *uncounted, *dict.fromkeys((*runners.unseen, *ours.unseen))):
        here.app.narrate(f"{spec.name}: {sentence}")
    return FoundController(
        sourced=sourced,
        installed=there,
        holding=tuple(await Drain(client, going, spec.name).holding()),
        marked=tuple(marked),
        places=runners.places,
        deployments=ours.objects,
    )


async def _kept_crds(here: CleanupEnvironment, sourced: SourcedController, there: InstalledObjects) -> list[str]:
    """Sentences about CRDs of the controller that existed before install, which used them and must not delete them."""
    known = {name_of(crd) for crd in there.crds}
    kept = []
    for crd in sourced.parts().crds:
        try:
            live = await here.client.get(ref_of(crd))
        except NotFound:
            continue
        if name_of(crd) not in known and not is_marked(live, sourced.spec.name):
            kept.append(f"{shown(ref_of(crd))} is kept: install did not create it.")
    return kept


class Uninstallation:
    def __init__(self, here: CleanupEnvironment, found: FoundController, options: UninstallOptions) -> None:
        self._here = here
        self._found = found
        self._options = options
        self._remover = Remover(here.client, found.name, dry_run=options.dry_run == "server")

    # Before the first change.

    def show(self) -> None:
        """Print what would be deleted, in order."""
        there = self._found.installed
        for crd in there.crds:
            self._here.app.answer(f"{shown(ref_of(crd))} would be deleted, with {self._counted(crd)}")
        for obj in (*self._found.ours, *there.rights):
            self._here.app.answer(f"{_named(obj)} would be deleted")
        for obj in there.namespaces:
            self._here.app.answer(f"{_named(obj)} would be deleted if it is empty")
        for place in self._found.places:
            if others := self._beside(place):
                self._here.app.answer(f"{place.text} must be stopped first: it also runs {others}")
            elif place.kind is InstanceKind.PROCESS:
                self._here.app.answer(f"{place.text} would be asked to stop")

    def _counted(self, crd: Obj) -> str:
        """`3 objects: 2 in namespace a, 1 in namespace b`."""
        of_crd = [one for one in self._found.holding if one.ref.resource.full_name == name_of(crd)]
        counts: dict[str, int] = {}
        for one in of_crd:
            counts[one.ref.namespace] = counts.get(one.ref.namespace, 0) + 1
        total = counted(len(of_crd), "object")
        parts = [f"{count} in namespace {space}" for space, count in sorted(counts.items()) if space]
        return total + (f": {', '.join(parts)}" if parts else "")

    def _beside(self, place: Instance) -> str:
        """The other controllers of a process, which are not uninstalled."""
        runs = place.runner.controllers if place.runner else ()
        return ", ".join(name for name in runs if name not in self._options.going)

    def check(self) -> None:
        """Refuse, before the first change, everything that could not be completed."""
        found = self._found
        for place in found.places if self._options.crds else ():
            if others := self._beside(place):
                raise Refused(
                    f"{place.text} runs {found.name} and also {others}, which would stop too.",
                    next_step="stop it, and run the others without this one",
                )
        places = ", ".join(place.text for place in found.places)
        if self._options.clean and found.sourced.spec.undoing is not None and found.places:
            raise Refused(
                f"{found.name} still runs, and would repeat what its cleanup reverts: {places}.",
                next_step="stop it first",
            )
        stranded = [one for one in found.holding if one.own and not _is_served(one, found.places)]
        if stranded and not self._options.drain_with_run:
            names = "; ".join(f"{one.ref} has {', '.join(map(str, one.own))}" for one in stranded[:_SHOWN])
            more = f"; and {len(stranded) - _SHOWN} more" if len(stranded) > _SHOWN else ""
            raise Refused(
                f"{found.name} does not run, and {counted(len(stranded), 'object')} cannot be deleted without it: "
                f"{names}{more}.",
                next_step="--drain-with-run runs it here while they are deleted",
            )

    # The deletion.

    async def run(self) -> None:
        found, options, app = self._found, self._options, self._here.app
        if options.clean:
            await self._clean()
        if options.crds:
            await self._drain()
            await self._stop()
        self._report_runners()
        for obj in found.installed.rights:
            await self._delete(obj)
        await self._namespaces()
        if options.crds:
            await self._crds()
        else:
            self._report_kept()
        if not (found.installed.rights or found.installed.namespaces):
            app.narrate(f"{found.name}: nothing {'else ' if found.installed.crds else ''}is installed")

    def _report_kept(self) -> None:
        found, app = self._found, self._here.app
        for crd in found.installed.crds:
            app.narrate(f"{found.name}: {shown(ref_of(crd))} is kept with its objects; --crds=delete deletes both")
        if count := len(found.marked):
            held = f"{counted(count, 'object')} {'has' if count == 1 else 'have'} its finalizer"
            app.narrate(f"{found.name}: {held}, and cannot be deleted while it does not run")

    async def _clean(self) -> None:
        undoing = self._found.sourced.spec.undoing
        if undoing is None:
            self._here.app.narrate(f"{self._found.name}: it has no cleanup")
        elif self._options.dry_run != "none":
            self._here.app.narrate(f"{self._found.name}: its cleanup would run")
        else:
            await clean(self._here, undoing)

    async def _drain(self) -> None:
        """Delete every custom resource while the controller still runs and can finalize it."""
        found, options = self._found, self._options
        if not found.holding:
            return
        if options.dry_run != "none":
            for one in found.holding:
                self._here.app.answer(f"{_instance(one)} deleted{options.suffix}")
            return
        drain = Drain(self._here.client, found.installed.crds, found.name)
        async with AsyncExitStack() as beside:
            if options.drain_with_run and any(not _is_served(one, found.places) for one in found.holding):
                await beside.enter_async_context(running(self._here, found.sourced.spec))
            left = await drain.run(options.drain, self._tell)
        if left:
            names, were = "; ".join(map(str, left[:_SHOWN])), "was" if len(left) == 1 else "were"
            raise TimedOut(
                f"{counted(len(left), 'object')} {were} not deleted within {format_duration(options.drain)}: {names}.",
                next_step="the controller, its rights and its CRDs are kept; check the owners of these finalizers, and "
                "repeat the command",
            )
        for crd in found.installed.crds:
            self._here.app.answer(f"{name_of(crd)}: {self._counted(crd)} deleted")

    def _tell(self, left: Sequence[HeldObject]) -> None:
        """Print the objects that still exist; called when they change."""
        app = self._here.app
        app.narrate(f"{self._found.name}: {len(left)} still finalizing")
        for one in left[:_SHOWN]:
            app.narrate(f"  {one}")
        if len(left) > _SHOWN:
            app.narrate(f"  and {len(left) - _SHOWN} more")

    async def _stop(self) -> None:
        """Without the CRDs no run has any work. Stop those that we can stop, and wait for them."""
        found, options = self._found, self._options
        for deployment in found.ours:
            if options.dry_run == "none":
                deletion = DeleteOptions(uid=uid_of(deployment), propagation="Foreground")
                try:
                    await self._here.client.delete(ref_of(_typed(deployment)), deletion)
                except NotFound:
                    continue
            self._here.app.answer(f"{_named(deployment)} deleted{options.suffix}")
        if options.dry_run != "none":
            return
        await wait_until_gone(self._here.client, [_typed(one) for one in found.ours], _STOPPING)
        for place in found.places:
            if place.kind is InstanceKind.PROCESS and asked_to_stop(self._here.app.user.state, place):
                self._here.app.narrate(f"{found.name}: asked {place.text} to stop")
        await self._wait_for_processes()

    def _report_runners(self) -> None:
        """Report the runs that go on without their rights or resource types."""
        stopped = {uid_of(one) for one in self._found.ours} if self._options.crds else set()
        for place in self._found.places:
            ends = place.kind is InstanceKind.PROCESS and self._options.crds
            if not ends and not (place.object and uid_of(place.object) in stopped):
                self._here.app.narrate(f"{self._found.name}: it also runs as {place.text}, which is not stopped")

    async def _wait_for_processes(self) -> None:
        here, clock = self._here, self._here.client.clock
        end = clock.elapsed() + _STOPPING
        while clock.elapsed() < end:
            places = await look(here.client, state_dir=here.app.user.state, cluster=here.cluster, name=self._found.name)
            if not any(place.kind is InstanceKind.PROCESS for place in places.places):
                return
            await clock.sleep(_ASK_AGAIN)
        here.app.narrate(f"{self._found.name}: it has not stopped within {format_duration(_STOPPING)}")

    async def _namespaces(self) -> None:
        going = []
        for space in self._found.installed.namespaces:
            if why := await self._needed(name_of(space)):
                self._here.app.narrate(f"namespace/{name_of(space)} is kept: {why}")
            elif await self._delete(space):
                going.append(space)
        if self._options.dry_run == "none":
            await wait_until_gone(self._here.client, going, _GOING)

    async def _needed(self, space: str) -> str:
        """The reason to keep a namespace that install created, or ""."""
        # A leader with a Lease in it would lose the Lease, and could not create it again.
        leading = [one.text for one in (await leases(self._here.client, self._found.name)).places if one.lies_in(space)]
        if leading:
            return f"a run uses it: {', '.join(leading[:_SHOWN])}"
        contents = await self._remover.contents(space)
        more = f" and {len(contents) - _SHOWN} more" if len(contents) > _SHOWN else ""
        return f"it contains {', '.join(contents[:_SHOWN])}{more}" if contents else ""

    async def _crds(self) -> None:
        going = list(self._found.installed.crds)
        if self._options.dry_run == "none":
            late = await Drain(self._here.client, going, self._found.name).holding()
            if late:
                names = "; ".join(map(str, late[:_SHOWN]))
                were = "was" if len(late) == 1 else "were"
                raise Refused(
                    f"{counted(len(late), 'object')} {were} created meanwhile, so the CRDs are kept: {names}.",
                    next_step=self._options.again,
                )
        for crd in going:
            await self._delete(crd)
        if self._options.dry_run == "none":
            await wait_until_gone(self._here.client, going, _GOING)

    async def _delete(self, obj: Obj) -> bool:
        """Delete an object that install created, and print that; False if it does not exist."""
        there = True if self._options.dry_run == "client" else await self._remover.remove(obj)
        if there:
            self._here.app.answer(f"{_named(obj)} deleted{self._options.suffix}")
        return there


def _is_served(one: HeldObject, places: Sequence[Instance]) -> bool:
    """Whether a run of the controller reconciles the namespace of the object."""
    return any(place.overlaps(one.ref.namespace) for place in places)


def _instance(one: HeldObject) -> str:
    return f"{one.ref.resource}/{one.ref.name}" + (f" in namespace {one.ref.namespace}" if one.ref.namespace else "")


def _named(obj: Obj) -> str:
    return shown(ref_of(_typed(obj)))


def _typed(obj: Obj) -> Obj:
    """Items of a list of Deployments have no kind."""
    return obj if obj.get("kind") else {**obj, "apiVersion": "apps/v1", "kind": "Deployment"}
