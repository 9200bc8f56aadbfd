"""`kubectl ctrl explain`: its flags and its help. What it does is in `explaining`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import CONTROLLER, LIVE, LOOKING_BACK, OFFLINE, UID, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="explain",
    usage="explain TYPE/NAME [N] | CONTROLLER [flags]",
    summary="Say why an object is in the state it is in, and what comes next.",
    details=(
        "About state, not schema (that is kubectl explain). One verdict on the object:\n"
        "GONE, BLOCKED DELETION, NOT SEEN, NEVER RAN, LOOPING, FIGHTING, NOT CONVERGED,\n"
        "WAITING or CONVERGED; the chain of causes back to the first change and who made\n"
        "it; what is wanted and not there; where in the code it failed; what happens next\n"
        "and when; and commands to try, each tagged with what it does to the cluster:\n"
        "[read], [write] or [destroy].\n"
        "\n"
        "With N it is about that one reconcile: why it ran, what it saw, did and caused.\n"
        "A CONTROLLER alone is about its health over all objects. A word that is both a\n"
        "controller and a type means the controller; TYPE/NAME always means an object.\n"
        "\n"
        "It answers from the recording, and says as of when where the controller does not\n"
        "run any more. The cluster is asked with --live, and for objects of which nothing\n"
        "is recorded, for two seconds at most."
    ),
    examples=(
        ("Why an object is as it is", "explain foo/web"),
        ("One of its reconciles, by its number", "explain foo/web 12"),
        ("The health of a controller over all its objects", "explain foo"),
        ("Compare with what the cluster says now", "explain foo/web --live"),
        ("In a script: exit 0 when it is CONVERGED or GONE, else 1", "explain foo/web --exit-code"),
        ("Everything that the verdict stands on, for machines", "explain foo/web -o json"),
    ),
    flags=(
        Flag("--all-evidence", help="Show every fact that the verdict stands on, not the first few."),
        CONTROLLER,
        Flag(
            "--exit-code",
            help="Exit with 0 when it is CONVERGED (and its controller works) or GONE, with 1 for any other verdict, "
            "with 2 when that cannot be told.",
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
            help="text, json or yaml.",
        ),
        UID,
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.explain.main:run"),
    completes=bundled.candidates,
    recalls="explained",
)
