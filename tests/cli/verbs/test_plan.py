"""`plan` before and after the planning itself: which object and controller are meant, and how objects are compared."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.verbs import plan as verb
from kubectl_ctrl.cli.verbs.plan.external_diff import VARIABLE, compare
from kubectl_ctrl.cli.verbs.plan.main import _Task, _task, _Wanted
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import NotFound, NotInstalled, NotServed, PrerequisiteMissing, ProgramFailed, UsageError
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, load
from kubectl_ctrl.loader import bundled, sources
from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.render.plan_diff import Sides
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage
from kubectl_ctrl.user import User
from tests.cli.own import Write

pytestmark = pytest.mark.programs("head")

Captured = pytest.CaptureFixture[str]

_CONFIG = """\
apiVersion: v1
kind: Config
current-context: prod
clusters: [{name: prod, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: prod, context: {cluster: prod, user: prod, namespace: team-a}}]
users: [{name: prod, user: {token: none}}]
"""
_FOO = """\
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: {name: web}
spec: {deploymentName: web, replicas: 1}
"""
_MINE = """\
from kubectl_ctrl import DEPLOYMENTS, controller


async def reconcile(ctx, request):
    return None


CONTROLLER = controller("mine", reconcile).for_(DEPLOYMENTS)
OTHER = controller("other", reconcile).for_(DEPLOYMENTS)
"""


@pytest.fixture(autouse=True)
def _kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubeconfig").write_text(_CONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))


def meant(tmp_path: Path, *words: str, name: str = "", file: str = "", installed: bool = True) -> _Task:
    """What these words come to on a cluster that has a Foo and a Deployment."""

    async def play() -> _Task:
        stage = Stage()
        stage.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
        if installed:
            stage.install(bundled.folder("foo") / "crd.yaml")
            (foo,) = manifests.parse(_FOO.encode(), "foo.yaml")
            stage.server.create({**foo.obj, "metadata": {"name": "web", "namespace": "team-a"}})
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
        meta = {"name": "web", "namespace": "team-a"}
        stage.server.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
        type_, *controllers = words or ("",)
        wanted = _Wanted(
            controllers=sources.resolve(controllers or BUNDLED),
            chosen=bool(controllers),
            type=type_,
            name=name or "web",
            objects=manifests.parse(file.encode(), "objects.yaml") if file else (),
        )
        resolved = load(ConfigFlags(kubeconfig=str(tmp_path / "kubeconfig")), {}, tmp_path)
        return await _task(stage.client(), wanted, resolved)

    found: list[_Task] = []

    async def kept() -> None:
        found.append(await play())

    run_virtual(kept)
    return found[0]


@pytest.mark.parametrize("name", ["foo", "foos", "Foo", "foos.samplecontroller.k8s.io"])
def test_a_type_has_many_names_and_one_controller(tmp_path: Path, name: str) -> None:
    task = meant(tmp_path, name)
    assert (task.controller.spec.name, task.requests) == ("foo", (Request("team-a", "web"),))


def test_a_workload_is_planned_for_the_scaler(tmp_path: Path) -> None:
    assert meant(tmp_path, "deploy").controller.spec.name == "scaler"


def test_a_type_that_no_controller_is_for_is_told_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        meant(tmp_path, "configmap")
    assert caught.value.message == "No bundled controller is for configmaps."
    assert "foos.samplecontroller.k8s.io, memcacheds.cache.example.com, replicasets.apps" in caught.value.tried


def test_several_controllers_are_listed(tmp_path: Path, write: Write) -> None:
    mine = write("mine.py", _MINE)
    with pytest.raises(UsageError) as caught:
        meant(tmp_path, "deployment", f"{mine}:CONTROLLER", f"{mine}:OTHER")
    assert caught.value.message == "Several controllers are for Deployment 'web': mine, other."
    assert caught.value.next_step == "select one: --controller mine"


def test_the_chosen_controller_has_to_be_for_the_type(tmp_path: Path, write: Write) -> None:
    mine = write("mine.py", _MINE)
    assert meant(tmp_path, "deployment", f"{mine}:OTHER").controller.spec.name == "other"
    with pytest.raises(UsageError, match=r"mine is not for foos\.samplecontroller\.k8s\.io\."):
        meant(tmp_path, "foo", f"{mine}:CONTROLLER")


def test_an_object_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        meant(tmp_path, "foo", name="absent")


@pytest.mark.parametrize("name", ["foo", "foos", "Foo", "foos.samplecontroller.k8s.io", "foo.samplecontroller.k8s.io"])
def test_a_type_of_a_controller_that_is_not_installed_says_how_to_install_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotInstalled) as caught:
        meant(tmp_path, name, installed=False)
    assert caught.value.next_step == "kubectl ctrl install foo"


def test_a_type_that_nobody_knows_is_not_served(tmp_path: Path) -> None:
    with pytest.raises(NotServed, match="no resource type 'bars'"):
        meant(tmp_path, "bars")


def test_the_objects_of_a_file_live_in_the_namespace_of_the_context(tmp_path: Path) -> None:
    task = meant(tmp_path, file=_FOO)
    assert (task.controller.spec.name, task.requests) == ("foo", (Request("team-a", "web"),))
    ((ref, obj),) = task.given
    assert (str(ref), obj["metadata"]["namespace"]) == ("foos.samplecontroller.k8s.io team-a/web", "team-a")


def test_a_file_may_bring_what_its_object_needs(tmp_path: Path) -> None:
    task = meant(tmp_path, file=f"{_FOO}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: beside}}\n")
    assert task.requests == (Request("team-a", "web"),)
    assert [ref.resource.kind for ref, _ in task.given] == ["Foo", "ConfigMap"]


@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", UsageError),
        ("apiVersion: v1\nkind: Bar\nmetadata: {name: x}\n", NotServed),
        (_FOO.replace("{name: web}", "{name: web, namespace: absent}"), NotFound),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, file: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        meant(tmp_path, file=file)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["plan"],
            "error[CTRL-USAGE]: plan takes one object, or -f FILE.\nnext: for instance: kubectl ctrl plan foo/web\n",
        ),
        (
            ["plan", "foo/"],
            "error[CTRL-USAGE]: plan takes one object, or -f FILE.\nnext: for instance: kubectl ctrl plan foo/web\n",
        ),
        (
            ["plan", "foo/a", "-f", "x"],
            "error[CTRL-USAGE]: plan takes either an object or -f FILE.\nnext: leave one of them out\n",
        ),
        (
            ["plan", "-f", "/absent"],
            (
                "error[CTRL-USAGE]: Cannot read the file '/absent': No such file or directory.\nnext: use a "
                "readable file, or - for stdin\n"
            ),
        ),
        (
            ["plan", "foo/a", "-o", "xml"],
            "error[CTRL-USAGE]: Invalid value for --output: 'xml'.\nnext: use one of: text, json, yaml\n",
        ),
    ],
)
def test_wrong_words_end_with_2(words: list[str], told: str, capsys: Captured) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr() == ("", told)


def test_1_means_changes_so_an_error_without_a_code_of_its_own_ends_with_2(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "broken.yaml").write_text("kind: [")
    assert cli.main(["plan", "-f", str(tmp_path / "broken.yaml")]) == 2
    assert "error[CTRL-CONTROLLER]" in capsys.readouterr().err


def test_a_server_that_does_not_answer_ends_with_3(capsys: Captured) -> None:
    assert cli.main(["plan", "foo/web"]) == 3
    assert "CTRL-UNREACHABLE" in capsys.readouterr().err


def test_completion_offers_the_types_that_bundled_controllers_are_for() -> None:
    primaries = [primary for name in BUNDLED for primary in bundled.load(name).primaries]
    assert {name for name, _ in verb.TYPES} == {primary.kind.lower() for primary in primaries}


# Comparing.


def side(name: str = "web", live: str = "a: 1\n", merged: str = "a: 2\n") -> Sides:
    return Sides(name=f"v1.ConfigMap.default.{name}", live=live, merged=merged)


def app(environ: dict[str, str]) -> App:
    return App(out=io.StringIO(), err=io.StringIO(), user=User(environ))


def shown(one: App) -> str:
    assert isinstance(one.out, io.StringIO)
    return one.out.getvalue()


def test_without_a_program_objects_are_compared_here() -> None:
    one = app({})
    compare(one, [side(), side("same", "a: 1\n", "a: 1\n")])
    assert shown(one) == (
        "--- LIVE/v1.ConfigMap.default.web\n+++ MERGED/v1.ConfigMap.default.web\n@@ -1 +1 @@\n-a: 1\n+a: 2\n"
    )


def program(tmp_path: Path, code: int) -> Path:
    path = tmp_path / "differ"
    path.write_text(f'#!/bin/sh\necho "$@"\ncd "$1" && head -n 9 *; cd "$2" && head -n 9 *\nexit {code}\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_is_given_two_folders_and_the_words_that_kubectl_would_let_through(
    tmp_path: Path, capfd: Captured, code: int
) -> None:
    words = f"{program(tmp_path, code)} -N  --color=always a/b x.y two"
    compare(
        app({VARIABLE: words, "PATH": os.environ["PATH"]}), [side(), side("same", "a: 1\n", "a: 1\n"), side("new", "")]
    )
    called, *said = capfd.readouterr().out.splitlines()
    live, merged, *rest = called.split(" ")
    assert (Path(live).name[:5], Path(merged).name[:7]) == ("LIVE-", "MERGED-")
    assert rest == ["-N", "--color=always", "two"]
    files = [line.split()[1] for line in said if line.startswith("==>")]
    assert files == ["v1.ConfigMap.default.new", "v1.ConfigMap.default.web"] * 2
    assert [line for line in said if line.startswith("a:")] == ["a: 1", "a: 2", "a: 2"]
    assert not Path(live).exists()
    assert not Path(merged).exists()


def test_s07_no_name_of_an_object_leads_a_file_elsewhere(tmp_path: Path, capfd: Captured) -> None:
    long = ["x" * 252 + tail for tail in "yz"]
    sides = [side(name) for name in ("/../../../gone", "a/b", "c\\d\ne", "system:node", *long)]
    compare(app({VARIABLE: str(program(tmp_path, 1)), "PATH": os.environ["PATH"]}), sides)
    said = capfd.readouterr().out.splitlines()
    files = {line.split()[1] for line in said if line.startswith("==>")}
    names = {"-..-..-..-gone", "a-b", "c-d-e", "system-node"}
    assert {f"v1.ConfigMap.default.{name}" for name in names} <= files
    assert len(files) == len(sides)
    assert not (tmp_path / "gone").exists()


def test_a_program_that_fails_is_an_error(tmp_path: Path, capfd: Captured) -> None:
    with pytest.raises(ProgramFailed, match="exited with code 2"):
        compare(app({VARIABLE: str(program(tmp_path, 2)), "PATH": os.environ["PATH"]}), [side()])
    with pytest.raises(PrerequisiteMissing):
        compare(app({VARIABLE: str(tmp_path / "absent")}), [side()])
    assert "LIVE-" in capfd.readouterr().out


def test_nothing_to_compare_starts_no_program(tmp_path: Path, capfd: Captured) -> None:
    compare(app({VARIABLE: str(program(tmp_path, 2))}), [side("same", "a: 1\n", "a: 1\n")])
    assert capfd.readouterr().out == ""
