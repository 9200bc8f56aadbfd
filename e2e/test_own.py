"""Custom controllers on a real API server: files, folders, modules, several at once; and each mistake."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.crds import install_crd
from e2e.ctrl import PROGRAM, Ctrl
from e2e.kube import Audit, Kubectl, Ran, run, wait_until

HEAD = """\
from kubectl_ctrl import CONFIGMAPS, PODS, SECRETS, controller


async def reconcile(ctx, request):
    obj = await ctx.read.get(CONFIGMAPS, request.name)
    if obj is not None and request.name == "mark":
        await ctx.write.patch(obj, {"metadata": {"labels": {WORD: "yes"}}})


"""
MINE = HEAD + 'WORD = "seen"\nCONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)\n'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "code"
    folder.mkdir()
    return folder


def in_folder(folder: Path, env: Mapping[str, str], *words: str) -> Ran:
    """The program, started in that folder."""
    return run("sh", "-c", 'cd "$0" && exec "$@"', folder, PROGRAM, *words, env=env)


def labels(kubectl: Kubectl, name: str = "mark") -> set[str]:
    return set(kubectl.json("get", "configmap", name)["metadata"].get("labels", {}))


def mark(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "mark")


@pytest.mark.parametrize(
    "word", ["./mine.py", "mine.py:CONTROLLER", "folder", "./folder", "package.mine", "mine:CONTROLLER"]
)
@pytest.mark.real
def test_a_controller_is_run_by_any_name_of_it(
    here: Path, env: Mapping[str, str], kubectl: Kubectl, namespace: str, word: str
) -> None:
    mark(kubectl)
    (here / "mine.py").write_text(MINE)
    for name in ("folder", "package"):
        (here / name).mkdir()
    (here / "folder" / "controller.py").write_text("from helpers import WORD\n" + MINE.replace('WORD = "seen"\n', ""))
    (here / "folder" / "helpers.py").write_text('WORD = "seen"\n')
    (here / "package" / "__init__.py").write_text("")
    (here / "package" / "mine.py").write_text("from .words import WORD\n" + MINE.replace('WORD = "seen"\n', ""))
    (here / "package" / "words.py").write_text('WORD = "seen"\n')
    ran = in_folder(here, env, "run", word, "--until-idle", "--timeout", "60s")
    if word == "folder":  # an argument without a slash is a bundled controller
        assert (ran.code, ran.err) == (
            2,
            "error[CTRL-USAGE]: There is no controller 'folder'.\nnext: did you mean ./folder?\n",
        )
        return
    assert labels(kubectl) == {"seen"}, ran.checked()


def test_several_run_in_one_process_on_shared_caches(
    here: Path, ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str
) -> None:
    install_crd(kubectl, "foo")
    text = HEAD + 'WORD = "both"\n'
    text += 'ONE = controller("one", reconcile).for_(CONFIGMAPS)\n'
    text += 'TWO = controller("two", reconcile).for_(CONFIGMAPS)\n'
    (here / "mine.py").write_text(text)
    mark(kubectl)
    since = audit.mark()
    started = ctrl.started("run", "foo", f"{here}/mine.py:ONE", f"{here}/mine.py:TWO")
    started.line(r"^run \w+: foo, one, two on ")
    wait_until(lambda: labels(kubectl) == {"both"})
    kubectl.apply(
        {
            "apiVersion": "samplecontroller.k8s.io/v1alpha1",
            "kind": "Foo",
            "metadata": {"name": "beside"},
            "spec": {"deploymentName": "beside", "replicas": 1},
        }
    )
    for controller, name in (("one", "mark"), ("two", "mark"), ("foo", "beside")):
        started.line(rf" {controller} \S*{name} ")
    asked = audit.requests(since, namespace=namespace)
    # The watch of a new type succeeds at the second attempt, after a 429.
    watched = [one.resource for one in asked if one.verb == "watch" and one.code == 200]
    assert sorted(watched) == sorted(set(watched)), "each selection is watched once"
    assert {"configmaps", "foos.samplecontroller.k8s.io", "deployments.apps"} <= set(watched)
    assert [one for one in asked if one.verb == "list"] == []
    assert started.stop() == 0


def test_the_packages_of_the_active_environment_are_found(
    here: Path, env: Mapping[str, str], kubectl: Kubectl, tmp_path: Path, namespace: str
) -> None:
    mark(kubectl)
    (here / "mine.py").write_text("from theirs import WORD\n" + MINE.replace('WORD = "seen"\n', ""))
    ran = in_folder(here, env, "run", "./mine.py", "--until-idle")
    assert ran.code == 1
    assert ran.err.startswith(
        "error[CTRL-CONTROLLER]: mine.py:1:1: No module named 'theirs'.\n"
        "tried: line 1: from theirs import WORD\n"
        "next: python3."
    )
    assert "pip install theirs; kubectl-ctrl finds the packages of the active environment" in ran.err
    active = tmp_path / "active"
    for minor in range(11, 16):
        packages = active / "lib" / f"python3.{minor}" / "site-packages"
        packages.mkdir(parents=True)
        (packages / "theirs.py").write_text('WORD = "installed"\n')
    in_folder(here, {**env, "VIRTUAL_ENV": str(active)}, "run", "./mine.py", "--until-idle").checked()
    assert labels(kubectl) == {"installed"}


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("def f(:\n", 1, "error[CTRL-CONTROLLER]: mine.py:1:7: It does not compile: "),
        ("x = {}\nx['y']\n", 1, "error[CTRL-CONTROLLER]: mine.py:2:1: It cannot be imported: KeyError: 'y'.\n"),
        ("", 1, "error[CTRL-CONTROLLER]: mine.py: There is no controller in this file.\n"),
        (
            MINE + 'B = controller("b", reconcile).for_(PODS)\n',
            1,
            "error[CTRL-CONTROLLER]: mine.py: There are 2 controllers in this file: CONTROLLER (line 11), B (line 12).",
        ),
        (
            MINE.replace("(ctx, request)", "(request)"),
            1,
            (
                "error[CTRL-CONTROLLER]: mine.py:11:14: Controller 'mine' got reconcile(request).\n"
                'tried: line 11: CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)\n'
                "next: Expected a function that takes (ctx, request).\n"
            ),
        ),
        (
            MINE.replace("async def", "def").replace("await ", ""),
            1,
            "error[CTRL-CONTROLLER]: mine.py:11:14: Controller 'mine' got reconcile, which is not async.\n",
        ),
    ],
    ids=["compile", "raises", "empty", "several", "signature", "sync"],
)
def test_m02_m03_a_mistake_is_named_with_its_line_and_without_a_traceback(
    here: Path, env: Mapping[str, str], text: str, code: int, message: str
) -> None:
    (here / "mine.py").write_text(text)
    for verb in ("run", "install", "example"):
        ran = in_folder(here, env, verb, "./mine.py")
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(message), ran.err
        assert "Traceback" not in ran.err
    loud = in_folder(here, env, "run", "./mine.py", "-v", "6")
    assert loud.code == code
    assert "Traceback (most recent call last)" in loud.err


def test_m01_words_that_name_nothing(here: Path, env: Mapping[str, str]) -> None:
    (here / "mine.py").write_text(MINE)
    (here / "empty").mkdir()
    for word, code, hint in (
        ("./mien.py", 2, "did you mean ./mine.py?"),
        ("mine", 2, "did you mean ./mine.py?"),
        ("fo", 2, "did you mean foo?"),
        ("./empty", 1, "kubectl ctrl new empty"),
        ("no.such", 2, "did you mean ./no/such.py?"),
        ("./mine.py:CONTROLER", 1, "did you mean CONTROLLER?"),
    ):
        ran = in_folder(here, env, "run", word)
        assert (ran.code, hint in ran.err) == (code, True), ran


def test_a_missing_type_is_named_with_the_next_step(here: Path, env: Mapping[str, str], namespace: str) -> None:
    text = MINE.replace("for_(CONFIGMAPS)", 'for_(Resource("no.example.com", "v1", "nones", "None"))')
    (here / "mine.py").write_text(text.replace("import CONFIGMAPS", "import Resource, CONFIGMAPS"))
    ran = in_folder(here, env, "run", "./mine.py", "--once")
    assert ran.code == 8
    assert (
        "next: apply its CRD; or put it beside the code as crd.yaml, and use kubectl ctrl install ./mine.py" in ran.err
    )


def test_m40_controllers_of_one_name_are_refused_with_both_places(here: Path, env: Mapping[str, str]) -> None:
    for name in ("one", "two"):
        (here / f"{name}.py").write_text(MINE)
    ran = in_folder(here, env, "run", "./one.py", "./two.py")
    assert (ran.code, ran.err.splitlines()[0]) == (
        1,
        "error[CTRL-CONTROLLER]: Two controllers are named 'mine': one.py:11:1 and two.py:11:1.",
    )


def test_files_are_completed_for_a_path(kubectl: Kubectl) -> None:
    assert kubectl("__complete", "ctrl", "run", "./m").splitlines() == [":0"]
    assert kubectl("__complete", "ctrl", "run", "m").splitlines()[-1] == ":4"


def test_help_and_completion_run_no_code_of_the_users(here: Path, env: Mapping[str, str]) -> None:
    (here / "mine.py").write_text("open('was-run', 'w')\n" + MINE)
    in_folder(here, env, "run", "./mine.py", "--help").checked()
    run("sh", "-c", f'cd "{here}" && exec "$0" run ./mine.py ""', PROGRAM.with_name("kubectl_complete-ctrl"), env=env)
    assert not (here / "was-run").exists()
    in_folder(here, env, "run", "./mine.py", "--context", "no-such-context")
    assert (here / "was-run").exists()


def test_f54_code_that_blocks_everything_is_named_and_ended_by_the_second_signal(
    here: Path, ctrl: Ctrl, kubectl: Kubectl, namespace: str
) -> None:
    mark(kubectl)
    text = "import time\n" + MINE.replace("    obj =", "    time.sleep(3600)\n    obj =")
    (here / "mine.py").write_text(text)
    started = ctrl.started("run", str(here / "mine.py"))
    started.line("The event loop is blocked")
    started.line(r"mine\.py\", line 6, in reconcile")
    started.line(r"attempt=r\w+-\d+")

    started.signal(signal.SIGINT)
    blocks = rf"r\w+-\d+ \(mine {namespace}/\S+\) blocks the event loop"
    started.line(f"Stopping: {blocks}, so nothing can finish; Ctrl-C again stops the run.")
    assert started.process.poll() is None
    started.signal(signal.SIGINT)
    assert started.wait() == 130
    assert re.search(rf"^\S+ error: Exiting: the run did not stop within 2s: {blocks}\.$", started.err[-1])


def test_f52_code_that_ignores_its_cancellation_is_named_at_the_second_signal(
    here: Path, ctrl: Ctrl, kubectl: Kubectl, namespace: str
) -> None:
    mark(kubectl)
    goes_on = """\
    print("at work", flush=True)
    while True:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass
"""
    (here / "mine.py").write_text("import asyncio\n" + MINE.replace("    obj =", f"{goes_on}    obj =", 1))
    started = ctrl.started("run", str(here / "mine.py"), "--workers=1")
    started.line("at work")
    started.signal(signal.SIGINT)
    started.line("Stopping: 1 reconcile in progress may take up to 30s to finish; Ctrl-C again cancels them.")
    started.signal(signal.SIGINT)
    assert started.wait() == 130
    said = rf"^\S+ error: Exiting: the run did not stop within 2s: r\w+-\d+ \(mine {namespace}/\S+\) in progress\.$"
    assert re.search(said, started.err[-1]), started.output()
