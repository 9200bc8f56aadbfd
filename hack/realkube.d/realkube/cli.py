"""The commands. Results go to standard output, progress to standard error.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 this machine lacks a requirement (no Go, no network, not Linux).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping

from realkube import Failed, kind
from realkube.build import build, build_conformance, locked, root, say
from realkube.cluster import Cluster, all_of


def main(argv: list[str]) -> int:
    args = _parser().parse_args(argv)
    try:
        print(_COMMANDS[args.command](args), end="", flush=True)
    except Failed as error:
        say(str(error))
        return error.code
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/realkube", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("build", help="build the missing programs; print their folder")
    commands.add_parser(
        "conformance", help="build the program of Kubernetes' own specs if it is missing; print its path"
    )
    commands.add_parser("list", help="print name, state and kubeconfig of each cluster")
    for name, text in _ON_A_CLUSTER.items():
        command = commands.add_parser(name, help=text)
        command.add_argument("name", metavar="NAME")
        if name == "up":
            command.add_argument(
                "--nodes", type=int, help="number of nodes, of 110 pods each (default: 2, or the current number)"
            )
    on_kind = commands.add_parser("kind", help="prepare everything for clusters of kind", description=_ABOUT_KIND)
    on_kind.add_argument("what", choices=("up", "env", "stop"))
    return parser


_ABOUT_KIND = f"""
`up`: provide kind, a docker daemon, a node image and the images of the bundled examples; print them as JSON. `env`: the
same, printed as shell commands that set the environment. `stop`: stop the docker daemon that one of them started, with
its clusters; do so after `"started": true`. A running docker daemon is used, with the images that it has or can pull;
the others are built, which needs root on Debian and about 10 minutes. {kind.IMAGE_VARIABLE} names a node image to use
without changes.
"""


_ON_A_CLUSTER = {
    "up": "create or start the cluster, wait until it is ready; print the path of its kubeconfig",
    "down": "remove it with all its processes and files",
    "show": "print its parts as JSON",
    "kubeconfig": "print the path of its kubeconfig",
    "env": "print shell commands that select it and its kubectl",
    "stop-apiserver": "kill its API server",
    "start-apiserver": "start its API server, wait until it is ready",
    "restart-apiserver": "stop and start its API server",
}


def _up(args: argparse.Namespace) -> str:
    began = time.monotonic()
    programs = build(os.environ)
    with _clusters_locked():
        cluster = _cluster(args)
        if cluster.up(programs, args.nodes):
            say(f"Cluster {args.name!r} is ready after {time.monotonic() - began:.1f} s.")
    return f"{cluster.kubeconfig}\n"


def _down(args: argparse.Namespace) -> str:
    with _clusters_locked():
        if _cluster(args).down():
            say(f"Cluster {args.name!r} is removed.")
    return ""


def _env(args: argparse.Namespace) -> str:
    facts = _existing(args).describe()
    return (
        f'export KUBECONFIG={shlex.quote(facts["kubeconfig"])}\nexport PATH={shlex.quote(facts["programs"])}:"$PATH"\n'
    )


def _apiserver(args: argparse.Namespace) -> str:
    with _clusters_locked():
        cluster = _cluster(args)
        if args.command != "start-apiserver":
            cluster.stop_apiserver()
        if args.command != "stop-apiserver":
            cluster.start_apiserver()
    return ""


def _kind(args: argparse.Namespace) -> str:
    # A SIGTERM also stops the daemon that this call started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if args.what == "stop":
        if kind.stop(os.environ):
            say("The docker daemon is stopped, with its clusters.")
        return ""
    lane = kind.up(os.environ)
    if args.what == "up":
        return json.dumps(lane.described(), indent=2) + "\n"
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in lane.env().items()]
    path = shlex.quote(os.pathsep.join(lane.path))
    return "".join(lines) + f'export PATH={path}:"$PATH"\n'


def _cluster(args: argparse.Namespace) -> Cluster:
    return Cluster(root(os.environ), args.name)


def _existing(args: argparse.Namespace) -> Cluster:
    cluster = _cluster(args)
    if cluster.state() in ("absent", "unfinished"):
        raise Failed(f"There is no cluster {args.name!r}: create it with `hack/realkube up {args.name}`.")
    return cluster


def _clusters_locked() -> contextlib.AbstractContextManager[int]:
    """One creation or removal at a time: two creations at once could choose the same ports."""
    return locked(root(os.environ) / "clusters.lock", "Waiting for the creation or removal of another cluster.")


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], str]] = {
    "build": lambda args: f"{build(os.environ)}\n",
    "conformance": lambda args: f"{build_conformance(os.environ)}\n",
    "up": _up,
    "down": _down,
    "list": lambda args: "".join(f"{c.name}\t{c.state()}\t{c.kubeconfig}\n" for c in all_of(root(os.environ))),
    "show": lambda args: json.dumps(_existing(args).describe(), indent=2) + "\n",
    "kubeconfig": lambda args: f"{_existing(args).kubeconfig}\n",
    "env": _env,
    "stop-apiserver": _apiserver,
    "start-apiserver": _apiserver,
    "restart-apiserver": _apiserver,
    "kind": _kind,
}
