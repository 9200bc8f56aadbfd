"""Container runtimes as kind finds them, and the few things that are asked of one: its nodes, images and networks.

kind asks for docker, then nerdctl or finch, then podman, and takes the first that is installed, whether or not its
daemon answers; `KIND_EXPERIMENTAL_PROVIDER` decides instead. So do we: a cluster made through another one would be
one that kind cannot see.

What is ours carries a mark, a label with a random value, and is known by that alone: a name can be somebody else's
tomorrow. kind gives no labels, so it calls its runtime through a stand-in of that name, which adds this one.
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

# What kind, the runtimes and their credential helpers need; the rest of the environment is none of their business.
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LANG|LC_.*|SSH_AUTH_SOCK|DBUS_SESSION_BUS_ADDRESS|XDG_(RUNTIME_DIR|CONFIG_HOME|DATA_HOME)"
    r"|DOCKER_.*|CONTAINERS?_.*|CONTAINERD_.*|NERDCTL_.*|REGISTRY_AUTH_FILE|BUILDAH_.*|PODMAN_.*"
    r"|KIND_EXPERIMENTAL_.*|(?i:(HTTP|HTTPS|ALL|NO)_PROXY)"
)
# What says which daemon is asked, and for which of its containers; or the file that says so.
_POINTERS = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE", "NERDCTL_TOML"),
    *("CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", CHOICE),
)

# The first line of `-v`, and the oldest version that knows what kind and the mark ask of it.
_SAYS = {
    "docker": ("Docker version", (20, 10)),
    "nerdctl": ("nerdctl version", (1, 7)),
    "finch": ("finch version", (1, 0)),
    "podman": ("podman version", (3, 0)),
}
_CONTAINERD = (1, 7)  # knows the restart policy that kind gives to nodes
_ORDER = tuple(_SAYS)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_NERDCTLS = ("nerdctl", "finch", "nerdctl.lima")
_CHOICES = ("docker", "podman", *_NERDCTLS)

_GONE = re.compile(r"no such (?:container|object)", re.IGNORECASE)
_GOING = re.compile(rf"{_GONE.pattern}|is already in progress", re.IGNORECASE)

# Whatever its program starts finds what it would find without us. What makes something is in a session of its own,
# where there is a program for that: kind is killed with all that it has started, and a podman that is killed in the
# middle leaves interfaces, mounts and rules of the firewall that nobody takes away.
_STAND_IN = """\
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

_QUICK = 10.0  # seconds for a question that a daemon answers at once
_LONG = 120.0
_FREEZER = Path("/sys/fs/cgroup/freezer")


class Node(Value, kw_only=True):
    """A container that is a node of a kind cluster."""

    id: str
    name: str
    role: str
    state: str  # "running", "exited", "created", "paused"
    volumes: tuple[str, ...] = ()


class Daemon(Value, kw_only=True):
    """What a runtime says of itself; what it does not tell is empty."""

    version: str
    id: str = ""
    platform: str = ""
    containerd: str = ""  # its version, where that is the daemon


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What programs around kind are given of the user's environment: no kubeconfig, and no name of another cluster."""
    return {name: value for name, value in environ.items() if _NEEDED.fullmatch(name)}


def labelled(mark: str) -> str:
    """The label, as it stands among the words of what makes something with it."""
    return f"{MARK}={mark}"


def pointers(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment decides which daemon is asked."""
    return {name: environ[name] for name in _POINTERS if environ.get(name)}


class Runtime:
    """One container runtime; what it is asked and does not answer is a PrerequisiteMissing that says why."""

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
            told = self._read(await self._ask("info", "--format", "json", timeout=_QUICK))
            return Daemon(version=str((told.get("version") or {}).get("Version") or self.version))
        told = self._read(await self._ask("info", "--format", "{{json .}}", timeout=_QUICK))
        if told.get("ServerErrors") or not told.get("ServerVersion"):
            # finch and old dockers say so with exit code 0.
            raise self._no_answer("; ".join(told.get("ServerErrors") or ["it prints no version"]))
        machine = str(told.get("Architecture") or "")
        return Daemon(
            version=self.version if self.name in _NERDCTLS else told["ServerVersion"],
            containerd=told["ServerVersion"] if self.name in _NERDCTLS else "",
            id=told.get("ID") or "",
            platform=f"linux/{_MACHINES.get(machine, machine)}",
        )

    async def nodes(self, cluster: str) -> tuple[Node, ...]:
        """The containers that are labelled as that cluster's, whoever made them, running or not."""
        return await self._listed(f"label={LABEL}={cluster}")

    async def marked(self, mark: str) -> tuple[Node, ...]:
        """The containers that carry that mark, running or not."""
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
        """These containers with their volumes; those that are gone, or just going, are no error."""
        ids = [node.id for node in nodes]
        if self.name in _NERDCTLS:
            # It restarts what it kills, unless told not to.
            await self._run("update", "--restart=no", *ids)
            await self._run("stop", *ids)
        if self.name == "podman":
            # Each would be asked to end, and waited for, for ten seconds.
            await self._run("kill", *ids)
        output = await self._run("rm", "-f", "-v", *ids)
        if output.code != 0 and not _GOING.search(output.stderr) and await self._known(ids):
            raise self._failure(output.stderr, ("rm",))

    async def inside(self, node: Node, *argv: str) -> str:
        """What a program in the node prints."""
        return await self._ask("exec", "--privileged", node.id, *argv, timeout=_QUICK)

    async def has_image(self, image: str) -> bool:
        return (await self._run("image", "inspect", "--format", "{{.Id}}", "--", image)).code == 0

    async def save(self, image: str, file: Path) -> None:
        """The image, for the daemon's own platform, as an archive that a node takes."""
        form = ["--format", "docker-archive", "--multi-image-archive=false"] if self.name == "podman" else []
        form += [f"--platform={(await self.daemon()).platform}"] if self.name == "docker" else []
        more = [_full(image)] if self.name == "podman" and _full(image) != image else []
        await self._ask("save", *form, "-o", str(file), "--", image, *more, timeout=600)

    async def drop_network(self, name: str) -> bool:
        """Remove the network of that name if one of ours made it, unless a container needs it, even a stopped one."""
        # One by one: before v4, podman lists with two filters what passes either of them.
        ours, named = [
            (await self._run("network", "ls", "-q", "--filter", choice)).stdout.split()
            for choice in (f"label={MARK}", f"name=^{re.escape(name)}$")
        ]
        found = set(ours).intersection(named)
        if not found or (await self._ask("ps", "-a", "-q", "--filter", f"network={name}")).split():
            return False
        return (await self._run("network", "rm", "--", *found)).code == 0

    async def drop_volumes(self, mark: str, names: Sequence[str]) -> None:
        """Remove those that carry the mark, as kind makes them for podman, and these; but none that a container needs.

        Those that are gone are no error.
        """
        marked = (await self._run("volume", "ls", "-q", "--filter", f"label={labelled(mark)}")).stdout.split()
        for name in dict.fromkeys([*marked, *names]):
            await self._run("volume", "rm", "--", name)

    def marking(self, mark: str) -> str:
        """A script that is its program, but for the mark that it puts on what it makes."""
        words = {"path": self.path, "label": labelled(mark), "program": str(self._file)}
        apart = programs.found("setsid", {"PATH": self.path})
        quoted = {name: shlex.quote(word) for name, word in words.items()}
        return _STAND_IN.format_map({**quoted, "apart": shlex.quote(str(apart)) if apart else ""})

    async def asked_version(self) -> bool:
        """Whether the program is what its name says, as kind asks it; keeps its version."""
        with suppress(CtrlError):
            lines = (await self._ask("-v", timeout=_QUICK)).strip().splitlines()
            begin = _SAYS.get(self.name, _SAYS["nerdctl"])[0]
            if len(lines) == 1 and lines[0].startswith(begin):
                self.version = lines[0].removeprefix(begin).strip().split(",")[0]
                return True
        return False

    def too_old(self, daemon: Daemon) -> str:
        """A clause when one of its versions does not know what kind asks of it."""
        least = _SAYS.get(self.name, _SAYS["nerdctl"])[1]
        asked = [(self.name, daemon.version, least)]
        asked += [("containerd", daemon.containerd, _CONTAINERD)] if daemon.containerd else []
        for name, version, needed in asked:
            if numbers(version) < needed:
                return f"{name} {version} is too old: kind needs {'.'.join(map(str, needed))} or newer"
        return ""

    async def _listed(self, choice: str) -> tuple[Node, ...]:
        ids = dict.fromkeys((await self._ask("ps", "-a", "-q", "--no-trunc", "--filter", choice)).split())
        if not ids:
            return ()
        argv = ("container", "inspect", *ids)
        # One that went away meanwhile makes the code 1, and the others are told all the same.
        output = await self._run(*argv)
        told = self._read(output.stdout or "[]")
        if len(told) + len(_GONE.findall(output.stderr)) < len(ids):
            raise self._failure(output.stderr, argv)
        return tuple(map(_node, told))

    async def _known(self, ids: Sequence[str]) -> bool:
        """Whether one of them is still there; podman also fails where it has removed all but a mount of a node."""
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

    def _failure(self, said: str, argv: Sequence[str]) -> CtrlError:
        known = unreachable(said, self.name)
        if known is not None:
            return known
        return ClusterError(
            f"{self.name} {argv[0]} failed: {last_line(said)}.".replace("..", "."),
            tried=" ".join([self.name, *argv]),
            output=said,
        )

    def _no_answer(self, why: str) -> PrerequisiteMissing:
        return unreachable(why, self.name) or PrerequisiteMissing(
            f"{self.name} does not answer: {plain(why)}.", next_step=f"see what `{self.name} info` says"
        )


async def detected(environ: Mapping[str, str]) -> Runtime | None:
    """The runtime that kind would use; None where it would find none."""
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


async def lacks(environ: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with each runtime, by name; nothing for one that could be used."""
    names = ("docker", "podman", "nerdctl")
    found = await asyncio.gather(*(_lack(name, environ) for name in names))
    return {name: why for name, why in zip(names, found, strict=True) if why}


async def _lack(name: str, environ: Mapping[str, str]) -> str:
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


def unreachable(said: str, name: str) -> PrerequisiteMissing | None:
    """The error that says why a daemon could not be asked, where that is what these words are about."""
    if match := re.search(
        r"Cannot connect to the (?:Docker|Podman) \w+ at (\S+?)\.? Is |cannot connect to Podman(?s:.*dial \w+ (\S+):)?",
        said,
        re.IGNORECASE,
    ):
        place = match[1] or match[2] or "its socket"
        variable = "CONTAINER_HOST" if name == "podman" else "DOCKER_HOST"
        return PrerequisiteMissing(
            f"{name} does not answer: nothing listens on {plain(place)}.",
            tried=f"{name} info",
            next_step=f"start {name}, or set {variable} to its address, or use --provider kwok",
        )
    if re.search(r"permission denied while trying to connect to the docker (daemon socket|API)", said, re.IGNORECASE):
        return PrerequisiteMissing(
            f"{name} does not answer: you have no permission to use its socket.",
            tried=f"{name} info",
            next_step=(
                "add yourself to the group docker (sudo usermod -aG docker $USER) and log in again, or use "
                "--provider kwok"
            ),
        )
    return None


def thaw(nodes: Sequence[Node]) -> int:
    """Let frozen processes of these nodes go on; how many groups were frozen.

    With cgroup v1, runc freezes a pod for a moment while it sets it up. A node that is killed in that moment has
    processes which not even SIGKILL ends before they are thawed.
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
    """The first numbers of a version, to compare by."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _full(image: str) -> str:
    """What a node takes a short name for; what podman has built is localhost/NAME to it, which no pod would find."""
    first, slash, _ = image.partition("/")
    if "@" in image or (slash and (first == "localhost" or re.search("[.:]", first))):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def last_line(said: str) -> str:
    """The line that says why a program of this family failed."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if "rror" in line and not line.startswith("Run '")]
    if fatal := re.findall(r'level=fatal msg="((?:[^"\\]|\\.)*)"', said):  # nerdctl's
        return plain(fatal[-1].replace('\\"', '"'), 300).rstrip(".")
    line = (told or lines or ["it printed nothing"])[-1]
    if line.endswith(":") and line != lines[-1]:
        line = f"{line} {lines[lines.index(line) + 1].removeprefix('* ')}"
    line = re.sub(r"^(Command Output: )?(docker: )?(Error( response from daemon)?: )?", "", line)
    return plain(line, 300).rstrip(".")


def _node(told: Mapping[str, Any]) -> Node:
    labels = (told.get("Config") or {}).get("Labels") or {}
    volumes = [each.get("Name", "") for each in told.get("Mounts") or [] if each.get("Type") == "volume"]
    return Node(
        id=told["Id"],
        name=str(told["Name"]).removeprefix("/"),
        role=labels.get(_ROLE, ""),
        state=str((told.get("State") or {}).get("Status") or "").lower(),
        volumes=tuple(filter(None, volumes)),
    )
