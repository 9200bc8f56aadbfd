"""Requests of several users to one server, and the roles that they have."""

from __future__ import annotations

import json
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.testing.server import ScriptedServer

RBAC = "rbac.authorization.k8s.io"
ROLES_PATH = f"/apis/{RBAC}/v1/namespaces/default/roles"
BINDINGS_PATH = f"/apis/{RBAC}/v1/namespaces/default/rolebindings"


class Users:
    """Sends requests with the tokens of users."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server

    async def __call__(
        self,
        token: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        **query: str,
    ) -> tuple[int, Any]:
        credentials = {"Authorization": f"Bearer {token}"} if token else {}
        request = HttpRequest(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers={"User-Agent": "caller/1.0", "Audit-ID": "a-1", **credentials, **(headers or {})},
            body=None if body is None else json.dumps(body).encode(),
            deadline=30.0,
        )
        stream = await self.server.open(request)
        try:
            if "watch" in query and stream.status == 200:
                return stream.status, {}
            content = b"".join([line for lines in [batch async for batch in stream.batches()] for line in lines])
            return stream.status, json.loads(content)
        finally:
            await stream.close()

    async def answer(
        self,
        token: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        **query: str,
    ) -> str:
        """The code and the message."""
        code, found = await self(token, method, path, body, headers=headers, **query)
        return f"{code} {found.get('message', '')}".strip()


def role(name: str, *rules: Obj, namespace: str = "default") -> Obj:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace},
        "rules": list(rules),
    }


def rule(verbs: str, resources: str, *, groups: str = "", names: str = "") -> Obj:
    """The words of each list are separated by spaces; one empty group is the core group."""
    found: Obj = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return {**found, **({"resourceNames": names.split()} if names else {})}


def bound(name: str, to: str, kind: str = "Role", *, subject: str = "User bob", namespace: str = "default") -> Obj:
    of, _, who = subject.partition(" ")
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": to},
        "subjects": [
            {"kind": of, "name": who, "apiGroup": RBAC} if of != "ServiceAccount" else {"kind": of, "name": who}
        ],
    }


def cluster_role(name: str, *rules: Obj) -> Obj:
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
