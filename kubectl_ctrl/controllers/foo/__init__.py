"""Foo: one Deployment of nginx per Foo, as kubernetes/sample-controller does it.

Watches Foos, the Deployments that they own or name, and HorizontalPodAutoscalers that target those Deployments.
Owns one Deployment per Foo, named by `spec.deploymentName`. Writes that Deployment, the Foo's status, and events.
A Foo whose Deployment belongs to somebody else is told so and left alone until that Deployment changes. When the name
changes, the new Deployment comes first and the old one goes once the new one is available.
It rests when the Deployment runs what the Foo asks for and the status says so. Deletion is the garbage collector's.
"""

from __future__ import annotations

from kubectl_ctrl.controllers.foo.reconciler import CONTROLLER

__all__ = ["CONTROLLER"]
