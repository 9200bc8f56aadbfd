"""The files of kind clusters: the identity of a cluster, and the files that kind reads and writes.

The identity is written atomically before kind starts. Files in `tmp` are only needed while kind runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from kubectl_ctrl import files
from kubectl_ctrl.clusters import programs
from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, UsageError
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Value, asdict, field

NAME = "kind.json"
RUNTIME, MARK = "runtime", "mark"  # fields of the identity that the registry's notes repeat, in case its file is lost

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*")


class Identity(Value, kw_only=True):
    """The container runtime of a cluster, and the mark that distinguishes it from others of its name."""

    runtime: str
    mark: str  # the label of its containers, volumes and network
    daemon: str = ""  # its id, if it has one
    volumes: tuple[str, ...] = ()  # of its nodes; they remain if another program removes a node
    network: str = "kind"  # the name of the nodes' network
    environ: Mapping[str, str] = field(default_factory=dict)  # the variables that select the daemon
    program: str = ""  # the path of kind


def scratch(entry: ClusterEntry) -> Path:
    """The folder for files that are only needed while kind runs."""
    folder = entry.folder / "tmp"
    with _kept(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def clear_scratch(entry: ClusterEntry) -> None:
    """Delete archives, which are large, and an old kubeconfig and its lock, which would stop kind."""
    with _kept(folder := scratch(entry)):
        shutil.rmtree(folder)


def own_kubeconfig(entry: ClusterEntry) -> Path:
    """The kubeconfig for kind to write; no other program waits for kind's lock beside it."""
    return entry.folder / "tmp" / "kubeconfig"


def taken_kubeconfig(entry: ClusterEntry) -> str:
    """The contents of kind's kubeconfig; its file is deleted, as the registry stores them."""
    with _kept(file := own_kubeconfig(entry)):
        content = file.read_text()
        file.unlink()
        return content


def write(entry: ClusterEntry, identity: Identity) -> None:
    with _kept(file := entry.folder / NAME):
        entry.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.replace(file, json.dumps(asdict(identity), indent=2).encode())


@contextmanager
def _kept(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ClusterError(
            f"{str(path)!r} cannot be stored: {error.strerror}.",
            next_step=files.state_remedy(error),
        ) from error


def identity_of(entry: ClusterEntry) -> Identity | None:
    """None if kind was never started. If the file is lost, the registry's notes replace it.

    ClusterError if neither can be read: the cluster may have nodes, so it must not count as absent.
    """
    file = entry.folder / NAME
    try:
        content = files.known(Identity, json.loads(file.read_bytes()))
        return Identity(**{**content, "volumes": tuple(content["volumes"])})
    except FileNotFoundError:
        error = None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as unread:
        error = unread
    if entry.notes.get(MARK):
        return Identity(runtime=entry.notes[RUNTIME], mark=entry.notes[MARK])
    if error is None:
        return None
    removal = command("kind", "delete", "cluster", "--name", entry.name)
    raise ClusterError(
        f"{str(file)!r} cannot be read, so the nodes of cluster {entry.name!r} are unknown.",
        next_step=f"delete its nodes with {removal}, remove that file, then repeat the command",
    ) from error


def wrapped(entry: ClusterEntry, runtime: str, script: str, path: str) -> str:
    """PATH with a folder before it in which the script has the name of the runtime."""
    file = entry.folder.resolve() / "bin" / runtime
    with _kept(file):
        file.parent.mkdir(exist_ok=True, mode=0o700)
        files.replace(file, os.fsencode(script), mode=0o700, sync=False)
    path = f"{file.parent}{os.pathsep}{path}"
    if programs.found(runtime, {"PATH": path}) != file:
        raise PrerequisiteMissing(
            f"kind cannot work from {str(entry.folder)!r}: programs in it are not found or cannot be executed. "
            "Possible reasons: a ':' in the path, or a disk mounted with noexec.",
            next_step="set XDG_STATE_HOME to another folder, or use --provider kwok",
        )
    return path


def checked(spec: ClusterSpec) -> None:
    if spec.config is not None and spec.nodes is not None:
        raise UsageError("--nodes and --config both define the nodes.", next_step="use one of them")
    if spec.nodes is not None and spec.nodes < 1:
        raise UsageError(
            f"A kind cluster needs at least one node; --nodes is {spec.nodes}.", next_step="use --nodes 1 or more"
        )
    if spec.config is not None and not spec.config.is_file():
        raise UsageError(f"The configuration file {str(spec.config)!r} does not exist.", next_step="correct --config")
    if spec.image:
        checked_image(spec.image)


def checked_image(image: str) -> str:
    if not _IMAGE.fullmatch(image):
        raise UsageError(f"{image!r} is not the name of an image.", next_step="write NAME:TAG, as for `docker pull`")
    return image


def is_archive(image: str) -> bool:
    return image.endswith(".tar") and Path(image).is_file()


def has_logs(folder: Path) -> bool:
    return any(folder.glob("*/*"))


def config_for(entry: ClusterEntry, spec: ClusterSpec) -> Path | None:
    """The user's file, or a generated one for several nodes, of which the first is the control plane."""
    if spec.config is not None or (spec.nodes or 1) == 1:
        return spec.config
    roles = ["control-plane", *["worker"] * ((spec.nodes or 1) - 1)]
    file = scratch(entry) / "config.json"  # JSON is YAML
    head = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
    with _kept(file):
        content = json.dumps({**head, "nodes": [{"role": role} for role in roles]})
        files.replace(file, content.encode(), sync=False)
    return file


def images_of(config: Path | None) -> list[str]:
    """The node images in a configuration; none if a node does not specify one."""
    try:
        content = yaml.safe_load(config.read_text()) if config else None
        found = [str(node.get("image") or "") for node in content["nodes"]] if content else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return []
    return found if all(found) else []
