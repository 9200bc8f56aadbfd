"""Errors with a next step, from the messages of kind.

kind exits with code 1 for every failure, so its messages decide. They are those of v0.33.0. The error for an unknown
message contains kind's last sentence, so a message that a later version rewords only loses its next step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from kubectl_ctrl.client.words import plain
from kubectl_ctrl.clusters.kind.container_runtimes import last_line, unreachable
from kubectl_ctrl.clusters.programs import last_words
from kubectl_ctrl.errors import (
    ClusterError,
    CtrlError,
    PrerequisiteMissing,
    ProgramFailed,
    Refused,
    TimedOut,
    UsageError,
)
from kubectl_ctrl.exec import Output
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import Value

# The exit code is 0 with this message.
WAITED_IN_VAIN = "WARNING: Timed out waiting for Ready"

# The messages of docker, podman and nerdctl about a network that was deleted after it was found.
NETWORK_GONE = re.compile(r"network \S+ not found|network not found|no such network", re.IGNORECASE)

# A node needs all platforms of an image for several platforms, and the archive has only one.
PLATFORMS_MISSING = re.compile(r"content digest \S+ not found")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Lines that every create prints, and prefixes of the message that matters.
_USUAL = re.compile(
    r"^( [•✓✗] |Creating cluster |Deleted nodes: |cgroup v1 is deprecated |using \S+ due to ).*"
    r"|^ERROR: (failed to create cluster: )?|^Command Output: ",
    re.MULTILINE,
)
# kind's steps, by the first words of their lines, and the notes for them; {} is a name in parentheses.
_STEPS = (
    ("Ensuring node image", "node image {}"),
    ("Preparing nodes", "creating the nodes"),
    ("Configuring the external load balancer", "configuring the load balancer"),
    ("Writing configuration", "writing the configuration"),
    ("Starting control-plane", "starting the control plane"),
    ("Installing CNI", "installing the network"),
    ("Installing StorageClass", "installing the storage class"),
    ("Joining more control-plane", "joining control planes"),
    ("Joining worker", "joining workers"),
    ("Waiting", "waiting until the control plane is Ready"),
)

_KEEP = "; --keep-on-failure keeps the cluster for inspection"


class _Case(Value, kw_only=True):
    """A failure of kind."""

    output: str
    what: str  # "could not create cluster 'ctrl'"
    cluster: str
    runtime: str
    config: str
    creating: bool


def progress(line: str) -> str:
    """The note for a line of kind that begins a step; "" for other lines."""
    line = _COLOUR.sub("", line).strip()
    if not line.startswith("•"):
        return ""
    text = line.removeprefix("•").strip()
    for begin, note in _STEPS:
        if text.startswith(begin):
            inside = re.search(r"\((\S+)\)", text)
            return note.format(plain(inside[1])) if inside else note.replace(" {}", "")
    return ""


def failure(output: Output, what: str, cluster: str, runtime: str, config: Path | None = None) -> CtrlError:
    """The error for a kind that exited with another code than 0; `what` is the action, as in "could not ..."."""
    text = _COLOUR.sub("", output.stderr)
    creating = output.argv[1:2] == ("create",)
    case = _Case(output=text, what=what, cluster=cluster, runtime=runtime, config=str(config or ""), creating=creating)
    error = unreachable(text, runtime) or _explained(case)
    if error is None:
        why = f"it was terminated by signal {-output.code}" if output.code < 0 else _sentence(text)
        error = _unexplained(case, f"kind {what}: {why}.")
    if not error.tried:
        error.tried = str(command("kind", *output.argv[1:]))
    return error


def late(error: ProgramFailed) -> TimedOut:
    """The error for a kind that did not exit in time; its output contains the step that it was in."""
    output = _COLOUR.sub("", error.stderr)
    found = TimedOut(
        f"kind {error.outcome}.",
        tried=str(command("kind", *error.argv[1:])),
        next_step="check the container runtime",
    )
    found.output, found.last_words = output, last_words(output, found.message)
    return found


def _explained(case: _Case) -> CtrlError | None:
    for pattern, explain in _KNOWN:
        if match := re.search(pattern, case.output):
            return explain(match, case)
    return None


def _unexplained(case: _Case, message: str) -> ClusterError:
    """The error for a failure whose cause is not in the message, but may be in the output."""
    return ClusterError(
        message,
        next_step="-v 1 shows its full output" + _KEEP * case.creating,
        output=case.output,
        last_words=last_words(_USUAL.sub("", case.output), message),
    )


def no_image(image: str, runtime: str) -> CtrlError:
    """Checked before kind runs: kind prints the same message if the runtime does not answer."""
    return PrerequisiteMissing(
        f"{runtime} has no image {plain(image)!r}.",
        tried=f"{runtime} image inspect {plain(image)}",
        next_step=f"build or pull it first, or use an archive.tar written by `{runtime} save`",
    )


def _sentence(output: str) -> str:
    """kind's last sentence, without the command that it quotes."""
    match = re.search(r"^ERROR: (?:failed to (?:create|delete) cluster[^:]*: )?(.*)$", output, re.MULTILINE)
    if match is None:
        return last_line(output)
    text = re.sub(r': command ".*" failed with error: .*$', "", match[1])
    if text.startswith("[command "):
        return "commands in its nodes failed"
    if text.startswith("command "):
        return last_line(output)
    detail = re.search(r"^Command Output: (.*)", output, re.MULTILINE | re.DOTALL)
    return f"{plain(text, 300)} ({last_line(detail[1])})" if detail and detail[1].strip() else plain(text, 300)


_Explain = Callable[[re.Match[str], _Case], CtrlError]


def _exists(_: re.Match[str], case: _Case) -> CtrlError:
    return Refused(
        f"The name {case.cluster!r} is in use: {case.runtime} has nodes of a kind cluster of that name.",
        next_step="choose another --name: only clusters created by kubectl ctrl are changed",
    )


def _name(match: re.Match[str], case: _Case) -> CtrlError:
    return UsageError(
        f"kind does not accept the cluster name {plain(match[1])!r}.", next_step="use a-z, 0-9 and '-' in --name"
    )


def _config(match: re.Match[str], case: _Case) -> CtrlError:
    why = plain(match[1].strip(), 300).rstrip(".")
    return UsageError(
        f"kind does not accept the configuration {case.config or 'that it was given'!r}: {why}.",
        next_step="correct the file; apiVersion is kind.x-k8s.io/v1alpha4, roles are control-plane and worker",
    )


def _no_runtime(match: re.Match[str], case: _Case) -> CtrlError:
    return PrerequisiteMissing(
        f"kind found no {match[1]} on PATH.",
        next_step="install docker, podman or nerdctl, or use --provider kwok",
    )


def _not_pulled(match: re.Match[str], case: _Case) -> CtrlError:
    return PrerequisiteMissing(
        f"The node image {plain(match[1])!r} is not on this machine and could not be pulled: {last_line(case.output)}.",
        tried=f"{case.runtime} pull {match[1]}",
        next_step=f"choose an existing image with --image (see `{case.runtime} images`), or use --provider kwok",
    )


def _port(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: port {match[1] or match[2]} of this machine is in use.",
        next_step="stop the program that listens there, or choose another hostPort in the --config file",
        output=case.output,
    )


def _no_node_image(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: the container does not start as a node, so its image is not a node image.",
        next_step="use an image built by `kind build node-image`, or omit --image",
        output=case.output,
    )


def _kubeadm(match: re.Match[str], case: _Case) -> CtrlError:
    role = "control plane did not start" if match[1] == "init" else "node did not join"
    return _unexplained(case, f"kind {case.what}: its {role} (kubeadm {match[1]} failed).")


def _disk(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: a disk is full.",
        next_step=f"free disk space, for example with `{case.runtime} system prune`",
        output=case.output,
    )


def _pools(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: {case.runtime} has no free addresses for another network.",
        next_step=f"remove unused networks: {case.runtime} network prune",
        output=case.output,
    )


def _rootless(match: re.Match[str], case: _Case) -> CtrlError:
    return PrerequisiteMissing(
        f"kind cannot work with this rootless {case.runtime}: {plain(match[1])}.",
        next_step="see https://kind.sigs.k8s.io/docs/user/rootless/, or use --provider kwok",
    )


def _image_missing(match: re.Match[str], case: _Case) -> CtrlError:
    return no_image(match[1], case.runtime)


def no_nodes(cluster: str) -> CtrlError:
    """Checked before kind runs: kind goes by the name, and another program may have created that cluster again."""
    return ClusterError(
        f"Cluster {cluster!r} no longer has any nodes.",
        next_step=f"recreate it: {ctrl('up', '--name', cluster)}",
    )


def _gone(match: re.Match[str], case: _Case) -> CtrlError:
    return no_nodes(case.cluster)


def _stopped(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"Cluster {case.cluster!r} is stopped.",
        next_step=f"start it: {ctrl('up', '--name', case.cluster)}",
        output=case.output,
    )


_KNOWN: tuple[tuple[str, _Explain], ...] = (
    (r"node\(s\) already exist for a cluster with the name", _exists),
    (r"'([^']*)' is not a valid cluster name", _name),
    (r"(?s)ERROR: failed to create cluster: (?:unable to decode config: )(.*)", _config),
    (r"ERROR: failed to create cluster: (unknown (?:apiVersion|kind).*|.*is not a valid node role.*)", _config),
    (r"(?s)ERROR: failed to create cluster: could not determine kind / apiVersion for config: (.*)", _config),
    (r"ERROR: failed to create cluster: \[?(invalid .*|must have at least one control-plane node.*)", _config),
    (r"ERROR: failed to create cluster: (error reading file: .*)", _config),
    (r'exec: "([\w.]+)": executable file not found', _no_runtime),
    (r'failed to pull image "([^"]+)"', _not_pulled),
    (r"Bind for (\S+) failed: port is already allocated|listen \w+ (\S+): bind: address already in use", _port),
    (r"could not find a log line that matches|/kind/version: No such file", _no_node_image),
    (r"no space left on device", _disk),
    (r"non-overlapping IPv4 address pool|exhausted attempts trying to find a non-overlapping subnet", _pools),
    (r"failed to (init|join) node with kubeadm", _kubeadm),
    (r"running kind with rootless provider (requires .*?)(?:, see|$)", _rootless),
    (r'image: "([^"]+)" not present locally', _image_missing),
    (r"no nodes found for cluster|could not locate any control plane nodes|unknown cluster", _gone),
    (r"Container \S+ is not running|container state improper|can only create exec sessions", _stopped),
)
