"""What the README promises of the house is what the house does."""

from __future__ import annotations

import re

from tests.house.checkout import REPOSITORY

README = (REPOSITORY / "README.md").read_text()


def test_every_error_of_the_first_call_is_explained() -> None:
    shell = (REPOSITORY / "hack/environment.sh").read_text()
    python = (REPOSITORY / "hack/environment.py").read_text()
    raised = set(re.findall(r"\bCTRL-SETUP-[A-Z]+", shell))
    raised |= {f"CTRL-SETUP-{name}" for name in re.findall(r'SetupError\(\s*"([A-Z]+)"', python)}
    assert sorted(raised) == sorted(re.findall(r"^\| `(CTRL-SETUP-[A-Z]+)` \|", README, re.MULTILINE))


def test_every_program_that_it_names_is_there() -> None:
    named = set(re.findall(r"\b(?:bin|hack)/[a-z0-9_-]+", README))
    assert {"bin/kubectl-ctrl", "hack/test", "hack/check"} <= named
    assert [name for name in sorted(named) if not (REPOSITORY / name).stat().st_mode & 0o111] == []
