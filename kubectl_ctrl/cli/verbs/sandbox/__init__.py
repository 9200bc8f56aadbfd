"""`kubectl ctrl sandbox`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="sandbox",
    usage="sandbox [flags] [-- COMMAND ARG...]",
    details=(
        "Starts a new sandbox, an API server in Python and the controllers of a cluster,\n"
        "runs the command with KUBECONFIG and KUBECACHEDIR set to it, and deletes it when\n"
        "the command exits. Several can run at the same time. The command does not get\n"
        "variables that select other clusters. Nothing is downloaded.\n\n"
        "Without a command it prints these two variables and serves until Ctrl-C.\n\n"
        "Ctrl-C and other signals reach the command; the sandbox stays until it exits.\n"
        "The exit code is that of the command, 128+N if signal N ended it, and 5 if the\n"
        "command cannot be started."
    ),
    examples=(
        ("Run a test suite on a new cluster", "sandbox -- pytest tests"),
        ("Run Go tests that use envtest", "sandbox -- env USE_EXISTING_CLUSTER=true go test ./..."),
        ("Try something in a shell; the cluster is gone after exit", "sandbox --nodes 3 -- bash"),
        ("Serve a new cluster until Ctrl-C", "sandbox --port 8443"),
    ),
    flags=(
        Flag("--nodes", value="N", type=int, default=1, help="Number of nodes."),
        Flag("--port", value="N", type=int, default=0, help="The port of the API server on loopback; a free one if 0."),
    ),
    body=later("kubectl_ctrl.cli.verbs.sandbox.main:run"),
    cluster=False,
    takes_file=True,
)
