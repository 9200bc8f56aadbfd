"""`kubectl ctrl record`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LISTED, LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

ACTIONS = (
    ("list", "List the recorded runs and the size of the file."),
    ("show", "Show one run in detail."),
    ("path", "Print the path of the recording."),
    ("export", "Write runs, an object's attempts or one attempt to a file."),
    ("prune", "Delete old recordings and free disk space."),
)

# Flags that only some actions take, by their long names.
OWN = {"all": ("export", "prune"), "older-than": ("prune",), "run": ("prune",), "to": ("export",), "yes": ("prune",)}

VERB = Verb(
    name="record",
    usage="record list | show RUN | path | export WHAT | prune [flags]",
    details=(
        "list    all runs: the cluster, the number of attempts, and the state\n"
        "show    one run: its process, its controllers, and what each of them did\n"
        "path    the path of the recording\n"
        "export  RUN-N writes a case file of one attempt: JSON, for replay and bug\n"
        "        reports. RUN, TYPE/NAME or --all write a new recording, which trace,\n"
        "        explain, queue, rbac and replay read with --from FILE. The readable\n"
        "        part of a corrupt recording is saved in the same way.\n"
        "prune   lists what would be deleted; --yes deletes it. Active runs are kept.\n"
        "        run itself prunes its recording to 200 MB and seven days.\n"
        "\n"
        "No cluster is queried. These files never contain values of Secrets, but they\n"
        "contain names, specs and messages: check a file before you publish it."
    ),
    examples=(
        ("List the recorded runs", "record list"),
        ("Export one attempt for a bug report or a test", "record export r7f3-12 > case.json"),
        ("Export the recording of an object for a colleague", "record export foo/example-foo --to foo.db"),
        ("Read such a file", "trace foo/example-foo --from foo.db"),
        ("Delete recordings older than a day", "record prune --older-than 24h --yes"),
    ),
    flags=(
        *LOOKING_BACK,
        *LISTED,
        Flag("--all", help="export: everything. prune: all runs that are over."),
        Flag("--older-than", value="DURATION", type=DURATION, help="prune: recordings older than this."),
        Flag("--run", value="RUN", default="", help="prune: only this run."),
        Flag(
            "--to",
            value="FILE",
            default="",
            help="export: write this new file, readable only by you, instead of standard output.",
        ),
        UTC,
        Flag("--yes", help="prune: delete what was listed."),
    ),
    body=later("kubectl_ctrl.cli.verbs.record.main:run"),
    completes=lambda: ACTIONS,
    own=OWN,
    recalls="kept",
)
