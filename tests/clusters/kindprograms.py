"""Stand-ins for kind and its runtimes: scripts that say what the real ones say, and remember what they were asked.

Gaps: nothing runs in their nodes, they know one cluster's words at a time, and of docker only what kind and we ask it.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from shlex import quote

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.kind.container_runtimes import MARK
from kubectl_ctrl.clusters.kind.provider import KindProvider
from kubectl_ctrl.clusters.provider import ClusterSpec, CreatedCluster, Machine
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.value import replace

SAID = Path(__file__).parent / "kindsaid"
# What the stand-ins are made of; who uses them names these.
TOOLS = ("cat", "env", "grep", "ls", "mkdir", "mv", "rm", "rmdir", "sed", "sleep")
_MARK = "the mark"  # of a node that is still to be made

# Every program first writes down its words and its environment.
_HEAD = """#!/bin/sh
home={home}
printf '%s' '{name}' >> "$home/calls"; printf ' <%s>' "$@" >> "$home/calls"; echo >> "$home/calls"
path=$PATH
PATH={tools}
PATH=$path "$(command -v env)" > "$home/environment.{name}"
"""

_KIND = """
hang() {{ echo $$ > "$home/hangs"; mv "$home/hangs" "$home/hanging"; exec sleep 60; }}
case "$1 $2" in
version*) cat "$home/kind.version" ;;
"create cluster")
  while [ $# -gt 0 ]; do
    case "$1" in --name) name=$2 ;; --kubeconfig) file=$2 ;; esac
    shift
  done
  if [ -e "$home/create.makes" ]; then
    runtime() {{ PATH=$path "$KIND_EXPERIMENTAL_PROVIDER" "$@"; }}
    [ -e "$home/network" ] || runtime network create -d=bridge kind
    [ "$KIND_EXPERIMENTAL_PROVIDER" != podman ] || runtime volume create --label "$name-control-plane=true"
    runtime run --name "$name-control-plane" --label "io.x-k8s.kind.cluster=$name" --net kind example/node:1 || exit 1
  fi
  [ -e "$home/create.says" ] && cat "$home/create.says" >&2
  [ -e "$home/create.hangs" ] && hang
  code=$(cat "$home/create.code")
  [ "$code" = 0 ] && printf 'apiVersion: v1\\nkind: Config\\n' > "$file"
  exit "$code" ;;
"load "*|"export logs")
  [ -e "$home/$2.hangs" ] && hang
  [ -e "$home/$2.says" ] || exit 0
  : > "$TMPDIR/what-was-not-ended"
  cat "$home/$2.says" >&2
  exit 1 ;;
esac
"""

_DOCKER = """
case "$1" in -v) cat "$home/{name}.version"; exit 0 ;; esac
if [ -e "$home/daemon.says" ]; then
  [ "$1" = info ] && echo '{{"ID":"","ServerVersion":""}}'
  cat "$home/daemon.says" >&2
  exit 1
fi
case "$1 $2" in
"info "*) cat "$home/{name}.info" ;;
"ps "*)
  for word; do choice=$word; done
  case "$choice" in
  label=io.x-k8s.kind.cluster=*) ls "$home/nodes/${{choice#label=io.x-k8s.kind.cluster=}}" 2>/dev/null ;;
  label=*) grep -ls "\"${{choice#*=*=}}\"" "$home"/nodes/*/* | sed 's|.*/||' ;;
  network=*) cat "$home/network.users" 2>/dev/null || ls "$home"/nodes/* 2>/dev/null ;;
  name=*) ls "$home/others" 2>/dev/null ;;
  esac
  exit 0 ;;
"container inspect")
  [ -e "$home/inspect.says" ] && {{ echo '[]'; cat "$home/inspect.says" >&2; exit 1; }}
  shift 2
  printf '['
  for id; do printf '%s' "$comma"; cat "$home"/nodes/*/"$id" "$home/others/$id" 2>/dev/null; comma=,; done
  printf ']' ;;
"rm -f")
  [ -e "$home/rm.says" ] && {{ cat "$home/rm.says" >&2; rm "$home/rm.says"; exit 1; }}
  shift 3
  for id; do rm -f "$home"/nodes/*/"$id"; done
  rmdir "$home"/nodes/* 2>/dev/null
  exit 0 ;;
"start "*|"unpause "*)
  for id; do sed -i 's/"exited"\\|"paused"/"running"/' "$home"/nodes/*/"$id" 2>/dev/null; done
  exit 0 ;;
"run --label")
  name=${{5%-control-plane}}
  id=ours1
  [ "$name" = ctrl ] || id=$name
  [ -e "$home/go" ] && {{ exec 3<> "$home/go"; : > "$home/waiting"; read -r line <&3; }}
  mkdir -p "$home/nodes/$name"
  sed "s/ours1/$id/; s/{mark}/${{3#*=}}/" "$home/create.makes" > "$home/nodes/$name/$id"
  [ -e "$home/run.says" ] && {{ cat "$home/run.says" >&2; rm "$home/run.says" "$home/network"; exit 125; }}
  exit 0 ;;
"network create") echo "$*" > "$home/network" ;;
"network ls")
  # What passes one of the filters, as podman had it before v4.
  for word; do
    case "$word" in
    'name=^kind$') [ -e "$home/network" ] && echo n1 ;;
    label=*) grep -qs -e "--label ${{word#*=}}=" "$home/network" && echo n1 ;;
    esac
  done ;;
"network rm") rm "$home/network" ;;
"volume create") mkdir -p "$home/volumes"; echo "$*" > "$home/volumes/made" ;;
"volume ls")
  for word; do choice=$word; done
  grep -ls -e "--label ${{choice#*=}} " "$home"/volumes/* | sed 's|.*/||' ;;
"volume rm")
  for word; do volume=$word; done
  rm "$home/volumes/$volume" ;;
"image inspect") for word; do image=$word; done; grep -qx "$image" "$home/images" ;;
"exec --privileged")
  case "$4" in
  cat) echo v1.36.3 ;;
  kubectl) cat "$home/kubectl.nodes" ;;
  esac ;;
"save "*)
  while [ "$1" != -o ]; do shift; done
  : > "$2"
  [ ! -e "$home/save.says" ] || {{ cat "$home/save.says" >&2; exit 1; }} ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with the stand-ins, and what they are to say."""

    home: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.home / "bin"), "HOME": str(self.home)}

    @property
    def registry(self) -> Registry:
        return Registry(self.home / "clusters")

    def kind(self, **environ: str) -> KindProvider:
        environ = {**self.environ, **environ}
        return KindProvider(
            Machine(clock=SystemClock(), rng=SystemRandom(), environ=environ, cache=self.home / "cache")
        )

    def entry(
        self, name: str = "ctrl", phase: Phase = Phase.CREATING, notes: Mapping[str, str] | None = None
    ) -> ClusterEntry:
        folder = self.registry.place(name)
        entry = ClusterEntry(name=name, provider="kind", phase=phase, began=0.0, folder=folder, notes=notes or {})
        self.registry.write(entry)
        return entry

    def says(self, name: str, text: str) -> None:
        (self.home / name).write_text(text)

    def kind_says(self, name: str, code: int = 1) -> None:
        """`create` says what kind said in that case."""
        self.says("create.says", (SAID / f"{name}.txt").read_text())
        self.says("create.code", str(code))

    def install(self, name: str, script: str) -> None:
        file = self.home / "bin" / name
        file.write_text(
            (_HEAD + script).format(home=quote(str(self.home)), tools=quote(os.environ["PATH"]), name=name, mark=_MARK)
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def made_by_hand(self) -> None:
        """A node of a cluster ctrl, and be it one that kind made a moment ago, which is somebody else's."""
        folder = self.home / "nodes" / "ctrl"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "theirs").write_text(node("theirs", "ctrl-control-plane"))

    def becomes(self, state: str) -> None:
        """The node of ours is in that state."""
        file = self.home / "nodes" / "ctrl" / "ours1"
        file.write_text(json.dumps({**json.loads(file.read_text()), "State": {"Status": state}}))

    def nodes(self) -> list[str]:
        return sorted(path.name for path in self.home.glob("nodes/*/*"))

    def calls(self, *words: str) -> list[str]:
        """What the programs were asked, of that beginning: `kind <create> <cluster> ...`."""
        begin = " ".join([words[0], *(f"<{word}>" for word in words[1:])]) if words else ""
        lines = (self.home / "calls").read_text().splitlines() if (self.home / "calls").exists() else []
        return [line for line in lines if line.startswith(begin)]

    def environment(self, name: str) -> dict[str, str]:
        """That of the last call."""
        lines = (self.home / f"environment.{name}").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


def node(number: str, name: str, **labels: str) -> str:
    return json.dumps(
        {
            "Id": number,
            "Name": f"/{name}",
            "State": {"Status": "running"},
            "Mounts": [{"Type": "bind"}, {"Type": "volume", "Name": f"volume-of-{number}"}],
            "Config": {"Labels": {"io.x-k8s.kind.cluster": "ctrl", "io.x-k8s.kind.role": "control-plane", **labels}},
        }
    )


def programs(home: Path, names: Sequence[str] = ("kind", "docker")) -> Programs:
    """All that is needed to make a cluster, and a daemon that answers."""
    (home / "bin").mkdir(parents=True)
    made = Programs(home)
    if "kind" in names:
        made.install("kind", _KIND)
    for name in {"docker", "podman", "nerdctl"}.intersection(names):
        made.install(name, _DOCKER)
    made.says("kind.version", "kind v0.33.0 go1.26.8 linux/amd64\n")
    made.says("docker.version", "Docker version 28.2.2, build e6534b4\n")
    made.says("podman.version", "podman version 5.2.1\n")
    made.says("nerdctl.version", "nerdctl version 2.0.3\n")
    info = {"ID": "X3WQ:5GDI", "ServerVersion": "20.10.24+dfsg1", "Architecture": "x86_64"}
    made.says("docker.info", json.dumps(info))
    made.says("nerdctl.info", json.dumps({**info, "ServerVersion": "v1.7.27"}))  # containerd's
    made.says("podman.info", json.dumps({"version": {"Version": "5.2.1"}}))
    made.says("create.makes", node("ours1", "ctrl-control-plane", **{MARK: _MARK}))
    made.says("images", "example/node:v1.36.3\nexample/app:1\n")
    made.kind_says("made", 0)
    return made


def quiet(line: str) -> None:
    pass


def create(kind: KindProvider, entry: ClusterEntry, **spec: object) -> CreatedCluster:
    return asyncio.run(kind.create(entry, ClusterSpec(**spec), quiet))  # type: ignore[arg-type]


def ready(there: Programs, kind: KindProvider, name: str = "ctrl") -> ClusterEntry:
    """A cluster that was made to its end."""
    entry = there.entry(name)
    made = create(kind, entry)
    entry = replace(entry, phase=Phase.READY, notes=made.notes, context=made.context)
    there.registry.write(entry)
    return entry
