"""`kubectl ctrl record`: its flags and its help. What it does is in `keeping`, `exporting` and `weeding`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LISTED, LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

ACTIONS = (
    ("list", "List the runs that are recorded, and how big the file is."),
    ("show", "Show one run in detail."),
    ("path", "Print where recordings are kept."),
    ("export", "Write runs, an object's attempts or one attempt to a file."),
    ("prune", "Take recordings away, and give the room back."),
)

# The flags that only some actions take, by their long names.
OWN = {"all": ("export", "prune"), "older-than": ("prune",), "run": ("prune",), "to": ("export",), "yes": ("prune",)}

VERB = Verb(
    name="record",
    usage="record list | show RUN | path | export WHAT | prune [flags]",
    summary="List, export and prune what runs have recorded.",
    details=(
        "list    every run: of which cluster, what it did, whether it still goes on\n"
        "show    one run: its process, its controllers, what each of them did\n"
        "path    the file that run records to\n"
        "export  RUN-N makes a case file of one attempt: JSON that replay takes, and a\n"
        "        bug report. RUN, TYPE/NAME or --all make a recording of its own, which\n"
        "        trace, explain, queue, rbac and replay take with --from FILE. What can\n"
        "        still be read of a damaged recording is saved the same way.\n"
        "prune   says what would go, and takes it with --yes. Runs that still go on are\n"
        "        left as they are. By itself run keeps 200 MB and seven days.\n"
        "\n"
        "No cluster is asked for anything. Values of Secrets are in none of these files;\n"
        "names, specs and messages are: look into a file before you publish it."
    ),
    examples=(
        ("List what is recorded", "record list"),
        ("Write one attempt to a file for a bug report or a test", "record export r7f3-12 > case.json"),
        ("Hand what is recorded of an object to a colleague", "record export foo/example-foo --to foo.db"),
        ("Look into such a file", "trace foo/example-foo --from foo.db"),
        ("Take away what is older than a day", "record prune --older-than 24h --yes"),
    ),
    flags=(
        *LOOKING_BACK,
        *LISTED,
        Flag("--all", help="export: everything. prune: every run that is over."),
        Flag("--older-than", value="DURATION", type=DURATION, help="prune: what began longer ago than this."),
        Flag("--run", value="RUN", default="", help="prune: this run alone."),
        Flag("--to", value="FILE", default="", help="export: make this file, for your eyes only, rather than print."),
        UTC,
        Flag("--yes", help="prune: take away what was listed."),
    ),
    body=later("kubectl_ctrl.cli.verbs.record.main:run"),
    completes=lambda: ACTIONS,
    own=OWN,
    recalls="kept",
)
