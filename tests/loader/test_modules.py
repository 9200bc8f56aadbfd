"""A user's code: loaded with what lies beside it, loaded again when it changed, and kept apart from other code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.modules import Code
from tests.cli.own import MINE, Write


def named(*words: str) -> list[str]:
    return [sourced.spec.name for sourced in sources.resolve(words)]


def test_folders_with_files_of_the_same_names_do_not_mix(write: Write) -> None:
    for name in ("one", "two"):
        write(f"{name}/controller.py", "import helpers\n" + MINE.replace('"mine"', "helpers.NAME"))
        write(f"{name}/helpers.py", f'NAME = "{name}"\n')
    one, two = sources.resolve(["./one", "./two"])
    assert (one.spec.name, two.spec.name) == ("one", "two")
    for sourced in (one, two):
        sourced.source.code.again(lambda: None)
        assert sourced.source.read().name == sourced.spec.name


def test_files_whose_names_python_cannot_tell_apart_are_two(write: Write) -> None:
    for name in ("a-b", "a_b"):
        write(f"{name}.py", MINE.replace('"mine"', f'"{name.replace("_", "-or-")}"'))
    assert named("./a-b.py", "./a_b.py") == ["a-b", "a-or-b"]


def test_code_that_fails_in_what_is_not_its_own_is_watched_where_it_is(write: Write) -> None:
    write("mine.py", MINE)
    [sourced] = sources.resolve(["./mine.py"])
    path = write("mine.py", "exec(compile('1 / 0', '<made up>', 'exec'))\nimport json\njson.loads('{')\n")
    with pytest.raises(ControllerError, match=r"^mine\.py:1:1: It cannot be imported: ZeroDivisionError"):
        sourced.source.code.again(lambda: None)
    path.write_text("import json\njson.loads('{')\n")
    with pytest.raises(ControllerError, match=r"^mine\.py:2:1: It cannot be imported: JSONDecodeError"):
        sourced.source.code.again(lambda: None)
    assert sourced.source.code.files == {path}


def test_code_in_a_folder_below_is_not_loaded_again_with_the_code_above(write: Write) -> None:
    for folder in ("", "below/"):
        write(f"{folder}controller.py", "import helpers\n" + MINE.replace('"mine"', "helpers.NAME"))
        write(f"{folder}helpers.py", f'NAME = "in-{folder.strip("/")}-here"\n')
    above, below = sources.resolve(["./controller.py", "./below"])
    modules = dict(below.source.code.modules)
    assert {path.parent.name for path in above.source.code.files} == {"here"}
    above.source.code.again(lambda: None)
    assert below.source.code.modules == modules
    assert (above.source.read().name, below.source.read().name) == ("in--here", "in-below-here")


@pytest.mark.parametrize("name", ["queue", "json", "yaml", "my-controller", "7th"])
def test_any_file_name_will_do_and_none_gets_in_the_way(write: Write, name: str) -> None:
    write(f"{name}.py", MINE)
    assert named(f"./{name}.py") == ["mine"]
    import queue

    assert "here" not in str(json.__file__) + str(queue.__file__)


def test_what_is_printed_by_an_import_does_not_get_into_the_answer(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("mine.py", 'print("hello")\n' + MINE)
    assert named("./mine.py") == ["mine"]
    assert tuple(capsys.readouterr()) == ("", "hello\n")


@pytest.mark.parametrize("how", ["VIRTUAL_ENV", "KUBECTL_CTRL_PYTHONPATH"])
def test_what_is_installed_for_the_user_is_found(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    active, editable = tmp_path / "active", tmp_path / "editable"
    packages = active / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    packages.mkdir(parents=True)
    (packages / "theirs.py").write_text("from edited import NAME\n")
    (packages / "edited.pth").write_text(f"{editable}\n")
    (packages / "click.py").write_text("raise RuntimeError('not ours')\n")
    editable.mkdir()
    (editable / "edited.py").write_text('NAME = "installed"\n')
    text = "import click\nfrom theirs import NAME\n" + MINE.replace('"mine"', "NAME")
    write("mine.py", text)
    monkeypatch.setenv(how, str(active if how == "VIRTUAL_ENV" else packages))
    assert named("./mine.py") == ["installed"]


# --- loading again ---


def test_code_is_loaded_again_with_what_it_imports_and_stays_when_that_fails(write: Write) -> None:
    write("mine.py", "import helpers\n" + MINE.replace('"mine"', "helpers.NAME"))
    helpers = write("helpers.py", 'NAME = "a"\n')
    [sourced] = sources.resolve(["./mine.py"])
    code, loaded = sourced.source.code, dict(sys.modules)
    assert code.files == {helpers, helpers.parent / "mine.py"}
    for name in "bcd":
        write("helpers.py", f'NAME = "{name}"\n')  # same size, same second
        code.again(lambda: None)
        assert sourced.source.read().name == name
    assert sys.modules.keys() == loaded.keys()

    write("helpers.py", 'NAME = "e"\nimport good\nimport fresh\n')
    write("good.py", "")
    fresh = write("fresh.py", "1 / 0\n")
    before = sys.modules["helpers"]
    with pytest.raises(ControllerError, match=r"^fresh\.py:1:1: It cannot be imported: ZeroDivisionError"):
        code.again(lambda: None)
    assert (sourced.source.read().name, sys.modules["helpers"]) == ("d", before)
    assert "good" not in sys.modules
    assert fresh in code.files, "mending it has to be noticed"
    write("fresh.py", "pass\n")
    code.again(lambda: None)
    assert sourced.source.read().name == "e"
    assert fresh in code.files


def test_what_a_function_imports_later_is_watched_and_what_is_installed_below_is_not(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = write("env/site-packages/theirs.py", "").parent
    monkeypatch.setenv("KUBECTL_CTRL_PYTHONPATH", str(theirs))
    write("mine.py", "import theirs\n" + MINE)
    later = write("later.py", "")
    [sourced] = sources.resolve(["./mine.py"])
    assert {path.name for path in sourced.source.code.files} == {"mine.py"}
    __import__("later")
    assert {path.name for path in sourced.source.code.files} == {"mine.py", later.name}


def test_python_and_what_is_installed_are_nobodys_own(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's home may hold both Python and a controller: a reload must leave Python alone."""
    home = Path(os.path.commonpath([os.__file__, click.__file__]))
    assert not any(Code(home, []).owns(Path(str(one.__file__))) for one in (os, json, click))
    single = write("site-packages/single.py", MINE)
    monkeypatch.setenv("KUBECTL_CTRL_PYTHONPATH", str(single.parent))
    write("site-packages/beside.py", "")
    single.write_text("import beside\n" + MINE)
    [sourced] = sources.resolve(["single:CONTROLLER"])
    assert sourced.source.code.files == {single}


def test_a_bundled_controller_is_loaded_again_and_nothing_else_of_the_package() -> None:
    import kubectl_ctrl.controllers.foo.reconciler as before
    from kubectl_ctrl.runtime import builder

    modules = dict(sys.modules)
    [sourced] = sources.resolve(["foo"])
    try:
        sourced.source.code.again(lambda: None)
        assert sys.modules["kubectl_ctrl.controllers.foo.reconciler"] is not before
        assert sys.modules["kubectl_ctrl.runtime.builder"] is builder
        assert sourced.source.read().name == "foo"
        assert sourced.source.read() is not sourced.spec
        assert {path.name for path in sourced.source.code.files} >= {"__init__.py", "reconciler.py"}
    finally:
        sys.modules.update(modules)


def test_a_path_to_a_bundled_controller_means_that_one() -> None:
    import kubectl_ctrl.controllers.foo as package

    folder = os.path.dirname(str(package.__file__))  # noqa: PTH120
    assert named(folder, "foo") == ["foo"]


def test_code_that_starts_its_controller_when_it_is_imported_is_told_where_that_belongs(write: Write) -> None:
    start = "import asyncio, kubectl_ctrl\nasyncio.run(kubectl_ctrl.run(CONTROLLER, kubeconfig='/absent'))\n"
    write("mine.py", MINE + start)
    with pytest.raises(ControllerError, match=r"^mine\.py:10:1: It starts its controllers when it is imported") as told:
        sources.resolve(["./mine.py"])
    assert '`if __name__ == "__main__":`' in told.value.next_step
    write("mine.py", MINE + start.replace("\n", "\nif __name__ == '__main__': ", 1))
    assert named("./mine.py") == ["mine"]
