"""The requirements of kind clusters: kind, a docker daemon, a node image, and the images of the examples.

A running daemon is used, with the images that it has or can pull. Other images are built, once for each hash of their
inputs. If no daemon runs, a private one is started.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from realkube import Failed, appimages, nodeimage, rootfs
from realkube.build import (
    KUBERNETES,
    SOURCES,
    Step,
    answer,
    build,
    check_go,
    compiled,
    digest,
    followed,
    locked,
    root,
    say,
    staged,
)
from realkube.docker import Daemon, Docker

# The name of a node image to use without changes: nothing is built, and only the images of the examples are pulled.
IMAGE_VARIABLE = "REALKUBE_NODE_IMAGE"

_KIND = Step("kind/kind", "sigs.k8s.io/kind", "kind")
_RUNC = Step("kind/runc-caps", ".", "runc-caps")
_RECIPES = ("archive", "appimages", "nodeimage", "rootfs")
_ARCHIVES = ("base.tar", "server.tar.gz", *(f"{name}.tar" for name in appimages.NAMES))
# kind's builder first tries `docker pull` with its base image: this name keeps the request on this machine.
_BASE_IMAGE = "localhost:1/kubectl-ctrl/base"
_NODE_IMAGE = "kubectl-ctrl/node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The settings of a program that uses kind."""

    image: str
    path: tuple[str, ...]  # for PATH: the folders of kind, kubectl and docker
    docker_host: str
    started: bool  # this call started the daemon: the caller has to stop it

    def described(self) -> dict[str, Any]:
        return {**asdict(self), "env": self.env()}

    def env(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.docker_host, "KIND_LANE_IMAGE": self.image}


def up(environ: Mapping[str, str]) -> Lane:
    """Provide everything, built and loaded."""
    base = root(environ)
    kubernetes = build(environ)
    with locked(base / "kind.lock", "Waiting for another preparation of kind to finish.") as lock:
        tools = _built(base, (_KIND, _RUNC), environ, lock)
        daemon, theirs = Daemon(base, environ), Docker(environ)
        found = not daemon.runs() and theirs.answers()
        started = False
        if not found and not daemon.answers():
            rootfs.provide(rootfs.DAEMON_NEEDS, base / "apt.log", lock)
            # Even if the package has started a daemon: that one may not be able to run nodes.
            daemon.start(tools / "runc-caps")
            started = True
        docker = theirs if found else daemon.docker
        making = _Making(
            base=base, kubernetes=kubernetes, tools=tools, docker=docker, pulls=found, environ=environ, lock=lock
        )
        try:
            image = making.image()
            making.examples()
        except BaseException:
            if started:
                daemon.stop()
            raise
    path = (str(tools), str(kubernetes), *(() if found else (str(daemon.folder / "bin"),)))
    return Lane(image=image, path=path, docker_host=docker.host(), started=started)


def stop(environ: Mapping[str, str]) -> bool:
    """Stop the private daemon with all its clusters; False if it does not run."""
    base = root(environ)
    with locked(base / "kind.lock", "Waiting for a preparation of kind to finish."):
        return Daemon(base, environ).stop()


def _built(base: Path, steps: tuple[Step, ...], environ: Mapping[str, str], lock: int) -> Path:
    target = base / f"kind-{digest(steps)}"
    if not all(os.access(target / step.out, os.X_OK) for step in steps):
        check_go(environ)
        with staged(target) as staging:
            say("Building kind from its Go module.")
            compiled(steps, staging, environ, lock)
    return target


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    """One preparation: the folder of its builds, and the docker daemon that loads them."""

    base: Path
    kubernetes: Path
    tools: Path
    docker: Docker
    pulls: bool  # not the private daemon: it may reach registries, and image names have their usual meaning
    environ: Mapping[str, str]
    lock: int

    def image(self) -> str:
        """The name of a node image in the daemon; pulls or builds it if it is missing."""
        if given := self.environ.get(IMAGE_VARIABLE, ""):
            if not (self.docker.has(given) or self.docker.pulls(given)):
                raise Failed(f"{IMAGE_VARIABLE} names {given!r}, which is not on this machine and cannot be pulled.")
            return given
        ours = f"{_NODE_IMAGE}:v{KUBERNETES}-{self._digest()}"
        if self.docker.has(ours):
            return ours
        if self.pulls and (self.docker.has(default := self._default_image()) or self.docker.pulls(default)):
            return default
        self._build_node(ours)
        return ours

    def examples(self) -> None:
        """Load the images of the bundled examples."""
        for archive, names in appimages.NAMES.items():
            missing = [name for name in names if not self._is_example(name)]
            if not all(self.pulls and self.docker.pulls(name) for name in missing):
                self.docker("load", f"--input={self._archives() / archive}.tar")

    def _is_example(self, image: str) -> bool:
        """It is present: built elsewhere, or built here with the current recipe."""
        recipe = self.docker.label(image, appimages.LABEL)
        return recipe == self._digest() if recipe else self.docker.has(image)

    def _default_image(self) -> str:
        """kind's default node image."""
        return nodeimage.found_in(self._kind_source() / "pkg/apis/config/defaults/image.go", r'const Image = "(.+)"')

    def _kind_source(self) -> Path:
        env = {**self.environ, "GOWORK": "off", "GOTOOLCHAIN": "local"}
        told = answer("go", "mod", "download", "-C", str(SOURCES / _KIND.module), "-json", "sigs.k8s.io/kind", env=env)
        return Path(json.loads(told)["Dir"])

    def _digest(self) -> str:
        recipes = [Path(__file__).with_name(f"{name}.py").read_bytes() for name in _RECIPES]
        return digest((*nodeimage.STEPS, _KIND), nodeimage.TAGS, *recipes, self.kubernetes.name)

    def _archives(self) -> Path:
        """The folder with all archives; builds it if it is missing."""
        target = self.base / f"kind-images-{self._digest()}"
        if not all((target / name).exists() for name in _ARCHIVES):
            check_go(self.environ)
            rootfs.provide(rootfs.BUILD_NEEDS, self.base / "apt.log", self.lock)
            for older in self.base.glob("kind-images-*"):
                shutil.rmtree(older)
            with staged(target) as staging:
                self._build_archives(staging)
        return target

    def _build_archives(self, staging: Path) -> None:
        programs, debian = staging / "programs", staging / "debian"
        programs.mkdir()
        began = time.monotonic()
        say("Building a node's programs from their Go modules; on 2 cores about 3 minutes the first time.")
        environ = {**self.environ, "GOFLAGS": f"{self.environ.get('GOFLAGS', '')} -tags={nodeimage.TAGS}".strip()}
        compiled(nodeimage.STEPS, programs, environ, self.lock)
        say("Unpacking a Debian for the nodes; about a minute.")
        rootfs.make(debian, nodeimage.SUITE, nodeimage.PACKAGES, staging / "debootstrap.log", self.lock)
        say("Making images of both.")
        parts = nodeimage.Parts(programs=programs, kubernetes=self.kubernetes, debian=debian, kind=self._kind_source())
        appimages.memcached(debian, staging / "work" / "memcached", staging / "memcached.tar", self._digest())
        appimages.nginx(debian, staging / "work" / "nginx", staging / "nginx.tar", self._digest())
        nodeimage.server_tarball(parts, staging / "work" / "server", staging / "server.tar.gz")
        nodeimage.base(parts, f"{_BASE_IMAGE}:{self._digest()}", staging / "base.tar")
        for scaffold in (programs, debian, staging / "work"):
            shutil.rmtree(scaffold)
        say(f"Built in {time.monotonic() - began:.0f} s.")

    def _build_node(self, name: str) -> None:
        archives = self._archives()
        say("Making a node image with kind's own builder.")
        self.docker("load", f"--input={archives / 'base.tar'}")
        base = f"{_BASE_IMAGE}:{self._digest()}"
        command = [str(self.tools / "kind"), "build", "node-image", "--type=file", f"--base-image={base}"]
        command += [f"--image={name}", str(archives / "server.tar.gz")]
        # kind does not delete the files that it unpacks.
        scratch = rootfs.emptied(self.base / "kind-scratch")
        env = {**self.docker.env, "TMPDIR": str(scratch)}
        followed(command, Path("/"), self.base / "kind-node.log", env, self.lock)
        shutil.rmtree(scratch)
        older = self.docker("image", "ls", "--format={{.Repository}}:{{.Tag}}", _NODE_IMAGE).split()
        for image in (base, *(one for one in older if one != name)):
            self.docker.try_("rmi", image)  # an image in use stays
