"""Pod count: the number of each ReplicaSet's pods as its label `pod-count`, as controller-runtime's example does it.

Watches ReplicaSets and the Pods that they control, only their metadata.
Owns nothing. Writes that one label, and never the pod template. It counts the Pods that this ReplicaSet controls and
that are not being deleted, succeeded or failed.
It is at rest when the label matches the number. While the number changes it writes at most every few seconds, and once
more afterwards. Its cleanup removes the label.
"""

from __future__ import annotations

from kubectl_ctrl.controllers.podcount.reconciler import CONTROLLER

__all__ = ["CONTROLLER"]
