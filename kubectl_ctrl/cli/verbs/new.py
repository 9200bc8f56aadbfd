"""`kubectl ctrl new NAME`: a small controller that works, to start one's own from."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Given, Verb
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.suggestions import ctrl


def _new(app: App, given: Given) -> int:
    if len(given.arguments) != 1:
        raise UsageError("new takes one name.", next_step="for instance: kubectl ctrl new greeting")
    from kubectl_ctrl.loader import scaffold

    (name,) = given.arguments
    draft = scaffold.Draft(name=name, kind=given["kind"] or scaffold.kind_of(name), group=given["group"])
    folder = Path(given["dir"]) / name
    scaffold.write(draft, folder)
    for file in scaffold.FILES:
        app.answer(str(folder / file))
    word = str(folder) if folder.is_absolute() else f"./{folder}"
    app.narrate(f"next: {ctrl('install', word)} && {ctrl('run', word, '--reload')}")
    return 0


VERB = Verb(
    name="new",
    usage="new NAME [--kind KIND] [--group GROUP] [--dir DIR]",
    summary="Write the folder of a new controller, small and working.",
    details=(
        "The folder holds the controller, its CRD, its rights, an example, tests that\n"
        "need no cluster, and a README with the commands. Nothing is overwritten."
    ),
    examples=(
        ("A controller for Greeting objects, in ./greeting", "new greeting"),
        ("With a kind and a group of one's own", "new backups --kind Backup --group ops.example.org"),
        ("In another folder", "new greeting --dir controllers"),
    ),
    flags=(
        Flag(
            "--dir",
            value="DIR",
            default=".",
            help="Where the folder is put.",
        ),
        Flag(
            "--group",
            value="GROUP",
            default="example.com",
            help="The API group of the new kind: a domain of yours.",
        ),
        Flag("--kind", value="KIND", default="", help="The kind of object it is for; made from the name if not given."),
    ),
    body=_new,
    cluster=False,
)
