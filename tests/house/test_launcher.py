"""bin/kubectl-ctrl for its users: the first call, later calls, completion, and all missing requirements."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.house.checkout import INTERPRETER, UV, Checkout, ended, make, with_uv
from tests.house.index import running_index

pytestmark = pytest.mark.programs("readlink", "sh")

REFUSING = "http://127.0.0.1:1/simple"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with an environment."""
    checkout = with_uv(tmp_path_factory.mktemp("ready"))
    assert checkout.call().code == 7
    return checkout


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout before the first call, where uv creates environments."""
    return with_uv(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> Checkout:
    """A checkout with nothing on PATH."""
    return make(tmp_path)


def test_first_call_says_one_line_and_runs_the_program(fresh: Checkout) -> None:
    first = fresh.run(fresh.root / "bin/kubectl-ctrl", "run", "foo bar", stdin="some: yaml")
    seen = json.loads(first.out)
    assert (first.code, seen["argv"][1:], seen["stdin"]) == (7, ["run", "foo bar"], "some: yaml")
    making, narration = first.err.splitlines()
    assert making.startswith("kubectl-ctrl: creating the Python environment of this checkout in ")
    assert str(fresh.cache) in making
    assert narration == "narration"


def test_later_calls_say_nothing_of_their_own(ready: Checkout) -> None:
    assert ready.call().err == "narration\n"


def test_what_the_program_sees(ready: Checkout) -> None:
    there = ready.home / "work"
    there.mkdir()
    ran = ready.run(ready.root / "bin/kubectl-ctrl", "-", at=there, stdin="some: yaml")
    seen = json.loads(ran.out)
    assert Path(seen["argv"][0]).name == "kubectl-ctrl"
    assert seen["argv"][1:] == ["-"]
    assert seen["cwd"] == str(there)
    assert seen["stdin"] == "some: yaml"
    assert str(ready.root) in seen["path"]


def test_python_variables_of_the_user_are_neither_used_nor_taken_away(ready: Checkout, tmp_path: Path) -> None:
    seen = json.loads(ready.call(environ={"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"}).out)
    assert seen["python"] == str(tmp_path)
    assert str(tmp_path) not in seen["path"]


def test_links_to_the_launcher_use_the_same_environment(ready: Checkout, tmp_path: Path) -> None:
    link, relative = tmp_path / "kubectl-ctrl", tmp_path / "again"
    link.symlink_to(ready.root / "bin/kubectl-ctrl")
    relative.symlink_to("kubectl-ctrl")
    assert [ready.run(each).err for each in (link, relative)] == ["narration\n"] * 2


def test_launcher_named_without_a_folder(ready: Checkout) -> None:
    assert ready.run("/bin/sh", "kubectl-ctrl", at=ready.root / "bin").err == "narration\n"


def test_folder_reached_by_a_link_uses_the_same_environment(ready: Checkout, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(ready.root)
    assert ready.run(tmp_path / "elsewhere/bin/kubectl-ctrl").err == "narration\n"


def test_completion_runs_its_own_program_silently(ready: Checkout) -> None:
    ran = ready.run(ready.root / "bin/kubectl_complete-ctrl", "run", "")
    program, *words = json.loads(ran.out)["argv"]
    assert (Path(program).name, words) == ("kubectl_complete-ctrl", ["run", ""])
    assert (ran.code, ran.err) == (7, "")


def test_completion_never_makes_anybody_wait(fresh: Checkout) -> None:
    ran = fresh.run(fresh.root / "bin/kubectl_complete-ctrl", "")
    assert (ran.code, ran.out, ran.err) == (5, "", "")
    assert not fresh.cache.exists()


def test_environment_lies_in_the_cache_of_the_user(fresh: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    assert fresh.call(environ={"XDG_CACHE_HOME": str(elsewhere)}).code == 7
    assert list(elsewhere.rglob("ready"))
    assert not fresh.cache.exists()


def test_relative_cache_folder_is_ignored(ready: Checkout) -> None:
    assert ready.call(environ={"XDG_CACHE_HOME": "relative"}).err == "narration\n"


def test_another_lock_gets_another_environment(fresh: Checkout) -> None:
    fresh.call()
    fresh.lock("fedcba9876543210")
    assert "creating the Python environment" in fresh.call().err
    assert [folder.name[:16] for folder in fresh.environments] == ["0123456789abcdef", "fedcba9876543210"]


def test_environment_is_made_again_when_its_python_is_gone(fresh: Checkout) -> None:
    fresh.call()
    python = fresh.environments[0] / "bin/python"
    python.unlink()
    python.symlink_to(fresh.home / "removed")
    again = fresh.call()
    assert again.code == 7
    assert "creating the Python environment" in again.err
    assert fresh.call().err == "narration\n"


def test_package_comes_by_pip_from_the_users_index(tmp_path: Path) -> None:
    checkout = make(tmp_path)
    (checkout.programs / "python3").symlink_to(INTERPRETER)
    with running_index() as index:
        index.open.set()
        checkout.lock("0123456789abcdef", index.lock)
        assert checkout.call(environ={"PIP_INDEX_URL": index.url}).code == 7
    [environment] = checkout.environments
    probe = checkout.run(environment / "bin/python", "-I", "-c", "import house_probe; print(house_probe.ANSWER)")
    assert probe.out == "42\n"


def test_two_calls_at_once_make_one_environment(fresh: Checkout) -> None:
    launcher = fresh.root / "bin/kubectl-ctrl"
    with running_index() as index:
        fresh.lock("0123456789abcdef", index.lock)
        settings = {"UV_DEFAULT_INDEX": index.url}
        first = fresh.start(launcher, environ=settings)
        assert index.asked.wait(60)
        second = fresh.start(launcher, environ=settings)
        assert second.stderr
        waiting = second.stderr.readline()
        index.open.set()
        ends = [ended(first), ended(second)]
    assert waiting.startswith("kubectl-ctrl: waiting for another process")
    assert [end.code for end in ends] == [7, 7]
    assert len(fresh.environments) == 1


def test_killed_half_way_is_repaired_by_the_next_call(fresh: Checkout) -> None:
    with running_index() as index:
        fresh.lock("0123456789abcdef", index.lock)
        settings = {"UV_DEFAULT_INDEX": index.url}
        first = fresh.start(fresh.root / "bin/kubectl-ctrl", environ=settings)
        assert index.asked.wait(60)
        os.killpg(first.pid, signal.SIGKILL)
        ended(first)
        assert not fresh.environments
        index.open.set()
        assert fresh.call(environ=settings).code == 7
    assert len(fresh.environments) == 1


def test_next_call_waits_for_what_a_killed_one_started(fresh: Checkout) -> None:
    with running_index() as index:
        fresh.lock("0123456789abcdef", index.lock)
        settings = {"UV_DEFAULT_INDEX": index.url}
        home = fresh.cache / f"kubectl-ctrl/env{fresh.root}"
        words: list[str | Path] = [
            "--home",
            home,
            "--key",
            "0123456789abcdef",
            "--uv",
            UV,
            fresh.root,
            "requirements.lock",
        ]
        maker = fresh.start(INTERPRETER, "-I", fresh.root / "hack/environment.py", *words, environ=settings)
        assert index.asked.wait(60)
        maker.kill()  # but not the installer that it started
        second = fresh.start(fresh.root / "bin/kubectl-ctrl", environ=settings)
        assert second.stderr
        waiting = second.stderr.readline()
        index.open.set()
        ended(maker)
        assert ended(second).code == 7
    assert waiting.startswith("kubectl-ctrl: waiting for another process")


def three_lines(text: str, name: str) -> dict[str, str]:
    """The error at the end of a call, without the progress messages before it."""
    lines = text.splitlines()[-3:]
    assert lines[0].startswith(f"error[CTRL-SETUP-{name}]: ")
    assert [line.split(": ")[0] for line in lines[1:]] == ["tried", "next"]
    return dict(zip(("error", "tried", "next"), (line.partition(": ")[2] for line in lines), strict=True))


def test_no_python_at_all(bare: Checkout) -> None:
    ran = bare.call()
    said = three_lines(ran.err, "PYTHON")
    assert (ran.code, ran.out) == (5, "")
    assert len(ran.err.splitlines()) == 3
    assert "none of which is on PATH" in said["tried"]
    assert "Install Python 3.11" in said["next"]


def test_pythons_that_do_not_do(bare: Checkout) -> None:
    bare.fake("python3.13", "echo 'not active' >&2; exit 127")
    bare.fake("python3", "echo 'is 3.9' >&2; exit 1")
    said = three_lines(bare.call().err, "PYTHON")
    assert said["tried"] == "python3.13 (does not start), python3 (is 3.9)"


def test_python_without_venv_module(bare: Checkout) -> None:
    bare.fake("python3", "echo 'lacks ensurepip' >&2; exit 1")
    said = three_lines(bare.call().err, "PYTHON")
    assert said["tried"] == "python3 (lacks ensurepip)"
    assert said["next"].startswith("Install the venv module of that Python")


def test_no_network(fresh: Checkout) -> None:
    fresh.lock("0123456789abcdef", f"house-probe==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    ran = fresh.call(environ={"UV_DEFAULT_INDEX": REFUSING, "UV_HTTP_RETRIES": "0"})
    assert ran.code == 5
    assert "Check the network" in three_lines(ran.err, "NETWORK")["next"]
    assert not list(fresh.cache.rglob("pyvenv.cfg"))


@pytest.mark.parametrize(
    ("lock", "error"),
    [(f"house-probe==1.0 \\\n    --hash=sha256:{'0' * 64}\n", "HASHES"), ("house-probe==1.0\n", "PACKAGES")],
)
def test_package_with_another_hash_than_in_the_lock_or_none(fresh: Checkout, lock: str, error: str) -> None:
    with running_index() as index:
        index.open.set()
        fresh.lock("0123456789abcdef", lock)
        ran = fresh.call(environ={"UV_DEFAULT_INDEX": index.url})
    assert ran.code == 5
    three_lines(ran.err, error)


def test_folder_that_cannot_be_made(fresh: Checkout) -> None:
    fresh.cache.write_text("a file where a folder has to be")
    ran = fresh.call()
    assert ran.code == 5
    assert "XDG_CACHE_HOME" in three_lines(ran.err, "FOLDER")["next"]


@pytest.mark.parametrize("home", ["", "relative", "./relative"])
def test_no_home(fresh: Checkout, home: str) -> None:
    ran = fresh.call(environ={"HOME": home})
    assert ran.code == 5
    three_lines(ran.err, "FOLDER")
    assert list(fresh.home.iterdir()) == [], "It was called there."


def test_checkout_without_its_lock(fresh: Checkout) -> None:
    (fresh.root / "requirements.lock").unlink()
    ran = fresh.call()
    assert ran.code == 5
    three_lines(ran.err, "CHECKOUT")
