"""The roles and bindings that every cluster starts with, and the controllers of this room."""

from __future__ import annotations

import json
import lzma
from functools import cache
from importlib import resources

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox import rules
from kubectl_ctrl.sandbox.auth.controllers import RoleAggregation, TokenSecrets
from kubectl_ctrl.sandbox.server import ApiServer


def bootstrap(server: ApiServer) -> None:
    """Start the controllers of roles and tokens, and create the roles and bindings that are missing."""
    guard = server.guard
    started = [
        RoleAggregation(server.access(RoleAggregation.component)),
        TokenSecrets(server.access(TokenSecrets.component), guard.tokens, guard.accepted.ca),
    ]
    for obj in _initial():
        resource = server.served.of_object(obj).resource
        if server.get(resource, obj["metadata"]["name"], obj["metadata"].get("namespace", "")) is None:
            server.load(resource, [rules.clone(obj)])
    server.actors.start(started, server.storage)
    server.settle()


@cache
def _initial() -> list[Obj]:
    packed = resources.files(__package__).joinpath("data", "bootstrap.json.xz").read_bytes()
    return list(json.loads(lzma.decompress(packed)))
