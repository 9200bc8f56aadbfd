"""Scaler: starts and stops Deployments and StatefulSets on time, as their annotations say.

It does what 44smkn's app-regulary-scaler does. These annotations, under `ars.44smkn.github.io/` (`--annotation-prefix`
takes another), say when. On a Namespace they are defaults for the workloads in it.

| annotation     | meaning                                                                | when it is not there  |
|----------------|------------------------------------------------------------------------|-----------------------|
| start, stop    | five-field cron texts                                                  | no such event         |
| start-replicas | the count after a start                                                | the remembered count  |
| stop-replicas  | the count after a stop                                                 | 0                     |
| time-zone      | IANA name of the zone that cron texts and dates are in                 | UTC                   |
| schedules      | more of them: a list in YAML or JSON, see below                        | none                  |
| exclude        | true: give back what was taken, and leave the object alone             | false                 |
| exclude-until  | the same until a time: RFC 3339, or in the time zone 2026-12-24 18:00  | not excluded          |
| pause          | true: leave the object exactly as it is                                | false                 |
| force-up       | true: as after a start, whatever the schedules say                     | false                 |
| force-down     | true: as after a stop                                                  | false                 |
| grace-period   | how long after its creation an object is left alone: 15m, 1h30m, 2d    | not at all            |
| enforce        | true: between events a manual change of the count is reverted          | false: it holds       |
| allow-owned    | true: also an object that a controller owns                            | it is left alone      |
| allow-gitops   | true: also a count that Argo CD, Flux or Helm applied                  | it is refused         |

Each of `schedules` has start, stop or both, and may have name, startReplicas, stopReplicas and timeZone; what it leaves
out is as the annotation says. Where a cron text restricts day of month and day of week, either is enough. An empty
value takes a namespace's default away. A name that is not in this table is an error, because a `strat` that is taken
for nothing leaves a workload stopped for good.

What holds is the action of the latest event up to now, so a start of the program, a sleep of the laptop, a missed tick
and an edit all lead to the same count. Each event acts once: a manual scale after it holds until the next, unless
`enforce` is true. New or changed annotations act at once. Of a start and a stop at one minute the start wins, of
several of one kind the schedule that is listed first, and an event tells of both. A stop never adds pods. The count
before the first stop is remembered, and restored by a start that names none.
A wall time that clocks skip is the first instant after the gap; one that comes twice is the first of the two. A clock
that is set back by up to an hour repeats no event.
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
