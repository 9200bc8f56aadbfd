"""`kubectl ctrl plan`: its flags and its help. What it does is in `planning`, loaded when it does it."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.cli.parsing.flags import ANNOTATION_PREFIX
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

TYPES = (
    ("foo", "A Foo, by its name"),
    ("memcached", "A Memcached, by its name"),
    ("replicaset", "A ReplicaSet, for podcount"),
    ("deployment", "A Deployment, for the scaler"),
    ("statefulset", "A StatefulSet, for the scaler"),
)


def _types() -> Sequence[tuple[str, str]]:
    return TYPES


VERB = Verb(
    name="plan",
    usage="plan (TYPE/NAME | TYPE NAME | -f FILE) [flags]",
    summary="Print what a controller would do with an object, without doing it.",
    details=(
        "Runs one reconcile on what the cluster holds. Every write is sent as a dry run,\n"
        "so that the server checks and completes it; later reads see what was planned.\n"
        "Nothing is changed: it works on any context. With -f the objects of a file are\n"
        "taken as if kubectl apply had applied them before.\n"
        "\n"
        "A row for each field: ~ changed, + created, - deleted, = left as it is. What the\n"
        "server cannot check, because an object exists in the plan alone, is marked.\n"
        "Events are listed and not sent; no lease is taken; nothing is recorded.\n"
        "\n"
        "--diff compares whole objects, with the program in KUBECTL_EXTERNAL_DIFF if it\n"
        "is set, as kubectl diff does; Secrets are hidden before it sees them.\n"
        "\n"
        "Exit code 0: nothing to change. 1: changes. Above 1: an error."
    ),
    examples=(
        ("What foo would do with one object", "plan foo/web"),
        ("What it would do if this file were applied", "plan -f foo.yaml"),
        ("Until it comes to rest, while all other controllers stand still", "plan memcached/cache --to-fixpoint"),
        ("Whole objects, compared with a program of your choice", "plan foo/web --diff"),
        ("With a controller of your own, for a machine", "plan greeting/hello --controller ./mine.py -o json"),
        ("With somebody else's rights", "plan foo/web --as jane --as-group developers"),
    ),
    flags=(
        ANNOTATION_PREFIX,
        Flag(
            "--attempt-timeout",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="The longest time for one reconcile.",
        ),
        Flag(
            "--controller",
            value="CONTROLLER",
            default="",
            help="The controller, where not the bundled one of that type: ./mine.py, ./mine, package.mine, or a name.",
        ),
        Flag("--diff", help="Compare each object before and after as YAML; with -o json or yaml give both whole."),
        Flag("-f", "--filename", value="FILE", default="", help="Plan for the objects in this file; - is stdin."),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("text", "json", "yaml"),
            help="json or yaml; text when not given.",
        ),
        Flag("--timeout", value="DURATION", type=DURATION, default="2m", help="End with code 124 after this time."),
        Flag("--to-fixpoint", help="Repeat until nothing more would be written, at most 10 times."),
    ),
    body=later("kubectl_ctrl.cli.verbs.plan.main:run"),
    completes=_types,
    recalls="objects",
)
