"""What is ours in a cluster: the labels and the field manager that `install` leaves, and how they are read back.

An object is *marked* when it has our labels: `install` keeps it, whoever wrote it. It is *ours* when our field manager
applied it too: only then does `uninstall` take it away.
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
    """Everybody else who left a note on an object, for messages."""
    names = {str(entry.get("manager") or "") for entry in entries(obj) if entry.get("subresource") is None}
    return ", ".join(sorted(names - {"", MANAGER})) or "unknown"
