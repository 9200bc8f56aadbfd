"""Container runtimes, found as kind finds them, and their nodes, images, volumes and networks.

kind tries docker, then nerdctl or finch, then podman, and uses the first that is installed, even if its daemon does not
answer; `KIND_EXPERIMENTAL_PROVIDER` selects another one. The order is the same here: kind could not see a cluster of
another runtime.

Everything that belongs to a cluster has a mark, a label with a random value, and is found by that alone: the name of a
cluster can be used again by other programs. kind has no option for labels, so it calls its runtime through a wrapper
script of the same name, which adds the label.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubectl_ctrl.client.words import plain
from kubectl_ctrl.clusters import programs
from kubectl_ctrl.errors import ClusterError, CtrlError, PrerequisiteMissing, ProgramFailed
from kubectl_ctrl.exec import Output, run
from kubectl_ctrl.value import Value

LABEL = "io.x-k8s.kind.cluster"
_ROLE = "io.x-k8s.kind.role"
MARK = "kubectl-ctrl/mark"
CHOICE = "KIND_EXPERIMENTAL_PROVIDER"

# The variables that kind, the runtimes and their credential helpers need. They get no others.
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LANG|LC_.*|SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS|XDG_(RUNTIME_DIR|CONFIG_HOME|DATA_HOME)"
    r"|DOCKER_.*|CONTAINERS?_.*|CONTAINERD_.*|NERDCTL_.*|REGISTRY_AUTH_FILE|BUILDAH_.*|PODMAN_.*"
    r"|KIND_EXPERIMENTAL_.*|(?i:(HTTP|HTTPS|ALL|NO)_PROXY)"
)
# The variables that select the daemon and the namespace of its containers, or a file that does.
_POINTERS = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE", "NERDCTL_TOML"),
    *("CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", CHOICE),
)

# The first line of `-v`, and the oldest version that supports everything that kind and the mark need.
_VERSIONS = {
    "docker": ("Docker version", (20, 10)),
    "nerdctl": ("nerdctl version", (1, 7)),
    "finch": ("finch version", (1, 0)),
    "podman": ("podman version", (3, 0)),
}
_CONTAINERD = (1, 7)  # the first version with the restart policy of kind's nodes
_ORDER = tuple(_VERSIONS)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_NERDCTLS = ("nerdctl", "finch", "nerdctl.lima")
_CHOICES = ("docker", "podman", *_NERDCTLS)

_GONE = re.compile(r"no such (?:container|object)", re.IGNORECASE)
_GOING = re.compile(rf"{_GONE.pattern}|is already in progress", re.IGNORECASE)

# It restores the user's PATH for the runtime. Commands that create something run in a session of their own, where
# `setsid` exists: kind is killed together with the processes that it started, and a podman that is killed in the middle
# leaves network interfaces, mounts and firewall rules that nothing removes.
_WRAPPER = """\
#!/bin/sh
PATH={path}
case "$1 $2" in
"network create" | "volume create" | "container create" | "container run")
    group=$1 verb=$2
    shift 2
    set -- "$group" "$verb" --label {label} "$@" ;;
"create "* | "run "*)
    verb=$1
    shift
    set -- "$verb" --label {label} "$@" ;;
*)
    exec {program} "$@" ;;
esac
exec {apart} {program} "$@"
"""

_QUICK = 10.0  # seconds for queries that a daemon answers immediately
_LONG = 120.0
_FREEZER = Path("/sys/fs/cgroup/freezer")


class Node(Value, kw_only=True):
    id: str
    name: str
    role: str
    state: str  # "running", "exited", "created", "paused"
    volumes: tuple[str, ...] = ()


class Daemon(Value, kw_only=True):
    """A runtime's daemon; fields that it does not report are empty."""

    version: str
    id: str = ""
    platform: str = ""
    containerd: str = ""  # its version, if that is the daemon


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of kind and the runtimes: without the user's kubeconfig and the name of another cluster."""
    return {name: value for name, value in environ.items() if _NEEDED.fullmatch(name)}


def labelled(mark: str) -> str:
    """The label, as an argument."""
    return f"{MARK}={mark}"


def pointers(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that select the daemon."""
    return {name: environ[name] for name in _POINTERS if environ.get(name)}


class Runtime:
    """One container runtime. If it does not answer, its methods raise PrerequisiteMissing with the reason."""

    def __init__(self, name: str, file: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.path = env.get("PATH", os.defpath)
        self.version = ""  # of its program
        self._file = file
        self._env = env

    def __repr__(self) -> str:
        return f"Runtime({self.name!r}, {str(self._file)!r})"

    async def daemon(self) -> Daemon:
        if self.name == "podman":
            info = self._read(await self._ask("info", "--format", "json", timeout=_QUICK))
            return Daemon(version=str((info.get("version") or {}).get("Version") or self.version))
        info = self._read(await self._ask("info", "--format", "{{json .}}", timeout=_QUICK))
        if info.get("ServerErrors") or not info.get("ServerVersion"):
            # finch and old versions of docker exit with code 0 if the daemon does not answer.
            raise self._no_answer("; ".join(info.get("ServerErrors") or ["it prints no version"]))
        machine = str(info.get("Architecture") or "")
        return Daemon(
            version=self.version if self.name in _NERDCTLS else info["ServerVersion"],
            containerd=info["ServerVersion"] if self.name in _NERDCTLS else "",
            id=info.get("ID") or "",
            platform=f"linux/{_MACHINES.get(machine, machine)}",
        )

    async def nodes(self, cluster: str) -> tuple[Node, ...]:
        """The containers with kind's label of that cluster, also those of other tools and stopped ones."""
        return await self._listed(f"label={LABEL}={cluster}")

    async def marked(self, mark: str) -> tuple[Node, ...]:
        """The containers with that mark, also stopped ones."""
        return await self._listed(f"label={labelled(mark)}")

    async def named(self, name: str) -> tuple[Node, ...]:
        """A container of exactly that name."""
        return tuple(node for node in await self._listed(f"name={name}") if node.name == name)

    async def start(self, nodes: Sequence[Node]) -> None:
        paused = [node.id for node in nodes if node.state == "paused"]
        stopped = [node.id for node in nodes if node.state not in ("paused", "running")]
        if paused:
            await self._ask("unpause", *paused)
        if stopped:
            await self._ask("start", *stopped)

    async def remove(self, nodes: Sequence[Node]) -> None:
        """Remove these containers with their volumes; it is no error if they are gone or being removed."""
        ids = [node.id for node in nodes]
        if self.name in _NERDCTLS:
            # Otherwise its restart policy starts a killed container again.
            await self._run("update", "--restart=no", *ids)
            await self._run("stop", *ids)
        if self.name == "podman":
            # `rm -f` would wait ten seconds for each container to stop.
            await self._run("kill", *ids)
        output = await self._run("rm", "-f", "-v", *ids)
        if output.code != 0 and not _GOING.search(output.stderr) and await self._known(ids):
            raise self._failure(output.stderr, ("rm",))

    async def inside(self, node: Node, *argv: str) -> str:
        """The output of a program in the node."""
        return await self._ask("exec", "--privileged", node.id, *argv, timeout=_QUICK)

    async def has_image(self, image: str) -> bool:
        return (await self._run("image", "inspect", "--format", "{{.Id}}", "--", image)).code == 0

    async def save(self, image: str, file: Path) -> None:
        """Save the image, for the daemon's platform, as an archive that a node accepts."""
        form = ["--format", "docker-archive", "--multi-image-archive=false"] if self.name == "podman" else []
        form += [f"--platform={(await self.daemon()).platform}"] if self.name == "docker" else []
        more = [_full(image)] if self.name == "podman" and _full(image) != image else []
        await self._ask("save", *form, "-o", str(file), "--", image, *more, timeout=600)

    async def drop_network(self, name: str) -> bool:
        """Remove the network of that name if it has our label, unless a container, even a stopped one, uses it."""
        # Two queries: before v4, podman combines two filters with "or".
        ours, named = [
            (await self._run("network", "ls", "-q", "--filter", choice)).stdout.split()
            for choice in (f"label={MARK}", f"name=^{re.escape(name)}$")
        ]
        found = set(ours).intersection(named)
        if not found or (await self._ask("ps", "-a", "-q", "--filter", f"network={name}")).split():
            return False
        return (await self._run("network", "rm", "--", *found)).code == 0

    async def drop_volumes(self, mark: str, names: Sequence[str]) -> None:
        """Remove the volumes with the mark, which kind creates for podman, and those of these names.

        The runtime keeps a volume that a container uses; it is no error if one is gone.
        """
        marked = (await self._run("volume", "ls", "-q", "--filter", f"label={labelled(mark)}")).stdout.split()
        for name in dict.fromkeys([*marked, *names]):
            await self._run("volume", "rm", "--", name)

    def wrapper(self, mark: str) -> str:
        """A script that runs its program, and adds the mark to everything that it creates."""
        words = {"path": self.path, "label": labelled(mark), "program": str(self._file)}
        apart = programs.found("setsid", {"PATH": self.path})
        quoted = {name: shlex.quote(word) for name, word in words.items()}
        return _WRAPPER.format_map({**quoted, "apart": shlex.quote(str(apart)) if apart else ""})

    async def asked_version(self) -> bool:
        """Whether the program is the runtime of that name, by the test that kind uses; stores its version."""
        with suppress(CtrlError):
            lines = (await self._ask("-v", timeout=_QUICK)).strip().splitlines()
            begin = _VERSIONS.get(self.name, _VERSIONS["nerdctl"])[0]
            if len(lines) == 1 and lines[0].startswith(begin):
                self.version = lines[0].removeprefix(begin).strip().split(",")[0]
                return True
        return False

    def too_old(self, daemon: Daemon) -> str:
        """A clause if the runtime or its containerd is too old for kind, otherwise ""."""
        least = _VERSIONS.get(self.name, _VERSIONS["nerdctl"])[1]
        versions = [(self.name, daemon.version, least)]
        versions += [("containerd", daemon.containerd, _CONTAINERD)] if daemon.containerd else []
        for name, version, needed in versions:
            if numbers(version) < needed:
                return f"{name} {version} is too old: kind needs {'.'.join(map(str, needed))} or newer"
        return ""

    async def _listed(self, choice: str) -> tuple[Node, ...]:
        ids = dict.fromkeys((await self._ask("ps", "-a", "-q", "--no-trunc", "--filter", choice)).split())
        if not ids:
            return ()
        argv = ("container", "inspect", *ids)
        # If a container was removed meanwhile, the exit code is 1, and the others are printed all the same.
        output = await self._run(*argv)
        found = self._read(output.stdout or "[]")
        if len(found) + len(_GONE.findall(output.stderr)) < len(ids):
            raise self._failure(output.stderr, argv)
        return tuple(map(_node, found))

    async def _known(self, ids: Sequence[str]) -> bool:
        """Whether one of them still exists; podman's `rm` also fails if only a mount of a node is left."""
        output = await self._run("container", "inspect", "--format", "{{.Id}}", *ids)
        return bool(output.stdout.split()) or not _GONE.search(output.stderr)

    async def _ask(self, *argv: str, timeout: float = _LONG) -> str:
        output = await self._run(*argv, timeout=timeout)
        if output.code != 0:
            raise self._failure(output.stderr or output.stdout, argv)
        return output.stdout

    async def _run(self, *argv: str, timeout: float = _LONG) -> Output:
        try:
            return await run([str(self._file), *argv], timeout=timeout, env=self._env, check=False)
        except ProgramFailed as error:
            raise self._no_answer(f"it {error.outcome}") from error

    def _read(self, answer: str) -> Any:
        try:
            return json.loads(answer)
        except ValueError as error:
            raise self._no_answer(f"its output is not JSON ({error})") from error

    def _failure(self, output: str, argv: Sequence[str]) -> CtrlError:
        return unreachable(output, self.name) or ClusterError(
            f"{self.name} {argv[0]} failed: {last_line(output)}.".replace("..", "."),
            tried=" ".join([self.name, *argv]),
            output=output,
        )

    def _no_answer(self, why: str) -> PrerequisiteMissing:
        return unreachable(why, self.name) or PrerequisiteMissing(
            f"{self.name} does not answer: {plain(why)}.", next_step=f"check the output of `{self.name} info`"
        )


async def detected(environ: Mapping[str, str]) -> Runtime | None:
    """The runtime that kind would use, or None."""
    env = environment(environ)
    choice = environ.get(CHOICE, "")
    if choice in _CHOICES:
        file = programs.found(choice, environ)
        found = Runtime(choice, file, env) if file else None
        return found if found and await found.asked_version() else None
    for name in _ORDER:
        file = programs.found(name, environ)
        if file and await (found := Runtime(name, file, env)).asked_version():
            return found
    return None


async def problems(environ: Mapping[str, str]) -> dict[str, str]:
    """The problem with each runtime that cannot be used, by its name."""
    names = ("docker", "podman", "nerdctl")
    found = await asyncio.gather(*(_problem(name, environ) for name in names))
    return {name: why for name, why in zip(names, found, strict=True) if why}


async def _problem(name: str, environ: Mapping[str, str]) -> str:
    file = programs.found(name, environ)
    if file is None:
        return "not installed"
    runtime = Runtime(name, file, environment(environ))
    if not await runtime.asked_version():
        return f"{file} is not {name}"
    try:
        return runtime.too_old(await runtime.daemon())
    except CtrlError as error:
        return error.message.removeprefix(f"{name} ").rstrip(".")


def unreachable(output: str, name: str) -> PrerequisiteMissing | None:
    """The error for a daemon that cannot be reached, if this output reports that."""
    if match := re.search(
        r"Cannot connect to the (?:Docker|Podman) \w+ at (\S+?)\.? Is |cannot connect to Podman(?s:.*dial \w+ (\S+):)?",
        output,
        re.IGNORECASE,
    ):
        place = match[1] or match[2] or "its socket"
        variable = "CONTAINER_HOST" if name == "podman" else "DOCKER_HOST"
        return PrerequisiteMissing(
            f"{name} does not answer: nothing listens on {plain(place)}.",
            tried=f"{name} info",
            next_step=f"start {name}, or set {variable} to its address, or use --provider kwok",
        )
    if re.search(r"permission denied while trying to connect to the docker (daemon socket|API)", output, re.IGNORECASE):
        return PrerequisiteMissing(
            f"{name} does not answer: you have no permission to use its socket.",
            tried=f"{name} info",
            next_step="add yourself to the group docker (sudo usermod -aG docker $USER) and log in again, or use "
            "--provider kwok",
        )
    return None


def thaw(nodes: Sequence[Node]) -> int:
    """Thaw the processes of these nodes; returns the number of cgroups that were frozen.

    With cgroup v1, runc freezes a pod for a moment while it starts it. If the node is killed in that moment, even
    SIGKILL does not stop these processes until they are thawed.
    """
    thawed = 0
    for file in _FREEZER.glob("**/freezer.state"):
        if any(node.id in str(file) for node in nodes):
            with suppress(OSError):
                if file.read_text().strip() != "THAWED":
                    file.write_text("THAWED")
                    thawed += 1
    return thawed


def numbers(version: str) -> tuple[int, ...]:
    """The first numbers of a version, for comparisons."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _full(image: str) -> str:
    """The full name of an image. podman saves a built image NAME as localhost/NAME, but a pod with the image NAME uses
    docker.io/library/NAME.
    """
    first, slash, _ = image.partition("/")
    if "@" in image or (slash and (first == "localhost" or re.search("[.:]", first))):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def last_line(output: str) -> str:
    """The line with the reason why a container runtime failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line and not line.startswith("Run '")]
    if fatal := re.findall(r'level=fatal msg="((?:[^"\\]|\\.)*)"', output):  # nerdctl's
        return plain(fatal[-1].replace('\\"', '"'), 300).rstrip(".")
    line = (errors or lines or ["it printed nothing"])[-1]
    if line.endswith(":") and line != lines[-1]:
        line = f"{line} {lines[lines.index(line) + 1].removeprefix('* ')}"
    line = re.sub(r"^(Command Output: )?(docker: )?(Error( response from daemon)?: )?", "", line)
    return plain(line, 300).rstrip(".")


def _node(container: Mapping[str, Any]) -> Node:
    labels = (container.get("Config") or {}).get("Labels") or {}
    volumes = [each.get("Name", "") for each in container.get("Mounts") or [] if each.get("Type") == "volume"]
    return Node(
        id=container["Id"],
        name=str(container["Name"]).removeprefix("/"),
        role=labels.get(_ROLE, ""),
        state=str((container.get("State") or {}).get("Status") or "").lower(),
        volumes=tuple(filter(None, volumes)),
    )
