"""Scaler: starts and stops Deployments and StatefulSets on time, as their annotations say.

It does what 44smkn's app-regulary-scaler does. Annotations under `ars.44smkn.github.io/` (`--annotation-prefix` takes
another) say when. `start` and `stop` are cron texts; `time-zone`, `start-replicas`, `stop-replicas`, `schedules`,
`exclude`, `exclude-until`, `pause`, `force-up`, `force-down`, `grace-period`, `enforce`, `allow-owned` and
`allow-gitops` say the rest: `annotations.py` has the table. Annotations of a Namespace are defaults for the workloads
in it.

What holds is the action of the latest event up to now, so a start of the program, a sleep of the laptop, a missed tick
and an edit all lead to the same count. Each event acts once: a manual scale after it holds until the next, unless
`enforce` is true. New or changed annotations act at once. Of a start and a stop at one minute the start wins, of
several of one kind the schedule that is listed first, and an event tells of both. A stop never adds pods. The count
before the first stop is remembered, and restored by a start that names none.
A wall time that clocks skip is the first instant after the gap; one that comes twice is the first of the two.
An autoscaler is never fought: a stop at 0 switches it off, a start wakes it within its bounds, and counts above 0
become its upper bound (stop) or lower bound (start), with the old bounds remembered on it.
A workload that a controller owns, and replicas that a GitOps tool applies, are left alone unless allowed. Annotations
that cannot be meant change nothing, and one Warning says all that is wrong with them; a restart may repeat it once.

Watches Deployments, StatefulSets, HorizontalPodAutoscalers that target them, and Namespaces. Owns nothing. Writes the
replicas and two annotations of a workload in one merge patch for exactly the version that was read, the bounds and two
annotations of its autoscaler, and events; uninstall with clean-up takes all of it back.
It rests between events: it knows the next one and sleeps until then, and looks at the clock at least once an hour.
"""

from __future__ import annotations

from kubectl_ctrl import ControllerSpec
from kubectl_ctrl.controllers.scaler import reconciler
from kubectl_ctrl.controllers.scaler.annotations import DEFAULT_PREFIX


def configured(*, annotation_prefix: str = DEFAULT_PREFIX) -> ControllerSpec:
    """The scaler for annotations under this prefix."""
    return reconciler.configured(annotation_prefix=annotation_prefix)


CONTROLLER = configured()

__all__ = ["CONTROLLER", "configured"]
