"""`install` and `uninstall` as far as no cluster is needed for it."""

from __future__ import annotations

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.controllers import BUNDLED

Captured = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("production")


@pytest.mark.parametrize(
    "words",
    [
        ["install"],
        ["install", "foo"],
        ["install", "foo", "--crds-only", "--force-conflicts"],
        ["uninstall", "foo"],
        ["uninstall", "foo", "--clean"],
        ["uninstall", "foo", "--crds=delete", "--yes"],
        ["uninstall", "foo", "--crds=delete", "--yes", "--allow-context=other"],
    ],
)
def test_a_foreign_cluster_is_refused_before_it_is_asked_anything(capsys: Captured, words: list[str]) -> None:
    assert cli.main(words) == 6
    told = capsys.readouterr()
    assert "error[CTRL-REFUSED]" in told.err
    assert "--allow-context prod" in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["install", "foo", "--allow-context=prod"],
        ["install", "foo", "--dry-run=server"],
        ["uninstall", "foo", "--dry-run=client", "--crds=delete"],
    ],
)
def test_naming_it_and_changing_nothing_pass_the_guard(capsys: Captured, words: list[str]) -> None:
    assert cli.main(words) == 3, "It is asked, and does not answer."
    assert "CTRL-UNREACHABLE" in capsys.readouterr().err


def test_a_variable_leads_nowhere_under_the_name_of_another_cluster(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL_CTRL_SERVER", "https://10.1.1.1:6443")
    assert cli.main(["install", "foo", "--allow-context=prod"]) == 6
    assert "next: --allow-context https://10.1.1.1:6443\n" in capsys.readouterr().err


def test_alone_install_names_all_before_it_passes_the_guard(capsys: Captured) -> None:
    cli.main(["install"])
    assert capsys.readouterr().err.splitlines()[0] == f"all bundled controllers: {', '.join(BUNDLED)}"


def test_alone_uninstall_wants_a_name(capsys: Captured) -> None:
    assert cli.main(["uninstall"]) == 2
    assert f"next: the bundled controllers are: {', '.join(BUNDLED)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["install", "foo", "--crds-only", "--rbac-only"], "--crds-only and --rbac-only exclude each other."),
        (["install", "foo", "--dry-run=maybe"], "next: use one of: none, client, server"),
        (["install", "foo", "-o", "wide"], "next: use one of: name, json, yaml"),
        (["uninstall", "foo", "--crds=all"], "next: use one of: keep, delete"),
    ],
)
def test_wrong_words(capsys: Captured, words: list[str], told: str) -> None:
    assert cli.main(words) == 2
    assert told in capsys.readouterr().err


def test_printed_it_needs_no_cluster(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    assert cli.main(["install", "foo", "--print"]) == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [obj["kind"] for obj in objects] == [
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "Role",
        "ClusterRoleBinding",
        "RoleBinding",
    ]
    assert cli.main(["install", "foo", "--print", "--rbac-only", "-n", "shared"]) == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert {obj["metadata"].get("namespace") for obj in objects} == {None, "shared"}
