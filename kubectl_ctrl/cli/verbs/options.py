"""`kubectl ctrl options`: the flags that every verb takes."""

from __future__ import annotations

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import COMMON_FLAGS, KUBECTL_FLAGS
from kubectl_ctrl.cli.parsing.verb import Given, Verb, describe
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.text import verbatim

# Also for the reference.
BY_VARIABLE = """\
KUBECTL_CTRL_<FLAG> in the environment sets a flag, as in
KUBECTL_CTRL_REQUEST_TIMEOUT=10s; but for --yes, --allow-context, --takeover,
--force and --crds, which are about one call."""


def _options(app: App, given: Given) -> int:
    if given.arguments:
        raise UsageError("options takes no arguments.", next_step=VERB.hint)
    app.answer(verbatim(f"Every verb takes these flags:\n\n{describe(COMMON_FLAGS)}"))
    also = "Every verb that is about a cluster of your kubeconfig also takes kubectl's own:"
    app.answer(verbatim(f"\n{also}\n\n{describe(KUBECTL_FLAGS)}"))
    app.answer(verbatim(f"\n{BY_VARIABLE}"))
    return 0


VERB = Verb(
    name="options",
    usage="options",
    summary="List the flags that every verb takes.",
    examples=(
        ("Show the flags that every verb takes", "options"),
        ("Look for one of them", "options | grep -A 1 timeout"),
        ("Save what they say for reading", "options > options.txt"),
    ),
    body=_options,
    cluster=False,
)
