"""Under CI=true a skipped test fails: CI has to provide its requirements. The exceptions are listed with their reasons.

tests/conftest.py and e2e/conftest.py import the hooks.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

_NO_SHELL = "A lane that installs nothing has only sh and bash; the test with bash covers the same code."
ALLOWED = {
    "tests/cli/completion/test_shells.py::test_what_keys_become[zsh]": _NO_SHELL,
    "tests/cli/completion/test_shells.py::test_several_are_shown_with_their_descriptions[zsh]": _NO_SHELL,
    "tests/cli/completion/test_shells.py::test_what_fish_offers": _NO_SHELL,
    "tests/render/test_dot.py::test_graphviz_reads_it": "The same file checks the documents with a grammar.",
}
_CI = os.environ.get("CI", "").lower() in {"true", "1"}


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not _CI or not report.skipped or hasattr(report, "wasxfail"):
        return
    if report.nodeid in ALLOWED or report.nodeid.partition("[")[0] in ALLOWED:
        return
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{why}\nUnder CI=true only the tests that tests/skips.py lists may be skipped."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _judge(report)
    # A message with hostile text has to pass from a worker process to the main one.
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge(report)
    return report
