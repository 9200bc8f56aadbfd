"""kind: nodes that are containers. A real kubelet, pods that run, images of the local runtime.

kind is asked to make a cluster, to load images and to export logs. Taking it away is done by the mark that its
containers carry: kind goes by name, and the name may be somebody else's by then. What is needed to find the cluster
again is written down before kind begins: which runtime, which daemon, and the mark.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl import processes
from kubectl_ctrl.client.words import plain
from kubectl_ctrl.clusters import programs
from kubectl_ctrl.clusters.kind import cluster_files, container_runtimes, messages
from kubectl_ctrl.clusters.kind.cluster_files import Page
from kubectl_ctrl.clusters.kind.container_runtimes import CHOICE, Node, Runtime
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster, Fitness, Machine, Note
from kubectl_ctrl.clusters.registry import Entry, Phase, checked_name
from kubectl_ctrl.errors import ClusterError, CtrlError, PrerequisiteMissing, ProgramFailed, Refused, TimedOut
from kubectl_ctrl.exec import Output, run
from kubectl_ctrl.model.conditions import find, is_true
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import replace

# Node images from this one on do not work with older ones.
_LEAST = (0, 20)
_NODES = "nodes"  # the note that has the ids of the nodes as they were made
_NETWORKS = {"docker": "KIND_EXPERIMENTAL_DOCKER_NETWORK", "podman": "KIND_EXPERIMENTAL_PODMAN_NETWORK"}

_QUICK = 10.0
_PULLING = 1200.0  # seconds that a node image may take to come
_LOADING = 900.0
_EXPORTING = 300.0
# A daemon goes on with what it was asked by a client that was killed: so long it may take for a node to appear.
_SETTLING = 2.0
_REMOVING = 120.0
_PACE = 0.25
_TRIES = 3  # to have a node before somebody takes the network away
_MOST_NAMES = 3  # that a note has


class Kind:
    """Makes clusters with kind."""

    name = "kind"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __repr__(self) -> str:
        return f"Kind({container_runtimes.pointers(self._machine.environ)})"

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        # Side by side: a daemon that hangs is waited for once.
        found, missing = await asyncio.gather(self._fitness(spec), container_runtimes.lacks(self._machine.environ))
        return replace(found, missing=missing)

    async def _fitness(self, spec: ClusterSpec) -> Fitness:
        lacks, next_step, version = [], "", ""
        try:
            _, version = await self._program(spec)
        except CtrlError as error:
            lacks, next_step = [_clause(error)], _remedy(error)
        try:
            runtime = await self._runtime(self._machine.environ)
            daemon = await runtime.daemon()
        except CtrlError as error:
            # Both are said: who gets the one shall not meet the other only then.
            text = ", and ".join([*lacks, _clause(error)])
            return Fitness(usable=False, text=text, next_step=", then ".join(filter(None, [_remedy(error), next_step])))
        if lacks:
            return Fitness(usable=False, text=lacks[0], next_step=next_step)
        if too_old := runtime.too_old(daemon):
            return Fitness(usable=False, text=too_old, next_step=_update(too_old))
        lack = await _offline_lack(runtime, spec)
        text = lack or f"kind v{version} with {runtime.name} {daemon.version}"
        remedy = f"choose an existing image with --image (see `{runtime.name} images`)"
        return Fitness(usable=not lack, text=text, next_step=remedy if lack else "")

    async def foreign(self, name: str) -> str:
        runtime = await container_runtimes.detected(self._machine.environ)
        if runtime is None:
            return ""
        there = await runtime.nodes(name) or await runtime.named(f"{name}-control-plane")
        return _taken(runtime, there) if there else ""

    async def state(self, entry: Entry) -> ClusterState:
        page = cluster_files.page_of(entry)
        if page is None:
            return ClusterState.ABSENT
        ours = await (await self._runtime_of(page)).marked(page.mark)
        known = entry.notes.get(_NODES, "").split()
        if not ours:
            return ClusterState.ABSENT
        if entry.phase is not Phase.READY or len(ours) < len(known) or any(node.state == "dead" for node in ours):
            return ClusterState.PARTIAL
        return ClusterState.RUNNING if all(node.state == "running" for node in ours) else ClusterState.STOPPED

    async def create(self, entry: Entry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        checked_name(entry.name)
        cluster_files.checked(spec)
        file, _ = await self._program(spec)
        runtime = await self._runtime(self._machine.environ)
        page = await self._begun(entry, runtime, file)
        try:
            await self._created(entry, spec, page, runtime, note)
            return await self._made(entry, page, runtime)
        except BaseException as error:
            if not spec.keep_on_failure:
                with suppress(PrerequisiteMissing, ClusterError):  # its page stays, so the next one finds what does
                    await self._taken_away(entry, page, runtime, note, settle=not isinstance(error, CtrlError))
            raise

    async def start(self, entry: Entry, note: Note) -> None:
        page = self._known(entry)
        runtime = await self._runtime_of(page)
        ours = await runtime.marked(page.mark)
        note(f"starting {_names(ours)}")
        await runtime.start(ours)

    async def load(self, entry: Entry, images: Sequence[str]) -> None:
        page = self._known(entry)
        runtime = await self._there(entry, page)
        archives = [image for image in images if cluster_files.is_archive(image)]
        named = [cluster_files.checked_image(image) for image in images if image not in archives]
        for image in named:
            if not await runtime.has_image(image):
                raise messages.no_image(image, runtime.name)
        try:
            if named and not (runtime.name == "docker" and await self._taken(entry, page, named)):
                for image in named:
                    archive = cluster_files.scratch(entry) / "image.tar"
                    await runtime.save(image, archive)
                    await self._loaded(entry, page, "image-archive", [str(archive)])
                    archive.unlink()
            if archives:
                await self._loaded(entry, page, "image-archive", archives)
        finally:
            # Of what did not come to its end, an archive as large as the image would stay, ours or kind's.
            cluster_files.emptied(entry)

    async def _taken(self, entry: Entry, page: Page, images: Sequence[str]) -> bool:
        """kind asks docker for them, and for nothing else; False where docker has one for this platform alone.

        A node wants all platforms of an image that is for several, and docker pulls one.
        """
        try:
            await self._loaded(entry, page, "docker-image", images)
        except ClusterError as error:
            if not messages.PLATFORMS_MISSING.search(error.output):
                raise
            return False
        return True

    async def _loaded(self, entry: Entry, page: Page, how: str, what: Sequence[str]) -> None:
        argv = ["load", how, "--name", entry.name, "--", *what]
        output = await self._kind(entry, page, argv, timeout=_LOADING)
        if output.code != 0:
            raise messages.failure(output, "could not load the images", entry.name, page.runtime)

    async def logs(self, entry: Entry, folder: Path) -> None:
        page = self._known(entry)
        await self._there(entry, page)
        argv = ["export", "logs", "--name", entry.name, "--", str(folder)]
        output = await self._kind(entry, page, argv, timeout=_EXPORTING)
        # Of a stopped node it exports what can be had, and fails all the same.
        if output.code != 0 and not cluster_files.filled(folder):
            raise messages.failure(output, "could not export the logs", entry.name, page.runtime)

    async def delete(self, entry: Entry, note: Note) -> None:
        # A kind that outlived us would go on making what is taken away here.
        disturbed = bool(await processes.running(entry.folder))
        await processes.kill_all(entry.folder, self._machine.clock)
        page = cluster_files.page_of(entry)
        if page is not None:
            await self._taken_away(entry, page, await self._runtime_of(page), note, settle=disturbed)

    # Making.

    async def _begun(self, entry: Entry, runtime: Runtime, file: Path) -> Page:
        """The page, written before kind begins; Refused where there are nodes of that name already."""
        daemon = await runtime.daemon()
        if too_old := runtime.too_old(daemon):
            raise PrerequisiteMissing(f"{too_old}.", next_step=_update(too_old))
        if there := await runtime.nodes(entry.name):
            raise Refused(
                f"The name {entry.name!r} is in use: {_taken(runtime, there)}.",
                next_step="choose another --name: only clusters created by kubectl ctrl are changed",
            )
        page = Page(
            runtime=runtime.name,
            mark=f"{self._machine.rng.getrandbits(128):032x}",
            daemon=daemon.id,
            network=self._machine.environ.get(_NETWORKS.get(runtime.name, ""), "") or "kind",
            environ=container_runtimes.pointers(self._machine.environ),
            program=str(file),
        )
        cluster_files.write(entry, page)
        return page

    async def _created(self, entry: Entry, spec: ClusterSpec, page: Page, runtime: Runtime, note: Note) -> None:
        cluster_files.emptied(entry)
        own = cluster_files.scratch(entry) / cluster_files.own_kubeconfig(entry).name
        argv = ["create", "cluster", "--name", entry.name, "--kubeconfig", str(own)]
        # What it made of one that fails it would take away by name.
        argv += ["--wait", f"{max(spec.wait, 0):.0f}s", "--retain"]
        argv += [f"--image={cluster_files.checked_image(spec.image)}"] if spec.image else []
        argv += [f"--config={config}"] if (config := cluster_files.config_for(entry, spec)) else []

        def heard(line: str) -> None:
            if told := messages.progress(line):
                note(told)

        path = cluster_files.marking(entry, runtime.name, runtime.marking(page.mark), runtime.path)
        for _ in range(_TRIES):
            output = await self._kind(entry, page, argv, timeout=spec.wait + _PULLING, heard=heard, PATH=path)
            if not messages.NETWORK_GONE.search(output.stderr):
                break
            # Another cluster went, and took it along before it had a node of this one.
            await self._let_end(page)
            if left := await runtime.marked(page.mark):
                await self._removed(runtime, left)
        if output.code != 0:
            what = f"could not create cluster {entry.name!r}"
            raise messages.failure(output, what, entry.name, page.runtime, spec.config)
        if messages.WAITED_IN_VAIN in output.stderr:
            raise await self._waited_in_vain(entry, spec, page, runtime)

    async def _made(self, entry: Entry, page: Page, runtime: Runtime) -> CreatedCluster:
        ours = await runtime.marked(page.mark)
        control = next((node for node in ours if node.role == "control-plane"), None)
        if control is None:
            removal = command("kind", "delete", "cluster", "--name", entry.name)
            raise ClusterError(
                f"The control plane of cluster {entry.name!r} does not have the label {container_runtimes.MARK}.",
                next_step=f"delete it with `{removal}`, and use --provider kwok",
            )
        cluster_files.write(entry, replace(page, volumes=tuple(volume for node in ours for volume in node.volumes)))
        return CreatedCluster(
            context=f"kind-{entry.name}",
            kubeconfig=cluster_files.taken_kubeconfig(entry),
            version=(await runtime.inside(control, "cat", "/kind/version")).strip(),
            notes={
                _NODES: " ".join(node.id for node in ours),
                cluster_files.RUNTIME: runtime.name,
                cluster_files.MARK: page.mark,
            },
        )

    async def _waited_in_vain(self, entry: Entry, spec: ClusterSpec, page: Page, runtime: Runtime) -> TimedOut:
        """kind ends with 0 then; which nodes were not Ready it does not say."""
        late = "its control plane"
        with suppress(CtrlError, ValueError, StopIteration):
            node = next(each for each in await runtime.marked(page.mark) if each.role == "control-plane")
            asking = ("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes", "--output=json")
            told = json.loads(await runtime.inside(node, *asking))["items"]
            late = ", ".join(_why_not(each) for each in told if not is_true(each, "Ready")) or late
        return TimedOut(
            f"Cluster {entry.name!r} was not Ready after {spec.wait:g} s: {late}.",
            tried=str(command("kind", "create", "cluster", "--name", entry.name, "--wait", f"{spec.wait:g}s")),
            next_step="use a longer --wait, or --keep-on-failure to inspect it",
        )

    # Taking away.

    async def _taken_away(self, entry: Entry, page: Page, runtime: Runtime, note: Note, *, settle: bool = True) -> None:
        """Nodes with their volumes, and the network when it came with one of ours and nobody uses it."""
        clock = self._machine.clock
        await self._let_end(page)
        start = clock.elapsed()
        while (ours := await runtime.marked(page.mark)) or clock.elapsed() < start + _SETTLING * settle:
            if clock.elapsed() > start + _REMOVING:
                raise ClusterError(
                    f"{_names(ours)} cannot be removed.",
                    next_step=f"check them with {runtime.name}, then repeat the command",
                )
            if ours:
                note(f"removing {_names(ours)}")
                await self._removed(runtime, ours)
            await clock.sleep(_PACE)
        await runtime.drop_volumes(page.mark, page.volumes)
        if await runtime.drop_network(page.network):
            note(f"removed network {page.network}")
        cluster_files.own_kubeconfig(entry).unlink(missing_ok=True)

    async def _let_end(self, page: Page) -> None:
        """Wait for what kind began to make before it ended, which would be there only later."""
        await processes.wait_for_exit(container_runtimes.labelled(page.mark), self._machine.clock)

    async def _removed(self, runtime: Runtime, nodes: Sequence[Node]) -> None:
        try:
            await runtime.remove(nodes)
        except ClusterError as error:
            if "did not receive an exit event" not in error.output or not container_runtimes.thaw(nodes):
                raise
            await runtime.remove(nodes)

    async def _there(self, entry: Entry, page: Page) -> Runtime:
        """The runtime that has its nodes."""
        runtime = await self._runtime_of(page)
        if not await runtime.marked(page.mark):
            raise messages.no_nodes(entry.name)
        return runtime

    # kind and its runtime.

    async def _program(self, spec: ClusterSpec) -> tuple[Path, str]:
        """kind's file and version."""
        environ = self._machine.environ
        beside = programs.found("kind", environ, spec.bin_dir) if spec.bin_dir else None
        file = beside or programs.found("kind", environ)
        if file is None:
            raise PrerequisiteMissing(
                "kind is not installed.", next_step="kubectl ctrl doctor --fix kind, or use --provider kwok"
            )
        least = ".".join(map(str, _LEAST))
        # `doctor --fix` gets none where there is one.
        remedy = f"install kind v{least} or newer, or use --provider kwok"
        env = container_runtimes.environment(self._machine.environ)
        try:
            output = await run([str(file), "version"], timeout=_QUICK, env=env)
        except ProgramFailed as error:
            message = f"{file} does not report its version: it {error.outcome}."
            raise PrerequisiteMissing(message, tried=f"{file} version", next_step=remedy) from error
        version = match[1] if (match := re.match(r"kind v(\S+)", output.stdout)) else ""
        if container_runtimes.numbers(version) < _LEAST:
            found = f"v{version}" if version else "of an unknown version"
            message = f"kind {found} is too old: v{least} or newer is needed."
            raise PrerequisiteMissing(message, tried=f"{file} version", next_step=remedy)
        return file, version

    async def _runtime(self, environ: Mapping[str, str]) -> Runtime:
        runtime = await container_runtimes.detected(environ)
        if runtime is None:
            choice = environ.get(CHOICE, "")
            lack = (
                f"{choice}, which {CHOICE} asks for, is not installed"
                if choice
                else "no docker, podman or nerdctl is installed"
            )
            raise PrerequisiteMissing(f"{lack}.", next_step="install docker, podman or nerdctl, or use --provider kwok")
        return runtime

    async def _runtime_of(self, page: Page) -> Runtime:
        """The runtime that has the cluster, whatever the environment says today.

        PrerequisiteMissing where its daemon is another one.
        """
        environ = self._environ_of(page)
        runtime = await self._runtime({**environ, CHOICE: page.runtime})
        if page.daemon and (answers := (await runtime.daemon()).id) != page.daemon:
            host = page.environ.get("DOCKER_HOST") or page.environ.get("DOCKER_CONTEXT") or "its default"
            raise PrerequisiteMissing(
                f"This {page.runtime} daemon is not the one that runs the cluster (id {answers}, not {page.daemon}).",
                next_step=f"select the daemon that {host} refers to, for example with `docker context use`",
            )
        return runtime

    def _environ_of(self, page: Page) -> dict[str, str]:
        now = dict(self._machine.environ)
        for name in container_runtimes.pointers(now):
            del now[name]
        return {**now, **page.environ}

    def _known(self, entry: Entry) -> Page:
        page = cluster_files.page_of(entry)
        if page is None:
            raise ClusterError(
                f"kind never created cluster {entry.name!r}.",
                next_step=f"delete it: {ctrl('down', entry.name)}",
            )
        return page

    async def _kind(
        self, entry: Entry, page: Page, argv: Sequence[str], *, timeout: float, heard: Note | None = None, **more: str
    ) -> Output:
        """Run kind through a link in the entry's folder, by which it is found when it outlives us."""
        file = programs.found(page.program, {}) or (await self._program(ClusterSpec()))[0]
        env = {**container_runtimes.environment(self._environ_of(page)), CHOICE: page.runtime, **more}
        # The archives that it makes go with the folder, should it be killed.
        env.setdefault("TMPDIR", str(cluster_files.scratch(entry)))
        link = programs.linked(entry, "kind", file)
        try:
            return await run([str(link), *argv], timeout=timeout, env=env, check=False, heard=heard)
        except ProgramFailed as error:
            raise messages.late(error) from error


async def _offline_lack(runtime: Runtime, spec: ClusterSpec) -> str:
    """What kind would have to pull, as a clause; its own choice of image is known to nobody but kind."""
    if not spec.offline:
        return ""
    images = [spec.image] if spec.image else cluster_files.images_of(spec.config)
    if not images:
        return "the node image that kind would pull is unknown without --image"
    absent = [image for image in images if not await runtime.has_image(image)]
    return f"the node image {absent[0]!r} is not on this machine" if absent else ""


def _update(too_old: str) -> str:
    """What to do about what a clause begins with."""
    return f"update {too_old.partition(' ')[0]}"


def _clause(error: CtrlError) -> str:
    return error.message.rstrip(".")


def _taken(runtime: Runtime, nodes: Sequence[Node]) -> str:
    return f"{runtime.name} has an unmanaged container {nodes[0].name}"


def _remedy(error: CtrlError) -> str:
    """Without the other provider, which may not be able to either."""
    return error.next_step.removesuffix(", or use --provider kwok")


def _names(nodes: Sequence[Node]) -> str:
    more = f" and {len(nodes) - _MOST_NAMES} more" if len(nodes) > _MOST_NAMES else ""
    return ", ".join(node.name for node in nodes[:_MOST_NAMES]) + more


def _why_not(node: Obj) -> str:
    ready = find(node, "Ready") or {}
    return (
        f"{name_of(node)} ({plain(str(ready.get('message') or ready.get('reason') or 'it has not reported yet'), 200)})"
    )
