"""The folder that `new` writes: it is refused or whole, passes every check, and its own tests pass in it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli import main
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.install.parts import read_parts
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.scaffold import FILES, Draft, kind_of
from kubectl_ctrl.user import User

CHECKOUT = Path(sources.__file__).parents[2]

FORMS = pytest.mark.parametrize("form", [(), ("--full",)], ids=["short", "full"])
WIDE = ("a" * 40, "LongAsItCanBeReallyLongAsItCanBeReallyLongAsItCanBeReallyLo", "example.com")
DRAFTS = [
    ("greeting", "Greeting", "example.com"),
    ("backups", "Backup", "ops.example.org"),
    ("b", "Policy", "a.b"),
    ("my-class-2", "Class", "x-1.example.dev"),
]


def new(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `kubectl ctrl new`."""
    app = App(out=io.StringIO(), err=io.StringIO(), user=User({}))
    try:
        code = main.run(app, ["new", *words])
    except CtrlError as error:
        return error.exit_code, "", f"{error.message}|{error.next_step}"
    assert isinstance(app.out, io.StringIO)
    assert isinstance(app.err, io.StringIO)
    return code, app.out.getvalue(), app.err.getvalue()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, *command: str, **variables: str) -> str:
    """A tool in the folder, as a user who has our environment runs it; nothing of ours is configured there."""
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    env["PYTEST_PLUGINS"] = "kubectl_ctrl.testing.plugin"  # which pytest finds by itself where the package is installed
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_says_what_it_wrote_and_what_comes_next(here: Path) -> None:
    code, out, err = new("greeting")
    assert (code, out.splitlines()) == (0, [f"greeting/{name}" for name in FILES])
    assert err == "next: kubectl ctrl install ./greeting && kubectl ctrl run ./greeting --reload\n"
    assert sorted(path.name for path in (here / "greeting").iterdir()) == sorted(FILES)
    (here / "my code").mkdir()
    assert new("greeting", "--dir=my code")[2] == (
        "next: kubectl ctrl install './my code/greeting' && kubectl ctrl run './my code/greeting' --reload\n"
    )


def test_the_folder_goes_where_it_is_told(here: Path) -> None:
    code, out, err = new("greeting", "--dir", str(here / "deep" / "er"))
    assert code == 0
    assert out.startswith(f"{here}/deep/er/greeting/controller.py\n")
    assert f"install {here}/deep/er/greeting &&" in err


@FORMS
@pytest.mark.parametrize(("name", "kind", "group"), DRAFTS, ids=[name for name, _, _ in DRAFTS])
def test_what_is_written_is_formatted_and_lints(
    here: Path, name: str, kind: str, group: str, form: tuple[str, ...]
) -> None:
    assert new(name, "--kind", kind, "--group", group, *form)[0] == 0
    folder = here / name
    run(folder, "ruff", "format", "--isolated", "--no-cache", "--check", ".")
    run(folder, "ruff", "check", "--isolated", "--no-cache", "--select=E,F,W,B,I,N,UP,C4,SIM,RET,PL,RUF", ".")
    assert "{{" not in "".join((folder / name).read_text() for name in FILES)


def test_the_short_form_is_read_in_a_minute(here: Path) -> None:
    new("greeting")
    assert len((here / "greeting" / "controller.py").read_text().splitlines()) <= 40


@FORMS
def test_its_tests_pass_with_plain_pytest_and_are_typed(here: Path, form: tuple[str, ...]) -> None:
    new("greeting", *form)
    assert f"{5 if form else 4} passed" in run(
        here / "greeting", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull
    )
    # Our own settings are strict, and hack/check has filled its cache: from elsewhere this would take its time.
    cache = Path(sys.prefix) / "check" / "mypy"
    run(CHECKOUT, "mypy", f"--cache-dir={cache}", str(here / "greeting"), MYPYPATH=str(here / "greeting"))


@FORMS
@pytest.mark.parametrize(("name", "kind", "group"), [*DRAFTS, WIDE], ids=[*(name for name, _, _ in DRAFTS), "wide"])
def test_manifests_and_code_speak_of_the_same_type(
    here: Path, name: str, kind: str, group: str, form: tuple[str, ...]
) -> None:
    assert new(name, "--kind", kind, "--group", group, *form)[0] == 0
    parts = read_parts(here / name, name)
    [crd], [role], [example] = parts.crds, parts.rbac, parts.example
    [sourced] = sources.resolve([f"./{name}"])
    assert (sourced.spec.name, sourced.folder) == (name, here / name)
    primary = sourced.spec.primary
    assert (primary.kind, primary.group, primary.full_name) == (kind, group, crd["metadata"]["name"])
    assert crd["spec"]["names"]["kind"] == example["kind"] == kind
    assert example["apiVersion"] == primary.api_version
    assert role["rules"][0]["apiGroups"] == [group]
    assert role["rules"][0]["resources"] == [primary.plural]
    assert role["metadata"]["name"] == f"kubectl-ctrl-{name}"


@FORMS
def test_the_rights_are_those_of_its_calls_and_the_example_rests(here: Path, form: tuple[str, ...]) -> None:
    """The e2e test shows that none is missing; here, that none is too many and that the example needs no help."""
    new("greeting", *form)
    script = """
        import json, sys
        sys.path.insert(0, ".")
        from pathlib import Path
        from controller import CONTROLLER, GREETINGS
        from kubectl_ctrl import CONFIGMAPS
        from kubectl_ctrl.testing.loop import run_virtual
        from kubectl_ctrl.testing.stage import Stage

        async def main():
            stage = Stage()
            stage.install(Path("crd.yaml"), Path("example.yaml"))
            async with stage.running(CONTROLLER):
                await stage.rest(5)
                stage.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}})
                taken = {"metadata": {"name": "taken"}, "spec": {"text": "x"}}
                stage.server.create({"apiVersion": GREETINGS.api_version, "kind": GREETINGS.kind, **taken})
                stage.server.change(CONFIGMAPS, "example-greeting", {"data": {"greeting": "Bye!"}})
                await stage.rest(60)
                stage.server.delete(CONFIGMAPS, "example-greeting")
                await stage.rest(60)
            asked = {(call.verb, call.resource.plural, call.subresource) for a in stage.attempts for call in a.calls}
            print(json.dumps(sorted(asked)))

        run_virtual(main)
    """
    lines = [line[8:] for line in script.splitlines()]
    (here / "greeting" / "play.py").write_text("\n".join(lines))
    asked = {tuple(call) for call in json.loads(run(here / "greeting", "play"))}
    # Beside these: list and watch, finalizers for the owner reference, and events, which go their own way.
    assert asked == {
        ("apply", "configmaps", ""),
        ("apply", "greetings", "status"),
        ("create", "configmaps", ""),
        ("get", "greetings", ""),
        ("patch", "configmaps", ""),
    }
    [role] = yaml.safe_load_all((here / "greeting" / "rbac.yaml").read_text())
    rights = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert rights == {
        ("greetings", "get"),
        ("greetings", "list"),
        ("greetings", "watch"),
        ("greetings/status", "patch"),
        ("greetings/finalizers", "update"),
        ("configmaps", "get"),
        ("configmaps", "list"),
        ("configmaps", "watch"),
        ("configmaps", "create"),
        ("configmaps", "patch"),
        *((("events", "create"), ("events", "patch")) if form else ()),
    }


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_overwritten(here: Path, there: str) -> None:
    (here / "greeting").mkdir()
    (here / "greeting" / there).write_text("mine")
    code, out, err = new("greeting")
    assert (code, out) == (2, "")
    assert err.startswith(f"greeting/{there} already exists; nothing was written.|choose another name")
    assert [path.name for path in (here / "greeting").iterdir()] == [there]


def test_a_folder_that_cannot_be_written_is_told(here: Path) -> None:
    (here / "greeting").write_text("a file")
    code, _, err = new("greeting")
    assert (code, err) == (1, "Cannot write greeting: File exists.|choose another folder with --dir")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "new takes one name."),
        (["one", "two"], "new takes one name."),
        (["Greeting"], "A controller cannot be named 'Greeting'.|use at most 40 lower-case letters, digits and dashes"),
        (["a" * 41], "A controller cannot be named 'aaaa"),
        (["../up"], "A controller cannot be named '../up'."),
        (["a;rm -rf ~"], "A controller cannot be named 'a;rm -rf ~'."),
        (["foo"], "There is a bundled controller named 'foo'.|use another name, for instance my-foo"),
        (["no"], "A kind cannot be named 'No'.|use at most 61 letters and digits, with a capital first"),
        (["one", "--kind", "my-kind"], "A kind cannot be named 'my-kind'."),
        (["one", "--group", "example"], "An API group cannot be named 'example'.|use your own domain"),
        (["one", "--group", "Example.com"], "An API group cannot be named 'Example.com'."),
        (["one", "--group", "1.2"], "An API group cannot be named '1.2'."),
        (["one", "--group", "apps.k8s.io"], "The API group 'apps.k8s.io' belongs to the Kubernetes project."),
    ],
)
def test_m37_names_that_cannot_be_are_refused_with_the_rule(here: Path, words: list[str], message: str) -> None:
    code, out, err = new(*words)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Foo", "foos"), ("Policy", "policies"), ("Gateway", "gateways"), ("Class", "classes"), ("Box", "boxes")],
)
def test_plurals_are_english_where_that_is_easy(kind: str, plural: str) -> None:
    assert Draft(name="x", kind=kind, group="example.com").plural == plural


def test_kinds_are_made_from_names() -> None:
    assert [kind_of(name) for name in ("greeting", "my-app", "v2-app")] == ["Greeting", "MyApp", "V2App"]
