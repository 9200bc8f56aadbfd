"""Lists as real kubectl prints them: compares the table of tests/render/test_printers.py with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.crds import wait_until_served
from e2e.ctrl import Ctrl
from e2e.kube import Kubectl, crd_of_anything
from kubectl_ctrl.controllers import BUNDLED
from tests.render.test_printers import ITEMS, REFUSED, SAID, SORTED

_CRD = crd_of_anything("listeds", "Listed", "printers.example.com")
NAMES = [item["metadata"]["name"] for item in ITEMS]


@pytest.fixture
def listed(kubectl: Kubectl) -> Kubectl:
    """The objects of the table, in a cluster."""
    kubectl.apply(_CRD)
    wait_until_served(kubectl, "listeds.printers.example.com")
    kubectl.create(*({"apiVersion": "printers.example.com/v1", "kind": "Listed", **item} for item in ITEMS))
    return kubectl


def test_the_table_is_kubectls(listed: Kubectl) -> None:
    assert {output: listed("get", "listed", *NAMES, f"--output={output}") for output, _ in SAID} == dict(SAID)
    assert [output for output in REFUSED if not listed.try_("get", "listed", *NAMES, f"--output={output}").code] == []


def test_its_order_is_kubectls(listed: Kubectl) -> None:
    columns = ("--output=custom-columns=NAME:.metadata.name", "--no-headers")
    theirs = [(path, listed("get", "listed", *NAMES, *columns, f"--sort-by={path}").split()) for path, _ in SORTED]
    assert theirs == list(SORTED)


def test_lists_have_every_output_format(ctrl: Ctrl, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        return ctrl.answered("list", *words).checked().out

    assert said("-o", 'jsonpath={range .controllers[*]}{.name}{"\\n"}{end}').split() == list(BUNDLED)
    assert said("-o=custom-columns=NAME:.name", "--no-headers", "--sort-by=.name").split() == sorted(BUNDLED)
    assert said("--no-headers", "--sort-by=.name").split()[0] == min(BUNDLED)
    # Tests that install the scaler also uninstall it.
    (tmp_path / "template").write_text("{.controllers[?(@.name=='scaler')].installed}")
    assert said("-o", f"jsonpath-file={tmp_path}/template") == "no"
    assert ctrl("list", "-o", "go-template={{.}}").code == 2
