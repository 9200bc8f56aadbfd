"""The controllers of this room: aggregated ClusterRoles, and the Secrets with tokens of ServiceAccounts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, labels_of, uid_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import SECRETS, Resource
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.sandbox.auth.rbac import CLUSTER_ROLES
from kubectl_ctrl.sandbox.auth.tokens import Tokens
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess, Controller
from kubectl_ctrl.sandbox.storage import StoredChange

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
OF_TOKENS = "kubernetes.io/service-account-token"
_NAME = "kubernetes.io/service-account.name"
_UID = "kubernetes.io/service-account.uid"


class RoleAggregation(Controller):
    """Gives a ClusterRole with an aggregationRule the rules of the roles that it selects."""

    component = "clusterrole-aggregation-controller"

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table != CLUSTER_ROLES.full_name:
            return ()
        return [key_of(role) for role in self.cluster.all(CLUSTER_ROLES) if _selectors(role)]

    def sync(self, key: Key) -> None:
        role = self.cluster.get(CLUSTER_ROLES, key)
        if role is None or not _selectors(role):
            return
        rules = list(self._selected_rules(role))
        if not same(role.get("rules") or [], rules):
            self.cluster.merge(CLUSTER_ROLES, role, {"rules": rules or None})

    def _selected_rules(self, role: Obj) -> Iterator[Obj]:
        """Without repetition, in the order of the selectors and of the names of the roles."""
        seen: list[Any] = []
        for selector in map(from_label_selector, _selectors(role)):
            for other in self.cluster.all(CLUSTER_ROLES):
                if key_of(other) == key_of(role) or not selector.matches(labels_of(other)):
                    continue
                for rule in other.get("rules") or ():
                    if rule not in seen:
                        seen.append(rule)
                        yield rule


def _selectors(role: Obj) -> list[Obj]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


class TokenSecrets(Controller):
    """Fills Secrets of the type for tokens, and deletes them with their ServiceAccount."""

    def __init__(self, cluster: ClusterAccess, tokens: Tokens, ca: bytes) -> None:
        super().__init__(cluster)
        self._tokens = tokens
        self._ca = ca

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == SECRETS.full_name:
            return [change.key] if change.obj.get("type") == OF_TOKENS else ()
        if table != _ACCOUNTS.full_name:
            return ()
        account = change.obj["metadata"]
        secrets = self.cluster.all(SECRETS, account["namespace"])
        return [
            key_of(one) for one in secrets if one.get("type") == OF_TOKENS and _account_name(one) == account["name"]
        ]

    def sync(self, key: Key) -> None:
        secret = self.cluster.get(SECRETS, key)
        if secret is None or is_deleting(secret):
            return
        account = self.cluster.get(_ACCOUNTS, Key(key.namespace, _account_name(secret)))
        known = secret["metadata"].get("annotations", {}).get(_UID)
        if account is None or (known and known != uid_of(account)):
            self.cluster.delete(SECRETS, secret)
            return
        content = {"ca.crt": self._ca, "namespace": key.namespace.encode()}
        data = secret.get("data") or {}
        if not data.get("token"):
            content["token"] = self._tokens.issue_for(key.name, account).encode()
        missing = {
            name: base64.b64encode(text).decode() for name, text in content.items() if not data.get(name) and text
        }
        if missing or not known:
            annotations = {"annotations": {_UID: uid_of(account)}}
            self.cluster.merge(SECRETS, secret, {"data": missing, "metadata": annotations})


def _account_name(secret: Obj) -> str:
    return str((secret["metadata"].get("annotations") or {}).get(_NAME, ""))
