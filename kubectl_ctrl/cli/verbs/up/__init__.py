"""`kubectl ctrl up`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import MAKING, PROGRESS
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

_FLAGS = (
    Flag("-A", "--all-namespaces", help="Run the controllers in all namespaces."),
    *MAKING,
    Flag("--detach", help="Run the controllers in the background, and return when they have started."),
    Flag("--example", help="Create the controllers' example objects if they do not exist."),
    Flag(
        "--load",
        value="IMAGE",
        multiple=True,
        help="Load this image of the local container runtime into the nodes. Can be repeated.",
    ),
    Flag("--name", value="NAME", default="ctrl", help="The name of the cluster."),
    Flag(
        "-n",
        "--namespace",
        value="NAME",
        default="",
        help="The namespace of the controllers and their examples; the namespace default if not given.",
    ),
    *PROGRESS,
    Flag(
        "--timeout",
        value="DURATION",
        type=DURATION,
        default=None,
        help="Exit with code 124 if the controllers run longer than this. Default: 5m with --until-idle, "
        "otherwise no limit.",
    ),
    Flag("--until-idle", help="Stop the controllers when no work is left; the cluster is kept."),
)

VERB = Verb(
    name="up",
    usage="up [CONTROLLER...] [flags]",
    details=(
        "Creates the cluster if it does not exist, installs what the controllers need,\n"
        "and runs them on this machine until Ctrl-C. Ctrl-C stops the controllers and\n"
        "keeps the cluster; run the same command again to continue. Your kubeconfig and\n"
        "its current context do not change, except with --use. kubectl ctrl down deletes\n"
        "everything that up created.\n\n"
        "Ctrl-C while the cluster is being created deletes it again and exits with code\n"
        "130. A second Ctrl-C exits at once; down then removes the rest.\n\n"
        "kind needs docker, podman or nerdctl. kwok needs none of them: its API server is\n"
        "real, its nodes and pods are simulated. The sandbox needs no program at all: it\n"
        "imitates the API server too. Nothing is installed on your machine."
    ),
    examples=(
        ("Create a cluster without controllers", "up"),
        ("Run memcached and its example, until Ctrl-C", "up memcached --example"),
        ("Run in the background; see also logs, status and stop", "up memcached --example --detach"),
        ("In a script: run until no work is left", "up foo --example --until-idle --timeout 2m"),
        ("Run your own controller, without a container runtime", "up ./mine.py --provider kwok"),
        ("Create a second cluster and use it in this shell", 'up --name two && eval "$(kubectl ctrl cluster env two)"'),
    ),
    flags=tuple(sorted(_FLAGS, key=lambda flag: flag.long)),
    body=later("kubectl_ctrl.cli.verbs.up.main:run"),
    cluster=False,
    completes=bundled.candidates,
    takes_file=True,
)
