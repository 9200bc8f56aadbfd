"""`list` with a real cluster: where each controller is installed and runs; and without one, at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.ctrl import Ctrl
from e2e.kube import Audit, Kubectl, Ran, wait_until
from e2e.test_foo import deployment
from e2e.test_run_alone import ELSEWHERE, hold
from kubectl_ctrl.controllers import BUNDLED

_GIVEN_BACK = '{"spec":{"holderIdentity":""}}'


@pytest.fixture(autouse=True)
def _nothing_installed(ctrl: Ctrl) -> Iterator[None]:
    yield
    ctrl("uninstall", "foo", "--crds=delete", "--yes")


def listed(ctrl: Ctrl, *flags: str) -> Ran:
    return ctrl.answered("list", *flags).checked()


def rows(ctrl: Ctrl) -> dict[str, dict[str, Any]]:
    ran = listed(ctrl, "-o", "json")
    return {row["name"]: row for row in json.loads(ran.out)["controllers"]}


def cells(ctrl: Ctrl, name: str = "foo") -> list[str]:
    """The columns INSTALLED and RUNNING of the table."""
    ran = listed(ctrl)
    (line,) = (line for line in ran.out.splitlines() if line.startswith(f"{name} "))
    return re.split(r" {2,}", line)[-2:]


@pytest.mark.real
def test_installed_has_a_value_for_each_step(ctrl: Ctrl) -> None:
    assert rows(ctrl)["foo"]["installed"] in ("no", "partly")  # another test may have left its CRD
    ctrl("install", "foo", "--crds-only").checked()
    row = rows(ctrl)["foo"]
    assert row["installed"] == "partly"
    assert "serviceaccount/kubectl-ctrl-foo" in row["missing"]
    ctrl("install", "foo").checked()
    row = rows(ctrl)["foo"]
    assert (row["installed"], row["missing"]) == ("yes", [])
    assert cells(ctrl)[0] == "yes"
    ctrl("uninstall", "foo").checked()
    assert rows(ctrl)["foo"]["installed"] == "partly"


def test_a_run_on_this_machine_is_listed_until_it_exits(ctrl: Ctrl, namespace: str) -> None:
    ctrl("install", "foo").checked()
    running = ctrl.started("run", "foo")
    place = wait_until(lambda: rows(ctrl)["foo"]["running"])[0]
    assert (place["kind"], place["pid"], place["namespace"]) == ("process", running.process.pid, namespace)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", place["since"])
    assert cells(ctrl)[1] == f"pid {running.process.pid} ({namespace})"
    running.kill()
    assert rows(ctrl)["foo"]["running"] == []
    assert cells(ctrl)[1] == "-"


def test_a_deployment_and_the_holder_of_a_lease_are_listed(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    body = deployment("kubectl-ctrl-foo")
    labels = {"managed-by": "kubectl-ctrl", "name": "foo", "component": "controller"}
    body["metadata"]["labels"] = {f"app.kubernetes.io/{key}": value for key, value in labels.items()}
    kubectl.apply(body)
    lease = f"kubectl-ctrl-foo-{namespace}"
    hold(kubectl, lease, ELSEWHERE, seconds=600)
    try:
        found = {place["kind"]: place for place in rows(ctrl)["foo"]["running"]}
        assert found["deployment"]["text"] == f"Deployment {namespace}/kubectl-ctrl-foo"
        assert found["lease"]["text"].startswith(f"lease default/{lease} held by {ELSEWHERE} (renewed ")
        assert cells(ctrl)[1] == f"in {namespace}, on another-machine"
        kubectl("patch", "lease", lease, "--namespace=default", "--type=merge", "--patch", _GIVEN_BACK)
        kubectl("scale", "deployment/kubectl-ctrl-foo", "--replicas=0")
        assert rows(ctrl)["foo"]["running"] == []
    finally:
        kubectl("delete", "lease", lease, "--namespace=default")
        kubectl("delete", "deployment", "kubectl-ctrl-foo", "--wait")


@pytest.mark.real
def test_it_writes_nothing(ctrl: Ctrl, audit: Audit) -> None:
    mark = audit.mark()
    ctrl("list", "-o", "wide").checked()
    assert audit.writes(mark) == []


def test_a_forbidden_value_is_a_question_mark(ctrl: Ctrl) -> None:
    ran = listed(ctrl, "--as=nobody-at-all")
    lines = ran.out.splitlines()
    assert len(lines) == 1 + len(BUNDLED)
    assert all(line.split()[-2:] in (["?", "?"], ["partly", "?"]) for line in lines[1:]), ran.out
    assert "cannot be read with these credentials" in ran.err


@pytest.mark.parametrize(
    "server",
    ["https://127.0.0.1:1", "https://10.255.255.1:6443", "https://no-such-host.invalid:6443"],
    ids=["refused", "silent", "unknown"],
)
def test_without_a_cluster_it_answers_all_the_same(ctrl: Ctrl, server: str) -> None:
    # TCP alone would try for two minutes; list waits for two seconds.
    ran = ctrl("list", "--server", server, timeout=100).checked()
    assert all(line.split()[-2:] == ["?", "?"] for line in ran.out.splitlines()[1:])
    assert ran.err.startswith("INSTALLED and RUNNING are unknown: ")
    assert len(ran.err.splitlines()) == 1


def test_the_table_fits_a_terminal_of_eighty_columns(ctrl: Ctrl) -> None:
    ctrl("install", "foo").checked()
    assert max(map(len, ctrl("list").checked().out.splitlines())) <= 80


def test_yaml_equals_json_and_names_need_no_cluster(ctrl: Ctrl, audit: Audit) -> None:
    import yaml

    from_yaml = yaml.safe_load(listed(ctrl, "-o", "yaml").out)["controllers"]
    assert from_yaml == list(rows(ctrl).values())
    mark = audit.mark()
    assert ctrl("list", "-o", "name").checked().out.split() == list(BUNDLED)
    assert audit.requests(mark) == []
