"""Foo: one Deployment of nginx per Foo, as kubernetes/sample-controller does it.

Watches Foos, the Deployments that they own or name, and HorizontalPodAutoscalers that target those Deployments.
Owns one Deployment per Foo, named by `spec.deploymentName`. Writes that Deployment, the Foo's status, and events.
If a Deployment of that name is not the Foo's, the Foo's status and a Warning say so, and nothing else happens until
that Deployment changes. When `spec.deploymentName` changes, the new Deployment is created first, and the old one is
deleted once the new one is available.
It is at rest when Deployment and status match the Foo's spec. The garbage collector deletes the Deployment.
"""

from __future__ import annotations

from kubectl_ctrl.controllers.foo.reconciler import CONTROLLER

__all__ = ["CONTROLLER"]
