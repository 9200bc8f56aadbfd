"""`kubectl ctrl replay`: its flags and its help. What it does is in `replaying`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="replay",
    usage="replay (RUN-N | FILE) [flags]",
    summary="Execute a recorded reconcile again with today's code, and compare.",
    details=(
        "Needs no cluster. The code gets the reads, the time and the chance of then;\n"
        "each write is answered as it was, and what it asks for is compared field by\n"
        "field, then its events and its outcome. FILE is what `record export` makes.\n"
        "\n"
        "Not replayed is what code does beside ctx: files, the network, a clock of its\n"
        "own, and what it keeps in memory from one reconcile to the next. It happens\n"
        "for real, or starts empty, and can make a replay differ. What it asks for with\n"
        '`await ctx.outside("price", look)` is recorded, and told again without looking.\n'
        "\n"
        "Not compared, because it says when and not what: metadata that is the server's\n"
        "own, times under keys such as lastTransitionTime, the delay of a retry, and\n"
        "the line at which an error was raised. Values that a recording hides are\n"
        "compared as hidden.\n"
        "\n"
        "A reconcile that was cut is compared as far as it came. One that still runs,\n"
        "whose process died, or that read a Secret cannot be replayed.\n"
        "\n"
        "Exit code 0: the same. 9: it differs, or reads what was not recorded (named).\n"
        "4: it cannot be replayed, or is not recorded. 2: any other error."
    ),
    examples=(
        ("Execute one reconcile again, with the code that made it as it is now", "replay r7f3-12"),
        ("With the code in another place", "replay r7f3-12 --code ./mine.py"),
        ("What a bug report brought along, for a machine", "replay case.json --code ./mine.py -o json"),
        ("Expect from now on what today's code does", "replay case.json --code ./mine.py --bless"),
    ),
    flags=(
        Flag("--bless", help="Let FILE expect what today's code does. It is replaced as a whole, or not at all."),
        Flag(
            "--code",
            value="CONTROLLER",
            default="",
            help="The code to execute, as run takes it: foo, ./mine.py, ./mine, package.mine. When not given, the code "
            "that your own recording names. With FILE or --from it is required unless the controller is bundled: a "
            "file that somebody sent must not choose the code that is run.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("text", "json", "yaml"),
            help="json or yaml; text when not given.",
        ),
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="The longest time for the reconcile, as --attempt-timeout of run is.",
        ),
        *LOOKING_BACK,
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.replay.main:run"),
    recalls="attempts",
    takes_file=True,
)
