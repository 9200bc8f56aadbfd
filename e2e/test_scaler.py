"""The scaler on a real API server and the real clock: on time, once, and without writes in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.ctrl import AssertRests, Ctrl, Started
from e2e.kube import Audit, AuditedRequest, Kubectl, wait_until

P = "ars.44smkn.github.io/"
# A minute of the day before yesterday in one month of the year, which no test reaches.
_PAST = datetime.now(UTC) - timedelta(days=2)
LONG_AGO = f"0 0 {_PAST.day} {_PAST.month} *"


def workload(name: str, *, kind: str = "Deployment", replicas: int = 3, **said: Any) -> dict[str, Any]:
    labels = {"app": name}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    annotations = {P + key.replace("_", "-"): value for key, value in said.items()}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def autoscaler(name: str, least: int, most: int) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most},
    }


def count(kubectl: Kubectl, name: str, kind: str = "deployment") -> int:
    return int(kubectl.json("get", kind, name)["spec"]["replicas"])


def counts(kubectl: Kubectl, name: str, wanted: int, kind: str = "deployment") -> Callable[[], bool]:
    """The spec has that many replicas."""

    def check() -> bool:
        assert (found := count(kubectl, name, kind)) == wanted, found
        return True

    return check


def kept(kubectl: Kubectl, name: str, kind: str = "deployment") -> dict[str, str]:
    """The scaler's annotations of an object, by short names."""
    found = kubectl.json("get", kind, name)["metadata"].get("annotations", {})
    return {
        key.removeprefix(P): value
        for key, value in found.items()
        if key.startswith(f"{P}original") or key == f"{P}last-event"
    }


def said(kubectl: Kubectl, name: str, reason: str) -> list[str]:
    """The messages of its events, none of which was repeated."""
    which = f"--field-selector=involvedObject.name={name},reason={reason}"
    found = kubectl.json("get", "events", which)["items"]
    assert all(event.get("count", 1) == 1 for event in found), found
    return [event["message"] for event in found]


def scalings(audit: Audit, mark: int, namespace: str) -> list[AuditedRequest]:
    """The writes of Deployments. While pods start, their own controller writes them too: a conflict changed nothing."""
    written = audit.writes(mark, namespace=namespace)
    return [one for one in written if one.resource == "deployments.apps" and one.code != 409]


def say(kubectl: Kubectl, name: str, *words: str) -> None:
    kubectl("annotate", "--overwrite", "deployment", name, *(f"{P}{word}" for word in words))


def in_minutes(minutes: int) -> datetime:
    """The start of a minute, that many minutes from now."""
    return (datetime.now(UTC) + timedelta(minutes=minutes)).replace(second=0, microsecond=0)


def cron_at(moment: datetime) -> str:
    return f"{moment.minute} {moment.hour} * * *"


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    return ctrl.started("run", "scaler")


def scale_by_the_past(kubectl: Kubectl) -> None:
    """Both kinds, an autoscaler, and an event: the flow that needs every right of the controller."""
    # Without an autoscaler a stop is carried out on the workload, once, so the autoscaler has to be there first.
    kubectl.apply(autoscaler("auto", 2, 5))
    kubectl.apply(
        workload("web", stop=LONG_AGO),
        workload("db", kind="StatefulSet", stop=LONG_AGO, stop_replicas="1"),
        workload("auto", stop=LONG_AGO, stop_replicas="1"),
    )
    wait_until(counts(kubectl, "web", 0), deadline=60)
    wait_until(counts(kubectl, "db", 1, "statefulset"))
    wait_until(lambda: kubectl.json("get", "hpa", "auto")["spec"]["maxReplicas"] == 1)
    wait_until(lambda: said(kubectl, "web", "ScaledDown"))
    # The same event once more increments its count, which needs another right.
    for wanted, count_ in (("true", 3), ("false", 0), ("true", 3)):
        say(kubectl, "web", f"exclude={wanted}")
        wait_until(counts(kubectl, "web", count_))


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_a_schedule_in_the_past_acts_at_once_on_both_kinds_and_an_autoscaler(
    kubectl: Kubectl, assert_rests: AssertRests
) -> None:
    scale_by_the_past(kubectl)
    assert kept(kubectl, "db", "statefulset")["original-replicas"] == "3"
    assert kept(kubectl, "auto", "hpa") == {"original-min-replicas": "2", "original-max-replicas": "5"}
    assert kept(kubectl, "web") == {}
    assert_rests(seconds=10)


def test_a_stop_and_a_start_come_on_the_minute_and_act_once(
    kubectl: Kubectl, running: Started, audit: Audit, namespace: str
) -> None:
    running.line("leader election")  # so that its start does not take part of the first minute
    stop, mark = in_minutes(1 if datetime.now(UTC).second < 45 else 2), audit.mark()
    start = stop + timedelta(minutes=1)
    kubectl.apply(workload("web", stop=cron_at(stop), start=cron_at(start)))
    wait_until(counts(kubectl, "web", 0), deadline=180)
    wait_until(counts(kubectl, "web", 3), deadline=120)
    # An event is sent after the change that it reports.
    wait_until(lambda: [len(said(kubectl, "web", f"Scaled{way}")) for way in ("Down", "Up")] == [1, 1])
    writes = scalings(audit, mark, namespace)
    late = [datetime.fromisoformat(one.at) - moment for one, moment in zip(writes[-2:], (stop, start), strict=True)]
    assert all(timedelta(0) <= by < timedelta(minutes=1) for by in late), late
    assert len(writes) <= 3, "what held when it came, the stop and the start"


def test_an_event_while_it_is_down_is_caught_up_once_and_a_restart_writes_nothing(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str
) -> None:
    kubectl.apply(workload("web", stop=LONG_AGO, stop_replicas="1"))
    first = ctrl.started("run", "scaler")
    wait_until(counts(kubectl, "web", 1), deadline=60)
    first.kill()
    yesterday = datetime.now(UTC) - timedelta(minutes=1)  # it passed while no controller ran
    say(kubectl, "web", f"start={cron_at(yesterday)}", "start-replicas=4")
    mark = audit.mark()
    assert ctrl("run", "scaler", "--until-idle", "--timeout=3m").code == 0
    assert count(kubectl, "web") == 4
    assert len(scalings(audit, mark, namespace)) == 1
    mark = audit.mark()
    for _ in range(2):
        assert ctrl("run", "scaler", "--until-idle", "--timeout=3m").code == 0
    assert audit.writes(mark, namespace=namespace) == []
    assert len(said(kubectl, "web", "ScaledUp")) == 1


@pytest.mark.usefixtures("running")
def test_an_autoscaler_is_switched_off_and_woken_within_its_bounds(kubectl: Kubectl) -> None:
    kubectl.apply(workload("web", force_down="true", replicas=4), autoscaler("web", 2, 3))
    wait_until(counts(kubectl, "web", 0), deadline=60)
    say(kubectl, "web", "force-down=false", "force-up=true")
    wait_until(counts(kubectl, "web", 3))
    say(kubectl, "web", "start-replicas=5")
    wait_until(lambda: kubectl.json("get", "hpa", "web")["spec"]["minReplicas"] == 5)
    assert kubectl.json("get", "hpa", "web")["spec"]["maxReplicas"] == 5
    say(kubectl, "web", "exclude=true")
    wait_until(lambda: kubectl.json("get", "hpa", "web")["spec"]["minReplicas"] == 2)
    wait_until(lambda: kept(kubectl, "web", "hpa") == {})


@pytest.mark.usefixtures("running")
def test_a_namespaces_annotations_are_defaults(kubectl: Kubectl, namespace: str) -> None:
    plain, other = workload("plain"), workload("other", stop="")
    kubectl.apply(plain, other)
    kubectl("annotate", "namespace", namespace, f"{P}stop={LONG_AGO}")
    wait_until(counts(kubectl, "plain", 0), deadline=60)
    kubectl.apply(workload("late"))
    wait_until(counts(kubectl, "late", 0))
    assert count(kubectl, "other") == 3
    kubectl("annotate", "namespace", namespace, f"{P}stop-")
    wait_until(counts(kubectl, "plain", 3))


@pytest.mark.usefixtures("running")
def test_a_bad_annotation_is_one_event_and_changes_nothing(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(workload("web", stop="60 * * * *"))
    wait_until(lambda: said(kubectl, "web", "BadAnnotation"), deadline=60)
    kubectl("scale", "deployment/web", "--replicas=2")
    kubectl("annotate", "deployment", "web", "other/note=1")
    assert_rests()
    (message,) = said(kubectl, "web", "BadAnnotation")
    assert "has '60' in field 1 (minute), which is out of range; allowed: 0-59." in message
    assert (count(kubectl, "web"), kept(kubectl, "web")) == (2, {})
    say(kubectl, "web", f"stop={LONG_AGO}")
    wait_until(counts(kubectl, "web", 0))


@pytest.mark.usefixtures("running")
def test_a_manual_scale_holds_and_enforce_reverts_it(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(workload("held", stop=LONG_AGO), workload("kept", stop=LONG_AGO, enforce="true"))
    for name in ("held", "kept"):
        wait_until(counts(kubectl, name, 0), deadline=60)
        kubectl("scale", f"deployment/{name}", "--replicas=2")
    wait_until(lambda: said(kubectl, "kept", "Reverted"))
    assert count(kubectl, "kept") == 0
    assert_rests()
    assert count(kubectl, "held") == 2


@pytest.mark.usefixtures("running")
def test_targets_of_gitops_are_not_scaled_unless_allowed(kubectl: Kubectl) -> None:
    text = json.dumps(workload("web", stop=LONG_AGO))
    kubectl("apply", "--server-side", "--field-manager=argocd-controller", "--filename=-", stdin=text)
    (message,) = wait_until(lambda: said(kubectl, "web", "OwnedByGitOps"), deadline=60)
    assert "because argocd-controller applies spec.replicas" in message
    assert count(kubectl, "web") == 3
    say(kubectl, "web", "allow-gitops=true")
    wait_until(counts(kubectl, "web", 0))


def test_another_prefix(kubectl: Kubectl, ctrl: Ctrl) -> None:
    other = workload("web")
    other["metadata"]["annotations"] = {"scaler.example.com/stop": LONG_AGO}
    kubectl.apply(other, workload("left", stop=LONG_AGO))
    ran = ctrl("run", "scaler", "--annotation-prefix=scaler.example.com", "--until-idle", "--timeout=3m")
    assert ran.code == 0, ran.err
    assert (count(kubectl, "web"), count(kubectl, "left")) == (0, 3)
    assert ctrl("run", "foo", "--annotation-prefix=x.example.com").code == 2


@pytest.mark.real
def test_the_example_is_scaled_and_simulated(kubectl: Kubectl, ctrl: Ctrl, namespace: str) -> None:
    text = ctrl("example", "scaler").checked().out
    kubectl("apply", "--filename=-", stdin=text)

    def carried_out() -> bool:
        """The latest event is; the next one may come between these commands."""
        assert ctrl("run", "scaler", "--until-idle", "--timeout=3m").code == 0
        now = count(kubectl, "example-scaled")
        assert now in (0, 2), now
        simulated = json.loads(ctrl("simulate", "deployment/example-scaled", "-o", "json").checked().out)
        assert simulated["object"] == f"Deployment {namespace}/example-scaled"
        assert len(simulated["events"]) == 10, (
            "a start and a stop on each of five days, and nothing that is due already"
        )
        return bool(simulated["events"][0]["from"] == str(now))

    wait_until(carried_out)
    offline = ctrl("simulate", "-f", "-", "--from=2026-03-27", "--days=4", stdin=text).checked().out
    assert "2026-03-30 07:00 CEST   2026-03-30T05:00Z   main       start        0 -> 2" in offline


def test_cleaning_up_gives_everything_back(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(workload("web", stop=LONG_AGO), workload("auto", stop=LONG_AGO, stop_replicas="1"))
    kubectl.apply(autoscaler("auto", 2, 5))
    running = ctrl.started("run", "scaler")
    wait_until(counts(kubectl, "web", 0), deadline=60)
    wait_until(lambda: kubectl.json("get", "hpa", "auto")["spec"]["maxReplicas"] == 1)
    running.stop()
    ctrl("install", "scaler").checked()
    ctrl("uninstall", "scaler", "--clean").checked()
    assert (count(kubectl, "web"), kept(kubectl, "web"), kept(kubectl, "auto")) == (3, {}, {})
    bounds = kubectl.json("get", "hpa", "auto")["spec"]
    assert (bounds["minReplicas"], bounds["maxReplicas"]) == (2, 5)
