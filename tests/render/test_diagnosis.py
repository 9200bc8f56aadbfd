from __future__ import annotations

import shlex
import subprocess

import pytest

from kubectl_ctrl.doctor.diagnosis import Diagnosis, Group, GroupLines, Line, Mark, Repair, RepairOutcome, worst
from kubectl_ctrl.render.diagnosis import diagnosis_json, diagnosis_lines
from kubectl_ctrl.render.style import Style
from tests.render.samples import NOON

pytestmark = pytest.mark.programs("sh")

LONG = 'kubectl --context kind-a patch deployment foo --type=merge --patch \'{"spec": {"replicas": 3}}\' --namespace a'
FOUND = Diagnosis(
    at=NOON,
    groups=(
        GroupLines(
            group=Group.MACHINE,
            lines=(
                Line(check="python", mark=Mark.OK, text="kubectl-ctrl 0.1 from the checkout /home/me/kubectl-ctrl"),
                Line(
                    check="completion", mark=Mark.INFO, text="not installed", command="kubectl ctrl completion install"
                ),
            ),
        ),
        GroupLines(group=Group.PROVIDERS, lines=()),
        GroupLines(
            group=Group.CLUSTER,
            lines=(
                Line(
                    check="context",
                    mark=Mark.FAIL,
                    text="nothing answers at https://10.0.0.1:6443, whatever is said to it and however long that takes",
                    advice="look whether the cluster runs, whether the address is right, and whether a VPN is needed",
                    code=3,
                ),
            ),
        ),
        GroupLines(
            group=Group.LEFTOVERS,
            lines=(
                Line(
                    check="takeovers",
                    mark=Mark.WARN,
                    text="deployments.apps a/foo was scaled to zero\x1b[31m",
                    advice="if that run is gone:",
                    command=LONG,
                ),
            ),
        ),
    ),
)
GOLDEN = """\
This machine
  ✓ ok    kubectl-ctrl 0.1 from the checkout /home/me/kubectl-ctrl
  · info  not installed
          next: kubectl ctrl completion install

The cluster
  ✗ FAIL  nothing answers at https://10.0.0.1:6443, whatever is said to it and
          however long that takes
          next: look whether the cluster runs, whether the address is right, and
                whether a VPN is needed

Leftovers
  ! warn  deployments.apps a/foo was scaled to zero\\x1b[31m
          next: if that run is gone:
                kubectl --context kind-a patch deployment foo --type=merge \\
                --patch '{"spec": {"replicas": 3}}' --namespace a
"""
MENDED = Diagnosis(
    at=NOON,
    repairs=tuple(
        Repair(outcome=outcome, text=f"a Lease, {outcome.value}", advice="wait", command="kubectl get lease")
        for outcome in RepairOutcome
    ),
)


def test_each_line_has_a_mark_and_the_next_step_below() -> None:
    assert "\n".join(diagnosis_lines(FOUND, Style(width=80))) + "\n" == GOLDEN


def test_a_pipe_gets_unbroken_lines_in_ascii() -> None:
    lines = diagnosis_lines(FOUND, Style(unicode=False))
    assert lines[1] == "  ok    kubectl-ctrl 0.1 from the checkout /home/me/kubectl-ctrl"
    assert f"              {LONG}" in lines
    assert all(line.isascii() for line in lines)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_wrapped_command_has_the_same_arguments(width: int) -> None:
    lines = diagnosis_lines(FOUND, Style(width=width))
    start = next(at for at, line in enumerate(lines) if line.lstrip().startswith("kubectl --context"))
    script = "printf '%s\\0' " + "\n".join(lines[start:])
    words = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert words.split("\0")[:-1] == shlex.split(LONG)


def test_a_colour_is_on_the_mark_alone() -> None:
    lines = diagnosis_lines(FOUND, Style(width=80, color=True))
    assert lines[1].startswith("\x1b[32m  ✓ ok    \x1b[0mkubectl-ctrl")


def test_a_repair_has_its_outcome() -> None:
    lines = diagnosis_lines(MENDED, Style(width=80))
    assert [line.split("a Lease")[0].split(maxsplit=1)[1].strip() for line in lines if "a Lease" in line] == [
        outcome.value for outcome in RepairOutcome
    ]


def test_the_worst_line_decides_the_exit_code() -> None:
    assert (FOUND.mark, FOUND.code) == (Mark.FAIL, 3)
    assert (MENDED.mark, MENDED.code) == (Mark.OK, 0)
    assert [worst(codes) for codes in ((), (1, 8, 7), (1, 3, 5), (4,))] == [0, 7, 5, 4]


def test_the_document_has_every_line_with_its_group() -> None:
    document = diagnosis_json(FOUND)
    assert (document["state"], document["exitCode"]) == ("fail", 3)
    assert [(one["group"], one["check"]) for one in document["checks"]] == [
        ("machine", "python"),
        ("machine", "completion"),
        ("cluster", "context"),
        ("leftovers", "takeovers"),
    ]


def test_our_own_name_is_never_wrapped() -> None:
    advice = "start docker, or set DOCKER_HOST to its address, then kubectl ctrl doctor --fix kind"
    line = Line(check="providers", mark=Mark.WARN, text="nothing listens", advice=advice)
    found = Diagnosis(at=NOON, groups=(GroupLines(group=Group.PROVIDERS, lines=(line,)),))
    for width in range(40, 120):
        lines = diagnosis_lines(found, Style(width=width, unicode=True))
        assert any("kubectl ctrl" in one for one in lines)
        assert max(map(len, lines)) <= width
