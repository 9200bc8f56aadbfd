"""The manifests in a controller's folder: CRDs, rights and an example."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.install.kinds import CLUSTERROLES, ROLES
from kubectl_ctrl.model.manifests import Manifest, parse
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, Resource
from kubectl_ctrl.value import Unshown, Value


class Parts(Value, kw_only=True):
    """The manifests of one controller; each may be missing."""

    name: str  # of the controller
    crds: Unshown[tuple[Obj, ...]] = ()
    rbac: Unshown[tuple[Obj, ...]] = ()
    example: Unshown[tuple[Obj, ...]] = ()


def read_parts(folder: Path, name: str) -> Parts:
    """Read the manifests in a controller's folder; an error for an invalid one has its file and line."""
    return Parts(
        name=name,
        crds=_only(_read(folder / "crd.yaml"), CRDS),
        rbac=_only(_read(folder / "rbac.yaml"), CLUSTERROLES, ROLES),
        example=tuple(manifest.obj for manifest in _read(folder / "example.yaml")),
    )


def _read(path: Path) -> tuple[Manifest, ...]:
    try:
        return parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ControllerError(f"{path} cannot be read: {error.strerror}.") from error


def _only(manifests: Iterable[Manifest], *kinds: Resource) -> tuple[Obj, ...]:
    """The objects; raises for other kinds, and for duplicates."""
    seen: dict[tuple[str, str, str], str] = {}
    found: list[Obj] = []
    for manifest in manifests:
        obj = manifest.obj
        if (obj["apiVersion"], obj["kind"]) not in {(kind.api_version, kind.kind) for kind in kinds}:
            expected = " or ".join(f"{kind.kind} ({kind.api_version})" for kind in kinds)
            raise manifest.wrong(
                f"A {obj['kind']} ({obj['apiVersion']}) does not belong here.",
                f"this file may only contain {expected}",
            )
        key = (obj["kind"], str(obj["metadata"].get("namespace") or ""), obj["metadata"]["name"])
        if key in seen:
            raise manifest.wrong(f"The {key[0]} {key[2]!r} is defined twice; first at {seen[key]}.")
        seen[key] = manifest.where
        _check(manifest)
        found.append(obj)
    return tuple(found)


def _check(manifest: Manifest) -> None:
    """Check the fields that our own code needs; the server checks the rest."""
    if manifest.obj["kind"] != CRDS.kind:
        return
    spec = manifest.obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    names, versions = spec.get("names"), spec.get("versions")
    for path, valid in (
        ("spec.group", isinstance(spec.get("group"), str)),
        ("spec.names.plural", isinstance(names, dict) and isinstance(names.get("plural"), str)),
        ("spec.names.kind", isinstance(names, dict) and isinstance(names.get("kind"), str)),
        (
            "spec.versions",
            isinstance(versions, list) and all(isinstance(one, dict) and "name" in one for one in versions),
        ),
    ):
        if not valid:
            raise manifest.wrong(f"The CustomResourceDefinition has no usable {path}.")
