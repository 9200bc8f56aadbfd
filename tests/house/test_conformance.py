"""hack/conformance.d with a program that has a few specs, and no sandbox."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hack.lanes import ROOT

PARTS = ROOT / "hack/conformance.d"

# Writes the report of Ginkgo: Watchers pass, Quotas fail, Setup is what runs before the specs.
PROGRAM = """\
#!{python}
import json, re, sys
options = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
specs = []
def spec(state, texts, leaf, kind="It"):
    name = " ".join([*(texts or ()), leaf])
    if kind == "It" and not re.search(options["ginkgo.focus"], name):
        state = "skipped"
    if "ginkgo.skip" in options and re.search(options["ginkgo.skip"], name):
        state = "skipped"
    where = {{"FileName": "/go/quota.go", "LineNumber": 7}}
    failure = {{"Failure": {{"Message": "no quota", "Location": where}}}} if state == "failed" else {{}}
    names = {{"ContainerHierarchyTexts": texts, "LeafNodeText": leaf, "LeafNodeType": kind}}
    specs.append({{"State": state, **names, **failure}})
spec("passed", None, "", "SynchronizedBeforeSuite")
for leaf in ("should see (all)", "should see [Conformance]", "should see all"):
    spec("passed", ["[sig-api-machinery] Watchers"], leaf)
spec("failed", ["[sig-api-machinery] Quotas"], "should count")
spec("passed", ["[sig-api-machinery] Quotas"], "should be slow [Slow]")
with open(options["ginkgo.json-report"], "w") as file:
    json.dump([{{"SpecReports": specs}}], file)
"""


@pytest.fixture
def conformance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(PARTS))
    module = importlib.import_module("conformance")
    monkeypatch.setattr(module, "SANDBOX", ())
    monkeypatch.setattr(module, "PASSING", tmp_path / "passing.txt")
    module.PASSING.write_text("# A comment.\nWatchers should see (all)\nWatchers should see [Conformance]\n")
    program = tmp_path / "program"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    yield module
    del sys.modules["conformance"]


def test_the_listed_specs_run_and_no_others(
    conformance: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conformance.main([str(tmp_path / "program")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 failed, 2 passed in ")
    assert conformance.main([str(tmp_path / "program"), "(all)"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 failed, 1 passed in ")
    assert conformance.main([str(tmp_path / "program"), "Leases"]) == 2


def test_a_listed_spec_that_fails_or_is_missing_is_a_failure(
    conformance: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with conformance.PASSING.open("a") as file:
        file.write("Quotas should count\nLeases should end\n")
    assert conformance.main([str(tmp_path / "program")]) == 1
    out = capsys.readouterr().out
    assert "\nFAILED Quotas should count\nno quota (quota.go:7)\n" in out
    assert "\nFAILED Leases should end\nThere is no such spec" in out
    assert out.splitlines()[-1].startswith("2 failed, 2 passed in ")


def test_specs_that_pass_and_are_not_listed_are_printed(
    conformance: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conformance.main([str(tmp_path / "program"), "--others"]) == 1
    out = capsys.readouterr().out
    assert "\npassed, not in passing.txt:\nWatchers should see all\n" in out
    assert out.splitlines()[-1].startswith("1 failed, 1 passed in ")


def test_a_program_without_a_report_is_a_failure(
    conformance: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "program").write_text(f"#!{sys.executable}\nraise SystemExit('No cluster.')\n")
    assert conformance.main([str(tmp_path / "program")]) == 1
    assert "No cluster.\nexited with code 1, without a report" in capsys.readouterr().out


def test_the_list_is_sorted_and_has_no_spec_twice(conformance: ModuleType) -> None:
    lines = [line for line in (PARTS / "passing.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines))
    assert sum("[Conformance]" in line for line in lines) >= 52
