"""A folder -> an archive that `docker load` and containerd take for an image. By hand, because `docker save` shortens
`docker.io/x/y` to `x/y`, which kind would then not find among the names that it wants."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an archive holds besides its files: every name that it goes by, and how it starts."""

    names: tuple[str, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    def described(self, layer: str) -> dict[str, Any]:
        return {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": [f"PATH={PATH}"], **self.config},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        }


def write(folder: Path, image: Image, out: Path) -> None:
    """The whole folder, with its owners, modes and device nodes, as the image's one layer."""
    with tempfile.TemporaryFile(dir=out.parent) as layer:
        with tarfile.open(fileobj=layer, mode="w") as tar:
            tar.add(folder, arcname=".")
        layer.seek(0)
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
        manifest = [{"Config": "config.json", "RepoTags": list(image.names), "Layers": ["layer.tar"]}]
        with tarfile.open(out, "w") as archive:
            _add(archive, "manifest.json", json.dumps(manifest).encode())
            _add(archive, "config.json", json.dumps(image.described(digest)).encode())
            member = tarfile.TarInfo("layer.tar")
            member.size = layer.tell()
            layer.seek(0)
            archive.addfile(member, layer)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
