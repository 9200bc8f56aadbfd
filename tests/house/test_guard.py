"""tests/guard.py and tests/skips.py, with a suite that violates them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.guard import CHECKOUT
from tests.skips import ALLOWED

# In the suite OUTSIDE is an existing folder that is not below its temporary folder.
PREAMBLE = """
import os, shutil, socket, sqlite3, subprocess, sys
from contextlib import suppress
from pathlib import Path
import pytest

OUTSIDE = Path({outside!r})
"""
MAKE = [sys.executable, "-c", "import os, sys; os.makedirs(os.environ[sys.argv[1]] + sys.argv[2])"]
# Message -> code that causes it.
FORBIDDEN = {
    "it started /bin/sh": "subprocess.run(['/bin/sh', '-c', ''])",
    "it started /bin/sh (": "os.system('')",
    "a program of the machine": "os.posix_spawn('/bin/sh', ['sh', '-c', ''], {})",
    "/x (": "(tmp_path / 'x').symlink_to('/bin/sh'); subprocess.run([tmp_path / 'x'])",
    "/sh": "subprocess.run(['sh', '-c', ''], env={'PATH': '/usr/bin:/bin'})",
    "name it with @pytest.mark.programs": "with suppress(Exception): subprocess.run(['/bin/sh'])",
    "it used the network: ('192.0.2.1', 80)": "socket.create_connection(('192.0.2.1', 80))",
    "it used the network: ('0.0.0.0', 0)": "socket.socket().bind(('0.0.0.0', 0))",
    "it looked up the host 'example.com'": "socket.getaddrinfo('example.com', 80)",
    "it used the socket '/run/x.sock'": "socket.socket(socket.AF_UNIX).connect('/run/x.sock')",
    "it changed {outside}/file": "(OUTSIDE / 'file').write_text('')",
    "it changed {outside}/low": "os.close(os.open(OUTSIDE / 'low', os.O_CREAT | os.O_WRONLY))",
    "it changed {outside}/folder": "(OUTSIDE / 'folder').mkdir()",
    "it changed {outside}/there": "(OUTSIDE / 'there').unlink()",
    "it changed {outside}/empty": "(OUTSIDE / 'empty').rmdir()",
    "it changed {outside}/moved": "(OUTSIDE / 'moved').rename(tmp_path / 'moved')",
    "it changed {outside}/taken": "(tmp_path / 'x').touch(); (tmp_path / 'x').replace(OUTSIDE / 'taken')",
    "it changed {outside}/rights": "(OUTSIDE / 'rights').chmod(0o700)",
    "it changed {outside}/link": "(OUTSIDE / 'link').symlink_to('x')",
    "it changed {outside}/data": "sqlite3.connect(OUTSIDE / 'data')",
    "it changed {outside}/uri": "sqlite3.connect(f'file:{OUTSIDE}/uri', uri=True)",
    "/way/file, which is not below": "(tmp_path / 'way').symlink_to(OUTSIDE); (tmp_path / 'way/file').write_text('')",
    "home/.config behind": f"subprocess.run({[*MAKE, 'HOME', '/.config']})",
    "tmp/left behind": f"subprocess.run({[*MAKE, 'TMPDIR', '/left']})",
}
ALLOWED_DEEDS = [
    "assert shutil.which('sh') is None and 'LOGNAME' not in os.environ and not Path.home().exists()",
    "subprocess.run([sys.executable, '-c', ''], check=True)",
    "(tmp_path / 'x').write_text('#!/bin/sh\\n'); (tmp_path / 'x').chmod(0o700); subprocess.run([tmp_path / 'x'])",
    "with pytest.raises(FileNotFoundError): subprocess.run(['sh'])",
    "a = socket.create_server(('127.0.0.1', 0)); socket.create_connection(a.getsockname()).close(); a.close()",
    "a = socket.create_server(('127.0.0.1', 0)); socket.create_connection(a.getsockname()).sendmsg([b'x']); a.close()",
    "socket.getaddrinfo('localhost', 80)",
    "a = socket.socket(socket.AF_UNIX); a.bind(str(tmp_path / 's')); a.close()",
    "assert (OUTSIDE / 'there').read_text() == ''",
    "open(os.devnull, 'w').close()",
    "sqlite3.connect(f'file:{OUTSIDE}/there?mode=ro', uri=True).close(); sqlite3.connect(':memory:').close()",
]


def suite(outside: Path) -> str:
    tests = [f"def test_forbidden_{at}(tmp_path):\n    {deed}\n" for at, deed in enumerate(FORBIDDEN.values())]
    tests += [f"def test_allowed_{at}(tmp_path):\n    {deed}\n" for at, deed in enumerate(ALLOWED_DEEDS)]
    named = "@pytest.mark.programs({!r})\ndef test_{}():\n    subprocess.run([{!r}, '-c', ''], check=True)\n"
    tests += [named.format("sh", "named", "sh"), named.format("sh", "named_and_by_its_path", "/bin/sh")]
    tests += [named.format("no-such-program", "missing", "no-such-program")]
    return "\n\n".join([PREAMBLE.format(outside=str(outside)), *tests])


def results(folder: Path, text: str, **environ: str) -> dict[str, ET.Element]:
    """Test -> its element of the report."""
    folder.mkdir()
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_it.py").write_text(text)
    words = ["-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(folder), "--junitxml", str(folder / "report.xml")]
    words += ["-p", "no:cacheprovider", "--basetemp", str(folder / "run"), "-W", "ignore::ResourceWarning", str(folder)]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "LOGNAME": "me", **environ}
    subprocess.run([sys.executable, "-m", "pytest", *words], env=env, cwd=folder, capture_output=True, check=False)
    cases = ET.parse(folder / "report.xml").iter("testcase")
    found: dict[str, ET.Element] = {}
    for case in cases:
        found.setdefault(case.attrib["name"], ET.Element("all")).extend(case)
    return found


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ET.Element]:
    outside = tmp_path_factory.mktemp("outside")
    for name in ("there", "moved", "rights"):
        (outside / name).touch()
    (outside / "empty").mkdir()
    before = sorted(outside.iterdir())
    found = results(tmp_path_factory.mktemp("guarded") / "suite", suite(outside))
    assert sorted(outside.iterdir()) == before
    for case in found.values():
        for part in case:
            part.set("message", part.attrib.get("message", "").replace(str(outside), "{outside}"))
    return found


@pytest.mark.parametrize(("at", "words"), list(enumerate(FORBIDDEN)))
def test_what_touches_the_machine_fails_and_says_what_it_touched(
    judged: Mapping[str, ET.Element], at: int, words: str
) -> None:
    parts = judged[f"test_forbidden_{at}"]
    assert words in "\n".join(part.attrib["message"] for part in parts)
    assert f"test_forbidden_{at}" in "\n".join(part.attrib["message"] for part in parts if part.tag == "error")


@pytest.mark.parametrize("at", range(len(ALLOWED_DEEDS)))
def test_what_stays_at_home_passes(judged: Mapping[str, ET.Element], at: int) -> None:
    assert [part.attrib for part in judged[f"test_allowed_{at}"]] == []


def test_a_program_that_is_named_may_start_and_one_that_is_missing_skips(judged: Mapping[str, ET.Element]) -> None:
    assert [part.attrib for name in ("test_named", "test_named_and_by_its_path") for part in judged[name]] == []
    (part,) = judged["test_missing"]
    assert (part.tag, part.attrib["message"]) == ("skipped", "There is no no-such-program here.")


SKIPPING = """
import pytest

def test_skips():
    pytest.skip("No reason.")

@pytest.mark.xfail(reason="a known fault", strict=True)
def test_known():
    assert not "a fault"

def test_listed():
    pytest.skip("Nor here.")
"""


@pytest.mark.parametrize(("ci", "tag"), [("", "skipped"), ("true", "failure")])
def test_in_ci_a_skipped_test_fails(tmp_path: Path, ci: str, tag: str) -> None:
    found = results(tmp_path / "suite", SKIPPING, CI=ci)
    (part,) = found["test_skips"]
    assert part.tag == tag
    assert "No reason." in part.attrib["message"] + (part.text or "")
    assert [part.tag for part in found["test_known"]] == ["skipped"]


@pytest.mark.parametrize("test", ALLOWED)
def test_an_exception_names_a_test_that_is_there(test: str) -> None:
    place, _, name = test.partition("::")
    body = ast.parse((CHECKOUT / place).read_text()).body
    assert name.partition("[")[0] in [node.name for node in body if isinstance(node, ast.FunctionDef)]
    assert ALLOWED[test].endswith(".")
