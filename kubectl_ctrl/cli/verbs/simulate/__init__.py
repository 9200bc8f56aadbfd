"""`kubectl ctrl simulate`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ANNOTATION_PREFIX
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="simulate",
    usage="simulate (TYPE/NAME | TYPE NAME | -f FILE) [flags]",
    details=(
        "Simulates the scaler's next events for a Deployment or StatefulSet, and changes\n"
        "nothing. With -f no cluster is needed: the file contains the workload and, where\n"
        "they matter, its Namespace and HorizontalPodAutoscaler, or only the annotations."
    ),
    examples=(
        ("Simulate the next seven days of a Deployment in the cluster", "simulate deployment/web"),
        ("Simulate a file, across a change to daylight saving time", "simulate -f web.yaml --from 2026-03-27 --days 5"),
        ("Simulate the scaler's own example", "example scaler | kubectl ctrl simulate -f -"),
        ("Print JSON", "simulate statefulset/db -o json"),
    ),
    flags=(
        ANNOTATION_PREFIX,
        Flag("--days", value="N", type=int, default=7, help="Number of days to simulate, from 1 to 366."),
        Flag(
            "-f",
            "--filename",
            value="FILE",
            default="",
            help="Read the workload or its annotations from this file; - is stdin.",
        ),
        Flag(
            "--from",
            "since",
            value="TIME",
            default="",
            help="Start at this time instead of now: 2026-03-27T18:00:00Z, or a date with or without a time in UTC.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("json", "yaml"),
            help="Output format: json or yaml; a table by default.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.simulate.main:run"),
    completes=lambda: (("deployment", "A Deployment, by its name"), ("statefulset", "A StatefulSet, by its name")),
    recalls="names",
)
