"""`simulate` without a cluster: what it prints is what the scaler does."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.verbs.simulate.main import scene_of
from kubectl_ctrl.controllers.scaler.annotations import Names
from kubectl_ctrl.model.objects import Obj
from tests.objects import autoscaler

Captured = pytest.CaptureFixture[str]
P = "ars.44smkn.github.io/"


def workload(kind: str = "Deployment", name: str = "web", replicas: int = 3, **said: Any) -> Obj:
    annotations = {P + key.replace("_", "-"): value for key, value in said.items()}
    meta = {"name": name, "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"replicas": replicas}}


def simulate(tmp_path: Path, *objects: Obj, flags: tuple[str, ...] = ()) -> int:
    path = tmp_path / "web.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return cli.main(["simulate", "-f", str(path), "--from", "2026-03-27", *flags])


def test_the_next_events_over_a_change_of_clocks(tmp_path: Path, capsys: Captured) -> None:
    said: dict[str, Any] = {"start": "0 7 * * mon-fri", "stop": "0 20 * * mon-fri", "time_zone": "Europe/Berlin"}
    assert simulate(tmp_path, workload(**said), flags=("--days=4",)) == 0
    out, err = capsys.readouterr()
    assert out == (
        "LOCAL TIME              UTC                 SCHEDULE   ACTION       REPLICAS\n"
        "2026-03-27 01:00 CET    2026-03-27T00:00Z   main       stop (now)   3 -> 0\n"
        "2026-03-27 07:00 CET    2026-03-27T06:00Z   main       start        0 -> 3\n"
        "2026-03-27 20:00 CET    2026-03-27T19:00Z   main       stop         3 -> 0\n"
        "2026-03-30 07:00 CEST   2026-03-30T05:00Z   main       start        0 -> 3\n"
        "2026-03-30 20:00 CEST   2026-03-30T18:00Z   main       stop         3 -> 0\n"
    )
    assert max(map(len, out.splitlines())) <= 80
    assert err == ""


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_for_machines(tmp_path: Path, capsys: Captured, form: str) -> None:
    assert simulate(tmp_path, workload("StatefulSet", stop="0 20 * * *"), flags=("--days=1", "-o", form)) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert (found["object"], found["begin"], found["days"]) == ("StatefulSet default/web", "2026-03-27T00:00:00Z", 1)
    assert [(one["at"], one["event"], one["from"], one["to"]) for one in found["events"]] == [
        ("2026-03-27T00:00:00Z", "2026-03-26T20:00:00Z", "3", "0"),
        ("2026-03-27T20:00:00Z", "2026-03-27T20:00:00Z", "0", "0"),
    ]


def test_namespace_and_autoscaler_of_the_file_have_their_say(tmp_path: Path, capsys: Captured) -> None:
    defaults = {P + "start": "0 7 * * *", P + "stop": "0 20 * * *", P + "stop-replicas": "1"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": defaults}}
    assert simulate(tmp_path, namespace, autoscaler("web", 2, 9), workload(), flags=("--days=1",)) == 0
    out, err = capsys.readouterr()
    assert [line.split("   ")[-1].strip() for line in out.splitlines()[1:]] == [
        "2..9 -> 1..1",
        "1..1 -> 2..9",
        "2..9 -> 1..1",
    ]
    assert "Set minReplicas 1, maxReplicas 1 of HorizontalPodAutoscaler 'auto'" in err


def test_bare_annotations_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    text = f"{P}stop: 0 20 13 * fri\n{P}start: 0 7 * * *\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cli.main(["simulate", "-f", "-", "--from=2026-02-13T08:00:00Z", "--days=1", "-o=json"]) == 0
    out, err = capsys.readouterr()
    assert [event["to"] for event in json.loads(out)["events"]] == ["1", "0", "1"]
    assert "the day of month or the day of week must match" in err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{P}stop: 0 1 * * *", {P + "stop": "0 1 * * *"}),
        (f"annotations:\n  {P}exclude: true", {P + "exclude": "True"}),
        (f"metadata:\n  annotations:\n    {P}stop-replicas: 2", {P + "stop-replicas": "2"}),
    ],
)
def test_annotations_may_stand_as_in_an_object(text: str, found: dict[str, str]) -> None:
    scene = scene_of(text.encode(), "some.yaml", Names())
    assert {key: value.title() for key, value in scene.target["metadata"]["annotations"].items()} == {
        key: value.title() for key, value in found.items()
    }


def test_another_prefix(tmp_path: Path, capsys: Captured) -> None:
    other = workload()
    other["metadata"]["annotations"] = {"scaler.example.com/stop": "0 20 * * *"}
    assert simulate(tmp_path, other, flags=("--annotation-prefix=scaler.example.com",)) == 0
    assert "3 -> 0" in capsys.readouterr().out
    assert simulate(tmp_path, other) == 0
    out, err = capsys.readouterr()
    assert (out, "has no start or stop in its annotations under ars.44smkn.github.io/" in err) == ("", True)


def test_what_would_be_left_alone_is_said(tmp_path: Path, capsys: Captured) -> None:
    owned = workload(stop="0 20 * * *")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "example.com/v1", "kind": "Shop", "name": "one", "uid": "1", "controller": True}
    ]
    owned["metadata"]["managedFields"] = [
        {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    ]
    assert simulate(tmp_path, owned, flags=("--days=1",)) == 0
    err = capsys.readouterr().err
    assert "Shop 'one' owns it" in err
    assert "argocd-controller applies spec.replicas" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["simulate"], "simulate takes one workload, or -f FILE."),
        (["simulate", "web"], "simulate takes one workload"),
        (["simulate", "job/web"], "The scaler does not scale 'job'."),
        (["simulate", "deploy/web", "-f", "x"], "either a workload or -f FILE"),
        (["simulate", "-f", "/nowhere/to/be/found"], "Cannot read the file"),
        (["simulate", "deploy/web", "--days=0"], "from 1 to 366"),
        (["simulate", "deploy/web", "--from=soon"], "it is 'soon'; write"),
        (["simulate", "deploy/web", "-o=wide"], "Invalid value for --output"),
        (["simulate", "deploy/web", "--annotation-prefix=A/B/"], "annotation prefix"),
    ],
)
def test_words_that_cannot_be_meant(capsys: Captured, words: list[str], told: str) -> None:
    assert cli.main(words) == 2
    assert told in capsys.readouterr().err


def test_annotations_that_cannot_be_meant_are_told_as_the_scaler_tells_them(tmp_path: Path, capsys: Captured) -> None:
    assert simulate(tmp_path, workload(stop="60 * * * *", strat="x")) == 2
    err = capsys.readouterr().err
    assert "did you mean start?" in err
    assert "field 1 (minute)" in err


@pytest.mark.parametrize("objects", [(), (workload(), workload(name="two"))])
def test_a_file_must_have_one_workload(tmp_path: Path, capsys: Captured, objects: tuple[Obj, ...]) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}
    assert simulate(tmp_path, space, *objects) == 2
    assert "must have one Deployment or StatefulSet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("metadata: {name: web, annotations: {a/b: 1}}", "An annotation is not a string."),
        ("metadata: {name: web, annotations: [a]}", "An annotation is not a string."),
        ("metadata: {name: web}\nspec: {replicas: many}", "spec.replicas is not an integer."),
        ("metadata: {name: web}\nspec: 3", "spec.replicas is not an integer."),
        ("metadata: [", "is not YAML"),
    ],
)
def test_a_file_that_no_server_would_take_is_told_with_its_line(
    tmp_path: Path, capsys: Captured, text: str, told: str
) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(f"apiVersion: apps/v1\nkind: Deployment\n{text}\n")
    assert cli.main(["simulate", "-f", str(path)]) != 0
    err = capsys.readouterr().err
    assert told in err
    assert "web.yaml:" in err


def test_an_autoscaler_that_is_none_is_told(tmp_path: Path, capsys: Captured) -> None:
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "auto"}}
    assert simulate(tmp_path, workload(stop="0 1 * * *"), hpa) != 0
    assert "scaleTargetRef" in capsys.readouterr().err


def test_a_cron_of_every_minute_ends_after_a_thousand_rows(tmp_path: Path, capsys: Captured) -> None:
    assert simulate(tmp_path, workload(stop="* * * * *"), flags=("-o=json",)) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["events"]) == 1000
    assert "the first 1000 events" in err
