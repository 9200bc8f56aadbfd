"""Every bundled controller's folder has its parts, and they agree with each other and with what it does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kubectl_ctrl import controllers
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.install.parts import Parts, read_parts
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present

FOLDER = Path(controllers.__file__).parent


def parts_of(name: str) -> Parts:
    return read_parts(bundled.folder(name), name)


def test_every_folder_is_listed_and_every_listed_one_is_there() -> None:
    assert sorted(path.parent.name for path in FOLDER.glob("*/__init__.py")) == sorted(BUNDLED)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_parts_are_there_and_speak_of_one_thing(name: str) -> None:
    spec = bundled.load(name)
    assert isinstance(spec, ControllerSpec)
    assert spec.name == name
    parts = parts_of(name)
    # A type that the cluster brings along has no CRD; its group has no domain of somebody else's.
    assert [crd["metadata"]["name"] for crd in parts.crds] == (
        [spec.primary.full_name] if "." in spec.primary.group else []
    )
    for crd in parts.crds:
        assert crd["spec"]["names"]["kind"] == spec.primary.kind
        assert spec.primary.version in [version["name"] for version in crd["spec"]["versions"]]
    assert (spec.primary.api_version, spec.primary.kind) in [(one["apiVersion"], one["kind"]) for one in parts.example]
    assert {role["metadata"]["name"].startswith(f"kubectl-ctrl-{name}") for role in parts.rbac} == {True}


@pytest.mark.parametrize("name", BUNDLED)
def test_the_docstring_says_what_it_watches_owns_and_writes_and_when_it_is_at_rest(name: str) -> None:
    text = present(ast.get_docstring(ast.parse((FOLDER / name / "__init__.py").read_text())))
    first, *rest = text.splitlines()
    assert first == f"{first.split(':')[0]}: {bundled.summary(name)}"
    for word in ("Watches", "Owns", "Writes", "at rest"):
        assert word.lower() in " ".join(rest).lower(), word


@pytest.mark.parametrize("name", BUNDLED)
async def test_the_example_comes_to_rest_within_its_own_rights(name: str) -> None:
    """Every call that it made is covered by a rule of its ClusterRole, and at rest there are none but watches."""
    stage, parts = Stage(), parts_of(name)
    stage.install(*parts.crds, *parts.example)
    stage.server.play_deployments()
    summary = await stage.run(bundled.load(name), until_idle=True)
    assert (summary.problem(), summary.failed) == (None, ())
    rules = [rule for role in parts.rbac for rule in role["rules"]]
    for seen in stage.server.requests:
        assert _allowed(rules, *_asked(seen.verb, seen.path)), f"{seen.verb} {seen.path} is in no rule"
    stage.server.writes.clear()
    await stage.run(bundled.load(name), until_idle=True)
    assert list(stage.writes()) == []


def _asked(verb: str, path: str) -> tuple[str, str, str]:
    """(verb, group, resource with subresource) of a request; discovery and schemas are everybody's."""
    words = path.strip("/").split("/")
    group, rest = ("", words[2:]) if words[0] == "api" else (words[1] if len(words) > 1 else "", words[3:])
    if words[0] not in ("api", "apis") or not rest:
        return "", "", ""
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return verb, group, "/".join((rest[0], *rest[2:3]))


def _allowed(rules: list[Obj], verb: str, group: str, resource: str) -> bool:
    if not verb:
        return True
    return any(verb in rule["verbs"] and group in rule["apiGroups"] and resource in rule["resources"] for rule in rules)
