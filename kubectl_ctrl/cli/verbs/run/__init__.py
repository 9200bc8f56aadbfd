"""`kubectl ctrl run`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, ANNOTATION_PREFIX, ATTEMPT_TIMEOUT
from kubectl_ctrl.cli.parsing.grammar import DURATION, SIZE, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="run",
    usage="run CONTROLLER... [flags]",
    details=(
        "Prints a line for each reconcile: time, object, id, cause, writes, duration and\n"
        "what happens next. The first Ctrl-C lets running reconciles finish; the second\n"
        "exits at once.\n\n"
        "A controller is a bundled one (kubectl ctrl list) or your own: a file\n"
        "(./mine.py), a folder with a controller.py (./mine), or a module (package.mine).\n"
        "./mine.py:NAME selects one of several. Your code can import the modules beside\n"
        "it, and the packages of the active environment (VIRTUAL_ENV, with the same\n"
        "Python version) or of KUBECTL_CTRL_PYTHONPATH."
    ),
    examples=(
        ("Run foo in the namespace of the context", "run foo"),
        ("Run foo and your own controller, and reload changed code", "run foo ./mine.py --reload"),
        ("Run in all namespaces, and print each reconcile as a line of JSON", "run foo -A --log json"),
        ("In a script: run until no work is left", "run foo --until-idle --timeout 2m"),
        ("In CI: run until an object is ready", "run foo --until foo/web=condition=Ready"),
        ("Run in place of the controller that is installed in the cluster", "run foo --takeover"),
        ("Run against a cluster that is not local", "run foo --context staging --allow-context staging"),
    ),
    flags=(
        Flag("-A", "--all-namespaces", help="Run in all namespaces."),
        ALLOW_CONTEXT,
        ANNOTATION_PREFIX,
        Flag(
            "--as-installed",
            help="Run each controller as the ServiceAccount that install created for it, with only its rights.",
        ),
        ATTEMPT_TIMEOUT,
        Flag(
            "--drain",
            value="DURATION",
            type=DURATION,
            default="30s",
            help="How long to wait for running reconciles after the first Ctrl-C.",
        ),
        Flag(
            "--health-probe-bind-address",
            value="HOST:PORT",
            default="",
            help="Address that serves /healthz and /readyz; off by default.",
        ),
        Flag(
            "--leader-elect",
            value="WHEN",
            bare="true",
            default="auto",
            choices=("auto", "true", "false", "required"),
            help="auto, true, false or required: hold a Lease while running. auto is false on local and "
            "managed clusters, and true on others. required fails without the right to use Leases.",
        ),
        Flag(
            "--log",
            value="FORMAT",
            default="text",
            choices=("text", "json"),
            help="Log format: text, or json with one object per line.",
        ),
        Flag(
            "--metrics-bind-address",
            value="HOST:PORT",
            default="",
            help="Address that serves Prometheus metrics under /metrics; off by default.",
        ),
        Flag("--once", help="Reconcile every existing object once, without retries, and exit."),
        Flag(
            "--record",
            value="FILE",
            default="auto",
            choices=("auto", "off"),
            help="The file to record reconciles in, for trace and explain. auto is one file for all runs, "
            "in the user's state folder; off disables recording.",
        ),
        Flag(
            "--record-max-age",
            value="DURATION",
            type=DURATION,
            default="168h",
            help="Delete recordings older than this; the newest run is kept.",
        ),
        Flag(
            "--record-max-size",
            value="SIZE",
            type=SIZE,
            default="200MB",
            help="Delete the oldest recordings when the file is larger than this.",
        ),
        Flag(
            "--reload",
            help="Reload the controllers when their code changes: running reconciles may finish, caches "
            "are kept, and code that cannot be loaded changes nothing.",
        ),
        Flag(
            "--resync",
            value="DURATION",
            type=DURATION,
            default="10h",
            help="Reconcile all objects again after this time, plus or minus 10%; 0 disables it.",
        ),
        Flag(
            "-l",
            "--selector",
            value="SELECTOR",
            default="",
            help="Only objects that match this label selector (for example app=web).",
        ),
        Flag(
            "--takeover",
            help="Scale the controller's Deployment in the cluster to zero while this command runs, and "
            "restore it afterwards.",
        ),
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default=None,
            help="Exit with code 124 after this time. Default: 5m with --once, --until and --until-idle, "
            "otherwise no limit.",
        ),
        Flag(
            "--until",
            value="TYPE/NAME=CONDITION",
            multiple=True,
            help="Stop when this condition holds, written as for kubectl wait: foo/web=condition=Ready, "
            "=condition=Ready=False, =jsonpath={.status.phase}=Running, =create or =delete. Can be "
            "repeated; all conditions must hold at the same time.",
        ),
        Flag("--until-idle", help="Stop when no work is left."),
        Flag("--utc", help="Show times in UTC instead of local time."),
        Flag("--yes", help="Confirm --takeover if the cluster is not local or its last holder may still run."),
        Flag("--workers", value="N", type=int, default=8, help="Number of concurrent reconciles of each controller."),
    ),
    body=later("kubectl_ctrl.cli.verbs.run.main:run"),
    completes=bundled.candidates,
)
