"""What `doctor` says of this machine, with programs that stand in for real ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.cli.parsing.query import CommandTarget
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.provider import ClusterSpec, Fitness
from kubectl_ctrl.doctor import tools
from kubectl_ctrl.doctor.checks import CheckInput, ClusterConnection
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.testing.stage import Stage
from kubectl_ctrl.value import replace
from tests.cli.bench import ABLE, UNABLE, Layout, Toy, app, given, program, told


def kubectl(folder: Path, version: str) -> Path:
    answer = json.dumps({"clientVersion": {"gitVersion": version}})
    return program(folder, "kubectl", f'[ "$*" = "version --client --output=json" ] && echo \'{answer}\'')


def look(check: Any, folder: Path, providers: dict[str, Toy] | None = None, **environ: str) -> list[Line]:
    """What a check says on a machine without a cluster."""

    async def whole() -> list[Line]:
        async def unreached() -> Any:
            raise CtrlError("There is none.")

        known = providers or {}
        reach = asyncio.create_task(unreached())
        await asyncio.gather(reach, return_exceptions=True)
        machine, clock = app(folder, **environ), SystemClock()
        bench = CheckInput(
            user=machine.user,
            target=CommandTarget(machine, given()),
            clock=clock,
            narrate=machine.narrate,
            providers=known,
            fits={name: asyncio.create_task(one.fitness(ClusterSpec())) for name, one in known.items()},
            reach=ClusterConnection(reach),
        )
        return list(await check(bench))

    return asyncio.run(whole())


def test_python_is_told_with_how_we_came_here(tmp_path: Path) -> None:
    (line,) = look(tools.python, tmp_path)
    assert line.mark.value == "ok"
    assert "from the checkout " in line.text


@pytest.mark.parametrize(
    ("prefix", "how"),
    [
        ("/home/me/.local/pipx/venvs/kubectl-ctrl", "installed with pipx"),
        ("/home/me/.local/share/uv/tools/kubectl-ctrl", "installed with uv tool"),
        ("/home/me/.venv", "installed with pip in /home/me/.venv"),
    ],
)
def test_how_it_was_installed_is_told_by_where_it_lies(tmp_path: Path, prefix: str, how: str) -> None:
    assert tools.installation(tmp_path, Path(prefix)) == how


def test_kubectl_is_the_one_that_called_us_else_the_first_in_path(tmp_path: Path) -> None:
    first, calling = tmp_path / "first", tmp_path / "calling"
    kubectl(first, "v1.36.3")
    path = kubectl(calling, "v1.37.0-eks")
    assert told(look(tools.kubectl, tmp_path, PATH=str(first))) == [("ok", f"kubectl v1.36.3 ({first / 'kubectl'})")]
    (line,) = look(tools.kubectl, tmp_path, PATH=str(first), KUBECTL_PATH=str(path))
    assert line.text == f"kubectl v1.37.0-eks ({path})"


def test_without_kubectl_all_works_under_our_own_name(tmp_path: Path) -> None:
    (line,) = look(tools.kubectl, tmp_path)
    assert (line.mark.value, line.command) == ("warn", "kubectl-ctrl doctor --fix kubectl")


@pytest.mark.parametrize("script", ["exit 3", "echo {}", "echo nothing", "kill -9 $$"])
def test_a_kubectl_that_does_not_work_is_a_failure(tmp_path: Path, script: str) -> None:
    path = program(tmp_path / "bin", "kubectl", script)
    (line,) = look(tools.kubectl, tmp_path, PATH=str(tmp_path / "bin"))
    assert (line.mark.value, line.code) == ("fail", 5)
    assert str(path) in line.advice


@pytest.mark.parametrize(
    ("ours", "theirs", "mark"),
    [
        ("v1.36.3", "v1.36.0", "ok"),
        ("v1.37.0", "v1.36.3+k3s1", "ok"),
        ("v1.35.0", "v1.36.3-eks-1", "ok"),
        ("v1.34.9", "v1.36.0", "warn"),
        ("v1.38.0", "v1.36.0", "warn"),
        ("v2.36.0", "v1.36.0", "warn"),
        ("main", "v1.36.0", "info"),
    ],
)
@pytest.mark.real_loop
async def test_m39_one_minor_version_either_way_fits(tmp_path: Path, ours: str, theirs: str, mark: str) -> None:
    kubectl(tmp_path / "bin", ours)

    async def play(at: Layout) -> None:
        (line,) = await at.see(tools.skew)
        assert line.mark.value == mark
        assert ours in line.text
        assert theirs in line.text

    at = real(tmp_path, PATH=str(tmp_path / "bin"))
    at.version = theirs
    await play(at)


def real(folder: Path, **environ: str) -> Layout:
    """As `laid_out`, and programs may be started, which virtual time cannot wait for."""
    at = Layout(Stage(), folder, **environ)
    at.clock = SystemClock()
    return at


def test_kubectl_must_find_us_and_our_completion(tmp_path: Path) -> None:
    lines = look(tools.plugin, tmp_path)
    assert [(line.check, line.mark.value) for line in lines] == [("plugin", "warn"), ("completion", "info")]
    assert lines[0].command.startswith("export PATH=")
    assert lines[1].command == "kubectl ctrl completion install"
    for name in ("kubectl-ctrl", "kubectl_complete-ctrl"):
        program(tmp_path / "bin", name, "")
    (line,) = look(tools.plugin, tmp_path, PATH=str(tmp_path / "bin"))
    assert line.mark.value == "ok"


def test_each_provider_is_told_with_what_it_lacks(tmp_path: Path) -> None:
    both = {"kind": Toy("kind", UNABLE), "kwok": Toy("kwok", ABLE)}
    lines = look(tools.providers, tmp_path, both)
    assert told(lines) == [
        ("warn", "kind: nothing answers"),
        ("info", "box: not installed"),
        ("info", "lid: not there"),
        ("ok", "toy v1 with a box"),
    ]
    assert (lines[0].advice, lines[0].command) == ("start a box", "")


def test_what_doctor_gets_by_itself_is_a_command_where_nothing_else_is_lacking(tmp_path: Path) -> None:
    step = "kubectl ctrl doctor --fix kind"
    for lacking, advice, command in ((step, "", step), (f"start a box, then {step}", f"start a box, then {step}", "")):
        line = look(tools.providers, tmp_path, {"kind": Toy("kind", replace(UNABLE, next_step=lacking))})[0]
        assert (line.advice, line.command) == (advice, command)


def test_what_two_of_them_lack_is_told_once(tmp_path: Path) -> None:
    both = {"a": Toy("a", UNABLE), "b": Toy("b", replace(UNABLE, text="b has no hinge"))}
    lines = look(tools.providers, tmp_path, both)
    assert [line.text for line in lines if line.check in ("box", "lid")] == ["box: not installed", "lid: not there"]


async def test_a_provider_that_is_broken_is_a_warning(at: Layout) -> None:
    at.providers = {"toy": Toy("toy", Fitness(usable=False, text="toy is broken"))}
    assert [line.mark.value for line in await at.see(tools.providers)] == ["warn"]
