"""`kubectl ctrl cluster`: its flags and its help. What it does is in `clustering`, loaded when it does it."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_ctrl.cli.parsing.flags import LISTED, MAKING, NAME, PROGRESS
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

ACTIONS = (
    ("create", "Make a cluster, or find it there."),
    ("delete", "Take a cluster away, as down does."),
    ("list", "List the clusters that are ours."),
    ("load", "Give a cluster's nodes images of the local container runtime."),
    ("env", "Print what makes a shell mean a cluster."),
    ("kubeconfig", "Print a cluster's own kubeconfig."),
    ("logs", "Write what a cluster's parts logged to a folder."),
)

_FLAGS = (
    Flag("--all", help="delete: all clusters that are ours."),
    *LISTED,
    *MAKING,
    NAME,
    Flag("--path", help="kubeconfig: where the file lies, instead of what is in it."),
    *PROGRESS,
    Flag(
        "--shell",
        value="SHELL",
        default="sh",
        choices=("sh", "fish", "pwsh"),
        help="env: sh, which bash and zsh take too, fish or pwsh.",
    ),
    Flag("--to", value="DIR", default="", help="logs: a folder that is new or empty; NAME-logs when not given."),
)

# The flags that only some actions take, by their long names.
OWN: Mapping[str, tuple[str, ...]] = {
    **{flag.long: ("create",) for flag in MAKING},
    **{flag.long: ("create", "delete", "load", "logs") for flag in PROGRESS},
    **{flag.long: ("list",) for flag in LISTED},
    "all": ("delete",),
    "name": ("create", "delete", "load", "env", "kubeconfig", "logs"),
    "path": ("kubeconfig",),
    "shell": ("env",),
    "to": ("logs",),
}

VERB = Verb(
    name="cluster",
    usage="cluster ACTION [NAME | IMAGE...] [flags]",
    summary="The pieces of up and down: make, list, use and take away clusters.",
    details=(
        "create      a cluster alone; one that is there stays, and is started if need be\n"
        "delete      what down does\n"
        "list        every cluster that is ours, and whether it runs\n"
        "load        IMAGE...: images of docker, podman or nerdctl, to --name's nodes\n"
        "env         the line that makes a shell mean the cluster, for eval\n"
        "kubeconfig  its content; with --path where it lies\n"
        "logs        what its parts logged, to a new folder, whose path is printed\n"
        "\n"
        "NAME is ctrl, or the only cluster, where it is left out. Only clusters that up\n"
        "and create made are touched."
    ),
    examples=(
        ("Make one of three nodes", "cluster create --nodes 3"),
        ("Have kubectl and this tool mean it, in this shell", 'eval "$(kubectl ctrl cluster env)"'),
        ("See which there are", "cluster list"),
        ("Use an image that was built here", "cluster load mine:dev"),
        ("Look into what went wrong in it", "cluster logs ctrl --to ./logs"),
    ),
    flags=tuple(sorted(_FLAGS, key=lambda flag: flag.long)),
    body=later("kubectl_ctrl.cli.verbs.cluster.main:run"),
    cluster=False,
    completes=lambda: ACTIONS,
    own=OWN,
    recalls="named behind an action",
)
