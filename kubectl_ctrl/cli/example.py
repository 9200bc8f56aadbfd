"""`kubectl ctrl example CONTROLLER`: YAML to pipe into kubectl."""

from __future__ import annotations

from kubectl_ctrl.cli import bundled
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given, Verb
from kubectl_ctrl.cli.grammar import Flag
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError


def _example(app: App, given: Given) -> int:
    if len(given.arguments) != 1:
        raise UsageError("example takes one controller.", next_step=f"for instance: kubectl ctrl example {BUNDLED[0]}")
    parts = [part for part in ("crd", "rbac") if given[part]]
    if len(parts) > 1:
        raise UsageError("--crd and --rbac exclude each other.", next_step="print one, then the other")
    (name,) = bundled.check(given.arguments)
    app.answer(bundled.manifest(name, parts[0] if parts else "example").rstrip("\n"))
    return 0


VERB = Verb(
    name="example",
    usage="example CONTROLLER [--crd | --rbac]",
    summary="Print a controller's example object, CRD or RBAC as YAML.",
    examples=(
        ("Create the example object of foo", "example foo | kubectl apply -f -"),
        ("Create its CRD first", "example foo --crd | kubectl apply -f -"),
        ("Read what it may do", "example foo --rbac"),
    ),
    flags=(
        Flag("--crd", help="Print the CustomResourceDefinition instead."),
        Flag("--rbac", help="Print the ClusterRole with the rights that it needs instead."),
    ),
    body=_example,
    cluster=False,
    completes=bundled.candidates,
)
