"""The audit log: one line of JSON for each request, in the form of a kube-apiserver's `--audit-log-path`.

A line is written before its answer is sent. A watch has one line, written when it starts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.sandbox.auth.guard import RequestRecord


class AuditLog:
    """A listener of the guard. Only metadata is logged, never a body."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def __call__(self, record: RequestRecord) -> None:
        names = {
            "resource": record.resource,
            "namespace": record.namespace,
            "name": record.name,
            "apiGroup": record.group,
            "subresource": record.subresource,
        }
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": record.audit_id,
            "stage": "ResponseStarted" if record.verb == "watch" else "ResponseComplete",
            "requestURI": f"{quote(record.path)}?{urlencode(record.query)}" if record.query else quote(record.path),
            "verb": record.verb,
            "user": {"username": record.user.name, "groups": list(record.user.groups)} if record.user else {},
            "userAgent": record.user_agent,
            "responseStatus": {"code": record.code},
            "requestReceivedTimestamp": rfc3339(self._clock.now()),
        }
        if record.resource:
            event["objectRef"] = {key: value for key, value in names.items() if value}
        os.write(self._file, json.dumps(event, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def __repr__(self) -> str:
        return f"AuditLog(file={self._file})"
