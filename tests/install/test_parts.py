from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.install.parts import read_parts
from tests.install.land import THINGS, role
from tests.runtime.world import crd


def test_what_lies_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(json.dumps(crd(THINGS)))
    (tmp_path / "rbac.yaml").write_text(f"{json.dumps(role('get'))}\n---\n{json.dumps(role('get') | {'kind': 'Role'})}")
    found = read_parts(tmp_path, "mine")
    assert [obj["kind"] for obj in (*found.crds, *found.rbac)] == ["CustomResourceDefinition", "ClusterRole", "Role"]
    assert found.example == ()


def test_a_folder_may_hold_nothing(tmp_path: Path) -> None:
    found = read_parts(tmp_path, "mine")
    assert (found.crds, found.rbac, found.example) == ((), (), ())


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("crd.yaml", "\nkind: Pod\napiVersion: v1\nmetadata: {name: a}", ":2: A Pod (v1) does not belong here."),
        ("rbac.yaml", json.dumps(crd(THINGS)), ":1: A CustomResourceDefinition (apiextensions.k8s.io/v1) does not"),
        (
            "crd.yaml",
            json.dumps(crd(THINGS) | {"spec": {}}),
            ":1: The CustomResourceDefinition has no usable spec.group",
        ),
        (
            "crd.yaml",
            json.dumps(crd(THINGS) | {"spec": 1}),
            ":1: The CustomResourceDefinition has no usable spec.group",
        ),
        (
            "rbac.yaml",
            f"{json.dumps(role())}\n---\n{json.dumps(role())}",
            ":3: The ClusterRole 'kubectl-ctrl-mine' is",
        ),
    ],
)
def test_what_does_not_belong_there_is_told_with_its_line(tmp_path: Path, file: str, text: str, told: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(ControllerError) as caught:
        read_parts(tmp_path, "mine")
    assert f"{tmp_path / file}{told}" in caught.value.message
