"""What is a user's own, as the tests of this room write it: a controller, and a kubeconfig."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

HEAD = """\
from kubectl_ctrl import CONFIGMAPS, PODS, SECRETS, Context, Request, Result, controller


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


"""
MINE = HEAD + 'CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)\n'

Write = Callable[[str, str], Path]

# The kubeconfig of somebody whose current context no test may touch.
PRODUCTION = """\
apiVersion: v1
kind: Config
current-context: prod
clusters: [{name: prod, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: prod, context: {cluster: prod, user: prod}}]
users: [{name: prod, user: {token: none}}]
"""
