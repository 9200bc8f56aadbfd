"""Writing kubeconfigs for tests: one context, cluster and user unless a test says otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, load

CERTIFICATES = Path(__file__).parents[1] / "client" / "certificates"


def certificate(name: str) -> bytes:
    return (CERTIFICATES / f"{name}.pem").read_bytes()


def kubeconfig(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "dev",
    current: str | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name if current is None else current,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": {"token": "t0ken"} if user is None else user}],
    }


def written(folder: Path, content: dict[str, Any] | str, name: str = "config") -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def resolved(
    folder: Path, content: dict[str, Any] | str, *, environ: dict[str, str] | None = None, **flags: Any
) -> Resolved:
    """What that kubeconfig, given by --kubeconfig, and these flags mean."""
    file = written(folder, content)
    return load(ConfigFlags(kubeconfig=str(file), **flags), environ or {}, folder)
