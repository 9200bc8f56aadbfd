"""Writes the roles and bindings of a new cluster, from the test data of Kubernetes' sources.

Run from the root of the checkout: python hack/update.d/rbac/roles.py "$(cd hack/realkube.d/k8s && GOFLAGS=-mod=mod \
go list -m -f '{{.Dir}}' k8s.io/kubernetes)"
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import yaml

SOURCES = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
NAMES = ("cluster-roles", "controller-roles", "cluster-role-bindings", "controller-role-bindings")
LOCAL = ("namespace-roles", "namespace-role-bindings")
TARGET = Path("kubectl_ctrl/sandbox/auth/data/bootstrap.json.xz")


def main(kubernetes: str) -> None:
    objects = []
    for name in (*NAMES, *LOCAL):
        text = Path(kubernetes, SOURCES, f"{name}.yaml").read_text(encoding="utf-8")
        objects += [item for document in yaml.safe_load_all(text) for item in document["items"]]
    plain = json.dumps(objects, separators=(",", ":")).encode()
    TARGET.write_bytes(lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET}: {len(objects)} objects, {TARGET.stat().st_size} bytes.")


if __name__ == "__main__":
    main(sys.argv[1])
