"""`completion install`: where the helper goes, and what it never touches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.verbs.completion.main import CONTENT, HELPER

Asked = Callable[..., tuple[str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the program in a folder of PATH, and two more folders there."""
    home = tmp_path / "home"
    for name in ("krew/bin", ".local/bin", "tools"):
        (home / name).mkdir(parents=True)
    program = home / "krew" / "bin" / "kubectl-ctrl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m kubectl_ctrl.cli.main "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setenv("PATH", f"/nowhere:{home}/krew/bin:{home}/tools:{home}/.local/bin")
    return home


@pytest.fixture
def asked(home: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    def asked(*words: str, code: int = 0) -> tuple[str, str]:
        assert cli.main(["completion", *words]) == code
        out, err = capsys.readouterr()
        return out.replace(str(home), "~"), err.replace(str(home), "~")

    return asked


def test_it_goes_beside_the_program_and_works(home: Path, asked: Asked) -> None:
    out, err = asked("install")
    assert out == "~/krew/bin/kubectl_complete-ctrl created\n"
    assert err == "A shell with kubectl's completion (kubectl completion --help) now also completes kubectl ctrl.\n"
    helper = home / "krew" / "bin" / HELPER
    assert helper.stat().st_mode & 0o777 == 0o755
    done = subprocess.run([helper, "run", "fo"], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1], done.stdout[:4], done.stderr) == (":4", "foo\t", "")


def test_twice_is_fine_and_so_is_an_older_one(home: Path, asked: Asked) -> None:
    asked("install")
    helper = home / "krew" / "bin" / HELPER
    before = helper.stat()
    assert asked("install")[0] == "~/krew/bin/kubectl_complete-ctrl already exists\n"
    after = helper.stat()  # that it was read may show, not that it was written
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)
    helper.write_text(f"{CONTENT}# of another version\n")
    assert asked("install")[0] == "~/krew/bin/kubectl_complete-ctrl updated\n"
    assert helper.read_text() == CONTENT
    assert sorted(file.name for file in helper.parent.iterdir()) == ["kubectl-ctrl", HELPER]


def test_where_the_programs_folder_cannot_be_written_it_goes_to_the_users_own(home: Path, asked: Asked) -> None:
    (home / "krew" / "bin" / "kubectl-ctrl").rename(home / "kubectl-ctrl")
    out, err = asked("install")
    assert out == "~/.local/bin/kubectl_complete-ctrl created\n"
    assert "kubectl-ctrl is not in PATH" in err


def test_then_to_the_first_folder_below_home(home: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"/usr/bin:{home}/none:{home}/tools")
    assert asked("install")[0] == "~/tools/kubectl_complete-ctrl created\n"
    monkeypatch.setenv("PATH", f"/nowhere:{home}/none")
    _, err = asked("install", code=5)
    assert "No folder in PATH" in err
    assert "--dir ~/.local/bin" in err


def test_a_folder_that_is_named(home: Path, asked: Asked) -> None:
    (home / "else").mkdir()
    out, err = asked("install", "--dir", str(home / "else"))
    assert out == "~/else/kubectl_complete-ctrl created\n"
    assert "Add '~/else' to PATH, so that kubectl finds it.\n" in err
    _, err = asked("install", f"--dir={home}/none", code=1)
    assert "Cannot write '~/none/kubectl_complete-ctrl': No such file or directory" in err


@pytest.mark.parametrize("content", ["#!/bin/sh\nexec something-else\n", "\udcff"])
def test_what_is_somebody_elses_stays(home: Path, asked: Asked, content: str) -> None:
    helper = home / "krew" / "bin" / HELPER
    helper.write_bytes(content.encode(errors="surrogateescape"))
    helper.chmod(0o755)
    before = helper.read_bytes()
    _, err = asked("install", code=6)
    assert "exists and was not created by kubectl ctrl" in err
    assert asked("install", "--remove")[0] == "nothing to remove\n"
    assert helper.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "#!/x/python\nfrom kubectl_ctrl.cli.completion.main import main\n",
        "#!/bin/sh\ncase $0 in kubectl_complete-ctrl) ;; esac\n",
    ],
)
def test_what_was_shipped_is_enough(home: Path, asked: Asked, content: str) -> None:
    shipped = home / "tools" / HELPER
    shipped.write_text(content)
    shipped.chmod(0o755)
    assert asked("install")[0] == "~/tools/kubectl_complete-ctrl already exists\n"
    assert asked("install", "--remove")[0] == "nothing to remove\n"
    assert shipped.read_text() == content


def test_no_link_is_written_through(home: Path, asked: Asked) -> None:
    target = home / "precious"
    target.write_text("mine")
    (home / "krew" / "bin" / HELPER).symlink_to(target)
    asked("install", code=6)
    assert target.read_text() == "mine"
    (home / "krew" / "bin" / HELPER).unlink()
    (home / "krew" / "bin" / HELPER).symlink_to(home / "gone")
    asked("install", code=6)


def test_removed(home: Path, asked: Asked) -> None:
    (home / "else").mkdir()
    asked("install")
    asked("install", f"--dir={home}/else")
    assert asked("install", "--remove")[0] == "~/krew/bin/kubectl_complete-ctrl removed\n"
    assert asked("install", "--remove")[0] == "nothing to remove\n"
    assert asked("install", "--remove", f"--dir={home}/else")[0] == "~/else/kubectl_complete-ctrl removed\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "completion needs an action"),
        (("ksh",), "completion has no action 'ksh'"),
        (("bash", "x"), "completion bash takes no 'x'"),
        (("bash", "--remove"), "--remove is for completion install"),
    ],
)
def test_wrong_words(asked: Asked, words: tuple[str, ...], told: str) -> None:
    assert told in asked(*words, code=2)[1]
