"""`kubectl ctrl example CONTROLLER`: YAML to pipe into kubectl."""

from __future__ import annotations

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.text import verbatim


def _example(app: App, given: ParsedCommandLine) -> int:
    if len(given.arguments) != 1:
        raise UsageError("example takes one controller.", next_step=f"for instance: {ctrl('example', BUNDLED[0])}")
    from kubectl_ctrl.loader import sources

    (sourced,) = sources.resolve(given.arguments)
    app.answer(verbatim(sourced.example().rstrip("\n")))
    return 0


VERB = Verb(
    name="example",
    usage="example CONTROLLER",
    examples=(
        ("Create the example object of foo", "example foo | kubectl apply -f -"),
        ("Print the example object", "example foo"),
        ("Save it, to edit it", "example foo > foo.yaml"),
        ("Create the example object of your own controller", "example ./mine | kubectl apply -f -"),
    ),
    body=_example,
    cluster=False,
    completes=bundled.candidates,
    takes_one=True,
)
