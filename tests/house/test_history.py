"""The verdicts and schemas in docs/history.md are complete."""

from __future__ import annotations

import re
from pathlib import Path

from kubectl_ctrl.findings.account import Finding

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/history.md").read_text()


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_verdict_is_on_the_page_in_the_order_in_which_they_are_tried() -> None:
    rows = re.findall(r"^\| ([A-Z ]+) \|", section("Verdicts of explain"), re.MULTILINE)
    assert rows == [verdict.value for verdict in Finding]


def test_every_schema_is_on_the_page() -> None:
    named = set(re.findall(r"(\w+)/v1`", section("For machines")))
    assert named == {path.name.removesuffix(".v1.json") for path in (REPOSITORY / "docs/schemas").glob("*.json")}
