"""Pod count: the number of each ReplicaSet's pods as its label `pod-count`, as controller-runtime's example does it.

Watches ReplicaSets and the Pods that they control, of both the metadata alone.
Owns nothing. Writes that one label, and never the pod template. What counts is a Pod whose controller is this very
ReplicaSet, that is not being deleted and has neither succeeded nor failed.
It rests when the label says the number. While pods come and go it writes at most every few seconds, and once more when
they have come to rest. Its cleanup takes the label away.
"""

from __future__ import annotations

from kubectl_ctrl.controllers.podcount.reconciler import CONTROLLER

__all__ = ["CONTROLLER"]
