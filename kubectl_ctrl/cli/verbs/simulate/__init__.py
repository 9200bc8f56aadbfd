"""`kubectl ctrl simulate`: its flags and its help. What it does is in `simulating`, loaded when it does it."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.cli.parsing.flags import ANNOTATION_PREFIX
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later


def _kinds() -> Sequence[tuple[str, str]]:
    return (("deployment", "A Deployment, by its name"), ("statefulset", "A StatefulSet, by its name"))


VERB = Verb(
    name="simulate",
    usage="simulate (TYPE/NAME | TYPE NAME | -f FILE) [flags]",
    summary="Print what the scaler will do with a workload, and when.",
    details=(
        "Goes through the next events of a Deployment or StatefulSet as the scaler\n"
        "would, and changes nothing. With -f no cluster is needed: the file has the\n"
        "workload and, where they matter, its Namespace and HorizontalPodAutoscaler, or\n"
        "nothing but annotations."
    ),
    examples=(
        ("The next seven days of a Deployment in the cluster", "simulate deployment/web"),
        ("Of what is not applied yet, over a change of clocks", "simulate -f web.yaml --from 2026-03-27 --days 5"),
        ("Of the scaler's own example", "example scaler | kubectl ctrl simulate -f -"),
        ("For a machine", "simulate statefulset/db -o json"),
    ),
    flags=(
        ANNOTATION_PREFIX,
        Flag("--days", value="N", type=int, default=7, help="How many days to go through, from 1 to 366."),
        Flag(
            "-f", "--filename", value="FILE", default="", help="Read the workload or its annotations there; - is stdin."
        ),
        Flag(
            "--from",
            "since",
            value="TIME",
            default="",
            help="Begin at this time instead of now: 2026-03-27T18:00:00Z, or a date with or without a time in UTC.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("json", "yaml"),
            help="json or yaml; a table when not given.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.simulate.main:run"),
    completes=_kinds,
    recalls="names",
)
