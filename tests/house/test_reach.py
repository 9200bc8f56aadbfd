"""hack/test --changed: the tests that a change can affect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hack import reach
from hack.lanes import ROOT

pytestmark = pytest.mark.programs("git")

FILES = {
    "pyproject.toml": "",
    "README.md": "",
    "LICENSE": "",
    "hack/tool": "#!/bin/sh\nexec python tool.d/main.py\n",
    "hack/tool.d/main.py": "import part\n",
    "hack/tool.d/part.py": "",
    "app/__init__.py": 'HOMES = {"lazy": "Name"}\n\ndef load(module):\n    return f"app.{module}"\n',
    "app/lazy.py": "",
    "app/pure.py": "",
    "app/typed.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from app.pure import Name\n",
    "app/verbs/__init__.py": "",
    "app/verbs/table.py": 'VERBS = ("app.verbs.trace:VERB",)\n',
    "app/verbs/trace.py": "def run():\n    from app.deep import reader\n",
    "app/deep/__init__.py": "",
    "app/deep/reader.py": 'SQL = "schema.sql"\n',
    "app/deep/schema.sql": "",
    "app/deep/py.typed": "",
    "app/bundled/__init__.py": "",
    "app/bundled/foo.py": "",
    "app/loader.py": 'def load(name):\n    return f"app.bundled.{name}"\n',
    "tests/conftest.py": "from tests import guards\n",
    "tests/guards.py": 'MAY_SKIP = {"tests/test_tool.py": "why"}\nNAMES = ("hack", "tool")\nat = tmp / "hack"\n',
    "tests/render/test_golden.py": 'from pathlib import Path\n\nGOLDEN = Path(__file__).parent / "golden"\n',
    "tests/render/golden/page.txt": "",
    "tests/test_facade.py": "from app import Name\n",
    "tests/test_loader.py": "from app.loader import load\n",
    "tests/test_program.py": 'PROGRAM = """\nfrom app.pure import Name\n"""\n',
    "tests/test_pure.py": "import app.pure\n",
    "tests/test_readme.py": '"""Of app.pure."""\n\nTEXT = ROOT / "README.md"\n',
    "tests/test_tool.py": 'HACK = ROOT / "hack"\nTOOL = HACK / "tool"\n',
    "tests/test_typed.py": "from app import typed\n",
    "tests/test_verbs.py": "from app.verbs import table\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("tests/test_pure.py", "pure"),
        ("app/pure.py", "pure program"),  # an import, also in the text of a program; not one under TYPE_CHECKING
        ("app/lazy.py", "facade"),  # an import of a module below the facade loads nothing through the facade
        ("app/verbs/trace.py", "verbs"),  # a verb that is loaded by its name
        ("app/deep/reader.py", "verbs"),  # an import within a function
        ("app/deep/schema.sql", "verbs"),
        ("app/deep/__init__.py", "verbs"),
        ("app/bundled/foo.py", "loader"),
        ("tests/render/golden/page.txt", "golden"),
        ("tests/render/golden/removed.txt", "golden"),
        ("README.md", "readme"),
        ("hack/tool", "tool"),
        ("hack/tool.d/part.py", "tool"),
    ],
)
def test_a_change_reaches_who_may_use_it(changed: str, tests: str, checkout: Path) -> None:
    reached = reach.Tree(checkout, {*FILES, changed}).reached([changed])
    assert {Path(file).stem.removeprefix("test_") for file in reached} == set(tests.split())


@pytest.mark.parametrize("changed", ["app/__init__.py", "app/pure.py", "app/verbs/trace.py"])
def test_a_deleted_module_reaches_who_still_uses_it(changed: str, checkout: Path) -> None:
    before = reach.Tree(checkout, FILES).reached([changed])
    (checkout / changed).unlink()
    assert reach.Tree(checkout, FILES).reached([changed]) == before != []


@pytest.mark.parametrize("changed", ["tests/conftest.py", "tests/guards.py", "pyproject.toml", "LICENSE", "new.csv"])
def test_what_all_depend_on_or_nobody_names_reaches_everything(changed: str, checkout: Path) -> None:
    tree = reach.Tree(checkout, {*FILES, changed})
    assert tree.reached([changed]) == tree.tests
    assert len(tree.tests) == sum("/test_" in name for name in FILES)


@pytest.fixture
def repository(checkout: Path) -> Callable[..., str]:
    """git in the checkout, which is committed on main."""

    def git(*words: str) -> str:
        identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environ: Mapping[str, str] = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", **identity}
        command = ["git", "-C", str(checkout), *words]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=first")
    return git


def test_changes_are_those_since_main_and_the_uncommitted(checkout: Path, repository: Callable[..., str]) -> None:
    repository("checkout", "--quiet", "-b", "mine")
    (checkout / "app/pure.py").write_text("committed = 1\n")
    repository("commit", "--quiet", "--all", "--message=mine")
    (checkout / "app/lazy.py").write_text("uncommitted = 1\n")
    (checkout / "app/typed.py").unlink()
    (checkout / "app/new.py").touch()
    base, changed = reach.changes(checkout)
    assert base == f"main at {repository('rev-parse', 'main')[:10]}"
    assert changed == ["app/lazy.py", "app/new.py", "app/pure.py", "app/typed.py"]
    assert reach.tests(checkout, ["app/new.py"]) == []


def test_without_a_commit_in_common_nothing_is_guessed(checkout: Path) -> None:
    with pytest.raises(reach.UnknownChange):
        reach.changes(checkout)


def test_what_a_test_of_this_checkout_loads_reaches_it() -> None:
    """Not a proof, but the longest of them load the most, and would be the first to lack an edge."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True)
    tree = reach.Tree(ROOT, [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()])
    test = max(tree.tests, key=lambda name: (ROOT / name).stat().st_size)
    program = (
        "import importlib, sys\n"
        f"importlib.import_module({test.removesuffix('.py').replace('/', '.')!r})\n"
        "print(*(file for module in list(sys.modules.values()) if (file := getattr(module, '__file__', None))))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = [Path(file).relative_to(ROOT).as_posix() for file in ran.stdout.split() if file.startswith(f"{ROOT}/")]
    assert len(loaded) > 10
    assert [file for file in loaded if test not in tree.reached([file])] == []
