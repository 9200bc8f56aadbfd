"""The bundled controllers as verbs see them: found by name, their manifests as text."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_ctrl import controllers
from kubectl_ctrl.cli.grammar import nearest
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError

if TYPE_CHECKING:
    from kubectl_ctrl.runtime.builder import ControllerSpec


_FOLDER = Path(controllers.__file__).parent


def candidates() -> list[tuple[str, str]]:
    """Names with one line each, for completion; nothing of a controller is imported for it."""
    return [(name, summary(name)) for name in BUNDLED]


def check(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each of them bundled and none twice."""
    for name in names:
        if name not in BUNDLED:
            hint = nearest(name, BUNDLED) or f"the bundled controllers are: {', '.join(BUNDLED)}"
            raise UsageError(f"There is no controller {name!r}.", next_step=hint)
    return tuple(dict.fromkeys(names))


def load(name: str) -> ControllerSpec:
    """A bundled controller's declaration."""
    module = importlib.import_module(f"kubectl_ctrl.controllers.{name}")
    spec: ControllerSpec = module.CONTROLLER
    return spec


def folder(name: str) -> Path:
    return _FOLDER / name


def manifest(name: str, part: str) -> str:
    """`example`, `crd` or `rbac` of a controller, as the YAML in its folder."""
    return (_FOLDER / name / f"{part}.yaml").read_text(encoding="utf-8")


def summary(name: str) -> str:
    """The first line of the controller's own docstring, without its name."""
    first = description(name).split("\n", 1)[0]
    return first.partition(": ")[2] or first


def description(name: str) -> str:
    """The controller's own docstring; its code is not run for it."""
    return (_FOLDER / name / "__init__.py").read_text(encoding="utf-8").split('"""')[1].rstrip()
