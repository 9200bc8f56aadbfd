"""What a controller brings along beside its code: CRDs, rights and an example, as they lie in its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kubectl_ctrl.model.objects import Obj


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The manifests of one controller; each may be missing."""

    name: str  # of the controller
    crds: tuple[Obj, ...] = field(default=(), repr=False)
    rbac: tuple[Obj, ...] = field(default=(), repr=False)
    example: tuple[Obj, ...] = field(default=(), repr=False)


def read_parts(folder: Path, name: str) -> Parts:
    """The manifests that lie in a controller's folder."""
    return Parts(
        name=name,
        crds=_documents(folder / "crd.yaml"),
        rbac=_documents(folder / "rbac.yaml"),
        example=_documents(folder / "example.yaml"),
    )


def _documents(path: Path) -> tuple[Obj, ...]:
    if not path.exists():
        return ()
    return tuple(document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document)
