"""`kubectl ctrl doctor`: its flags and its help. What it does is in `examining`, `mending` and `fetching`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, MAKING
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

PROGRAMS = (
    ("kind", "Get kind: clusters of containers, with real pods."),
    ("kwok", "Get kwok and kwokctl: clusters without containers, with simulated pods."),
    ("kubectl", "Get kubectl."),
)

VERB = Verb(
    name="doctor",
    usage="doctor [--fix [kind|kwok|kubectl]] [--yes] [-o json|yaml] [flags]",
    summary="Say what is there, missing or left behind, and mend it.",
    details=(
        "Looks at this machine, at the cluster of the current context, at what we left on\n"
        "either, and at the recordings. Below each thing that is not well stands what to\n"
        "do about it. Nothing is changed, and nothing is waited for longer than seconds.\n"
        "\n"
        "The exit code is 0 unless a line says FAIL, then that of the worst: 5 a program\n"
        "is missing, 3 the cluster is not reached, 7 rights are lacking, 8 a controller\n"
        "is installed in part, 1 anything else.\n"
        "\n"
        "--fix takes away what we left: what would be destroyed is listed, and goes with\n"
        "--yes. With a name it gets that program with go, brew or apt, whichever is\n"
        "there; without --yes it prints the line that does it."
    ),
    examples=(
        ("See whether all is well", "doctor"),
        ("Take away what a crash left behind", "doctor --fix"),
        ("Get kwok, which makes clusters without containers", "doctor --fix kwok --yes"),
        ("Find what fails, in a script", "doctor -o json | jq '.checks[] | select(.state == \"fail\")'"),
    ),
    flags=(
        ALLOW_CONTEXT,
        *(flag for flag in MAKING if flag.long in ("bin-dir", "offline")),  # what decides whether kwok could work
        Flag(
            "--fix",
            value="PROGRAM",
            bare="true",
            default="false",
            choices=tuple(name for name, _ in PROGRAMS),
            help="Mend what can be mended; with kind, kwok or kubectl, get that program.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "json", "yaml"),
            help="text, json or yaml.",
        ),
        Flag("--yes", help="With --fix: destroy what was listed, or run the line that was printed."),
    ),
    body=later("kubectl_ctrl.cli.verbs.doctor.main:run"),
    completes=lambda: PROGRAMS,
    takes_one=True,
)
