"""The files that kind's clusters have: the page with what tells a cluster from others, and what kind reads and writes.

The page is written before kind begins, and is whole or absent. What lies in `tmp` nobody needs afterwards.
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
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, UsageError
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Value, asdict, field

NAME = "kind.json"
RUNTIME, MARK = "runtime", "mark"  # the notes of the registry that are also on the page

_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*")


class Page(Value, kw_only=True):
    """What was so before kind began, and what tells a cluster of ours from others of its name."""

    runtime: str
    mark: str  # that all carry that is made for it
    daemon: str = ""  # its id, where it has one
    volumes: tuple[str, ...] = ()  # of its nodes; they stay behind where somebody else removes a node
    network: str = "kind"  # the name of the nodes' network
    environ: Mapping[str, str] = field(default_factory=dict)  # which daemon is asked
    program: str = ""  # kind's file


def scratch(entry: Entry) -> Path:
    """For files that nobody needs afterwards."""
    folder = entry.folder / "tmp"
    with _kept(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def emptied(entry: Entry) -> None:
    """A kubeconfig of before, and a lock on it, would be in kind's way; an archive takes room."""
    with _kept(folder := scratch(entry)):
        shutil.rmtree(folder)


def own_kubeconfig(entry: Entry) -> Path:
    """What kind writes, and locks by a file beside it: nobody else has an interest in that lock."""
    return entry.folder / "tmp" / "kubeconfig"


def taken_kubeconfig(entry: Entry) -> str:
    """What kind wrote, which is then the registry's to keep."""
    with _kept(file := own_kubeconfig(entry)):
        content = file.read_text()
        file.unlink()
        return content


def write(entry: Entry, page: Page) -> None:
    with _kept(file := entry.folder / NAME):
        entry.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.replace(file, json.dumps(asdict(page), indent=2).encode())


@contextmanager
def _kept(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ClusterError(
            f"{str(path)!r} cannot be stored: {error.strerror}.",
            next_step=files.state_remedy(error),
        ) from error


def page_of(entry: Entry) -> Page | None:
    """None where kind was never begun. Of a page that was lost, the registry knows what is needed most.

    ClusterError where neither can be read: nodes that are there would be taken for none.
    """
    file = entry.folder / NAME
    try:
        content = files.known(Page, json.loads(file.read_bytes()))
        return Page(**{**content, "volumes": tuple(content["volumes"])})
    except FileNotFoundError:
        error = None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as unread:
        error = unread
    if entry.notes.get(MARK):
        return Page(runtime=entry.notes[RUNTIME], mark=entry.notes[MARK])
    if error is None:
        return None
    removal = command("kind", "delete", "cluster", "--name", entry.name)
    raise ClusterError(
        f"{str(file)!r} cannot be read, so the nodes of cluster {entry.name!r} are unknown.",
        next_step=f"delete its nodes with {removal}, remove that file, then repeat the command",
    ) from error


def marking(entry: Entry, runtime: str, script: str, path: str) -> str:
    """That PATH, but for the runtime's program, which is the script."""
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


def filled(folder: Path) -> bool:
    """Whether logs of a node are in it."""
    return any(folder.glob("*/*"))


def config_for(entry: Entry, spec: ClusterSpec) -> Path | None:
    """The file that kind is given; of its own making for several nodes, the first of which is the control plane."""
    if spec.config is not None or (spec.nodes or 1) == 1:
        return spec.config
    roles = ["control-plane", *["worker"] * ((spec.nodes or 1) - 1)]
    file = scratch(entry) / "config.json"  # which is YAML too
    head = {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}
    with _kept(file):
        content = json.dumps({**head, "nodes": [{"role": role} for role in roles]})
        files.replace(file, content.encode(), sync=False)
    return file


def images_of(config: Path | None) -> list[str]:
    """The node images of a configuration; none where a node has none of its own."""
    try:
        told = yaml.safe_load(config.read_text()) if config else None
        found = [str(node.get("image") or "") for node in told["nodes"]] if told else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return []
    return found if all(found) else []
