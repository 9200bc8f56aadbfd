"""Memcached: one Deployment of memcached per Memcached, as operator-sdk's tutorial does it.

Watches Memcacheds, the Deployment of each and what stands below it (ReplicaSets and Pods that carry the label
`memcached_cr`, by their metadata alone), and HorizontalPodAutoscalers that target those Deployments.
Owns one Deployment per Memcached, of its name. Writes that Deployment, the Memcached's status, and events.
`status.nodes` names the pods that serve or are about to: those that the Memcached owns through Deployment and
ReplicaSet, without what terminates or has finished. `Available` is true when as many pods of the latest spec are ready
as are wanted; `Degraded` says what stands in the way, in the server's words where it is the server that refuses.
A Deployment of that name that belongs to somebody else is left alone until it changes or goes. One that an autoscaler
scales keeps its replicas, and one that already had another selector keeps that: delete it to have it made anew.
It rests when the Deployment runs what the Memcached asks for and the status says so; deletion is the garbage
collector's.
"""

from __future__ import annotations

from kubectl_ctrl.controllers.memcached.reconciler import CONTROLLER

__all__ = ["CONTROLLER"]
