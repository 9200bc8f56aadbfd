"""`kubectl ctrl explain`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import CONTROLLER, LIVE, LOOKING_BACK, OFFLINE, UID, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="explain",
    usage="explain TYPE/NAME [N] | CONTROLLER [flags]",
    details=(
        "Explains state, not schema (for the schema, see kubectl explain). It prints one\n"
        "verdict on the object: GONE, BLOCKED DELETION, NOT SEEN, NEVER RAN, LOOPING,\n"
        "FIGHTING, NOT CONVERGED, WAITING or CONVERGED; the chain of causes back to the\n"
        "first change and who made it; what is missing; where in the code it failed; what\n"
        "happens next and when; and commands to try, each marked with its effect on the\n"
        "cluster: [read], [write] or [destroy].\n\n"
        "With N, it explains that one reconcile: why it ran, what it read, did and\n"
        "caused. CONTROLLER alone shows the health of the controller over all objects. A\n"
        "name that is both a controller and a type means the controller; TYPE/NAME always\n"
        "means an object.\n\n"
        "It reads the recording, and prints the time of the last record if the controller\n"
        "no longer runs. It queries the cluster with --live, and for objects without a\n"
        "recording, for at most two seconds."
    ),
    examples=(
        ("Explain the state of an object", "explain foo/web"),
        ("Explain one of its reconciles, by its number", "explain foo/web 12"),
        ("Show the health of a controller over all its objects", "explain foo"),
        ("Compare with the current state of the cluster", "explain foo/web --live"),
        ("In a script: exit with 0 if it is CONVERGED or GONE, else with 1", "explain foo/web --exit-code"),
        ("Print all evidence for the verdict as JSON", "explain foo/web -o json"),
    ),
    flags=(
        Flag("--all-evidence", help="Show all evidence for the verdict, not only the first items."),
        CONTROLLER,
        Flag(
            "--exit-code",
            help="Exit with 0 if the verdict is CONVERGED (and its controller works) or GONE, with 1 for "
            "any other verdict, with 2 if there is no verdict.",
        ),
        *LOOKING_BACK,
        LIVE,
        OFFLINE,
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "json", "yaml"),
            help="Output format: text, json or yaml.",
        ),
        UID,
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.explain.main:run"),
    completes=bundled.candidates,
    recalls="explained",
)
