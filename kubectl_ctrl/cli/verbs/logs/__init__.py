"""`kubectl ctrl logs`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.one_cluster import NAME
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="logs",
    usage="logs [CONTROLLER] [flags]",
    details=(
        "Prints the logs of controllers that up --detach started on the selected cluster:\n"
        "of one controller, or of all, each line with the controller's name in front. A\n"
        "log contains all starts of the controller; each begins with a line `run`. The\n"
        "last 10 to 20 MB are kept until the cluster is deleted. trace and explain show\n"
        "more, and go further back."
    ),
    examples=(
        ("Print the log of memcached", "logs memcached"),
        ("Print the last lines and follow, until memcached stops or Ctrl-C", "logs memcached -f --tail 20"),
        ("Print the logs of all background controllers of another cluster", "logs --name two"),
    ),
    flags=(
        Flag("-f", "--follow", help="Follow the log."),
        NAME,
        Flag(
            "--tail",
            value="N",
            type=int,
            default=-1,
            help="Number of recent lines of each log; -1 prints all, or 10 if no controller is named.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.logs.main:run"),
    recalls="logged",
)
