from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.cli.verbs.table import VERBS, VerbEntry
from kubectl_ctrl.errors import ClusterError, CtrlError, TimedOut
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.user import User

OVERVIEW = """\
kubectl ctrl runs Kubernetes controllers from your laptop and records why each
reconcile ran.

Usage:
  kubectl ctrl VERB [arguments] [flags]

Verbs:
  up          Create a local cluster and run controllers on it.
  down        Delete a cluster that up created, and everything that runs on it.
  run         Run controllers on this machine against the current context.
  trace       Show every reconcile of an object: why it ran and what it did.
  plan        Show what a controller would change, without changing anything.
  list        List the bundled controllers and where they are installed and run.
  install     Install the CRDs and the RBAC of controllers into the cluster.
  uninstall   Remove the RBAC of controllers; with --crds=delete, also the CRDs.
  example     Print a controller's example object as YAML.
  simulate    Show what the scaler will do with a workload, and when.
  explain     Explain the state of an object and what happens next.
  queue       Show the work queues of controllers that run on this machine.
  rbac        Print a controller's rights: granted, used, missing or unused.
  replay      Run a recorded reconcile again with today's code, and compare.
  record      List, export and prune recorded runs.
  cluster     Create, list, use and delete local clusters.
  sandbox     Run a command, such as a test suite, on a new temporary cluster.
  logs        Print the logs of controllers in the background.
  stop        Stop controllers that run on this machine, in any terminal.
  status      List the controllers that run on this machine.
  completion  Complete verbs, flags, controllers and objects in your shell.
  new         Create the folder of a new controller, small and working.
  doctor      Check this machine and the cluster for problems, and fix them.
  options     List the flags that all verbs take.
  version     Print the version of kubectl ctrl.

Use "kubectl ctrl VERB --help" for more about a verb.
Use "kubectl ctrl options" for the flags that all verbs take.
"""
EXAMPLE = """\
Print a controller's example object as YAML.

Examples:
  # Create the example object of foo
  kubectl ctrl example foo | kubectl apply -f -

  # Print the example object
  kubectl ctrl example foo

  # Save it, to edit it
  kubectl ctrl example foo > foo.yaml

  # Create the example object of your own controller
  kubectl ctrl example ./mine | kubectl apply -f -

Usage:
  kubectl ctrl example CONTROLLER

Use "kubectl ctrl options" for the flags that all verbs take.
"""

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview(capsys: Captured, words: list[str]) -> None:
    assert cli.main(words) == 0
    assert capsys.readouterr() == (OVERVIEW, "")
    assert max(map(len, OVERVIEW.splitlines())) <= 80


@pytest.mark.parametrize("words", [["example", "--help"], ["help", "example"], ["example", "foo", "-h"]])
def test_the_help_of_a_verb(capsys: Captured, words: list[str]) -> None:
    assert cli.main(words) == 0
    assert capsys.readouterr() == (EXAMPLE, "")


@pytest.mark.parametrize("name", table.names())
def test_every_help_fits_80_columns_and_shows_how(capsys: Captured, name: str) -> None:
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert f"\n  kubectl ctrl {name}" in text
    assert "Examples:\n" in text


def test_the_options_fit_80_columns(capsys: Captured) -> None:
    assert cli.main(["options"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rnu"], "error[CTRL-USAGE]: Unknown verb: 'rnu'.\nnext: did you mean run?\n"),
        (
            ["zzz"],
            (f"error[CTRL-USAGE]: Unknown verb: 'zzz'.\nnext: the verbs are: {', '.join(table.names())}\n"),
        ),
        (
            ["version", "-x"],
            "error[CTRL-USAGE]: Unknown shorthand flag: 'x' in '-x'.\nnext: kubectl ctrl version --help\n",
        ),
        (
            ["version", "--color=red"],
            "error[CTRL-USAGE]: Invalid value for --color: 'red'.\nnext: use one of: auto, always, never\n",
        ),
        (
            ["example", "fooo"],
            "error[CTRL-USAGE]: There is no controller 'fooo'.\nnext: did you mean foo?\n",
        ),
    ],
)
def test_wrong_words_end_with_2_and_at_most_three_lines(capsys: Captured, words: list[str], told: str) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("logs --since 5m", "kubectl ctrl logs --help"),
        ("logs --followw", "did you mean --follow?"),
        ("run --tail 5", "kubectl ctrl run --help"),
        ("run --namspace x", "did you mean --namespace?"),
        ("run --nmaespace x", "did you mean --namespace?"),
        ("run --all-namespace", "did you mean --all-namespaces?"),
        ("run --all", "did you mean --all-namespaces?"),
        ("run --context-name x", "did you mean --context?"),
        ("run --kubeconf x", "did you mean --kubeconfig?"),
        ("run -Z", "kubectl ctrl run --help"),
        ("run --n x", "kubectl ctrl run --help"),
        ("run ---x", "kubectl ctrl run --help"),
        ("help cluster --nope", "kubectl ctrl cluster --help"),
    ],
)
def test_of_an_unknown_flag_only_what_is_near_is_suggested(capsys: Captured, line: str, step: str) -> None:
    assert cli.main(line.split()) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [f"next: {step}"]


@pytest.mark.parametrize(
    ("program", "have", "caller", "says"),
    [
        ("/usr/local/bin/kubectl-ctrl", "", "", "kubectl-ctrl"),
        ("/usr/local/bin/kubectl-ctrl", "kubectl", "", "kubectl ctrl"),
        ("/usr/local/bin/kubectl-ctrl", "", "/opt/kubectl", "kubectl ctrl"),
        ("/usr/lib/python3/kubectl_ctrl/__main__.py", "", "", "kubectl ctrl"),
    ],
)
def test_without_kubectl_commands_are_told_as_they_can_be_typed(
    tmp_path: Path, program: str, have: str, caller: str, says: str
) -> None:
    if have:
        (tmp_path / have).touch(0o755)

    def said(*words: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        environ = {"PATH": str(tmp_path), "KUBECTL_PATH": caller, "HOME": str(tmp_path)}
        cli.main(words, App(out=out, err=err, user=User(environ), program=program))
        return out.getvalue() + err.getvalue()

    assert said("logs", "--since", "5m").splitlines()[1] == f"next: {says} logs --help"
    assert f"\n  {says} example foo > foo.yaml\n" in said("example", "--help")
    assert f"\n  {says} VERB [arguments] [flags]\n" in said()


def _fail(app: App, given: ParsedCommandLine) -> int:
    app.machine = given["machine"]
    raise ERRORS[given.arguments[0]]


# A verb that fails in the way that its argument names.
VERB = Verb(name="fail", usage="fail", examples=(), flags=(Flag("--machine"),), body=_fail, cluster=False)
TIMED_OUT = TimedOut("It took too long.", next_step="wait")
LATE = TimedOut("It was not made.", next_step="look")
LATE.output, LATE.last_words = "first\n\x1bsecond\n", ("\x1bsecond",)
ERRORS: dict[str, BaseException] = {
    "plain": CtrlError("It failed."),
    "timeout": TIMED_OUT,
    "cluster": ClusterError(
        "It was not made.", next_step="look", output="first\n\x1bsecond\n", last_words=("\x1bsecond",)
    ),
    "late": LATE,
    "bug": ValueError("a\x1bb"),
    "disk": OSError(errno.ENOSPC, "No space left on device", "/a/fi\x1ble"),
    "quota": ExceptionGroup("unhandled errors in a TaskGroup", [OSError(errno.EDQUOT, "Disk quota exceeded")]),
    "interrupt": KeyboardInterrupt(),
    "grouped": ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("inner", [TIMED_OUT])]),
}
QUOTA = "next: free disk space: the quota is used up\n"
BUG = (
    "error[CTRL-ERROR]: This is a bug in kubectl-ctrl: ValueError: a\\x1bb.\nnext: repeat with -v 6 and report the "
    "output\n"
)


@pytest.fixture
def _verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "VERBS", (*VERBS, VerbEntry("fail", CommandEffect.NONE, "Fail.")))
    monkeypatch.setitem(sys.modules, "kubectl_ctrl.cli.verbs.fail", sys.modules[__name__])


@pytest.mark.usefixtures("_verb")
@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        ("plain", 1, "error[CTRL-ERROR]: It failed.\n"),
        ("timeout", 124, "error[CTRL-TIMEOUT]: It took too long.\nnext: wait\n"),
        ("grouped", 124, "error[CTRL-TIMEOUT]: It took too long.\nnext: wait\n"),
        ("bug", 1, BUG),
        (
            "disk",
            1,
            "error[CTRL-ERROR]: '/a/fi\\x1ble' cannot be used: No space left on device.\nnext: free disk space\n",
        ),
        ("quota", 1, "error[CTRL-ERROR]: A file cannot be used: Disk quota exceeded.\n" + QUOTA),
        ("interrupt", 130, ""),
    ],
)
def test_every_ending_is_an_exit_code_and_no_traceback(capsys: Captured, error: str, code: int, told: str) -> None:
    assert cli.main(["fail", error]) == code
    assert capsys.readouterr() == ("", told)


@pytest.mark.usefixtures("_verb")
@pytest.mark.parametrize("words", [["-v", "6"], ["-v=6"], ["-v6"], ["--v=9"], ["--v", "6"]])
def test_from_v_6_on_the_traceback_is_shown_too(capsys: Captured, words: list[str]) -> None:
    assert cli.main(["fail", "plain", *words]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):")
    assert told.endswith("error[CTRL-ERROR]: It failed.\n")
    cli.main(["fail", "plain", "-v=5"])
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.usefixtures("_verb")
@pytest.mark.parametrize(("error", "id_", "code"), [("cluster", "CTRL-CLUSTER", 1), ("late", "CTRL-TIMEOUT", 124)])
def test_of_what_the_program_behind_a_cluster_said_the_end_is_shown_and_all_when_asked_for(
    capsys: Captured, error: str, id_: str, code: int
) -> None:
    told = f"error[{id_}]: It was not made.\nnext: look\n"
    assert cli.main(["fail", error]) == code
    assert capsys.readouterr().err == f"{told}  \\x1bsecond\n"
    assert cli.main(["fail", error, "-v=1"]) == code
    assert capsys.readouterr().err == f"  first\n  \\x1bsecond\n{told}"


@pytest.mark.usefixtures("_verb")
@pytest.mark.parametrize(("words", "said"), [([], "\x1bsecond"), (["-v=1"], "first\n\x1bsecond")])
def test_a_machine_gets_it_as_a_field(capsys: Captured, words: list[str], said: str) -> None:
    assert cli.main(["fail", "cluster", "--machine", *words]) == 1
    told = json.loads(capsys.readouterr().err)
    assert (told["error"], told["next"], told["output"]) == ("CTRL-CLUSTER", "look", said)


@pytest.mark.usefixtures("_verb")
def test_a_machine_gets_the_error_as_an_object(capsys: Captured) -> None:
    assert cli.main(["fail", "timeout", "--machine"]) == 124
    told = json.loads(capsys.readouterr().err)
    told.pop("time")
    assert told == {
        "level": "error",
        "message": "It took too long.",
        "action": "failed",
        "error": "CTRL-TIMEOUT",
        "exitCode": 124,
        "next": "wait",
    }
