"""`kubectl ctrl up`: its flags and its help. What it does is in `bringingup`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import MAKING, PROGRESS
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

_FLAGS = (
    Flag("-A", "--all-namespaces", help="Let the controllers work in all namespaces."),
    *MAKING,
    Flag("--detach", help="Run the controllers in the background, and return once they have begun."),
    Flag("--example", help="Create the controllers' example objects, where they are not there yet."),
    Flag(
        "--load",
        value="IMAGE",
        multiple=True,
        help="Give the nodes this image of the local container runtime; may be given several times.",
    ),
    Flag("--name", value="NAME", default="ctrl", help="The name of the cluster."),
    Flag(
        "-n",
        "--namespace",
        value="NAME",
        default="",
        help="The namespace of the examples, in which the controllers work; default when not given.",
    ),
    *PROGRESS,
    Flag(
        "--timeout",
        value="DURATION",
        type=DURATION,
        default=None,
        help="End with code 124 when the controllers run longer than this; 5m with --until-idle, never otherwise.",
    ),
    Flag("--until-idle", help="End the controllers when nothing is left to do; the cluster stays."),
)

VERB = Verb(
    name="up",
    usage="up [CONTROLLER...] [flags]",
    summary="Make a cluster to play in, and run controllers on it.",
    details=(
        "Makes the cluster, unless it is there; installs what the controllers need, and\n"
        "runs them here until Ctrl-C, which ends them and leaves the cluster. The same\n"
        "command again goes on where it was. Your kubeconfig and its current context stay\n"
        "as they are, unless --use says otherwise; kubectl ctrl down takes away all that\n"
        "was made. The first Ctrl-C while the cluster is being made takes it away again,\n"
        "and the exit code is 130; the second ends at once, and down removes the rest.\n"
        "\n"
        "kind needs docker, podman or nerdctl. kwok needs none of them: its API server is\n"
        "real, its nodes and pods are simulated. Nothing is installed on your machine."
    ),
    examples=(
        ("A cluster alone", "up"),
        ("Run memcached and its example on it, until Ctrl-C", "up memcached --example"),
        ("In the background; logs, stop and status are for it then", "up memcached --example --detach"),
        ("For a script: until there is nothing left to do", "up foo --example --until-idle --timeout 2m"),
        ("One of your own, without a container runtime", "up ./mine.py --provider kwok"),
        ("A second cluster, and this shell means it", 'up --name two && eval "$(kubectl ctrl cluster env two)"'),
    ),
    flags=tuple(sorted(_FLAGS, key=lambda flag: flag.long)),
    body=later("kubectl_ctrl.cli.verbs.up.main:run"),
    cluster=False,
    completes=bundled.candidates,
    takes_file=True,
)
