"""Leases: one leader under every fault that one process can see of another."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import ControllerError, CredentialsError, Forbidden, NotLeading, Refused
from kubectl_ctrl.model.attempt import BackgroundCall
from kubectl_ctrl.model.resources import LEASES
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.runtime.election import Candidate, Durations, LeaseElector
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.server import ScriptedServer
from kubectl_ctrl.value import replace

LEASE = LEASES.ref("kubectl-ctrl-foo", "default")


class Process:
    """One candidate as one process: a clock of its own, a client of its own."""

    def __init__(self, server: ScriptedServer, name: str, **candidate: Any) -> None:
        self.clock = FakeClock()
        self.log: list[str] = []
        self.told: list[BackgroundCall] = []
        client = Client(server, clock=self.clock, rng=random.Random(name), user_agent="kubectl-ctrl/test")
        self.elector = LeaseElector(
            client,
            LEASE,
            Candidate(identity=name, **({"patient": True} | candidate)),
            clock=self.clock,
            rng=random.Random(name),
            tell=self.told.append,
        )

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.ensure_future(self.elector.run(lambda: self.log.append("lead"), lambda: self.log.append("lost")))
        try:
            yield task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Refused, Forbidden):
                await task


def lease(server: ScriptedServer) -> dict[str, Any]:
    (found,) = server.objects(LEASES)
    spec: dict[str, Any] = found["spec"]
    return spec


async def test_a_leader_renews_and_gives_the_lease_back() -> None:
    server = ScriptedServer(FakeClock())
    one = Process(server, "one")
    async with one.standing():
        await one.clock.sleep(60)
        assert one.elector.leading
        assert lease(server)["holderIdentity"] == "one"
        assert lease(server)["leaseDurationSeconds"] == 15
        assert lease(server)["leaseTransitions"] == 0
    assert one.log == ["lead", "lost"]
    assert lease(server)["holderIdentity"] == ""
    assert lease(server)["leaseDurationSeconds"] == 1
    gets = [seen for seen in server.requests if seen.verb == "get"]
    assert len(gets) == 1, "a renewal is one PUT"


async def test_a_released_lease_is_taken_within_one_try_and_counted_as_a_transition() -> None:
    server = ScriptedServer(FakeClock())
    one, two = Process(server, "one"), Process(server, "two")
    async with two.standing():
        async with one.standing():
            await one.clock.sleep(30)
        first = "one" if one.log else "two"
        assert first == "two" or two.log == []
        await two.clock.sleep(3)
        assert two.elector.leading
        assert lease(server)["leaseTransitions"] == (1 if first == "one" else 0)


async def test_a_silent_holder_is_succeeded_after_its_own_duration_and_not_before() -> None:
    server = ScriptedServer(FakeClock())
    server.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE.name, "namespace": "default"},
            "spec": {
                "holderIdentity": "gone",
                "leaseDurationSeconds": 40,
                "renewTime": "2001-01-01T00:00:00.000000Z",
            },
        }
    )
    two = Process(server, "two")
    async with two.standing():
        await two.clock.sleep(39)
        assert not two.elector.leading, "the record's wall clock times prove nothing"
        await two.clock.sleep(5)
        assert two.elector.leading


async def test_a_holder_that_is_certainly_dead_is_succeeded_at_once() -> None:
    server = ScriptedServer(FakeClock())
    one = Process(server, "one")
    async with one.standing():
        await one.clock.sleep(1)
        server.down()
    server.up()
    two = Process(server, "two", is_dead=lambda holder: holder == "one")
    async with two.standing():
        await two.clock.sleep(1)
        assert two.elector.leading


async def test_an_impatient_candidate_is_refused_only_after_seeing_a_renewal() -> None:
    server = ScriptedServer(FakeClock())
    one, two = Process(server, "one"), Process(server, "two", patient=False)
    async with one.standing():
        await one.clock.sleep(1)
        async with two.standing() as task:
            started = two.clock.elapsed()
            with pytest.raises(Refused, match="holds the Lease 'default/kubectl-ctrl-foo' and renews it: one"):
                await task
            assert 1 < two.clock.elapsed() - started < 10
        assert one.elector.leading


async def test_without_the_right_to_use_leases_it_goes_on_or_fails_as_asked() -> None:
    server = ScriptedServer(FakeClock())
    server.faults.fail(Match(plural="leases"), 403, times=None)
    free, strict = Process(server, "free", required=False), Process(server, "strict", required=True)
    async with free.standing(), strict.standing() as task:
        await free.clock.sleep(60)
        assert free.elector.leading
        assert free.elector.gate() is None
        with pytest.raises(Forbidden):
            await task
    assert free.log == ["lead", "lost"]


async def test_who_loses_the_right_after_having_led_does_not_lead_without_it() -> None:
    """Another with that right may hold the Lease by then."""
    server = ScriptedServer(FakeClock())
    one = Process(server, "one", required=False)
    async with one.standing():
        await one.clock.sleep(5)
        fault = server.faults.fail(Match(plural="leases"), 403, times=None)
        await one.clock.sleep(30)
        assert one.log == ["lead", "lost"]
        with pytest.raises(NotLeading):
            one.elector.gate()
        fault.stop()
        await one.clock.sleep(5)
        assert one.log == ["lead", "lost", "lead"]
        assert one.elector.gate() is not None


class Locked(ScriptedServer):
    """One that cannot be asked while there are no credentials for it."""

    locked = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self.locked:
            raise CredentialsError("The plugin gave no credentials.")
        return await super().send(request)


@pytest.mark.parametrize("seconds", [5, 30])
async def test_credentials_that_fail_for_a_while_are_no_end(seconds: float) -> None:
    server = Locked(FakeClock())
    server.locked = True
    one = Process(server, "one")
    async with one.standing() as task:
        await one.clock.sleep(5)
        server.locked = False
        await one.clock.sleep(5)
        assert one.elector.leading
        server.locked = True
        await one.clock.sleep(seconds)
        assert one.elector.leading == (seconds < 10)
        server.locked = False
        await one.clock.sleep(5)
        assert one.elector.leading
        assert not task.done()


class Liar(ScriptedServer):
    """One that answers writes of Leases with success, and with what somebody else wrote."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        response = await super().send(request)
        if request.method not in ("POST", "PUT"):
            return response
        return replace(response, body=response.body.replace(b'"one"', b'"two"'))


async def test_an_answer_that_names_another_holder_makes_no_leader() -> None:
    one = Process(Liar(FakeClock()), "one")
    async with one.standing():
        await one.clock.sleep(10)
        assert not one.elector.leading
        assert one.log == []


async def test_f37_after_a_suspend_longer_than_the_deadline_nothing_may_be_sent() -> None:
    server = ScriptedServer(FakeClock())
    one = Process(server, "one")
    async with one.standing():
        await one.clock.sleep(5)
        assert one.elector.gate()
        one.clock.suspend(30)
        assert not one.elector.leading
        with pytest.raises(NotLeading):
            one.elector.gate()


async def test_jumps_of_the_wall_clock_change_nothing() -> None:
    server = ScriptedServer(FakeClock())
    one, two = Process(server, "one"), Process(server, "two")
    async with one.standing():
        await one.clock.sleep(5)
        async with two.standing():
            for jump in (86_400, -200_000, 3_600):
                one.clock.step(jump)
                two.clock.step(-jump)
                await one.clock.sleep(30)
                assert one.elector.leading
                assert not two.elector.leading


async def test_a_leader_cut_off_stops_before_a_rival_may_take_over() -> None:
    server = ScriptedServer(FakeClock())
    one, two = Process(server, "one"), Process(server, "two")
    async with one.standing():
        await one.clock.sleep(5)
        async with two.standing():
            await one.clock.sleep(5)
            server.faults.fail(Match(plural="leases"), 500, times=None)
            await one.clock.sleep(11)
            assert one.log == ["lead", "lost"]
            assert two.log == []


@pytest.mark.parametrize("wrong", [{"lease": 10.0}, {"renew_deadline": 2.0}, {"retry": 0.0}])
def test_durations_that_cannot_be_safe_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ControllerError, match="cannot work"):
        Durations(**wrong)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["down", "up", "freeze", "step", "slow", "quick", "wait", "lose"]),
        st.integers(0, 2),
        st.floats(0.1, 40),
    ),
    max_size=25,
)


@settings(max_examples=30)
@given(EVENTS)
def test_never_two_at_once(events: list[tuple[str, int, float]]) -> None:
    """Whatever happens to servers, clocks and requests, two candidates never both believe that they may act."""

    async def main() -> None:
        server = ScriptedServer(FakeClock())
        processes = [Process(server, str(at)) for at in range(3)]

        async def watch() -> None:
            while True:
                assert sum(process.elector.leading for process in processes) <= 1, processes
                await server.clock.sleep(0.25)

        async with contextlib.AsyncExitStack() as stack:
            for process in processes:
                await stack.enter_async_context(process.standing())
            watching = asyncio.ensure_future(watch())
            for what, which, amount in events:
                await happen(server, processes[which], what, amount)
                assert not watching.done(), watching.exception()
            server.up()
            server.request_delay = server.answer_delay = 0.0
            await server.clock.sleep(60)
            assert sum(process.elector.leading for process in processes) == 1, "and in the end there is one"
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    run_virtual(main)


async def happen(server: ScriptedServer, process: Process, what: str, amount: float) -> None:
    match what:
        case "down":
            server.down()
        case "up":
            server.up()
        case "freeze":
            process.clock.freeze(amount)
        case "step":
            process.clock.step(amount - 20)
        case "slow":
            server.request_delay, server.answer_delay = amount / 4, amount / 8
        case "quick":
            server.request_delay = server.answer_delay = 0.0
        case "lose":
            server.faults.lose(Match(plural="leases"), times=3)
    await server.clock.sleep(amount)
