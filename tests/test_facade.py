"""The public API: what the lazy table gives is what type checkers see, and nothing loads before it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kubectl_ctrl

SOURCE = Path(kubectl_ctrl.__file__).read_text(encoding="utf-8")


def seen_by_type_checkers() -> dict[str, tuple[str, str]]:
    tree = ast.parse(SOURCE)
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {
        name.asname or name.name: (str(statement.module), name.name)
        for statement in imports
        for name in statement.names
    }


def test_the_lazy_table_and_the_type_checkers_view_agree() -> None:
    assert seen_by_type_checkers() == kubectl_ctrl._TABLE
    assert sorted(kubectl_ctrl.__all__) == sorted(kubectl_ctrl._TABLE)
    assert dir(kubectl_ctrl) == sorted(kubectl_ctrl.__all__)


@pytest.mark.parametrize("name", kubectl_ctrl.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kubectl_ctrl, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = kubectl_ctrl.nonsense


def test_importing_the_package_loads_nothing_else_of_it() -> None:
    code = "import sys, kubectl_ctrl; print([m for m in sys.modules if m.startswith('kubectl_ctrl.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
