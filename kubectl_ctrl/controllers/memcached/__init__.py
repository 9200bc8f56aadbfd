"""Memcached: one Deployment of memcached per Memcached, as operator-sdk's tutorial does it.

Watches Memcacheds, their Deployments, the ReplicaSets and Pods of these (only those with the label `memcached_cr`, and
only their metadata), and HorizontalPodAutoscalers that target those Deployments.
Owns one Deployment per Memcached, of the same name. Writes that Deployment, the Memcached's status, and events.
`status.nodes` lists the pods that the Memcached owns through Deployment and ReplicaSet, except terminating and finished
ones. `Available` is true when enough pods of the latest spec are ready; `Degraded` states the problem, in the API
server's own words if it rejected the Deployment.
A Deployment of that name that is not the Memcached's stays as it is. Replicas set by an autoscaler stay, and so does a
different selector of an existing Deployment: delete the Deployment to recreate it.
It is at rest when Deployment and status match the Memcached's spec. The garbage collector deletes the Deployment.
"""

from __future__ import annotations

from kubectl_ctrl.controllers.memcached.reconciler import CONTROLLER

__all__ = ["CONTROLLER"]
