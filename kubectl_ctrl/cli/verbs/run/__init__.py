"""`kubectl ctrl run`: its flags and its help. What it does is in `start` and `session`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, ANNOTATION_PREFIX
from kubectl_ctrl.cli.parsing.grammar import DURATION, SIZE, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="run",
    usage="run CONTROLLER... [flags]",
    summary="Run controllers here, against the current context.",
    details=(
        "Prints a line for each reconcile: when, which object, its id, why it ran, what\n"
        "it wrote, how long it took and what follows. The first Ctrl-C lets what is under\n"
        "way finish; the second ends at once.\n"
        "\n"
        "A controller is a bundled one (kubectl ctrl list), or one of your own: a file\n"
        "(./mine.py), a folder with a controller.py (./mine), or a module (package.mine).\n"
        "Where there are several in one, ./mine.py:NAME says which. Your own code finds\n"
        "the modules beside it, and the packages of the environment that is active\n"
        "(VIRTUAL_ENV, of the same Python version) or that KUBECTL_CTRL_PYTHONPATH names."
    ),
    examples=(
        ("Run foo in the context's namespace", "run foo"),
        ("One of your own beside it, taking up every change of its code", "run foo ./mine.py --reload"),
        ("In all namespaces, with each reconcile as a line of JSON", "run foo -A --log json"),
        ("Until there is nothing left to do, for a script", "run foo --until-idle --timeout 2m"),
        ("Until one object is ready, for CI", "run foo --until foo/web=condition=Ready"),
        ("In place of the one that is installed in the cluster", "run foo --takeover"),
        ("On a cluster that is not local", "run foo --context staging --allow-context staging"),
    ),
    flags=(
        Flag("-A", "--all-namespaces", help="Work in all namespaces."),
        ALLOW_CONTEXT,
        ANNOTATION_PREFIX,
        Flag(
            "--as-installed",
            help="Let each controller act as the ServiceAccount that install made for it, with its rights alone.",
        ),
        Flag(
            "--attempt-timeout",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="The longest time for one reconcile.",
        ),
        Flag(
            "--drain",
            value="DURATION",
            type=DURATION,
            default="30s",
            help="How long reconciles under way may take to finish after the first Ctrl-C.",
        ),
        Flag(
            "--health-probe-bind-address",
            value="HOST:PORT",
            default="",
            help="Serve /healthz and /readyz there; off when not given.",
        ),
        Flag(
            "--leader-elect",
            value="WHEN",
            bare="true",
            default="auto",
            choices=("auto", "true", "false", "required"),
            help="auto, true, false or required: hold a Lease while running. auto is false on clusters that are local "
            "or ours, and true on others; required fails without the right to use Leases.",
        ),
        Flag(
            "--log",
            value="FORMAT",
            default="text",
            choices=("text", "json"),
            help="text, or json for machines: one object per line.",
        ),
        Flag(
            "--metrics-bind-address",
            value="HOST:PORT",
            default="",
            help="Serve Prometheus metrics there under /metrics; off when not given.",
        ),
        Flag("--once", help="Reconcile each object that is there once, without retries, and end."),
        Flag(
            "--record",
            value="FILE",
            default="auto",
            choices=("auto", "off"),
            help="Where every reconcile is recorded for trace and explain: auto is one file for all runs, in the "
            "user's state folder; off records nothing.",
        ),
        Flag(
            "--record-max-age",
            value="DURATION",
            type=DURATION,
            default="168h",
            help="What is older goes from the recording, except for the newest run.",
        ),
        Flag(
            "--record-max-size",
            value="SIZE",
            type=SIZE,
            default="200MB",
            help="When the recording is bigger, the oldest of it goes.",
        ),
        Flag(
            "--reload",
            help="Take up changes of the controllers' code while running: reconciles under way may end, caches stay, "
            "and code that cannot be loaded changes nothing.",
        ),
        Flag(
            "--resync",
            value="DURATION",
            type=DURATION,
            default="10h",
            help="Reconcile everything again after this time, give or take a tenth; 0 for never.",
        ),
        Flag(
            "-l",
            "--selector",
            value="SELECTOR",
            default="",
            help="Only objects with these labels (for example app=web).",
        ),
        Flag(
            "--takeover",
            help="Scale the controller's Deployment in the cluster to zero while this one runs, and restore it after.",
        ),
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default=None,
            help="End with code 124 after this time; 5m with --once, --until and --until-idle, never otherwise.",
        ),
        Flag(
            "--until",
            value="TYPE/NAME=CONDITION",
            multiple=True,
            help="End when this holds, as kubectl wait means it: foo/web=condition=Ready, =condition=Ready=False, "
            "=jsonpath={.status.phase}=Running, =create or =delete. Repeatable: all at the same time.",
        ),
        Flag("--until-idle", help="End when nothing is left to do."),
        Flag("--utc", help="Show times in UTC rather than in local time."),
        Flag("--yes", help="Confirm --takeover where the cluster is not local or its last holder may still run."),
        Flag("--workers", value="N", type=int, default=8, help="How many reconciles of a controller run at once."),
    ),
    body=later("kubectl_ctrl.cli.verbs.run.main:run"),
    completes=bundled.candidates,
)
