"""`kubectl ctrl replay`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import DOCUMENT, LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="replay",
    usage="replay (RUN-N | FILE) [flags]",
    details=(
        "Needs no cluster. The code gets the recorded reads, time and random numbers.\n"
        "Each write gets its recorded answer; its content is compared field by field,\n"
        "then the events and the outcome. FILE is a case file, as `record export` writes\n"
        "it.\n\n"
        "Not replayed is what code does without ctx: files, the network, other clocks,\n"
        "and state in memory between reconciles. Such work really happens, or starts\n"
        'empty, and can make the replay differ. The result of `await ctx.outside("price",\n'
        "look)` is recorded, and replayed without calling look.\n\n"
        "Not compared, because they depend only on the time of the run: metadata set by\n"
        "the server, times under keys such as lastTransitionTime, the delay of a retry,\n"
        "and the line number of an error. Values that are masked in the recording are\n"
        "compared as masked.\n\n"
        "A reconcile that was cut short is compared up to that point. A reconcile that\n"
        "still runs, whose process died, or that read a Secret cannot be replayed.\n\n"
        "Exit codes: 0 the same; 9 different, or it read an object that was not recorded\n"
        "(its name is printed); 4 not replayable, or not recorded; 2 any other error."
    ),
    examples=(
        ("Replay one reconcile with the current version of its code", "replay r7f3-12"),
        ("Replay with code at another path", "replay r7f3-12 --code ./mine.py"),
        ("Replay the case of a bug report, and print JSON", "replay case.json --code ./mine.py -o json"),
        ("Make the result of today's code the expected one", "replay case.json --code ./mine.py --bless"),
    ),
    flags=(
        Flag("--bless", help="Make the result of today's code the expected one in FILE, which is replaced atomically."),
        Flag(
            "--code",
            value="CONTROLLER",
            default="",
            help="The code to run, in the form that run takes: foo, ./mine.py, ./mine, package.mine. "
            "Default: the code that your own recording names. Required with FILE or --from, unless "
            "the controller is bundled: a file from somebody else must not choose the code that runs.",
        ),
        DOCUMENT,
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="Timeout of the reconcile, as --attempt-timeout of run.",
        ),
        *LOOKING_BACK,
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.replay.main:run"),
    recalls="attempts",
    takes_file=True,
)
