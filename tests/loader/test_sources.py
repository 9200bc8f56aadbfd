"""From a word on the command line to a controller, and what is said when there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from kubectl_ctrl.errors import ControllerError, CtrlError, UsageError
from kubectl_ctrl.loader import sources
from kubectl_ctrl.render.errors import error_lines
from tests.cli.own import HEAD, MINE, Write


def told(*words: str) -> str:
    """What a user reads who gives these words."""
    with pytest.raises(CtrlError) as caught:
        sources.resolve(words)
    assert caught.value.exit_code == (2 if isinstance(caught.value, UsageError) else 1)
    return error_lines(caught.value)


def named(*words: str) -> list[str]:
    return [sourced.spec.name for sourced in sources.resolve(words)]


# --- what a word can be ---


@pytest.mark.parametrize("word", ["./mine.py", "mine.py", "mine:CONTROLLER", "./mine.py:CONTROLLER", "../here/mine.py"])
def test_a_file_is_named_in_many_ways(write: Write, word: str) -> None:
    path = write("mine.py", MINE)
    [sourced] = sources.resolve([word])
    assert (sourced.word, sourced.spec.name, sourced.folder) == (word, "mine", path.parent)


def test_a_file_is_named_by_its_absolute_path(write: Write) -> None:
    assert named(str(write("mine.py", MINE))) == ["mine"]


@pytest.mark.parametrize("word", ["./mine", "mine/", "./mine/controller.py"])
def test_a_folder_holds_a_controller_file_with_its_helpers_and_manifests_beside_it(write: Write, word: str) -> None:
    write("mine/controller.py", "from helpers import NAME\n" + MINE.replace('"mine"', "NAME"))
    write("mine/helpers.py", 'NAME = "with-help"\n')
    write("mine/example.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: it}}\n")
    [sourced] = sources.resolve([word])
    assert sourced.spec.name == "with-help"
    assert [obj["metadata"]["name"] for obj in sourced.parts().example] == ["it"]


@pytest.mark.parametrize("word", ["./mine", "mine/__init__.py", "inner.mine", "./../here/mine"])
def test_a_folder_may_be_a_package(write: Write, word: str) -> None:
    for folder in ("mine", "inner/mine"):
        write(f"{folder}/__init__.py", "from .declared import CONTROLLER\n")
        write(f"{folder}/declared.py", "from .helpers import NAME\n" + MINE.replace('"mine"', "NAME"))
        write(f"{folder}/helpers.py", 'NAME = "packed"\n')
    assert named(word) == ["packed"]


def test_a_file_in_a_package_may_import_relatively(write: Write) -> None:
    write("outer/__init__.py", "")
    write("outer/inner/__init__.py", "")
    write("outer/names.py", 'NAME = "deep"\n')
    write("outer/inner/controller.py", "from ..names import NAME\n" + MINE.replace('"mine"', "NAME"))
    assert named("./outer/inner") == ["deep"]
    assert named("outer.inner.controller") == ["deep"]
    assert named("outer.inner.controller:CONTROLLER") == ["deep"]


def test_two_of_one_module_are_told_apart_and_a_word_said_twice_counts_once(write: Write) -> None:
    write("mine.py", HEAD + "".join(f'{n.upper()} = controller("{n}", reconcile).for_(PODS)\n' for n in ("one", "two")))
    assert named("./mine.py:ONE", "mine.py:TWO", "./mine.py:ONE", "mine:ONE") == ["one", "two"]


def test_bundled_ones_and_own_ones_go_together_and_a_bundled_name_alone_is_fine(write: Write) -> None:
    write("foo.py", MINE.replace('"mine"', '"foo"'))
    write("foo/controller.py", MINE)
    assert named("foo", "./foo") == ["foo", "mine"]
    assert named("./foo.py") == ["foo"]


# --- settings ---


def test_settings_go_to_those_that_take_them(write: Write) -> None:
    text = """
    def configured(*, annotation_prefix: str = "a"):
        return controller(annotation_prefix, reconcile).for_(PODS)

    CONTROLLER = configured()
    OTHER = controller("other", reconcile).for_(PODS)
    """
    write("mine.py", HEAD + dedent(text))
    write("plain.py", MINE)
    words = ["./mine.py:CONTROLLER", "./plain.py", "./mine.py:OTHER"]
    found = sources.resolve(words, {"annotation_prefix": "b"})
    assert [one.spec.name for one in found] == ["b", "mine", "other"]
    assert found[0].source.read().name == "b", "after a reload as well"
    with pytest.raises(UsageError, match=r"No controller here takes --annotation-prefix: \./plain\.py\."):
        sources.resolve(["./plain.py"], {"annotation_prefix": "b"})


# --- M1: words that mean nothing ---


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("fooo", "There is no controller 'fooo'.\nnext: did you mean foo?"),
        ("mine", "There is no controller 'mine'.\nnext: did you mean ./mine.py?"),
        ("mien", "There is no controller 'mien'.\nnext: did you mean ./mine.py?"),
        ("packed", "There is no controller 'packed'.\nnext: did you mean ./packed?"),
        ("./mein.py", "File './mein.py' does not exist.\ntried: {here}/mein.py\nnext: did you mean ./mine.py?"),
        ("./zzz", "File './zzz' does not exist.\ntried: {here}/zzz\nnext: the folder contains mine.py, packed"),
        (
            "no/mine.py",
            "File 'no/mine.py' does not exist.\ntried: {here}/no/mine.py\nnext: its folder 'no' does not exist",
        ),
        ("./mine.txt", "'./mine.txt' is not a Python file.\nnext: use a file that ends in .py, or a folder"),
        (
            "mine.py:",
            (
                "'mine.py:' is not a controller: '' after the colon is not a name.\n"
                "next: use its name in the file, for instance ./mine.py:CONTROLLER"
            ),
        ),
        (
            "packed.other",
            (
                "There is no controller 'packed.other': the package 'packed' has no 'other'.\n"
                "tried: bundled controllers, and modules in {here} and in installed packages\n"
                "next: did you mean ./packed/other.py?"
            ),
        ),
        ("mine.other", "There is no controller 'mine.other': 'mine' is a module, not a package."),
        ("no.such", "There is no controller 'no.such': it is not a module either."),
        ("$(rm -rf ~)\x1b[31m", "There is no controller '$(rm -rf ~)\\x1b[31m'.\nnext: the bundled controllers are: "),
    ],
)
def test_m01_an_unknown_word_is_answered_with_what_is_near(write: Write, word: str, expected: str) -> None:
    here = write("mine.py", MINE).parent
    write("packed/controller.py", MINE)
    write("mine.txt", "")
    assert told(word).startswith("error[CTRL-USAGE]: " + expected.format(here=here))


@pytest.mark.parametrize("word", [".", "..", "./", "../..", "/"])
def test_m01_a_folder_that_nobody_made_for_a_controller_is_an_odd_word(write: Write, word: str) -> None:
    write("../below/nothing.txt", "")
    os.chdir("../below")
    error, tried, step = told(word).split("\n")
    assert error.startswith(f"error[CTRL-USAGE]: The folder {word!r} contains no controller: ")
    assert tried == f"tried: {Path(word).resolve()}" or ".py" in tried
    assert step == "next: use the path of a file, or create a folder: kubectl ctrl new mine"
    write("../below/controller.py", MINE)
    assert named(".") == named("./") == ["mine"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "An empty name is not a controller."),
        (" ", "An empty name is not a controller."),
        ("-", "There is no controller '-'."),
        ("a b", "There is no controller 'a b'."),
        (":ONE", "':ONE' is not a controller: nothing is before the colon."),
    ],
)
def test_m01_a_word_that_no_file_would_be_called_gets_another_one_as_an_example(
    write: Write, word: str, said: str
) -> None:
    error, step = told(word).split("\n")
    assert error == f"error[CTRL-USAGE]: {said}"
    assert step.startswith("next: the bundled controllers are: foo, ")
    assert step.endswith("; your own: ./mine.py")
    assert told("zz-z").endswith("; your own: ./zz-z.py")


# --- M2: files without a controller ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "import os\n\ndef reconcile(ctx:\n    pass\n",
            (
                "mine.py:3:14: It does not compile: '(' was never closed.\ntried: line 3: def reconcile(ctx:\nnext: "
                "correct it and repeat the command"
            ),
        ),
        (
            "x = 1\nreturn x\n",
            "mine.py:2:1: It does not compile: 'return' outside function.\ntried: line 2: return x",
        ),
        (
            "from __future__ import annotations\nimport os\nvalue = dict()['size']\n",
            "mine.py:3:9: It cannot be imported: KeyError: 'size'.\ntried: line 3: value = dict()['size']",
        ),
        (
            "import helpers\n",
            "helpers.py:3:5: It cannot be imported: ZeroDivisionError: division by zero.\ntried: line 3: 1 / 0",
        ),
        (
            "import sys\nsys.exit(3)\n",
            (
                "mine.py:2:1: It exits the process (3) when it is imported.\ntried: line 2: sys.exit(3)\n"
                'next: move the code of the program below `if __name__ == "__main__":`'
            ),
        ),
        (
            "from kubectl_ctrl import Deployments\n",
            (
                "mine.py:1:1: It cannot be imported: ImportError: cannot import name 'Deployments' from 'kubectl_ctrl' "
                "({package}/__init__.py).\ntried: line 1: from kubectl_ctrl import Deployments"
            ),
        ),
        (
            "",
            (
                "mine.py: There is no controller in this file.\n"
                'next: declare it at the top of the file: CONTROLLER = controller("mine", reconcile).for_(RESOURCE)'
            ),
        ),
        (
            HEAD + "".join(f'{n} = controller("{n.lower()}", reconcile).for_(PODS)\n' for n in ("ONE", "TWO")),
            (
                "mine.py: There are 2 controllers in this file: ONE (line 8), TWO (line 9).\n"
                "next: select one: mine.py:ONE"
            ),
        ),
        (
            HEAD + 'CONTROLLER = controller("mine", reconcile)\n',
            (
                "mine.py:8:1: Controller 'mine' has no primary resource.\n"
                'tried: line 8: CONTROLLER = controller("mine", reconcile)\nnext: Begin with .for_(RESOURCE).'
            ),
        ),
        (
            HEAD + 'CONTROLLER = controller("Mine!", reconcile)\n',
            (
                "mine.py:8:14: Invalid controller name 'Mine!'.\n"
                'tried: line 8: CONTROLLER = controller("Mine!", reconcile)\n'
                "next: Use at most 40 lower-case letters, digits and dashes, with a letter or digit at both ends."
            ),
        ),
        (
            HEAD + 'CONTROLLER = controller("mine", reconcile).for_("Foo")\n',
            (
                "mine.py:8:14: Expected a Resource, got 'Foo'.\n"
                'tried: line 8: CONTROLLER = controller("mine", reconcile).for_("Foo")\nnext: Write Resource('
            ),
        ),
    ],
    ids=["open", "return", "raises", "helper", "exit", "name", "empty", "two", "for what", "bad name", "no resource"],
)
def test_m02_what_is_wrong_is_told_with_the_line_of_the_users_code(write: Write, text: str, expected: str) -> None:
    write("mine.py", text)
    write("helpers.py", "def half() -> None:\n    # in a function\n    1 / 0\nhalf()\n")
    package = Path(sources.__file__).parents[1]
    assert told("./mine.py").startswith("error[CTRL-CONTROLLER]: " + expected.format(package=package))


def test_m02_bytes_that_are_no_text_are_told_too(write: Write) -> None:
    write("mine.py", "").write_bytes(b"x = '\xff'\n")
    assert told("./mine.py").startswith("error[CTRL-CONTROLLER]: mine.py")
    write("null.py", "").write_bytes(b"x = 1\0\n")
    assert told("./null.py").startswith("error[CTRL-CONTROLLER]: null.py")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("./mine.py:CONTROLER", "mine.py: There is no 'CONTROLER' in this file.\nnext: did you mean CONTROLLER?"),
        (
            "./mine.py:reconcile",
            (
                "mine.py:4:1: 'reconcile' is not a controller but a function.\n"
                "tried: line 4: async def reconcile(ctx: Context, request: Request) -> Result | None:\nnext: declare"
            ),
        ),
        (
            "./empty",
            (
                "The folder './empty' contains no controller: it has neither controller.py nor __init__.py.\n"
                "tried: it contains other.py\nnext: use the path of a file, or create a folder: kubectl ctrl new empty"
            ),
        ),
    ],
)
def test_m02_what_is_not_there_is_told(write: Write, word: str, expected: str) -> None:
    write("mine.py", MINE)
    write("empty/other.py", "")
    assert told(word).startswith("error[CTRL-CONTROLLER]: " + expected)


def test_m02_a_missing_module_is_told_with_how_to_install_it(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = "{}.{}".format(*sys.version_info)
    write("mine.py", "import os\nimport no_such_thing.inner\n")
    start = (
        "error[CTRL-CONTROLLER]: mine.py:2:1: No module named 'no_such_thing'.\n"
        "tried: line 2: import no_such_thing.inner\n"
    )
    own = tmp_path / "own"  # the tests may run in an environment that bin/kubectl-ctrl made, or in any other
    own.mkdir()
    monkeypatch.setattr(sys, "prefix", str(own))
    assert told("./mine.py") == f"{start}next: {sys.executable} -m pip install no_such_thing"
    (own / "ready").touch()
    assert told("./mine.py") == (
        f"{start}next: python{version} -m venv .venv && . .venv/bin/activate && pip install no_such_thing; "
        "kubectl-ctrl finds the packages of the active environment"
    )
    active = tmp_path / "active"
    (active / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(active))
    assert told("./mine.py") == (f"{start}next: pip install no_such_thing, in the active environment ({active})")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "other"))
    assert told("./mine.py") == (
        f"{start}next: the active environment ({tmp_path}/other) does not have Python {version}, on which "
        f"kubectl-ctrl runs; create one with {version} and pip install no_such_thing there"
    )


def test_m02_a_file_that_failed_can_be_mended_and_named_again(write: Write) -> None:
    write("mine.py", "import helpers\n" + MINE)
    write("helpers.py", "1 / 0\n")
    assert "helpers.py:1:1" in told("./mine.py")
    write("helpers.py", "pass  # mended\n")
    assert named("./mine.py") == ["mine"]


def test_m02_another_module_of_that_name_is_told_and_not_used(write: Write) -> None:
    write("email/__init__.py", "")
    write("email/mime/__init__.py", "")
    write("email/mime/controller.py", MINE)
    write("email/mime/text.py", MINE)
    import email.mime.text  # noqa: F401

    assert "another module has that name" in told("./email/mime/text.py")


# --- M3: wrong functions ---


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("async def reconcile(ctx): ...", "got reconcile(ctx).\n|next: Expected a function that takes (ctx, request)."),
        ("def reconcile(ctx, request): ...", "got reconcile, which is not async.\n|next: Write `async def reconcile("),
        ("async def reconcile(): ...", "got reconcile().\n|next: Expected a function that takes (ctx, request)."),
        ("reconcile = 3", "got 3, which is not async.\n|next: Write `async def reconcile(ctx, request)`"),
    ],
)
def test_m03_a_wrong_signature_is_told_with_the_one_expected(write: Write, function: str, expected: str) -> None:
    write("mine.py", f"{HEAD}{function}\nCONTROLLER = controller('mine', reconcile).for_(PODS)\n")
    said, next_step = expected.split("|")
    text = told("./mine.py")
    assert text.startswith(f"error[CTRL-CONTROLLER]: mine.py:9:14: Controller 'mine' {said}tried: line 9: CONTROLLER")
    assert next_step in text


# --- M40: controllers that get in each other's way ---


def test_m40_two_of_one_name_are_refused_with_both_places(write: Write) -> None:
    write("mine.py", MINE.replace('"mine"', '"foo"'))
    write("other.py", MINE.replace('"mine"', '"foo"'))
    assert told("./mine.py", "./other.py") == (
        "error[CTRL-CONTROLLER]: Two controllers are named 'foo': mine.py:8:1 and other.py:8:1.\n"
        "next: rename one: writes, Leases and recordings are identified by the name"
    )
    assert "Two controllers are named 'foo': foo (bundled) and other.py:8:1." in told("foo", "./other.py")


def test_m40_two_that_own_each_other_are_refused_with_both_places(write: Write) -> None:
    write("one.py", HEAD + 'ONE = controller("one", reconcile).for_(PODS).owns(SECRETS)\n')
    write("two.py", HEAD + 'TWO = controller("two", reconcile).for_(SECRETS).owns(PODS)\n')
    assert told("./one.py", "./two.py") == (
        "error[CTRL-CONTROLLER]: Two controllers own each other's objects: one.py:8:1 and two.py:8:1.\n"
        "tried: pods owns secrets, which owns pods\n"
        "next: let one of them watch the other's objects with .watches(..., to=...) instead"
    )
    assert named("./two.py") == ["two"]


# --- its example ---


def test_the_example_is_given_as_it_was_written_and_a_missing_one_is_told(write: Write) -> None:
    write("mine/controller.py", MINE)
    [sourced] = sources.resolve(["./mine"])
    with pytest.raises(ControllerError, match=r"^Controller 'mine' has no example\.yaml\.$"):
        sourced.example()
    text = "# as it is\nkind:   ConfigMap\n"
    write("mine/example.yaml", text)
    assert sourced.example() == text
