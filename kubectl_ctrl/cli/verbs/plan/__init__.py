"""`kubectl ctrl plan`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ANNOTATION_PREFIX, ATTEMPT_TIMEOUT, DOCUMENT
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

TYPES = (
    ("foo", "A Foo, by its name"),
    ("memcached", "A Memcached, by its name"),
    ("replicaset", "A ReplicaSet, for podcount"),
    ("deployment", "A Deployment, for the scaler"),
    ("statefulset", "A StatefulSet, for the scaler"),
)

VERB = Verb(
    name="plan",
    usage="plan (TYPE/NAME | TYPE NAME | -f FILE) [flags]",
    details=(
        "Runs one reconcile against the state of the cluster. Every write is sent as a\n"
        "server-side dry run, so the server validates and completes it; later reads\n"
        "return the planned objects. Nothing is changed, so plan works on any context.\n"
        "With -f, the objects of a file are planned as if kubectl apply had applied them\n"
        "first.\n\n"
        "Each row is a field: ~ changed, + created, - deleted, = unchanged. A change is\n"
        "marked if the server cannot check it because its object exists only in the plan.\n"
        "Events are listed but not sent; no Lease is taken; nothing is recorded.\n\n"
        "--diff compares whole objects, with the program in KUBECTL_EXTERNAL_DIFF if it\n"
        "is set, as kubectl diff does. Secrets are hidden from that program.\n\n"
        "Exit codes: 0 no changes, 1 changes, greater than 1 an error."
    ),
    examples=(
        ("Plan one reconcile of an object", "plan foo/web"),
        ("Plan as if this file were applied", "plan -f foo.yaml"),
        ("Repeat until nothing changes; no other controller acts", "plan memcached/cache --to-fixpoint"),
        ("Compare whole objects, with a program of your choice", "plan foo/web --diff"),
        ("Plan with your own controller, and print JSON", "plan greeting/hello --controller ./mine.py -o json"),
        ("Plan with the rights of another user", "plan foo/web --as jane --as-group developers"),
    ),
    flags=(
        ANNOTATION_PREFIX,
        ATTEMPT_TIMEOUT,
        Flag(
            "--controller",
            value="CONTROLLER",
            default="",
            help="The controller, if not the bundled one for that type: ./mine.py, ./mine, package.mine, or a name.",
        ),
        Flag(
            "--diff",
            help="Compare each object before and after as YAML; with -o json or yaml, print both objects whole.",
        ),
        Flag("-f", "--filename", value="FILE", default="", help="Plan for the objects in this file; - is stdin."),
        DOCUMENT,
        Flag("--timeout", value="DURATION", type=DURATION, default="2m", help="Exit with code 124 after this time."),
        Flag("--to-fixpoint", help="Repeat until there are no more writes, at most 10 times."),
    ),
    body=later("kubectl_ctrl.cli.verbs.plan.main:run"),
    completes=lambda: TYPES,
    recalls="objects",
)
