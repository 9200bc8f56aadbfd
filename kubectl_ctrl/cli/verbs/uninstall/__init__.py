"""`kubectl ctrl uninstall`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, ANNOTATION_PREFIX
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="uninstall",
    usage="uninstall CONTROLLER... [flags]",
    details=(
        "Removes only objects that install created, recognized by their labels and field\n"
        "manager. CRDs and their objects are kept, except with --crds=delete: the objects\n"
        "are deleted first, while the controller still runs and can finalize them; then\n"
        "the controller is asked to stop. A Deployment that runs the controller is always\n"
        "deleted, before its RBAC. Finalizers are never removed. A namespace is deleted\n"
        "if it is empty."
    ),
    examples=(
        ("Remove the RBAC of foo; keep its CRD and its objects", "uninstall foo"),
        ("List what would be deleted with the CRD", "uninstall foo --crds=delete"),
        ("Delete everything that belongs to foo", "uninstall foo --crds=delete --yes --drain 5m"),
        ("First let podcount remove its labels", "uninstall podcount --clean"),
    ),
    flags=(
        ALLOW_CONTEXT,
        ANNOTATION_PREFIX,
        Flag(
            "--clean",
            help="First let the controller revert what it wrote to objects that are not its own, with your rights.",
        ),
        Flag(
            "--crds",
            value="WHAT",
            default="keep",
            choices=("keep", "delete"),
            help="keep or delete the CRDs and their objects.",
        ),
        Flag(
            "--drain",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="How long to wait for objects to be deleted. On timeout everything else is kept, and the "
            "exit code is 124.",
        ),
        Flag(
            "--drain-with-run", help="Run the controller here while its objects are deleted, if it runs nowhere else."
        ),
        Flag(
            "--dry-run",
            value="WHERE",
            default="none",
            choices=("none", "client", "server"),
            help="none, client or server: only print what would be deleted.",
        ),
        Flag("--yes", help="Confirm that the CRDs and all their objects are deleted."),
    ),
    body=later("kubectl_ctrl.cli.verbs.uninstall.main:run"),
    completes=bundled.candidates,
)
