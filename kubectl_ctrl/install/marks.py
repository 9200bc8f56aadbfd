"""The labels and the field manager by which `install` and `uninstall` recognize their objects.

An object is *marked* if it has our labels: `install` updates it, whoever created it. It is *ours* if our field manager
applied it too: only then `uninstall` deletes it.
"""

from __future__ import annotations

from kubectl_ctrl.model.managed_fields import entries, own_entry
from kubectl_ctrl.model.objects import Obj, labels_of

MANAGER = "kubectl-ctrl-install"

MANAGED_BY = "app.kubernetes.io/managed-by"
NAME = "app.kubernetes.io/name"
US = "kubectl-ctrl"


def labels(controller: str) -> dict[str, str]:
    return {MANAGED_BY: US, NAME: controller}


def selector(controller: str) -> str:
    return ",".join(f"{key}={value}" for key, value in labels(controller).items())


def is_marked(obj: Obj, controller: str) -> bool:
    return labels(controller).items() <= labels_of(obj).items()


def is_ours(obj: Obj, controller: str) -> bool:
    return is_marked(obj, controller) and own_entry(obj, MANAGER, "Apply") is not None


def managers_of(obj: Obj) -> str:
    """The other field managers of an object, for messages."""
    names = {str(entry.get("manager") or "") for entry in entries(obj) if entry.get("subresource") is None}
    return ", ".join(sorted(names - {"", MANAGER})) or "unknown"
