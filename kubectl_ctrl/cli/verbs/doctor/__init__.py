"""`kubectl ctrl doctor`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, MAKING
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

PROGRAMS = (
    ("kind", "Install kind: clusters of containers, with real pods."),
    ("kwok", "Install kwok and kwokctl: clusters without containers, with simulated pods."),
    ("kubectl", "Install kubectl."),
)

VERB = Verb(
    name="doctor",
    usage="doctor [--fix [kind|kwok|kubectl]] [--yes] [-o json|yaml] [flags]",
    details=(
        "Checks this machine, the cluster of the current context, leftovers of kubectl\n"
        "ctrl on both, and the recordings. The remedy is printed below each problem.\n"
        "Nothing is changed, and no check takes longer than seconds.\n\n"
        "The exit code is 0 if no line says FAIL, otherwise that of the worst: 5 a\n"
        "program is missing, 3 the cluster is unreachable, 7 rights are missing, 8 a\n"
        "controller is partly installed, 1 anything else.\n\n"
        "--fix removes leftovers. It only lists those whose removal destroys something;\n"
        "add --yes to remove them too. With a name, it installs that program with go,\n"
        "brew or apt; without --yes, it only prints the command."
    ),
    examples=(
        ("Check everything", "doctor"),
        ("Remove the leftovers of a crash", "doctor --fix"),
        ("Install kwok, for clusters without containers", "doctor --fix kwok --yes"),
        ("In a script: print the checks that failed", "doctor -o json | jq '.checks[] | select(.state == \"fail\")'"),
    ),
    flags=(
        ALLOW_CONTEXT,
        *(flag for flag in MAKING if flag.long in ("bin-dir", "offline")),  # they decide whether kwok can work
        Flag(
            "--fix",
            value="PROGRAM",
            bare="true",
            default="false",
            choices=tuple(name for name, _ in PROGRAMS),
            help="Fix problems; with kind, kwok or kubectl, install that program.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "json", "yaml"),
            help="Output format: text, json or yaml.",
        ),
        Flag("--yes", help="With --fix: delete what was listed, or run the command that was printed."),
    ),
    body=later("kubectl_ctrl.cli.verbs.doctor.main:run"),
    completes=lambda: PROGRAMS,
    takes_one=True,
)
