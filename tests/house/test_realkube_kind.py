"""hack/realkube kind without Go, docker and root: with a fake `go` and a fake `docker`."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.house.test_realkube import Realkube

pytestmark = pytest.mark.programs("chmod", "dirname", "sh", "tr")

ROOT = Path(__file__).resolve().parents[2]
HACK = ROOT / "hack"

# `build` makes the file after -o; `mod download` tells where kind's module lies.
GO = """\
#!/bin/sh
case "$1" in
    env) echo go1.26.0 ;;
    mod) echo "{\\"Dir\\": \\"$KIND_SOURCE\\"}" ;;
    build)
        while [ "$1" != -o ]; do shift; done
        echo '#!/bin/sh' > "$2"
        /bin/chmod +x "$2"
        ;;
esac
"""

# A daemon whose images are files of a folder; a pull creates one, unless there is no registry.
DOCKER = """\
#!/bin/sh
echo "$*" >> "$DOCKER_CALLS"
for last; do :; done
file="$DOCKER_IMAGES/$(echo "$last" | /usr/bin/tr /: __)"
case "$1 $2" in
    "version "*) [ -z "${DOCKER_DOWN-}" ] ;;
    "context inspect") echo unix:///run/theirs.sock ;;
    "image inspect") [ -e "$file" ] ;;
    "pull --quiet") [ -z "${DOCKER_OFFLINE-}" ] && : > "$file" ;;
esac
"""

DEFAULT = "kindest/node:v1.99.0@sha256:0123"


@dataclass(frozen=True, slots=True)
class RealkubeKind(Realkube):
    """`hack/realkube kind`, and the calls of docker."""

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def __call__(self, *args: str, hack: Path = HACK, **env: str) -> subprocess.CompletedProcess[str]:
        return Realkube.__call__(self, "kind", *args, hack=hack, **env)


@pytest.fixture
def realkube(tmp_path: Path) -> RealkubeKind:
    for name in ("bin", "images", "source/pkg/apis/config/defaults"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "source/pkg/apis/config/defaults/image.go").write_text(f'const Image = "{DEFAULT}"\n')
    for name, text in (("go", GO), ("docker", DOCKER)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    (tmp_path / "bin" / "dirname").symlink_to(shutil.which("dirname") or "")
    env = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        # A test that gets as far as downloading packages fails there.
        "http_proxy": "http://127.0.0.1:9",
        "KIND_SOURCE": str(tmp_path / "source"),
        "DOCKER_CALLS": str(tmp_path / "calls"),
        "DOCKER_IMAGES": str(tmp_path / "images"),
    }
    return RealkubeKind(tmp_path, env)


def test_daemon_that_answers_is_used_with_what_it_pulls(realkube: RealkubeKind) -> None:
    up = realkube("up")
    assert up.returncode == 0, up.stderr
    facts = json.loads(up.stdout)
    assert (facts["image"], facts["started"]) == (DEFAULT, False)
    assert facts["env"] == {"DOCKER_HOST": "unix:///run/theirs.sock", "KIND_LANE_IMAGE": DEFAULT}
    tools, kubernetes = map(Path, facts["path"])
    assert os.access(tools / "kind", os.X_OK)
    assert (kubernetes / "kubectl").is_symlink()
    pulled = [call.split()[-1] for call in realkube.calls if call.startswith("pull")]
    assert pulled == [DEFAULT, "memcached:1.4.36-alpine", "nginx:latest", "nginx:stable"]

    again = realkube("up")
    assert (json.loads(again.stdout), again.stderr) == (facts, "")
    assert len([call for call in realkube.calls if call.startswith("pull")]) == len(pulled)


def test_node_image_of_ones_own_is_used_as_it_is(realkube: RealkubeKind) -> None:
    (realkube.folder / "images" / "my_node_1").touch()
    assert json.loads(realkube("up", REALKUBE_NODE_IMAGE="my/node:1").stdout)["image"] == "my/node:1"
    assert f"pull --quiet {DEFAULT}" not in realkube.calls

    wrong = realkube("up", REALKUBE_NODE_IMAGE="my/node:2", DOCKER_OFFLINE="1")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "REALKUBE_NODE_IMAGE names 'my/node:2', which is not on this machine and cannot be pulled." in wrong.stderr


def test_env_is_the_same_as_lines_for_a_shell(realkube: RealkubeKind) -> None:
    lines = realkube("env").stdout
    shell = f'{lines}\necho "$DOCKER_HOST $KIND_LANE_IMAGE"; command -v kind'
    said = subprocess.run(["/bin/sh", "-c", shell], env=realkube.env, capture_output=True, text=True, check=True).stdout
    host, program = said.splitlines()
    assert host == f"unix:///run/theirs.sock {DEFAULT}"
    assert Path(program).is_relative_to(realkube.cache)


def test_stop_without_a_daemon_of_ours_touches_nobodys(realkube: RealkubeKind) -> None:
    stop = realkube("stop")
    assert (stop.returncode, stop.stdout, stop.stderr) == (0, "", "")
    assert not (realkube.folder / "calls").exists()


@pytest.fixture
def daemon(realkube: RealkubeKind) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is found as the private daemon."""
    links = realkube.cache / "docker" / "bin"
    links.mkdir(parents=True)
    (links / "dockerd").symlink_to(sys.executable)
    waits = "import signal; print('here', flush=True); signal.pause()"
    command = [str(links / "dockerd"), "-I", "-c", waits]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"here\n"
        yield process
        process.kill()


def test_daemon_of_ours_is_preferred_and_stopped_whoever_started_it(
    realkube: RealkubeKind, daemon: subprocess.Popen[bytes]
) -> None:
    # Nothing is pulled into it: it needs only its own images.
    for image in (DEFAULT, "memcached:1.4.36-alpine", "nginx:latest", "nginx:stable"):
        (realkube.folder / "images" / image.translate({ord("/"): "_", ord(":"): "_"})).touch()
    facts = json.loads(realkube("up", REALKUBE_NODE_IMAGE=DEFAULT).stdout)
    assert (facts["started"], facts["path"][-1]) == (False, str(realkube.cache / "docker" / "bin"))

    stop = realkube("stop")
    assert (stop.returncode, daemon.wait(60)) == (0, -signal.SIGTERM)
    assert "is stopped" in stop.stderr
    assert "ps --all --quiet" in realkube.calls


# The contents of images.


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of hack/realkube, which are not part of an installed package."""
    monkeypatch.syspath_prepend(str(HACK / "realkube.d"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("archive", "appimages", "rootfs")
    yield {name: importlib.import_module(f"realkube.{name}") for name in names}
    for name in [name for name in sys.modules if name.split(".")[0] == "realkube"]:
        del sys.modules[name]


def test_archive_holds_the_folder_under_every_name(parts: dict[str, ModuleType], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "program").write_text("#!/bin/sh\n")
    (folder / "bin" / "program").chmod(0o755)
    (folder / "bin" / "alias").symlink_to("program")
    image = parts["archive"].Image(names=("docker.io/x/y:1", "z:2"), config={"Cmd": ["program"]})
    parts["archive"].write(folder, image, tmp_path / "out.tar")

    with tarfile.open(tmp_path / "out.tar") as tar:
        files = {name: tar.extractfile(name) for name in ("manifest.json", "config.json", "layer.tar")}
        manifest, config, layer = (file.read() for file in files.values() if file)
    assert json.loads(manifest)[0]["RepoTags"] == ["docker.io/x/y:1", "z:2"]
    assert json.loads(config)["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert json.loads(config)["config"]["Cmd"] == ["program"]
    (tmp_path / "layer.tar").write_bytes(layer)
    with tarfile.open(tmp_path / "layer.tar") as tar:
        assert tar.getmember("./bin/alias").linkname == "program"
        assert tar.getmember("./bin/program").mode == 0o755


def test_every_image_that_a_controller_names_is_made(parts: dict[str, ModuleType]) -> None:
    made = {name for names in parts["appimages"].NAMES.values() for name in names}
    sources = [*(ROOT / "kubectl_ctrl" / "controllers").rglob("*.py")]
    sources += (ROOT / "kubectl_ctrl" / "controllers").rglob("*.yaml")
    named = {image for file in sources for image in re.findall(r"\b(?:nginx|memcached):[\w.-]+", file.read_text())}
    assert named <= made


@pytest.mark.parametrize(("has_apt", "why"), [(True, "that requires root"), (False, "is not a Debian")])
def test_machine_that_cannot_make_nodes_is_told_why(
    has_apt: bool, why: str, parts: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if has_apt:
        (tmp_path / "apt-get").touch(0o755)
    monkeypatch.setattr(parts["rootfs"], "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Exception, match=f"debootstrap must be installed.*{why}") as caught:
        parts["rootfs"].provide({"debootstrap": "debootstrap"}, tmp_path / "log", 0)
    assert caught.value.code == 3  # type: ignore[attr-defined]
