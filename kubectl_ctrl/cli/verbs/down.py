"""`kubectl ctrl down`: its flags and its help."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import NAME, PROGRESS
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="down",
    usage="down [NAME] [flags]",
    details=(
        "Stops the controllers on this machine that run on the cluster, reverts --use,\n"
        "and deletes the cluster and its files. Recordings are kept: trace and explain\n"
        "still work. Without NAME: the cluster ctrl, or the only one. Only clusters\n"
        "created by up or cluster create are deleted. The command can be repeated, also\n"
        "after it was interrupted."
    ),
    examples=(
        ("Delete the cluster that up created", "down"),
        ("Delete another cluster", "down two"),
        ("Delete all clusters", "down --all"),
    ),
    flags=(Flag("--all", help="Delete all clusters created by up and cluster create."), NAME, *PROGRESS),
    body=later("kubectl_ctrl.cli.devcluster:down_verb"),
    cluster=False,
    recalls="our clusters",
)
