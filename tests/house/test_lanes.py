"""The lanes of hack/test: their counts, their choice, and lanes that cannot run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hack import lanes
from hack.lanes import ROOT, Lane, Run, counted


@pytest.mark.parametrize(
    ("line", "code", "sums"),
    [
        ("==== 3 failed, 297 passed, 2 skipped, 1 error in 4.56s ====", 1, (297, 4, 2)),
        ("12 passed in 0.1s", 0, (12, 0, 0)),
        ("11 passed, 0 failed", 0, (11, 0, 0)),
        ("5 passed, 2 errors in 1s", 1, (5, 2, 0)),
    ],
)
def test_counts_come_from_the_last_line(line: str, code: int, sums: tuple[int, int, int]) -> None:
    lane = counted("tests", line, code, 1.0)
    assert (lane.passed, lane.failed, lane.skipped) == sums


@pytest.mark.parametrize("line", ["", "12 passed in 0.1s"])
def test_bad_end_without_a_failure_is_one(line: str) -> None:
    lane = counted("tests", line, -11, 1.0)
    assert (lane.failed, lane.note) == (1, "exited with code -11")


def test_output_is_shown_while_its_end_is_counted(capfd: pytest.CaptureFixture[str]) -> None:
    program = "print('2 failed'); print('7 passed, 1 skipped in 0.2s'); print('bye')"
    lane = Run({}).follow("tests", [sys.executable, "-c", program])
    assert (lane.passed, lane.failed, lane.skipped) == (7, 0, 1)
    assert capfd.readouterr().out.endswith("2 failed\n7 passed, 1 skipped in 0.2s\nbye\n")


# A lane whose command tidies up when it is interrupted, as pytest does.
ENDED = """\
import signal, sys
from hack import lanes
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.default_int_handler)
program = '''
import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("BEGUN".lower(), file=sys.stderr, flush=True)
    signal.pause()
finally:
    pathlib.Path("tidied").touch()
'''
lanes.ROOT = sys.argv[1]
lanes.{how}(lanes.Run({{}}){words}, [sys.executable, "-c", program])
"""


@pytest.mark.parametrize(("how", "words"), [("Run.follow", ', "tests"'), ("prepared", "")])
def test_whoever_ends_a_lane_ends_what_it_has_started(tmp_path: Path, how: str, words: str) -> None:
    command = [sys.executable, "-c", ENDED.format(how=how, words=words), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as lane:
        assert lane.stdout
        assert any("begun" in line for line in lane.stdout)
        lane.terminate()
        lane.wait()
    assert (tmp_path / "tidied").exists()


@pytest.fixture
def without_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose hack/realkube finds no Go."""
    script = tmp_path / "hack/realkube"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'Go 1.26 is needed.' >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("environ", "failed"), [({}, 0), ({"CI": "false"}, 0), ({"CI": "true"}, 1)])
def test_machine_without_go_skips_the_kwok_lane_except_in_ci(
    without_go: Path, environ: Mapping[str, str], failed: int
) -> None:
    assert lanes.kwok(Run(environ)) == Lane(name="kwok", ran=False, failed=failed, note="Go 1.26 is needed.")


@pytest.mark.parametrize(("environ", "failed"), [({}, 0), ({"CI": "true"}, 1)])
@pytest.mark.parametrize(("lane", "note"), [("fresh", "That requires root."), ("browser", "Chromium is missing.")])
def test_machine_that_lacks_something_skips_the_lane_except_in_ci(
    without_go: Path, lane: str, note: str, environ: Mapping[str, str], failed: int
) -> None:
    script = without_go / "hack" / lane
    script.write_text(f"#!/bin/sh\necho '{note}' >&2\nexit 3\n")
    script.chmod(0o755)
    assert getattr(lanes, lane)(Run(environ)) == Lane(name=lane, ran=False, failed=failed, note=note)


def test_broken_build_is_a_failure_everywhere(without_go: Path) -> None:
    (without_go / "hack/realkube").write_text("#!/bin/sh\necho 'undefined: main' >&2\nexit 1\n")
    assert lanes.kwok(Run({})) == Lane(name="kwok", ran=False, failed=1, note="undefined: main")


# Reports whether it started a daemon, and logs its arguments.
KIND_UP = """\
#!/bin/sh
echo "$2" >> {calls}
[ "$2" = stop ] || echo '{{"path": ["/kind"], "env": {{"DOCKER_HOST": "unix:///d"}}, "started": {started}}}'
"""


@pytest.mark.parametrize(("started", "asked"), [("true", "up stop"), ("false", "up")])
def test_kind_lane_stops_the_daemon_that_it_started(without_go: Path, started: str, asked: str) -> None:
    calls = without_go / "calls"
    (without_go / "hack/realkube").write_text(KIND_UP.format(calls=calls, started=started))
    broken = without_go / "bin/kubectl-ctrl"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'No environment.' >&2\nexit 5\n")
    broken.chmod(0o755)
    assert lanes.kind(Run({})) == Lane(name="kind", ran=False, failed=1, note="No environment.")
    assert calls.read_text().split() == asked.split()


@pytest.mark.parametrize(("environ", "failed"), [({}, 0), ({"CI": "true"}, 1)])
def test_machine_without_kind_skips_its_lane_except_in_ci(
    without_go: Path, environ: Mapping[str, str], failed: int
) -> None:
    assert lanes.kind(Run(environ)) == Lane(name="kind", ran=False, failed=failed, note="Go 1.26 is needed.")


ALL = list(lanes.LANES)


@pytest.mark.parametrize(
    ("words", "environ", "names", "for_pytest"),
    [
        ("", {}, ["check", "tests"], []),
        ("", {"CI": "true"}, ALL, []),
        ("--all", {}, ALL, []),
        ("kwok check", {}, ["check", "kwok"], []),
        ("check", {"CI": "true"}, ["check"], []),
        ("kwok -- -k trace", {}, ["kwok"], ["-k", "trace"]),
        ("kwok --", {}, ["kwok"], []),
        ("-- -x tests/cli", {"CI": "true"}, ["tests"], ["-x", "tests/cli"]),
    ],
)
def test_arguments_choose_the_lanes(
    words: str, environ: Mapping[str, str], names: list[str], for_pytest: list[str]
) -> None:
    chosen, run = lanes.chosen(words.split(), Run(environ))
    assert (list(chosen), list(run.pytest_args)) == (names, for_pytest)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("-k trace", "'-k' is not a lane.* hack/test -- -k trace$"),
        ("minikube", "'minikube' is not a lane"),
        ("--all tests", "mutually exclusive"),
        ("--all --changed", "mutually exclusive"),
        ("check -- -x", "The lane check does not run pytest"),
    ],
)
def test_invalid_arguments_are_refused(words: str, problem: str) -> None:
    with pytest.raises(lanes.UsageError, match=problem):
        lanes.chosen(words.split(), Run({}))


def test_refusal_is_wrong_usage() -> None:
    command = [sys.executable, str(ROOT / "hack/lanes.py"), "nonsense"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("hack/test: 'nonsense' is not a lane. The lanes are: check, tests,")


def test_quick_lanes_need_no_preparation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["hack/test"])
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(lanes.Run, "follow", lambda _, name, *__, **___: Lane(name=name, passed=1))
    assert lanes.main() == 0
    out = capsys.readouterr().out
    assert "=== prepare" not in out
    assert [line.split()[0] for line in out.splitlines() if " ok " in line] == ["check", "tests"]
    assert "\nnot run: browser, sandbox, conformance, kwok, kind, fresh; hack/test --all runs every lane" in out
    assert out.endswith("\n2 passed, 0 failed\n")


def test_kind_and_fresh_run_side_by_side(
    without_go: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(without_go / "kind")
    program = "import sys; open('kind').read(); print('fresh    FAILED  38 passed 1 failed 0 skipped'); sys.exit(1)"
    (without_go / "hack/fresh").write_text("#!/bin/sh\n")
    (without_go / "hack/fresh").chmod(0o755)
    (without_go / "hack/lanes.py").write_text(program)

    def kind(_: Run) -> Lane:
        (without_go / "kind").write_text("begun")  # blocks until fresh reads it
        return Lane(name="kind", passed=1)

    monkeypatch.setattr(lanes, "kind", kind)
    monkeypatch.setattr(sys, "argv", ["hack/test", "kind", "fresh"])
    assert lanes.main() == 1
    out = capsys.readouterr().out
    assert re.search(r"^fresh +FAILED +38 passed +1 failed +0 skipped +\d", out, re.MULTILINE)
    assert out.endswith("\n39 passed, 1 failed\n")


@pytest.fixture
def own_tests(without_go: Path) -> Callable[..., str]:
    """Runs the tests lane of a repository with tests of hack/realkube, and returns what pytest was told."""
    for name in ("tests/house/test_realkube.py", "tests/test_other.py", "hack/realkube.d/build.py"):
        (without_go / name).parent.mkdir(parents=True, exist_ok=True)
        (without_go / name).touch()
    (without_go / "pytest.py").write_text("import os, sys\nprint(*sys.argv[1:], os.environ['ENDS'])\n")

    def told(capfd: pytest.CaptureFixture[str], ends: str = "1 passed", words: Sequence[str] = ()) -> str:
        environ = {"PYTHONPATH": str(without_go), "XDG_CACHE_HOME": str(without_go / "cache"), "ENDS": ends}
        lanes.tests(Run(environ, words))
        return capfd.readouterr().out.splitlines()[-1]

    return told


IGNORED = "--ignore=tests/house/test_realkube.py"


def test_own_tests_of_realkube_run_again_when_an_input_changed(
    own_tests: Callable[..., str], without_go: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert IGNORED not in own_tests(capfd)
    assert IGNORED in own_tests(capfd)
    assert IGNORED not in own_tests(capfd, words=["-k", "realkube"])  # chosen tests always run
    (without_go / "tests/test_other.py").write_text("changed = 1\n")
    assert IGNORED in own_tests(capfd)
    for name in ("hack/realkube", "hack/realkube.d/build.py", "tests/house/test_realkube.py"):
        with (without_go / name).open("a") as file:
            file.write("# changed\n")
        assert IGNORED not in own_tests(capfd)
        assert IGNORED in own_tests(capfd)


def test_own_tests_of_realkube_that_failed_run_again(
    own_tests: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert IGNORED not in own_tests(capfd, ends="1 failed, 3 passed")
    assert IGNORED not in own_tests(capfd)


# As hack/conformance.d/conformance.py: prints its arguments and a count.
SPECS = "import sys\nprint(*sys.argv[1:])\nprint('0 failed, 7 passed in 1.2s')\n"


@pytest.fixture
def specs(without_go: Path) -> Callable[..., Lane]:
    """Runs the conformance lane of a repository."""
    for name, text in {
        "hack/realkube": "#!/bin/sh\necho /cache/program\n",
        "bin/kubectl-ctrl": "#!/bin/sh\n",
        "hack/conformance.d/conformance.py": SPECS,
        "hack/conformance.d/passing.txt": "Watchers should work\n",
        "hack/realkube.d/conformance/go.mod": "module conformance\n",
        "kubectl_ctrl/sandbox/server.py": "",
        "kubectl_ctrl/model/objects.py": "",
        "kubectl_ctrl/cli/main.py": "",
    }.items():
        (without_go / name).parent.mkdir(parents=True, exist_ok=True)
        (without_go / name).write_text(text)
        (without_go / name).chmod(0o755)
    environ = {"XDG_CACHE_HOME": str(without_go / "cache")}
    return lambda *words: lanes.conformance(Run(environ, words))


def test_specs_run_again_when_an_input_changed(
    specs: Callable[..., Lane], without_go: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (specs().passed, specs().ran) == (7, False)
    assert "/cache/program\n" in capfd.readouterr().out
    assert specs("Watchers", "--others").passed == 7  # chosen specs always run
    assert "/cache/program Watchers --others\n" in capfd.readouterr().out
    with (without_go / "kubectl_ctrl/cli/main.py").open("a") as file:
        file.write("# changed\n")
    assert not specs().ran
    for name in (
        *("kubectl_ctrl/sandbox/server.py", "kubectl_ctrl/model/objects.py", "hack/realkube.d/conformance/go.mod"),
        *("hack/conformance.d/conformance.py", "hack/conformance.d/passing.txt"),
    ):
        with (without_go / name).open("a") as file:
            file.write("# changed\n")
        assert (specs().ran, specs().ran) == (True, False)


def test_specs_that_failed_run_again(specs: Callable[..., Lane], without_go: Path) -> None:
    script = without_go / "hack/conformance.d/conformance.py"
    script.write_text("print('1 failed, 6 passed in 1.2s')\nraise SystemExit(1)\n")
    assert [specs().failed, specs().failed] == [1, 1]


@pytest.mark.parametrize(("environ", "failed"), [({}, 0), ({"CI": "true"}, 1)])
def test_machine_without_go_skips_the_specs_except_in_ci(
    without_go: Path, tmp_path: Path, environ: Mapping[str, str], failed: int
) -> None:
    lane = lanes.conformance(Run({**environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}))
    assert lane == Lane(name="conformance", ran=False, failed=failed, note="Go 1.26 is needed.")


@pytest.mark.parametrize(
    ("words", "paths"),
    [([], ["tests"]), (["-k", "hack"], ["tests"]), (["hack/realkube"], []), (["hack/realkube::test_x", "-x"], [])],
)
def test_a_path_replaces_the_lanes_own(
    without_go: Path, words: list[str], paths: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    program = without_go / "pytest.py"
    program.write_text("import sys\nprint(*sys.argv[1:], '1 passed')\n")
    assert Run({"PYTHONPATH": str(without_go)}, words).pytest("unit", "tests").passed == 1
    given = capfd.readouterr().out.splitlines()[-1].split()
    assert [word for word in given if word == "tests"] == paths


@pytest.mark.parametrize(
    ("lane", "text"),
    [
        (Lane(name="kwok", ran=False, note="no Go"), "kwok        skipped: no Go"),
        (Lane(name="kwok", ran=False, failed=1, note="no Go"), "kwok        FAILED: no Go"),
        (
            Lane(name="tests", passed=7, seconds=1.25),
            "tests       ok          7 passed   0 failed   0 skipped     1.2 s",
        ),
    ],
)
def test_row_of_the_table(lane: Lane, text: str) -> None:
    assert str(lane) == text
