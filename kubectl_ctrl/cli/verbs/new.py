"""`kubectl ctrl new NAME`: the folder of a small controller that works."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.suggestions import ctrl


def _new(app: App, given: ParsedCommandLine) -> int:
    if len(given.arguments) != 1:
        raise UsageError("new takes one name.", next_step="for instance: kubectl ctrl new greeting")
    from kubectl_ctrl.loader import scaffold

    (name,) = given.arguments
    draft = scaffold.Draft(
        name=name, kind=given["kind"] or scaffold.kind_of(name), group=given["group"], full=given["full"]
    )
    folder = Path(given["dir"]) / name
    scaffold.write(draft, folder)
    for file in scaffold.FILES:
        app.answer(str(folder / file))
    word = str(folder) if folder.is_absolute() else f"./{folder}"
    app.narrate(f"next: {ctrl('install', word)} && {ctrl('run', word, '--reload')}")
    return 0


VERB = Verb(
    name="new",
    usage="new NAME [--kind KIND] [--group GROUP] [--dir DIR] [--full]",
    details=(
        "The folder contains the controller, its CRD, its RBAC, an example object, tests\n"
        "that need no cluster, and a README with the commands. Nothing is overwritten.\n"
        "The controller has some 30 lines. With --full it also waits for another object,\n"
        "finds its objects by an index, and records events."
    ),
    examples=(
        ("Create a controller for Greeting objects in ./greeting", "new greeting"),
        ("Choose the kind and the API group", "new backups --kind Backup --group ops.example.org"),
        ("Create a longer controller, which also waits for another object", "new welcome --full"),
        ("Create it in another folder", "new greeting --dir controllers"),
    ),
    flags=(
        Flag("--dir", value="DIR", default=".", help="The parent folder."),
        Flag("--full", help="Write a longer controller, which also waits, has an index and records events."),
        Flag(
            "--group", value="GROUP", default="example.com", help="The API group of the new kind, in a domain of yours."
        ),
        Flag("--kind", value="KIND", default="", help="The kind of its objects; derived from NAME by default."),
    ),
    body=_new,
    cluster=False,
)
