"""What holds of every plan, whatever the annotations, the autoscaler and the hour."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.controllers.scaler.annotations import BadAnnotation, Names, Settings, read_settings
from kubectl_ctrl.controllers.scaler.plan import Last, ScalingPlan, plan, release, replicas_of
from kubectl_ctrl.model.objects import Obj, annotations_of
from kubectl_ctrl.model.patches import apply_merge
from tests.controllers.scaler.stage import HOUR, at, workload
from tests.objects import autoscaler

NAMES = Names()
MONDAY = at("2026-01-05T00:00Z")

crons = st.sampled_from(["0 7 * * *", "0 20 * * *", "30 12 * * mon-fri", "*/20 * * * *", "0 0 1 * *"])
said = st.fixed_dictionaries(
    {},
    optional={
        "start": crons,
        "stop": crons,
        "start_replicas": st.sampled_from(["1", "4", "20"]),
        "stop_replicas": st.sampled_from(["0", "1", "3"]),
        "time_zone": st.sampled_from(["UTC", "Asia/Kolkata"]),
        "enforce": st.sampled_from(["true", "false"]),
        "exclude": st.sampled_from(["true", "false"]),
        "force_up": st.sampled_from(["true", "false"]),
        "grace_period": st.sampled_from(["0s", "2h"]),
    },
)
hpas = st.none() | st.builds(autoscaler, least=st.integers(1, 5), most=st.integers(5, 9))
hours = st.integers(0, 24 * 14).map(lambda hour: MONDAY + hour * HOUR + 59)


def settings_of(target: Obj) -> Settings:
    return read_settings(NAMES.given(target), {})


def done(target: Obj, hpa: Obj | None, planned: ScalingPlan) -> tuple[Obj, Obj | None]:
    return apply_merge(target, planned.target), apply_merge(hpa, planned.hpa) if hpa is not None else None


def meant(words: dict[str, Any], replicas: int) -> Obj | None:
    """A workload, unless these words cannot be meant together."""
    target = workload(replicas=replicas, **words)
    target["metadata"]["creationTimestamp"] = "2026-01-05T00:00:00Z"
    try:
        settings_of(target)
    except BadAnnotation:
        return None
    return target


@given(words=said, hpa=hpas, replicas=st.integers(0, 9), now=hours)
def test_what_was_done_is_done(words: dict[str, Any], hpa: Obj | None, replicas: int, now: float) -> None:
    """Up to the next look there is nothing more to do: at rest nothing is written."""
    target = meant(words, replicas)
    if target is None:
        return
    first = plan(target, hpa, settings_of(target), NAMES, now)
    target, hpa = done(target, hpa, first)
    then = plan(target, hpa, settings_of(target), NAMES, now)
    assert not then.changes
    if first.due is not None:
        assert first.due > now
        assert not plan(target, hpa, settings_of(target), NAMES, (now + first.due) / 2).changes


@given(words=said, hpa=hpas, replicas=st.integers(0, 9), steps=st.lists(st.integers(0, 9) | st.none(), max_size=8))
def test_whatever_happened_it_can_be_taken_back(
    words: dict[str, Any], hpa: Obj | None, replicas: int, steps: list[int | None]
) -> None:
    """Days with manual scales in between: in the end nothing of ours is left, and the first bounds are back."""
    target, now = meant(words, replicas), MONDAY + 60
    if target is None:
        return
    bounds = dict(hpa["spec"]) if hpa is not None else None
    for manual in steps:
        planned = plan(target, hpa, settings_of(target), NAMES, now)
        before = replicas_of(target)
        target, hpa = done(target, hpa, planned)
        if planned.event is not None and planned.event.action == "stop":
            assert replicas_of(target) <= before, "a stop never adds pods"
        if manual is not None:
            target = apply_merge(target, {"spec": {"replicas": manual}})
        now += 7 * HOUR
    target, hpa = done(target, hpa, release(target, hpa, NAMES))
    for obj in filter(None, (target, hpa)):
        assert not set(annotations_of(obj)) & set(NAMES.state)
    assert hpa is None or hpa["spec"] == bounds
    assert not release(target, hpa, NAMES).changes


@given(words=said, replicas=st.integers(1, 9), now=hours)
def test_a_stop_and_its_release_come_out_even(words: dict[str, Any], replicas: int, now: float) -> None:
    target = meant(
        {**words, "exclude": "false", "grace_period": "0s", "force_up": "false", "force_down": "true"}, replicas
    )
    assert target is None or replicas_of(target) == replicas
    if target is None:
        return
    down, _ = done(target, None, plan(target, None, settings_of(target), NAMES, now))
    up, _ = done(down, None, release(down, None, NAMES))
    assert replicas_of(up) == replicas


@given(st.text(max_size=60))
def test_a_memory_that_is_none_is_not_read(text: str) -> None:
    assert Last.of(text) is None
