"""The controller of docs/comparison.md and the README works as the page describes, and the page counts its lines."""

from __future__ import annotations

import re
from pathlib import Path

from kubectl_ctrl import PODS, REPLICASETS, Obj, labels_of, owner_reference
from kubectl_ctrl.controllers import podcount
from kubectl_ctrl.loader import sources
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from tests.house.checkout import REPOSITORY

PAGE = (REPOSITORY / "docs/comparison.md").read_text()
OURS, KOPF, GO = re.findall(r"^```(?:python|go)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLE = Path(podcount.__file__).parent / "example.yaml"


def spec(folder: Path) -> ControllerSpec:
    """The controller as `kubectl ctrl run ./count.py` loads it."""
    (folder / "count.py").write_text(OURS)
    [sourced] = sources.resolve([str(folder / "count.py")])
    return sourced.spec


def pod(name: str, owner: Obj) -> Obj:
    meta = {"name": name, "ownerReferences": [owner_reference(owner)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c", "image": "c"}]}}


def label(stage: Stage, name: str) -> str | None:
    return labels_of(stage.server.get(REPLICASETS, name) or {"metadata": {}}).get("pod-count")


async def test_it_counts_and_writes_as_the_page_states(tmp_path: Path) -> None:
    count = spec(tmp_path)
    stage = Stage()
    stage.install(EXAMPLE)
    [replicaset] = stage.server.objects(REPLICASETS)
    name = replicaset["metadata"]["name"]
    async with stage.running(count):
        await stage.rest(5)
        assert label(stage, name) == "0"
        for one in ("a", "b"):
            stage.server.create(pod(one, replicaset))
        await stage.rest(5)
        assert label(stage, name) == "2"
        stage.server.faults.fail(Match(verb="patch", plural="replicasets", user_agent="test-run*"), 500)
        stage.server.change(REPLICASETS, name, {"metadata": {"labels": {"pod-count": None}}})
        await stage.rest(60)
        assert label(stage, name) == "2"
        before = len(list(stage.writes()))
        stage.server.change(PODS, "a", {"metadata": {"labels": {"a": "b"}}})
        await stage.rest(60)
        assert len(list(stage.writes())) == before


def test_the_readme_shows_the_same_lines() -> None:
    assert f"```python\n{OURS}```" in (REPOSITORY / "README.md").read_text()
    assert len(OURS.splitlines()) == 9


def test_the_page_counts_the_lines() -> None:
    counted = " | ".join(str(sum(bool(line.strip()) for line in code.splitlines())) for code in (OURS, KOPF, GO))
    assert f"| lines, without blank ones | {counted} |" in PAGE
    compile(KOPF, "kopf.py", "exec")
