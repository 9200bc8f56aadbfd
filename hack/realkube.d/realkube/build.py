"""Go modules -> a folder with kube-apiserver, etcd, kubectl, kwok and the rest, cached by the hash of the inputs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from realkube import CannotHere, Failed

SOURCES = Path(__file__).resolve().parents[1]
MIN_GO = (1, 26)
KUBERNETES = "1.36.3"

# One binary, which acts as the program by whose name it is called. NODE_NAMES are for nodes of kind.
NAMES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubectl")
NODE_NAMES = ("kubelet", "kubeadm", "kube-proxy")


def _linker_flags() -> str:
    major, minor, _ = KUBERNETES.split(".")
    flags = ["-s", "-w"]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        facts = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
        flags += [f"-X {package}.{name}={value}" for name, value in facts.items()]
    return " ".join(flags)


@dataclass(frozen=True, slots=True)
class Step:
    """One program: the module's folder, the package to build, the name of the file."""

    module: str
    package: str
    out: str
    flags: str = "-s -w"


STEPS = (
    Step("k8s", ".", "k8s", _linker_flags()),
    Step("kwok", "sigs.k8s.io/kwok/cmd/kwok", "kwok"),
    Step("kwok", "sigs.k8s.io/kwok/cmd/kwokctl", "kwokctl"),
)
CONFORMANCE = Step("conformance", ".", "conformance")


def root(environ: Mapping[str, str]) -> Path:
    """The folder of builds and clusters; only its owner can read it, because it contains admin keys."""
    given = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = given if given.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    folder = (cache / "kubectl-ctrl" / "realkube").resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(path: Path, waiting: str) -> Iterator[int]:
    """Hold an exclusive lock on `path`, released when the process exits; print `waiting` if another process has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting)
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def say(text: str) -> None:
    print(f"realkube: {text}", file=sys.stderr, flush=True)


def digest(steps: Sequence[Step], *facts: object) -> str:
    """Hash of all inputs of a build: modules with their sums, sources, steps, platform."""
    seen = hashlib.sha256(repr((steps, *facts, platform.system(), platform.machine())).encode())
    for module in sorted({step.module for step in steps}):
        for file in sorted((SOURCES / module).iterdir()):
            seen.update(f"{module}/{file.name}\0".encode() + file.read_bytes() + b"\0")
    return seen.hexdigest()[:16]


def build(environ: Mapping[str, str]) -> Path:
    """The folder with all programs of a cluster; builds it if it is missing."""
    links = (*NAMES, *NODE_NAMES)
    about = f"Kubernetes {KUBERNETES} and kwok from Go modules; minutes the first time, on 2 cores about 7."
    return _built(environ, digest(STEPS, NAMES, NODE_NAMES), STEPS, links, about)


def build_conformance(environ: Mapping[str, str]) -> Path:
    """The program of Kubernetes' own specs; builds it if it is missing."""
    steps = (CONFORMANCE,)
    about = f"the specs of Kubernetes {KUBERNETES}; on 2 cores 3 minutes, and 1 after the build of Kubernetes."
    return _built(environ, f"conformance-{digest(steps)}", steps, (), about) / CONFORMANCE.out


def _built(environ: Mapping[str, str], name: str, steps: Sequence[Step], links: Sequence[str], about: str) -> Path:
    """The folder `name` with the programs of all steps, and with links to the first one; builds it if it is missing."""
    base = root(environ)
    target = base / name

    def complete() -> bool:
        return all(os.access(target / name, os.X_OK) for name in (*links, *(step.out for step in steps)))

    if complete():
        return target
    with locked(base / "build.lock", "Waiting for another build to finish.") as lock:
        if not complete():
            check_go(environ)
            with staged(target) as staging:
                began = time.monotonic()
                say(f"Building {about}")
                compiled(steps, staging, environ, lock)
                for link in links:
                    (staging / link).symlink_to(steps[0].out)
            say(f"Built in {time.monotonic() - began:.0f} s.")
    return target


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that replaces it once it is complete."""
    # Remains of a killed build. No process writes there: the build's programs inherit the lock, so they have exited.
    staging = target.with_name(target.name + ".part")
    for leftover in (staging, target):
        shutil.rmtree(leftover, ignore_errors=True)
    staging.mkdir()
    yield staging
    staging.rename(target)


def compiled(steps: Sequence[Step], into: Path, environ: Mapping[str, str], lock: int) -> None:
    """Build every step's program into the folder."""
    env = _go_env(environ)
    _fetch(steps, into, env, lock)
    for step in steps:
        command = ["go", "build", "-ldflags", step.flags, "-o", str(into / step.out), step.package]
        followed(command, SOURCES / step.module, into / "build.log", env, lock)


def _go_env(environ: Mapping[str, str]) -> dict[str, str]:
    return {**environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def check_go(environ: Mapping[str, str]) -> None:
    need = f"Go {MIN_GO[0]}.{MIN_GO[1]} or newer is needed to build Kubernetes from its modules"
    try:
        answer = subprocess.run(
            ["go", "env", "GOVERSION"], env=_go_env(environ), cwd="/", capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotHere(f"{need}; cannot run `go`: {error}. Install it from https://go.dev/dl/.") from error
    version = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    if version is None or tuple(map(int, version.groups())) < MIN_GO:
        raise CannotHere(
            f"{need}; `go env GOVERSION` prints {answer.stdout.strip()!r}. Install it from https://go.dev/dl/."
        )


def _fetch(steps: Sequence[Step], into: Path, env: Mapping[str, str], lock: int) -> None:
    """Download all modules first, to distinguish a missing network from a failed build."""
    for step in steps:
        try:
            followed(["go", "list", "-deps", step.package], SOURCES / step.module, into / "fetch.log", env, lock)
        except Failed as error:
            raise CannotHere(f"Cannot download the Go modules (GOPROXY selects the source). {error}") from error


def followed(command: Sequence[str], cwd: Path, log: Path, env: Mapping[str, str], lock: int) -> None:
    """Run a program of a build; if it fails, the error has its last lines."""
    # Output to a file, never to our streams: their reader must not wait for a Go process that outlives a killed build.
    with log.open("w+b") as out:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=(lock,),
            check=False,
        )
        if done.returncode != 0:
            out.seek(0)
            tail = out.read().decode(errors="replace").strip().splitlines()[-15:]
            raise Failed(f"`{' '.join(command)}` in {cwd} exited with code {done.returncode}:\n" + "\n".join(tail))
    log.unlink()


def answer(*command: str, env: Mapping[str, str]) -> str:
    """The standard output of a short program."""
    try:
        done = subprocess.run(
            command, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise Failed(f"Cannot run `{command[0]}`: {error}.") from error
    if done.returncode:
        raise Failed(
            f"`{' '.join(command)}` exited with code {done.returncode}: {(done.stderr or done.stdout).strip()}"
        )
    return done.stdout
