"""Scaler: starts and stops Deployments and StatefulSets on time, as their annotations say.

It does what 44smkn's app-regulary-scaler does, with these annotations under `ars.44smkn.github.io/`
(`--annotation-prefix` sets another prefix). On a Namespace they are defaults for its workloads.

| annotation     | meaning                                                                | default               |
|----------------|------------------------------------------------------------------------|-----------------------|
| start, stop    | five-field cron expressions                                            | no such event         |
| start-replicas | the replicas after a start                                             | the remembered count  |
| stop-replicas  | the replicas after a stop                                              | 0                     |
| time-zone      | IANA name of the zone of cron expressions and dates                    | UTC                   |
| schedules      | more schedules: a list in YAML or JSON, see below                      | none                  |
| exclude        | true: restore the replicas, and do not scale the object                | false                 |
| exclude-until  | the same until a time: RFC 3339, or in the time zone 2026-12-24 18:00  | not excluded          |
| pause          | true: leave the object exactly as it is                                | false                 |
| force-up       | true: as after a start, whatever the schedules say                     | false                 |
| force-down     | true: as after a stop                                                  | false                 |
| grace-period   | time after its creation during which an object is not scaled: 15m, 2d  | none                  |
| enforce        | true: revert manual changes of the replicas between events             | false: they stay      |
| allow-owned    | true: also scale an object that a controller owns                      | it is not scaled      |
| allow-gitops   | true: also change replicas that Argo CD, Flux or Helm applied          | they are not changed  |

Each of `schedules` has start, stop or both, and may have name, startReplicas, stopReplicas and timeZone; annotations
are the defaults. If a cron expression restricts day of month and day of week, either match is enough. An empty value
removes a namespace's default. An unknown name is an error: with a misspelled `strat`, a workload would stay stopped.

The latest event up to now decides, so a restart of the program, suspend, a missed tick and an edit all lead to the same
replicas. Each event acts once: a manual scale after it stays until the next event, unless `enforce` is true. New or
changed annotations act at once. If several events have the same time, a start precedes a stop, and then the schedule
listed first precedes; an event reports both. A stop never adds pods. The replicas before the first stop are remembered,
and restored by a start without start-replicas.
A wall time that clocks skip is the first instant after the gap; one that occurs twice is the first of the two. If the
clock is set back by up to an hour, no event is repeated.
The scaler does not fight an autoscaler: a stop at 0 disables it, a start enables it within its bounds, and counts above
0 become its upper bound (stop) or lower bound (start), with the old bounds remembered on it.
Workloads that a controller owns, and replicas that a GitOps tool applies, are not changed unless allowed. Invalid
annotations change nothing, and one Warning lists all errors; a restart may repeat it once.

Watches Deployments, StatefulSets, HorizontalPodAutoscalers that target them, and Namespaces. Owns nothing. Writes the
replicas and two annotations of a workload in one merge patch for exactly the version that was read, the bounds and two
annotations of its autoscaler, and events; uninstall with clean-up restores all of it.
It is at rest between events: it sleeps until the next one, but at most one hour, because wall clocks can be set.
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
