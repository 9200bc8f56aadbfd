"""A controller that uses the typed models of the official Kubernetes client, with a real API server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT, Audit, Kubectl, run

CONTROLLER = '''
"""Scales a Deployment down to one replica and labels it."""

from kubernetes.client import ApiException, AppsV1Api

from kubectl_ctrl import DEPLOYMENTS, Context, Request, controller


async def reconcile(ctx: Context, request: Request) -> None:
    await ctx.in_thread(limit, AppsV1Api(ctx.official()), request)


def limit(apps: AppsV1Api, request: Request) -> None:
    name, namespace = request.name, request.namespace
    stale = apps.read_namespaced_deployment(name, namespace)
    if stale.spec.replicas <= 1:
        return
    container = {"name": "web", "imagePullPolicy": "Always"}
    body = {"spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}}}
    apps.patch_namespaced_deployment(name, namespace, body)
    web = stale
    while True:
        try:
            apps.replace_namespaced_deployment(name, namespace, web)
            return
        except ApiException as error:  # certain the first time, possible later if the Deployment controller was faster
            refused = str(error.status)
        web = apps.list_namespaced_deployment(namespace, label_selector="app=web").items[0]
        web.metadata.labels["refused"], web.spec.replicas = refused, 1


CONTROLLER = controller("limit", reconcile).for_(DEPLOYMENTS)
'''


@pytest.mark.real
def test_typed_models_read_patch_and_replace_a_deployment(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "limit.py"
    file.write_text(CONTROLLER, encoding="utf-8")
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    # Its own controller writes it while its pods start, and a plan of that moment has a conflict more.
    kubectl("rollout", "status", "deployment/web", "--timeout=110s")

    # bin/kubectl-ctrl has no extras; the environment of the tests has this one.
    def program(*words: str, code: int = 0) -> str:
        ran = run(sys.executable, "-m", "kubectl_ctrl", *words, env={**ctrl.env, "PYTHONPATH": str(CHECKOUT)})
        assert ran.code == code, ran
        return ran.out

    since = audit.mark()
    plan = json.loads(program("plan", "deployment/web", f"--controller={file}", "--output=json", code=1))
    assert [write["verb"] for write in plan["reconciles"][0]["writes"]] == ["patch", "update"]
    assert audit.writes(since, namespace=namespace) == []

    program("run", str(file), "--once")
    web = kubectl.json("get", "deployment", "web")
    assert web["spec"]["replicas"] == 1
    assert web["metadata"]["labels"] == {"app": "web", "refused": "409"}
    (container,) = web["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("web:1", "Always")

    written = audit.writes(since, namespace=namespace)
    calls = [(one.verb, one.resource, one.code) for one in written if "deployments" in one.resource]
    assert calls[:2] == [("patch", "deployments.apps", 200), ("update", "deployments.apps", 409)]
    assert set(calls[2:-1]) <= {("update", "deployments.apps", 409)}
    assert calls[-1] == ("update", "deployments.apps", 200)
    shown = program("trace", "deployment/web", "--calls")
    for one in written:
        assert one.audit_id in shown
