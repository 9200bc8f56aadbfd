"""`kubectl ctrl uninstall`: its flags and its help. What it does is in `uninstalling`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, ANNOTATION_PREFIX
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="uninstall",
    usage="uninstall CONTROLLER... [flags]",
    summary="Take out what install made: rights by default, CRDs when asked to.",
    details=(
        "Only what install made goes: our labels and our field manager tell. CRDs and\n"
        "their objects stay, unless --crds=delete says otherwise; then the objects go\n"
        "first, while the controller still runs and can finish with them; then it is\n"
        "asked to stop. A Deployment that runs it goes in any case, before its rights.\n"
        "No finalizer is ever taken away, and a namespace goes when it is empty."
    ),
    examples=(
        ("Take out the rights of foo; its CRD and its objects stay", "uninstall foo"),
        ("See what would go with the CRD", "uninstall foo --crds=delete"),
        ("Let everything go that foo brought", "uninstall foo --crds=delete --yes --drain 5m"),
        ("Have podcount take its labels off first", "uninstall podcount --clean"),
    ),
    flags=(
        ALLOW_CONTEXT,
        ANNOTATION_PREFIX,
        Flag(
            "--clean",
            help="First have the controller take back what it wrote on objects that are not its own, with your rights.",
        ),
        Flag(
            "--crds",
            value="WHAT",
            default="keep",
            choices=("keep", "delete"),
            help="keep or delete: what becomes of CRDs and their objects.",
        ),
        Flag(
            "--drain",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="How long to wait for objects to go. When it runs out, everything else stays, and the code is 124.",
        ),
        Flag("--drain-with-run", help="Run the controller here while its objects go, where it runs nowhere else."),
        Flag(
            "--dry-run",
            value="WHERE",
            default="none",
            choices=("none", "client", "server"),
            help="none, client or server: say what would be deleted.",
        ),
        Flag("--yes", help="Yes, delete the CRDs with all their objects."),
    ),
    body=later("kubectl_ctrl.cli.verbs.uninstall.main:run"),
    completes=bundled.candidates,
)
