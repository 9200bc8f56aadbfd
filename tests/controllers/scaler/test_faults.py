"""The faults and inputs of docs/faults.md that concern the scaler."""

from __future__ import annotations

from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, STATEFULSETS
from tests.controllers.scaler.stage import HOUR, WEEKDAYS, Stage, autoscaler, scenario, workload

KINDS = [(DEPLOYMENTS, "Deployment"), (STATEFULSETS, "StatefulSet")]


# --- autoscalers (F32 and the complaint about fights)


def follow(stage: Stage) -> None:
    """What the autoscaler's own controller does: keep the count within the bounds unless it is 0."""
    now, (least, most) = stage.replicas(), stage.bounds()
    if now and not least <= now <= most:
        stage.server.change(
            DEPLOYMENTS, "web", {"spec": {"replicas": max(least, min(now, most))}}, manager="kube-controller-manager"
        )


def test_f32_a_stop_at_nothing_switches_the_autoscaler_off_and_a_start_wakes_it_within_its_bounds() -> None:
    async def body(stage: Stage) -> None:
        stage.server.create(workload(replicas=12, **WEEKDAYS))
        stage.server.create(autoscaler(2, 10))
        async with stage.scaling():
            await stage.until("2026-01-05T12:30Z")
            assert (stage.replicas(), stage.bounds()) == (0, (2, 10))
            await stage.until("2026-01-05T13:00Z")
            assert (stage.replicas(), stage.bounds(), stage.state("auto", HPAS)) == (10, (2, 10), {})

    scenario(body)


def test_f32_counts_above_nothing_are_bounds_and_the_old_ones_are_remembered() -> None:
    async def body(stage: Stage) -> None:
        stage.server.create(workload(replicas=6, stop_replicas="1", start_replicas="4", **WEEKDAYS))
        stage.server.create(autoscaler(2, 10))
        async with stage.scaling():
            assert (stage.bounds(), stage.replicas()) == ((4, 10), 6)
            assert stage.state("auto", HPAS) == {"original-min-replicas": "2", "original-max-replicas": "10"}
            await stage.until("2026-01-05T12:30Z")
            assert stage.bounds() == (1, 1)
            assert stage.state("auto", HPAS) == {"original-min-replicas": "2", "original-max-replicas": "10"}
            follow(stage)
            assert stage.replicas() == 1
            await stage.until("2026-01-05T13:00Z")
            assert stage.bounds() == (4, 10)
            follow(stage)
            writes = len(stage.written())
            stage.server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 8}}, manager="kube-controller-manager")
            await stage.rest(HOUR)
            assert (stage.replicas(), len(stage.written())) == (8, writes), "the autoscaler decides in between"

    scenario(body)


def test_f32_a_start_without_a_count_gives_the_bounds_back() -> None:
    async def body(stage: Stage) -> None:
        stage.server.create(workload(replicas=6, stop_replicas="1", **WEEKDAYS))
        stage.server.create(autoscaler(2, 10))
        async with stage.scaling():
            await stage.until("2026-01-05T12:30Z")
            assert stage.bounds() == (1, 1)
            await stage.until("2026-01-05T13:00Z")
            assert (stage.bounds(), stage.state("auto", HPAS)) == ((2, 10), {})

    scenario(body)


def test_f32_enforce_does_not_pull_against_an_autoscaler() -> None:
    async def body(stage: Stage) -> None:
        stage.server.create(workload(enforce="true", start_replicas="2", **WEEKDAYS))
        stage.server.create(autoscaler(2, 10))
        async with stage.scaling():
            for count in (4, 7, 5):
                stage.server.change(
                    DEPLOYMENTS, "web", {"spec": {"replicas": count}}, manager="kube-controller-manager"
                )
                await stage.rest(60)
                assert stage.replicas() == count
            await stage.until("2026-01-05T12:30Z")
            stage.scale(3)
            await stage.rest(1)
            assert stage.replicas() == 0

    scenario(body)


def test_f32_bounds_that_gitops_applies_are_refused() -> None:
    async def body(stage: Stage) -> None:
        stage.server.create(workload(stop="0 11 * * *", stop_replicas="1"))
        stage.server.apply(autoscaler(2, 10), manager="argocd-controller")
        async with stage.scaling():
            await stage.rest(HOUR)
            assert stage.bounds() == (2, 10)
            (message,) = stage.messages("OwnedByGitOps")
            assert "of this HorizontalPodAutoscaler" in message

    scenario(body)


def test_an_autoscalers_status_wakes_nobody() -> None:
    async def body(stage: Stage) -> None:
        stage.server.create(workload(**WEEKDAYS))
        stage.server.create(autoscaler())
        async with stage.scaling():
            before = len(stage.attempts)
            for count in range(1, 5):
                status = {"currentReplicas": count, "desiredReplicas": count}
                stage.server.change(HPAS, "auto", {"status": status}, subresource="status")
            await stage.rest(60)
            assert len(stage.attempts) == before

    scenario(body)
