"""`kubectl ctrl install`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, TEMPLATES
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="install",
    usage="install [CONTROLLER...] [flags]",
    details=(
        "Each controller gets its CRDs, the namespace CONTROLLER-system with a\n"
        "ServiceAccount, and the roles of its rbac.yaml, bound to that ServiceAccount.\n"
        "Objects are applied on the server side; objects that are already up to date are\n"
        "not written. Without CONTROLLER: all bundled controllers."
    ),
    examples=(
        ("Install foo, and wait until its CRD can be used", "install foo"),
        ("Install only the CRDs of all bundled controllers", "install --crds-only"),
        ("Show what would change, checked by the server", "install foo --dry-run=server"),
        ("Print YAML for another tool", "install foo --print | kubectl apply -f -"),
    ),
    flags=(
        ALLOW_CONTEXT,
        Flag("--crds-only", help="Install only the CRDs."),
        Flag(
            "--dry-run",
            value="WHERE",
            default="none",
            choices=("none", "client", "server"),
            help="none, client or server: only print what would be done. client compares on this machine; "
            "server lets the server check everything, and saves nothing.",
        ),
        Flag(
            "--force-conflicts",
            help="Take over fields of other field managers, and CRDs that install did not create and that differ.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("name", "json", "yaml", *TEMPLATES),
            help="Output format of the installed objects, as a List: name, json, yaml, jsonpath=..., "
            "jsonpath-as-json=..., jsonpath-file=..., custom-columns=..., custom-columns-file=... By "
            "default, one line for each object.",
        ),
        Flag("--print", help="Print the objects as YAML for kubectl apply -f -; no cluster is needed."),
        Flag("--rbac-only", help="Install everything except the CRDs."),
        Flag(
            "--wait",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="How long to wait until the CRDs can be used; 0 does not wait. Exit code 124 on timeout.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.install.main:run"),
    completes=bundled.candidates,
)
