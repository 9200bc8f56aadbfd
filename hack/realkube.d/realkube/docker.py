"""The docker daemon: the one that runs on this machine, or a private one in a folder of the cache.

The private daemon listens only on a socket in that folder. It is started through a link in the folder, by which it is
found and stopped even if the starter was killed. Its images stay for the next start.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from realkube import CannotHere, Failed, process
from realkube.rootfs import SYSTEM_PATH

FREEZER = Path("/sys/fs/cgroup/freezer/docker")  # of cgroup v1 alone


class Docker:
    """The docker program with one environment."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env

    def __repr__(self) -> str:
        return f"<Docker {self.env.get('DOCKER_HOST', 'as the environment has it')}>"

    def try_(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["docker", *words]
        return subprocess.run(
            command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def __call__(self, *words: str) -> str:
        done = self.try_(*words)
        if done.returncode:
            raise Failed(f"`docker {' '.join(words)}` exited with code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.try_("version").returncode == 0
        return False

    def host(self) -> str:
        """The address of its daemon, also if only the user's docker context has it."""
        return self("context", "inspect", "--format={{.Endpoints.docker.Host}}").strip()

    def has(self, image: str) -> bool:
        return self.try_("image", "inspect", image).returncode == 0

    def label(self, image: str, name: str) -> str:
        """Empty if there is no such label or image."""
        done = self.try_("image", "inspect", f'--format={{{{index .Config.Labels "{name}"}}}}', image)
        return done.stdout.strip() if done.returncode == 0 else ""

    def pulls(self, image: str) -> bool:
        return self.try_("pull", "--quiet", image).returncode == 0


class Daemon:
    """The private daemon, one for each cache folder."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.folder = root / "docker"
        self.log = self.folder / "dockerd.log"
        self.host = f"unix://{self.folder / 'docker.sock'}"
        path = os.pathsep.join([str(self.folder / "bin"), environ.get("PATH", SYSTEM_PATH)])
        self.docker = Docker({**environ, "DOCKER_HOST": self.host, "PATH": path})

    def __repr__(self) -> str:
        return f"<Daemon {self.host} {'runs' if self.runs() else 'is stopped'}>"

    def runs(self) -> bool:
        return "dockerd" in process.running(self.folder)

    def answers(self) -> bool:
        return self.runs() and self.docker.answers()

    def start(self, runc: Path) -> None:
        """Start it, instead of one that does not answer; it starts containers with `runc`."""
        self._end()
        links = self.folder / "bin"
        links.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The client of the daemon's package; another one may be too new for the daemon.
        programs = {
            name: shutil.which(name, path=f"/usr/sbin:/usr/bin:{SYSTEM_PATH}") for name in ("dockerd", "docker")
        }
        for name, target in {**programs, "runc": runc}.items():
            (links / name).unlink(missing_ok=True)
            (links / name).symlink_to(target or name)
        self._launch()

    def _launch(self) -> None:
        command = [
            str(self.folder / "bin" / "dockerd"),
            f"--host={self.host}",
            f"--data-root={self.folder / 'data'}",
            f"--exec-root={self.folder / 'exec'}",
            f"--pidfile={self.folder / 'dockerd.pid'}",
            f"--add-runtime=realkube={self.folder / 'bin' / 'runc'}",
            "--default-runtime=realkube",
        ]
        with self.log.open("wb") as log:
            # Only the system's programs: the daemon would use the containerd of a node if it were on PATH.
            env = {"PATH": SYSTEM_PATH, "HOME": str(self.folder)}
            started = subprocess.Popen(
                command, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 60
        while not self.docker.answers():
            if started.poll() is not None or time.monotonic() > deadline:
                self._end()
                lines = self.log.read_text(errors="replace").strip().splitlines() or ["no output"]
                raise CannotHere(f"Cannot start a docker daemon: {lines[-1]}; see {self.log}.")
            time.sleep(0.2)

    def stop(self) -> bool:
        """Remove its containers, stop it and unmount its mounts; False if there was nothing to do."""
        # Mounts without a daemon belong to containers that outlived it: only a daemon can remove those properly.
        found = self.runs() or any(_mounts_below(self.folder))
        if found:
            if not self.answers():
                self._end()
                self._launch()
            self.remove_containers()
            self.docker("network", "prune", "--force")
        self._end()
        return found

    def remove_containers(self, *filters: str) -> None:
        """All, or those that match the filters of `docker ps`, with their anonymous volumes."""
        for attempt in range(5):
            if not (left := self.docker("ps", "--all", "--quiet", *filters).split()):
                return
            if attempt:
                _thaw()
            self.docker.try_("rm", "--force", "--volumes", *left)
        raise Failed(f"Cannot remove these containers of {self.host}: {', '.join(left)}.")

    def _end(self) -> None:
        if pid := process.running(self.folder).get("dockerd"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + 20
            while self.runs() and time.monotonic() < deadline:
                time.sleep(0.05)
        process.end(self.folder)
        for mount in _mounts_below(self.folder):
            subprocess.run(["umount", "--lazy", mount], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _thaw() -> None:
    """Thaw cgroups: runc freezes that of a pod during its setup, and if the node is killed at that moment, no signal
    reaches the pod's processes."""
    for state in FREEZER.rglob("freezer.state"):
        with contextlib.suppress(OSError):
            if state.read_text().strip() == "FROZEN":
                state.write_text("THAWED")


def _mounts_below(folder: Path) -> Iterator[str]:
    """The innermost first."""
    fields = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    points = [re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), field[4]) for field in fields]
    return reversed([point for point in points if point.startswith(f"{folder}{os.sep}")])
