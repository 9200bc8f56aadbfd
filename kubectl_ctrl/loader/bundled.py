"""The bundled controllers: their names, declarations, folders and descriptions."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_ctrl import controllers
from kubectl_ctrl.controllers import BUNDLED

if TYPE_CHECKING:
    from kubectl_ctrl.runtime.builder import ControllerSpec


_FOLDER = Path(controllers.__file__).parent


def candidates() -> list[tuple[str, str]]:
    """Names and summaries, for completion; the controllers are not imported."""
    return [(name, summary(name)) for name in BUNDLED]


def load(name: str) -> ControllerSpec:
    module = importlib.import_module(f"kubectl_ctrl.controllers.{name}")
    spec: ControllerSpec = module.CONTROLLER
    return spec


def folder(name: str) -> Path:
    return _FOLDER / name


def summary(name: str) -> str:
    """The first line of the controller's docstring, without its name."""
    first = description(name).split("\n", 1)[0]
    return first.partition(": ")[2] or first


def description(name: str) -> str:
    """The controller's docstring, read without importing it."""
    return (_FOLDER / name / "__init__.py").read_text(encoding="utf-8").split('"""')[1].rstrip()
