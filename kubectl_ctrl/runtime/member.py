"""One controller of a run with all that is its own: caches, doors, loop, lease and events; and whether it may work now.

It works when its caches are synced, their resource types are served, and it leads. Until then, and again whenever one
of these is lost, it waits and says for what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from kubectl_ctrl.cache.fanout import Subscription
from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.recovery import State as CacheState
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.errors import CtrlError, Refused
from kubectl_ctrl.model.attempt import State, Tally
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.resources import NAMESPACES, Resource
from kubectl_ctrl.runtime.attempts import Attempts, Cut
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.caches import Caches
from kubectl_ctrl.runtime.controller import Controller
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.live import Equipment
from kubectl_ctrl.runtime.need import Settlements
from kubectl_ctrl.runtime.options import Run
from kubectl_ctrl.runtime.services import Elector, Mute, Recorder, Services
from kubectl_ctrl.runtime.status import Schemas
from kubectl_ctrl.runtime.watching import Watching


class Member:
    """See the module. `client` is the controller's own, by its user agent; the informers are everybody's."""

    def __init__(
        self, spec: ControllerSpec, client: Client, informers: Informers, services: Services, run: Run
    ) -> None:
        self.spec = spec
        tell = run.observers.tell
        gated = client.scoped(Scope(gate=self._gate))
        self.recorder: Recorder = services.recorder(spec.name, gated, tell) if services.recorder else Mute()
        self._elector: Elector | None = services.elector(spec.name, client, tell) if services.elector else None
        self._run = run
        self._informers = {resource: informers.informer(self._selection(resource)) for resource in spec.resources}
        caches = Caches(spec, self._informers)
        self._echoes = Echoes(spec.field_manager)
        equipment = Equipment(
            manager=spec.field_manager,
            caches=caches,
            overlays=informers,
            echoes=self._echoes,
            settlements=Settlements(),
            schemas=Schemas(client, run.clock),
            recorder=self.recorder,
            clock=run.clock,
        )
        watching = self._watching(caches)
        attempts = Attempts(spec, equipment, client)
        self.controller = Controller(spec, attempts, watching, self._echoes, run=run, gate=self._gate)
        self._subscriptions = [self._subscribe(resource) for resource in watching.resources]
        self._leading = self._elector is None
        self._since = run.clock.now()  # of leading, or of not leading
        self.started = False  # its workers were
        for informer in self._informers.values():
            informer.on_health(self._noted)

    # Its life.

    async def serve(self) -> None:
        """Wait for the caches, stand for election, work; until the controller is closed or stopped."""
        await self.synced()
        if self._run.options.once:
            self.controller.close()  # what is there now is all that will be run
        self.started = True
        self._update()
        names = (f"worker {number} of {self.spec.name}" for number in range(self._run.options.workers))
        workers = [asyncio.create_task(self.controller.work(), name=name) for name in names]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)

    async def lead(self) -> None:
        """Stand for election once the caches are synced, until cancelled."""
        if self._elector is None:
            return
        await self.synced()
        try:
            await self._elector.run(self._led, self._lost)
        except CtrlError as error:
            self._run.on_fatal(error)

    async def synced(self) -> None:
        """Return when every cache has everything and the controller was told of it."""
        for informer in self._informers.values():
            await informer.wait_synced()

    def _led(self) -> None:
        self._leading, self._since = True, self._run.clock.now()
        self._update()

    def _lost(self) -> None:
        self._leading, self._since = False, self._run.clock.now()
        self.controller.shut(Cut.LEASE)

    def _noted(self, informer: Informer) -> None:
        if informer.health.state is CacheState.REFUSED:
            self._run.on_fatal(Refused(informer.health.message))
        self._update()

    def _update(self) -> None:
        if self.started and self._leading and not self.missing:
            self.controller.open()
        else:
            self.controller.shut()

    def _gate(self) -> float | None:
        return self._elector.gate() if self._elector is not None else None

    # How it stands.

    @property
    def missing(self) -> list[Informer]:
        """The caches whose resource type the server does not serve."""
        return [informer for informer in self._informers.values() if informer.health.state is CacheState.MISSING]

    @property
    def informers(self) -> Iterable[Informer]:
        return self._informers.values()

    @property
    def behind(self) -> int:
        """How much of what the caches know the controller is still to be told."""
        return sum(subscription.behind for subscription in self._subscriptions)

    @property
    def leading(self) -> bool:
        return self._leading

    @property
    def overdue(self) -> bool:
        """Whether it still counts as leading after its time has passed: the loop did not come to say so."""
        return self._leading and self._elector is not None and not self._elector.leading

    def obstacles(self) -> Iterator[tuple[str, float]]:
        """What keeps it from working or from knowing everything, each with its wall time."""
        for informer in self._informers.values():
            health = informer.health
            if health.state is CacheState.MISSING:
                yield f"{informer.selection.resource} is not installed", health.since
            elif health.state is not CacheState.SYNCED:
                said = f": {health.message}" if health.message else ""
                yield f"the cache of {informer.selection} is {health.state.value}{said}", health.since
        if not self._leading:
            yield f"the lease of {self.spec.name} is not ours", self._since

    def state(self) -> State:
        message = "; ".join(what for what, _ in self.obstacles())
        synced = all(informer.synced for informer in self._informers.values())
        return self.controller.state(leading=self._leading, synced=synced, message=message)

    def tally(self) -> Tally:
        versions = tuple((resource, informer.version) for resource, informer in self._informers.items())
        held = self.controller.held_back
        return Tally(controller=self.spec.name, at=self._run.clock.now(), filtered=held, versions=versions)

    # How it is put together.

    def _selection(self, resource: Resource) -> Selection:
        options, view = self._run.options, self.spec.view(resource)
        fields = view.fields
        if resource == NAMESPACES and options.namespace:
            # The run is about one of them, and its user may not be allowed to see the others.
            fields = ",".join(filter(None, (fields, f"metadata.name={options.namespace}")))
        labels = ",".join(filter(None, (view.labels, options.labels if resource == self.spec.primary else "")))
        place = options.namespace if resource.namespaced else ""
        return Selection(resource, place, labels=labels, fields=fields, metadata_only=view.metadata_only)

    def _watching(self, caches: Caches) -> Watching:
        options, primary = self._run.options, self.spec.primary
        if not options.labels:
            return Watching(self.spec, caches, namespace=options.namespace)

        def selected(request: Request) -> bool:
            return caches.get(primary, request.name, request.namespace) is not None

        return Watching(self.spec, caches, namespace=options.namespace, selected=selected)

    def _subscribe(self, resource: Resource) -> Subscription:
        primary = resource == self.spec.primary
        return self._informers[resource].subscribe(
            self.spec.name,
            self.controller.changed,
            resync=self._run.options.resync if primary else None,
            replaced=lambda: self._echoes.new_epoch(resource),
        )
