"""Go modules -> a folder with kube-apiserver, etcd, kubectl, kwok and the rest, cached by the hash of what goes in."""

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

# One binary that is each of these by the name it is called under. The last three are for nodes made by kind.
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
    """One program: the module to stand in, the package to build, the file that comes out."""

    module: str
    package: str
    out: str
    flags: str = "-s -w"


STEPS = (
    Step("k8s", ".", "k8s", _linker_flags()),
    Step("kwok", "sigs.k8s.io/kwok/cmd/kwok", "kwok"),
    Step("kwok", "sigs.k8s.io/kwok/cmd/kwokctl", "kwokctl"),
)


def root(environ: Mapping[str, str]) -> Path:
    """The folder that holds builds and clusters; readable by its owner alone, since admin keys lie in it."""
    given = Path(environ.get("XDG_CACHE_HOME", ""))
    cache = given if given.is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    folder = (cache / "kubectl-ctrl" / "realkube").resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(path: Path, waiting: str) -> Iterator[int]:
    """Hold an exclusive lock on `path`, which dies with its holder; `waiting` is said when another one has it."""
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
    """Hash of all that decides what comes out: modules with their sums, our source, the steps, the platform."""
    seen = hashlib.sha256(repr((steps, *facts, platform.system(), platform.machine())).encode())
    for module in sorted({step.module for step in steps}):
        for file in sorted((SOURCES / module).iterdir()):
            seen.update(f"{module}/{file.name}\0".encode() + file.read_bytes() + b"\0")
    return seen.hexdigest()[:16]


def build(environ: Mapping[str, str]) -> Path:
    """The folder with all programs, built when it is not there yet."""
    base = root(environ)
    target = base / digest(STEPS, NAMES, NODE_NAMES)
    if _complete(target):
        return target
    with locked(base / "build.lock", "Waiting for another build to end.") as lock:
        if not _complete(target):
            _build_into(target, environ, lock)
    return target


def _complete(target: Path) -> bool:
    names = (*NAMES, *NODE_NAMES, *(step.out for step in STEPS))
    return all(os.access(target / name, os.X_OK) for name in names)


def _build_into(target: Path, environ: Mapping[str, str], lock: int) -> None:
    check_go(environ)
    with staged(target) as staging:
        began = time.monotonic()
        say(f"Building Kubernetes {KUBERNETES} and kwok from Go modules; minutes the first time, on 2 cores about 7.")
        compiled(STEPS, staging, environ, lock)
        for name in (*NAMES, *NODE_NAMES):
            (staging / name).symlink_to("k8s")
    say(f"Built in {time.monotonic() - began:.0f} s.")


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A new folder beside `target` that takes its place once it is complete."""
    # What an earlier, killed build left. Nobody writes there: its programs inherit the lock, so it was over before.
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
        raise CannotHere(f"{need}; `go` cannot be run: {error}. Install it from https://go.dev/dl/.") from error
    version = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    if version is None or tuple(map(int, version.groups())) < MIN_GO:
        raise CannotHere(f"{need}; `go env GOVERSION` says {answer.stdout.strip()!r}. Get one from https://go.dev/dl/.")


def _fetch(steps: Sequence[Step], into: Path, env: Mapping[str, str], lock: int) -> None:
    """Have all modules at hand first: a missing network is then told apart from a build that fails."""
    for step in steps:
        try:
            followed(["go", "list", "-deps", step.package], SOURCES / step.module, into / "fetch.log", env, lock)
        except Failed as error:
            raise CannotHere(f"The Go modules could not be fetched (GOPROXY decides from where). {error}") from error


def followed(command: Sequence[str], cwd: Path, log: Path, env: Mapping[str, str], lock: int) -> None:
    """Run a program of a build; its last lines are in the error when it fails."""
    # To a file, never to our own streams: whoever reads those must not wait for a Go that outlives a killed build.
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
            raise Failed(f"`{' '.join(command)}` in {cwd} ended with {done.returncode}:\n" + "\n".join(tail))
    log.unlink()


def answer(*command: str, env: Mapping[str, str]) -> str:
    """A short program's stdout."""
    try:
        done = subprocess.run(
            command, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise Failed(f"`{command[0]}` cannot be run: {error}.") from error
    if done.returncode:
        raise Failed(f"`{' '.join(command)}` ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
