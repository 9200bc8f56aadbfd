"""`kubectl ctrl options`: the flags that all verbs take."""

from __future__ import annotations

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import COMMON_FLAGS, KUBECTL_FLAGS
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb, describe
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.text import verbatim

# Also for the reference.
BY_VARIABLE = """\
The environment variable KUBECTL_CTRL_<FLAG> sets a flag, for example
KUBECTL_CTRL_REQUEST_TIMEOUT=10s. Exceptions are --yes, --allow-context,
--takeover, --force and --crds: give them with each call."""


def _options(app: App, given: ParsedCommandLine) -> int:
    if given.arguments:
        raise UsageError("options takes no arguments.", next_step=VERB.hint)
    app.answer(verbatim(f"All verbs take these flags:\n\n{describe(COMMON_FLAGS)}"))
    also = "Verbs that use a cluster of your kubeconfig also take kubectl's own flags:"
    app.answer(verbatim(f"\n{also}\n\n{describe(KUBECTL_FLAGS)}"))
    app.answer(verbatim(f"\n{BY_VARIABLE}"))
    return 0


VERB = Verb(
    name="options",
    usage="options",
    examples=(
        ("List the flags", "options"),
        ("Search for a flag", "options | grep -A 1 timeout"),
        ("Save the list to a file", "options > options.txt"),
    ),
    body=_options,
    cluster=False,
)
