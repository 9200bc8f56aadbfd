"""Clusters created by kind: nodes are containers with a real kubelet, and pods run images of the local runtime.

kind creates clusters, loads images and exports logs. It does not delete them: it goes by the name, which may belong to
a cluster of another program by then. So containers are deleted by their mark. The identity of a cluster (its runtime,
daemon and mark) is written before kind starts, so that it is found even if kind is killed.
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
from kubectl_ctrl.clusters.kind.cluster_files import Identity
from kubectl_ctrl.clusters.kind.container_runtimes import CHOICE, Node, Runtime
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster, Fitness, Machine, Note
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, checked_name
from kubectl_ctrl.errors import ClusterError, CtrlError, PrerequisiteMissing, ProgramFailed, Refused, TimedOut
from kubectl_ctrl.exec import Output, run
from kubectl_ctrl.model.conditions import find, is_true
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import replace

# Current node images do not work with older versions.
_LEAST = (0, 20)
_NODES = "nodes"  # the note with the ids of the nodes
_NETWORKS = {"docker": "KIND_EXPERIMENTAL_DOCKER_NETWORK", "podman": "KIND_EXPERIMENTAL_PODMAN_NETWORK"}

_QUICK = 10.0
_PULLING = 1200.0  # seconds to pull a node image
_LOADING = 900.0
_EXPORTING = 300.0
# A daemon continues the request of a client that was killed, so a node can still appear for this time.
_SETTLING = 2.0
_REMOVING = 120.0
_PACE = 0.25
_TRIES = 3  # because the network can be deleted before the first node uses it
_MOST_NAMES = 3  # in a note


class KindProvider:
    """See provider.Provider."""

    name = "kind"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __repr__(self) -> str:
        return f"KindProvider({container_runtimes.pointers(self._machine.environ)})"

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        # At the same time, so that a daemon that hangs takes one timeout and not two.
        found, missing = await asyncio.gather(self._fitness(spec), container_runtimes.problems(self._machine.environ))
        return replace(found, missing=missing)

    async def _fitness(self, spec: ClusterSpec) -> Fitness:
        problems, next_step, version = [], "", ""
        try:
            _, version = await self._program(spec)
        except CtrlError as error:
            problems, next_step = [_clause(error)], _remedy(error)
        try:
            runtime = await self._runtime(self._machine.environ)
            daemon = await runtime.daemon()
        except CtrlError as error:
            # Both problems, so that the second one does not appear only after the first is solved.
            text = ", and ".join([*problems, _clause(error)])
            return Fitness(usable=False, text=text, next_step=", then ".join(filter(None, [_remedy(error), next_step])))
        if problems:
            return Fitness(usable=False, text=problems[0], next_step=next_step)
        if too_old := runtime.too_old(daemon):
            return Fitness(usable=False, text=too_old, next_step=_update(too_old))
        missing = await _missing_image(runtime, spec) if spec.offline else ""
        text = missing or f"kind v{version} with {runtime.name} {daemon.version}"
        remedy = f"choose an existing image with --image (see `{runtime.name} images`)"
        return Fitness(usable=not missing, text=text, next_step=remedy if missing else "")

    async def foreign(self, name: str) -> str:
        runtime = await container_runtimes.detected(self._machine.environ)
        if runtime is None:
            return ""
        there = await runtime.nodes(name) or await runtime.named(f"{name}-control-plane")
        return _owner(runtime, there) if there else ""

    async def state(self, entry: ClusterEntry) -> ClusterState:
        identity = cluster_files.identity_of(entry)
        if identity is None:
            return ClusterState.ABSENT
        ours = await (await self._runtime_of(identity)).marked(identity.mark)
        known = entry.notes.get(_NODES, "").split()
        if not ours:
            return ClusterState.ABSENT
        if entry.phase is not Phase.READY or len(ours) < len(known) or any(node.state == "dead" for node in ours):
            return ClusterState.PARTIAL
        return ClusterState.RUNNING if all(node.state == "running" for node in ours) else ClusterState.STOPPED

    async def create(self, entry: ClusterEntry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        checked_name(entry.name)
        cluster_files.checked(spec)
        file, _ = await self._program(spec)
        runtime = await self._runtime(self._machine.environ)
        identity = await self._new_identity(entry, runtime, file)
        try:
            await self._run_create(entry, spec, identity, runtime, note)
            return await self._result(entry, identity, runtime)
        except BaseException as error:
            if not spec.keep_on_failure:
                with suppress(PrerequisiteMissing, ClusterError):  # its identity stays, so `down` can repeat this
                    await self._remove_all(entry, identity, runtime, note, settle=not isinstance(error, CtrlError))
            raise

    async def start(self, entry: ClusterEntry, note: Note) -> None:
        identity = self._identity(entry)
        runtime = await self._runtime_of(identity)
        ours = await runtime.marked(identity.mark)
        note(f"starting {_names(ours)}")
        await runtime.start(ours)

    async def load(self, entry: ClusterEntry, images: Sequence[str]) -> None:
        identity = self._identity(entry)
        runtime = await self._runtime_with_nodes(entry, identity)
        archives = [image for image in images if cluster_files.is_archive(image)]
        named = [cluster_files.checked_image(image) for image in images if image not in archives]
        for image in named:
            if not await runtime.has_image(image):
                raise messages.no_image(image, runtime.name)
        try:
            if named and not (runtime.name == "docker" and await self._load_from_docker(entry, identity, named)):
                for image in named:
                    archive = cluster_files.scratch(entry) / "image.tar"
                    await runtime.save(image, archive)
                    await self._load(entry, identity, "image-archive", [str(archive)])
                    archive.unlink()
            if archives:
                await self._load(entry, identity, "image-archive", archives)
        finally:
            # After a failure, an archive as large as the image may be left, here or in kind's TMPDIR.
            cluster_files.clear_scratch(entry)

    async def _load_from_docker(self, entry: ClusterEntry, identity: Identity, images: Sequence[str]) -> bool:
        """Load images from docker, the only runtime that kind can load from; False if that fails for one of them.

        For an image for several platforms the node needs all of them, and docker pulls one.
        """
        try:
            await self._load(entry, identity, "docker-image", images)
        except ClusterError as error:
            if not messages.PLATFORMS_MISSING.search(error.output):
                raise
            return False
        return True

    async def _load(self, entry: ClusterEntry, identity: Identity, how: str, what: Sequence[str]) -> None:
        argv = ["load", how, "--name", entry.name, "--", *what]
        output = await self._run_kind(entry, identity, argv, timeout=_LOADING)
        if output.code != 0:
            raise messages.failure(output, "could not load the images", entry.name, identity.runtime)

    async def logs(self, entry: ClusterEntry, folder: Path) -> None:
        identity = self._identity(entry)
        await self._runtime_with_nodes(entry, identity)
        argv = ["export", "logs", "--name", entry.name, "--", str(folder)]
        output = await self._run_kind(entry, identity, argv, timeout=_EXPORTING)
        # For a stopped node it exports some logs, and fails.
        if output.code != 0 and not cluster_files.has_logs(folder):
            raise messages.failure(output, "could not export the logs", entry.name, identity.runtime)

    async def delete(self, entry: ClusterEntry, note: Note) -> None:
        # A kind that is left by a killed `up` would create again what is deleted here.
        disturbed = bool(await processes.running(entry.folder))
        await processes.kill_all(entry.folder, self._machine.clock)
        identity = cluster_files.identity_of(entry)
        if identity is not None:
            await self._remove_all(entry, identity, await self._runtime_of(identity), note, settle=disturbed)

    # Creation.

    async def _new_identity(self, entry: ClusterEntry, runtime: Runtime, file: Path) -> Identity:
        """Write the identity; Refused if there are nodes of that name."""
        daemon = await runtime.daemon()
        if too_old := runtime.too_old(daemon):
            raise PrerequisiteMissing(f"{too_old}.", next_step=_update(too_old))
        if there := await runtime.nodes(entry.name):
            raise Refused(
                f"The name {entry.name!r} is in use: {_owner(runtime, there)}.",
                next_step="choose another --name: only clusters created by kubectl ctrl are changed",
            )
        identity = Identity(
            runtime=runtime.name,
            mark=f"{self._machine.rng.getrandbits(128):032x}",
            daemon=daemon.id,
            network=self._machine.environ.get(_NETWORKS.get(runtime.name, ""), "") or "kind",
            environ=container_runtimes.pointers(self._machine.environ),
            program=str(file),
        )
        cluster_files.write(entry, identity)
        return identity

    async def _run_create(
        self, entry: ClusterEntry, spec: ClusterSpec, identity: Identity, runtime: Runtime, note: Note
    ) -> None:
        cluster_files.clear_scratch(entry)
        own = cluster_files.scratch(entry) / cluster_files.own_kubeconfig(entry).name
        argv = ["create", "cluster", "--name", entry.name, "--kubeconfig", str(own)]
        # --retain: without it, kind deletes a cluster whose creation failed by its name.
        argv += ["--wait", f"{max(spec.wait, 0):.0f}s", "--retain"]
        argv += [f"--image={cluster_files.checked_image(spec.image)}"] if spec.image else []
        argv += [f"--config={config}"] if (config := cluster_files.config_for(entry, spec)) else []

        def heard(line: str) -> None:
            if text := messages.progress(line):
                note(text)

        path = cluster_files.wrapped(entry, runtime.name, runtime.wrapper(identity.mark), runtime.path)
        for _ in range(_TRIES):
            output = await self._run_kind(entry, identity, argv, timeout=spec.wait + _PULLING, heard=heard, PATH=path)
            if not messages.NETWORK_GONE.search(output.stderr):
                break
            # The deletion of another cluster removed the network before a node of this one used it.
            await self._settle(identity)
            if left := await runtime.marked(identity.mark):
                await self._remove(runtime, left)
        if output.code != 0:
            what = f"could not create cluster {entry.name!r}"
            raise messages.failure(output, what, entry.name, identity.runtime, spec.config)
        if messages.WAITED_IN_VAIN in output.stderr:
            raise await self._waited_in_vain(entry, spec, identity, runtime)

    async def _result(self, entry: ClusterEntry, identity: Identity, runtime: Runtime) -> CreatedCluster:
        ours = await runtime.marked(identity.mark)
        control = next((node for node in ours if node.role == "control-plane"), None)
        if control is None:
            removal = command("kind", "delete", "cluster", "--name", entry.name)
            raise ClusterError(
                f"The control plane of cluster {entry.name!r} does not have the label {container_runtimes.MARK}.",
                next_step=f"delete it with `{removal}`, and use --provider kwok",
            )
        cluster_files.write(entry, replace(identity, volumes=tuple(volume for node in ours for volume in node.volumes)))
        return CreatedCluster(
            context=f"kind-{entry.name}",
            kubeconfig=cluster_files.taken_kubeconfig(entry),
            version=(await runtime.inside(control, "cat", "/kind/version")).strip(),
            notes={
                _NODES: " ".join(node.id for node in ours),
                cluster_files.RUNTIME: runtime.name,
                cluster_files.MARK: identity.mark,
            },
        )

    async def _waited_in_vain(
        self, entry: ClusterEntry, spec: ClusterSpec, identity: Identity, runtime: Runtime
    ) -> TimedOut:
        """The error for nodes that are not Ready; kind exits with code 0 then, and does not name them."""
        late = "its control plane"
        with suppress(CtrlError, ValueError, StopIteration):
            node = next(each for each in await runtime.marked(identity.mark) if each.role == "control-plane")
            asking = ("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes", "--output=json")
            nodes = json.loads(await runtime.inside(node, *asking))["items"]
            late = ", ".join(_why_not(each) for each in nodes if not is_true(each, "Ready")) or late
        return TimedOut(
            f"Cluster {entry.name!r} was not Ready after {spec.wait:g} s: {late}.",
            tried=str(command("kind", "create", "cluster", "--name", entry.name, "--wait", f"{spec.wait:g}s")),
            next_step="use a longer --wait, or --keep-on-failure to inspect it",
        )

    # Deletion.

    async def _remove_all(
        self, entry: ClusterEntry, identity: Identity, runtime: Runtime, note: Note, *, settle: bool = True
    ) -> None:
        """Remove the nodes with their volumes, and the network if kubectl ctrl created it and no container uses it."""
        clock = self._machine.clock
        await self._settle(identity)
        start = clock.elapsed()
        while (ours := await runtime.marked(identity.mark)) or clock.elapsed() < start + _SETTLING * settle:
            if clock.elapsed() > start + _REMOVING:
                raise ClusterError(
                    f"{_names(ours)} cannot be removed.",
                    next_step=f"check them with {runtime.name}, then repeat the command",
                )
            if ours:
                note(f"removing {_names(ours)}")
                await self._remove(runtime, ours)
            await clock.sleep(_PACE)
        await runtime.drop_volumes(identity.mark, identity.volumes)
        if await runtime.drop_network(identity.network):
            note(f"removed network {identity.network}")
        cluster_files.own_kubeconfig(entry).unlink(missing_ok=True)

    async def _settle(self, identity: Identity) -> None:
        """Wait for the runtime's processes that kind started: they may still create containers."""
        await processes.wait_for_exit(container_runtimes.labelled(identity.mark), self._machine.clock)

    async def _remove(self, runtime: Runtime, nodes: Sequence[Node]) -> None:
        try:
            await runtime.remove(nodes)
        except ClusterError as error:
            if "did not receive an exit event" not in error.output or not container_runtimes.thaw(nodes):
                raise
            await runtime.remove(nodes)

    async def _runtime_with_nodes(self, entry: ClusterEntry, identity: Identity) -> Runtime:
        runtime = await self._runtime_of(identity)
        if not await runtime.marked(identity.mark):
            raise messages.no_nodes(entry.name)
        return runtime

    # kind and the container runtime.

    async def _program(self, spec: ClusterSpec) -> tuple[Path, str]:
        """The path and the version of kind."""
        environ = self._machine.environ
        beside = programs.found("kind", environ, spec.bin_dir) if spec.bin_dir else None
        file = beside or programs.found("kind", environ)
        if file is None:
            raise PrerequisiteMissing(
                "kind is not installed.", next_step="kubectl ctrl doctor --fix kind, or use --provider kwok"
            )
        least = ".".join(map(str, _LEAST))
        # `doctor --fix` does not replace an existing kind.
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
            missing = (
                f"{choice}, which {CHOICE} selects, is not installed"
                if choice
                else "no docker, podman or nerdctl is installed"
            )
            raise PrerequisiteMissing(
                f"{missing}.", next_step="install docker, podman or nerdctl, or use --provider kwok"
            )
        return runtime

    async def _runtime_of(self, identity: Identity) -> Runtime:
        """The runtime of the cluster, even if the environment selects another one now.

        PrerequisiteMissing if its daemon is another one.
        """
        environ = self._environ_of(identity)
        runtime = await self._runtime({**environ, CHOICE: identity.runtime})
        if identity.daemon and (answers := (await runtime.daemon()).id) != identity.daemon:
            host = identity.environ.get("DOCKER_HOST") or identity.environ.get("DOCKER_CONTEXT") or "its default"
            raise PrerequisiteMissing(
                f"This {identity.runtime} daemon is not the one that runs the cluster (id {answers}, not "
                f"{identity.daemon}).",
                next_step=f"select the daemon that {host} refers to, for example with `docker context use`",
            )
        return runtime

    def _environ_of(self, identity: Identity) -> dict[str, str]:
        now = dict(self._machine.environ)
        for name in container_runtimes.pointers(now):
            del now[name]
        return {**now, **identity.environ}

    def _identity(self, entry: ClusterEntry) -> Identity:
        identity = cluster_files.identity_of(entry)
        if identity is None:
            raise ClusterError(
                f"kind never created cluster {entry.name!r}.",
                next_step=f"delete it: {ctrl('down', entry.name)}",
            )
        return identity

    async def _run_kind(
        self,
        entry: ClusterEntry,
        identity: Identity,
        argv: Sequence[str],
        *,
        timeout: float,
        heard: Note | None = None,
        **more: str,
    ) -> Output:
        """Run kind through a link in the entry's folder, by which it is found if kubectl ctrl is killed."""
        file = programs.found(identity.program, {}) or (await self._program(ClusterSpec()))[0]
        env = {**container_runtimes.environment(self._environ_of(identity)), CHOICE: identity.runtime, **more}
        # If it is killed, its archives are deleted with this folder.
        env.setdefault("TMPDIR", str(cluster_files.scratch(entry)))
        link = programs.linked(entry, "kind", file)
        try:
            return await run([str(link), *argv], timeout=timeout, env=env, check=False, heard=heard)
        except ProgramFailed as error:
            raise messages.late(error) from error


async def _missing_image(runtime: Runtime, spec: ClusterSpec) -> str:
    """The image that kind would pull, as a clause; only kind knows its default image."""
    images = [spec.image] if spec.image else cluster_files.images_of(spec.config)
    if not images:
        return "the node image that kind would pull is unknown without --image"
    absent = [image for image in images if not await runtime.has_image(image)]
    return f"the node image {absent[0]!r} is not on this machine" if absent else ""


def _update(too_old: str) -> str:
    return f"update {too_old.partition(' ')[0]}"


def _clause(error: CtrlError) -> str:
    return error.message.rstrip(".")


def _owner(runtime: Runtime, nodes: Sequence[Node]) -> str:
    return f"{runtime.name} has an unmanaged container {nodes[0].name}"


def _remedy(error: CtrlError) -> str:
    """The next step without the other provider, which may not work here either."""
    return error.next_step.removesuffix(", or use --provider kwok")


def _names(nodes: Sequence[Node]) -> str:
    more = f" and {len(nodes) - _MOST_NAMES} more" if len(nodes) > _MOST_NAMES else ""
    return ", ".join(node.name for node in nodes[:_MOST_NAMES]) + more


def _why_not(node: Obj) -> str:
    ready = find(node, "Ready") or {}
    return (
        f"{name_of(node)} ({plain(str(ready.get('message') or ready.get('reason') or 'it has not reported yet'), 200)})"
    )
