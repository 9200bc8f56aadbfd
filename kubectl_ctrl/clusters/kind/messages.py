"""What kind says when something goes wrong, made into errors that say what to do.

kind ends with 1 for everything, so its words decide. They are those of v0.33.0; what is not known is passed on with
kind's own last sentence, so that new words lose an advice and nothing else.
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

# It says so and ends with 0.
WAITED_IN_VAIN = "WARNING: Timed out waiting for Ready"

# It was there a moment ago: docker's words, podman's, nerdctl's.
NETWORK_GONE = re.compile(r"network \S+ not found|network not found|no such network", re.IGNORECASE)

# A node did not get all that an image for several platforms consists of.
PLATFORMS_MISSING = re.compile(r"content digest \S+ not found")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# What is said of every create, and what stands before the words that matter.
_USUAL = re.compile(
    r"^( [•✓✗] |Creating cluster |Deleted nodes: |cgroup v1 is deprecated |using \S+ due to ).*"
    r"|^ERROR: (failed to create cluster: )?|^Command Output: ",
    re.MULTILINE,
)
# Its steps, each by how its line begins; what is told of them, and whether its last words in parentheses are too.
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
    """What failed: kind's words, and ours for what it was to do."""

    said: str
    what: str  # "could not make cluster 'ctrl'"
    cluster: str
    runtime: str
    config: str
    making: bool


def progress(line: str) -> str:
    """What a line of kind tells of what it does now; "" for one that tells nothing new."""
    line = _COLOUR.sub("", line).strip()
    if not line.startswith("•"):
        return ""
    text = line.removeprefix("•").strip()
    for begin, told in _STEPS:
        if text.startswith(begin):
            inside = re.search(r"\((\S+)\)", text)
            return told.format(plain(inside[1])) if inside else told.replace(" {}", "")
    return ""


def failure(output: Output, what: str, cluster: str, runtime: str, config: Path | None = None) -> CtrlError:
    """The error for what kind said before it ended with another code than 0; `what` is what it could not do."""
    said = _COLOUR.sub("", output.stderr)
    making = output.argv[1:2] == ("create",)
    case = _Case(said=said, what=what, cluster=cluster, runtime=runtime, config=str(config or ""), making=making)
    error = unreachable(said, runtime) or _explained(case) or _unexplained(case, output.code)
    if not error.tried:
        error.tried = str(command("kind", *output.argv[1:]))
    return error


def late(error: ProgramFailed) -> TimedOut:
    """The error for a kind that did not end in time; its steps are all that tells where it stood."""
    said = _COLOUR.sub("", error.stderr)
    found = TimedOut(
        f"kind {error.outcome}.",
        tried=str(command("kind", *error.argv[1:])),
        next_step="check the container runtime",
    )
    found.output, found.last_words = said, last_words(said, found.message)
    return found


def _explained(case: _Case) -> CtrlError | None:
    for words, explain in _KNOWN:
        if match := re.search(words, case.said):
            return explain(match, case)
    return None


def _unexplained(case: _Case, code: int) -> CtrlError:
    why = f"it was terminated by signal {-code}" if code < 0 else _sentence(case.said)
    return _untold(case, f"kind {case.what}: {why}.")


def _untold(case: _Case, message: str) -> ClusterError:
    """The error for a failure whose cause is not in the message, but perhaps in what was said."""
    return ClusterError(
        message,
        next_step="-v 1 shows its full output" + _KEEP * case.making,
        output=case.said,
        last_words=last_words(_USUAL.sub("", case.said), message),
    )


def no_image(image: str, runtime: str) -> CtrlError:
    """kind says the same where the runtime does not answer, so it is not asked."""
    return PrerequisiteMissing(
        f"{runtime} has no image {plain(image)!r}.",
        tried=f"{runtime} image inspect {plain(image)}",
        next_step=f"build or pull it first, or use an archive.tar written by `{runtime} save`",
    )


def _sentence(said: str) -> str:
    """Its own last sentence, without the command that it quotes."""
    match = re.search(r"^ERROR: (?:failed to (?:create|delete) cluster[^:]*: )?(.*)$", said, re.MULTILINE)
    if match is None:
        return last_line(said)
    told = re.sub(r': command ".*" failed with error: .*$', "", match[1])
    if told.startswith("[command "):
        return "commands in its nodes failed"
    if told.startswith("command "):
        return last_line(said)
    detail = re.search(r"^Command Output: (.*)", said, re.MULTILINE | re.DOTALL)
    return f"{plain(told, 300)} ({last_line(detail[1])})" if detail and detail[1].strip() else plain(told, 300)


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
        f"The node image {plain(match[1])!r} is not on this machine and could not be pulled: {last_line(case.said)}.",
        tried=f"{case.runtime} pull {match[1]}",
        next_step=f"choose an existing image with --image (see `{case.runtime} images`), or use --provider kwok",
    )


def _port(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: port {match[1] or match[2]} of this machine is in use.",
        next_step="stop the program that listens there, or choose another hostPort in the --config file",
        output=case.said,
    )


def _no_node_image(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: the container does not start as a node, so its image is not a node image.",
        next_step="use an image built by `kind build node-image`, or omit --image",
        output=case.said,
    )


def _kubeadm(match: re.Match[str], case: _Case) -> CtrlError:
    role = "control plane did not start" if match[1] == "init" else "node did not join"
    return _untold(case, f"kind {case.what}: its {role} (kubeadm {match[1]} failed).")


def _disk(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: a disk is full.",
        next_step=f"free disk space, for example with `{case.runtime} system prune`",
        output=case.said,
    )


def _pools(match: re.Match[str], case: _Case) -> CtrlError:
    return ClusterError(
        f"kind {case.what}: {case.runtime} has no free addresses for another network.",
        next_step=f"remove unused networks: {case.runtime} network prune",
        output=case.said,
    )


def _rootless(match: re.Match[str], case: _Case) -> CtrlError:
    return PrerequisiteMissing(
        f"kind cannot work with this rootless {case.runtime}: {plain(match[1])}.",
        next_step="see https://kind.sigs.k8s.io/docs/user/rootless/, or use --provider kwok",
    )


def _image_missing(match: re.Match[str], case: _Case) -> CtrlError:
    return no_image(match[1], case.runtime)


def no_nodes(cluster: str) -> CtrlError:
    """kind goes by name, and would take one that somebody made since: without nodes of ours it is not asked."""
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
        output=case.said,
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
