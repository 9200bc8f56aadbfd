"""`kubectl ctrl logs`: its flags and its help. What it does is in `hearing`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.runs.local import NAME

VERB = Verb(
    name="logs",
    usage="logs [CONTROLLER] [flags]",
    summary="Print what controllers in the background say.",
    details=(
        "Of the controllers that up --detach has started on the cluster that is meant: of\n"
        "one, or of all of them, each line then with a name in front. All its starts are\n"
        "in one log, each begins with a line `run`. The last 10 to 20 MB are kept, until\n"
        "the cluster is taken down. trace and explain tell more, and longer."
    ),
    examples=(
        ("All that memcached has said", "logs memcached"),
        ("The last lines, and what comes, until it ends or you press Ctrl-C", "logs memcached -f --tail 20"),
        ("Of all controllers in the background of another cluster of ours", "logs --name two"),
    ),
    flags=(
        Flag("-f", "--follow", help="Go on with what is said from now on."),
        NAME,
        Flag(
            "--tail",
            value="N",
            type=int,
            default=-1,
            help="Only so many lines of each log; -1 is all of them, or 10 where no controller is named.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.logs.main:run"),
    recalls="logged",
)
