"""`kubectl ctrl cluster`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_ctrl.cli.parsing.flags import LISTED, MAKING, NAME, PROGRESS
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

ACTIONS = (
    ("create", "Create a cluster, or start an existing one."),
    ("delete", "Delete a cluster, as down does."),
    ("list", "List the managed clusters."),
    ("load", "Load images of the local container runtime into the nodes."),
    ("env", "Print the line that selects a cluster in a shell."),
    ("kubeconfig", "Print the kubeconfig of a cluster."),
    ("logs", "Write the logs of a cluster's components to a folder."),
)

_FLAGS = (
    Flag("--all", help="delete: all clusters created by up and create."),
    *LISTED,
    *MAKING,
    NAME,
    Flag("--path", help="kubeconfig: print the path of the file instead of its contents."),
    *PROGRESS,
    Flag(
        "--shell",
        value="SHELL",
        default="sh",
        choices=("sh", "fish", "pwsh"),
        help="env: sh (also for bash and zsh), fish or pwsh.",
    ),
    Flag("--to", value="DIR", default="", help="logs: a new or empty folder; NAME-logs by default."),
)

# Flags that only some actions take, by their long names.
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
    details=(
        "create      create a cluster without controllers, or start an existing one\n"
        "delete      delete a cluster, as down does\n"
        "list        list all managed clusters and their state\n"
        "load        IMAGE...: load images of docker, podman or nerdctl into the nodes of\n"
        "            the cluster --name\n"
        "env         print the line that selects the cluster in a shell, for eval\n"
        "kubeconfig  print its kubeconfig; with --path, the path of the file\n"
        "logs        write the logs of its components to a new folder, and print the path\n"
        "\n"
        "Without NAME: the cluster ctrl, or the only one. Managed clusters are those\n"
        "created by up or create; no other cluster is touched."
    ),
    examples=(
        ("Create a cluster with three nodes", "cluster create --nodes 3"),
        ("Use the cluster in this shell, with kubectl and kubectl ctrl", 'eval "$(kubectl ctrl cluster env)"'),
        ("List the clusters", "cluster list"),
        ("Use an image that was built on this machine", "cluster load mine:dev"),
        ("Collect the logs of a cluster that fails", "cluster logs ctrl --to ./logs"),
    ),
    flags=tuple(sorted(_FLAGS, key=lambda flag: flag.long)),
    body=later("kubectl_ctrl.cli.verbs.cluster.main:run"),
    cluster=False,
    completes=lambda: ACTIONS,
    own=OWN,
    recalls="named behind an action",
)
