"""The README and its pages against the repository: errors of the first call, programs, links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubectl_ctrl.controllers import BUNDLED
from tests.house.checkout import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
PROGRAM_PAGES = ("README.md", "docs/installation.md", "docs/development.md")


def test_every_error_of_the_first_call_is_explained() -> None:
    page = (REPOSITORY / "docs/installation.md").read_text()
    shell = (REPOSITORY / "hack/environment.sh").read_text()
    python = (REPOSITORY / "hack/environment.py").read_text()
    raised = set(re.findall(r"\bCTRL-SETUP-[A-Z]+", shell))
    raised |= {f"CTRL-SETUP-{name}" for name in re.findall(r'SetupError\(\s*"([A-Z]+)"', python)}
    assert sorted(raised) == sorted(re.findall(r"^\| `(CTRL-SETUP-[A-Z]+)` \|", page, re.MULTILINE))


def test_every_program_that_it_names_is_there() -> None:
    text = "".join((REPOSITORY / page).read_text() for page in PROGRAM_PAGES)
    named = set(re.findall(r"\b(?:bin|hack)/[a-z0-9_-]+", text))
    assert {"bin/kubectl-ctrl", "hack/test", "hack/check"} <= named
    assert [name for name in sorted(named) if not (REPOSITORY / name).stat().st_mode & 0o111] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    local = [link for link in links if not link.startswith("https://")]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_every_bundled_controller_has_a_tutorial() -> None:
    assert {page.stem for page in (REPOSITORY / "docs/tutorials").glob("*.md")} == {*BUNDLED, "your-own"}
