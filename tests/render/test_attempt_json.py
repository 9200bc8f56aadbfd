from __future__ import annotations

from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.render.attempt_json import attempt_json
from kubectl_ctrl.value import replace
from tests.render.samples import CREATED, FOOS, QUOTA, SCALED, attempt

RETRY = Verdict(outcome=Outcome.RETRY, delay=5, message=QUOTA, error_id="CTRL-FORBIDDEN")
REFUSED = replace(CREATED, code=403, error=QUOTA)


def test_the_json_of_an_attempt() -> None:
    shown = attempt(SCALED, verdict=RETRY, calls=(REFUSED,), total=4)
    assert attempt_json(shown) == {
        "schema": "kubectl-ctrl.attempt/v1",
        "time": "2026-01-01T12:00:00.000000+00:00",
        "attempt": "r7f3-12",
        "controller": "foo",
        "namespace": "default",
        "name": "web",
        "uid": "",
        "source": "recorded",
        "causes": [
            {
                "kind": "modified",
                "time": "2026-01-01T12:00:00.000000+00:00",
                "resource": FOOS.full_name,
                "object": "default/web",
                "objectKind": "Foo",
                "uid": "",
                "changed": ["spec.replicas"],
                "changedTotal": 1,
                "changes": [{"path": "spec.replicas", "old": 1, "new": 3}],
                "writers": ["kubectl-edit"],
            }
        ],
        "causesTotal": 4,
        "queuedAt": "2026-01-01T12:00:00.000000+00:00",
        "waitedSeconds": 0.001,
        "tookSeconds": 0.041,
        "try": 1,
        "calls": [
            {
                "id": "r7f3-12.1",
                "verb": "create",
                "resource": "deployments.apps",
                "kind": "Deployment",
                "namespace": "default",
                "name": "web",
                "subresource": "",
                "time": "2026-01-01T12:00:00.000000+00:00",
                "code": 403,
                "tookSeconds": 0.0,
                "sends": 1,
                "dryRun": False,
                "error": QUOTA,
            }
        ],
        "skipped": [],
        "echoes": 0,
        "outcome": "retry",
        "delaySeconds": 5,
        "message": QUOTA,
        "errorId": "CTRL-FORBIDDEN",
        "where": "",
    }
