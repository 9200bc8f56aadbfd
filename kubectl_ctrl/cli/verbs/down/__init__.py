"""`kubectl ctrl down`: its flags and its help. What it does is in `takingdown`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import NAME, PROGRESS
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="down",
    usage="down [NAME] [flags]",
    summary="Take away a cluster that up made, and all that runs on it.",
    details=(
        "Ends the controllers that run here on that cluster, undoes --use, removes the\n"
        "cluster and its files. What was recorded stays: trace and explain still answer.\n"
        "Without a name: the cluster ctrl, or the only one. Only what up or cluster\n"
        "create made is touched. Twice is fine, and so is a machine that stopped midway."
    ),
    examples=(
        ("The cluster that up made", "down"),
        ("One of several", "down two"),
        ("All of them", "down --all"),
    ),
    flags=(Flag("--all", help="All clusters that up and cluster create made."), NAME, *PROGRESS),
    body=later("kubectl_ctrl.cli.verbs.down.main:run"),
    cluster=False,
    recalls="our clusters",
)
