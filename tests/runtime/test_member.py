from __future__ import annotations

from collections.abc import Callable

import pytest

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.flight import Gate
from kubectl_ctrl.errors import NotLeading, Refused
from kubectl_ctrl.model.attempt import BackgroundCall, Call, ControllerState, Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.resources import LEASES
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context
from kubectl_ctrl.runtime.election import Candidate, LeaseElector
from kubectl_ctrl.runtime.services import Elector, EventSender, NoEvents, Services, Tell
from kubectl_ctrl.runtime.summary import Reason
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from tests.objects import present
from tests.runtime.thrones import Throne, on_throne
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import Running, World, crd, toy


def spec_of(world: World, seconds: float = 0.0) -> ControllerSpec:
    """Takes its time and then writes."""

    async def reconcile(ctx: Context, request: Request) -> None:
        await world.clock.sleep(seconds)
        await ctx.write.create({"metadata": {"generateName": f"{request.name}-"}}, resource=CONFIGMAPS)

    return controller("toy", reconcile).for_(TOYS)


async def test_no_attempt_starts_before_it_leads_and_the_first_one_knows_all_causes() -> None:
    world, throne = World(), Throne()
    world.server.create(toy("bear"))
    async with world.running(spec_of(world), services=on_throne(throne)):
        await world.rest(30)
        assert world.told(ControllerState)[-1].message == "the run does not hold the Lease of toy"
        entries = world.told(ControllerState)[-1].entries
        assert [(entry.request.name, str(entry.state)) for entry in entries] == [("bear", "ready")]
        throne.set(True)
        await world.rest()
        assert [attempt.verdict.outcome for attempt in world.attempts] == [Outcome.DONE]
    assert throne.released


async def test_a_lost_lease_cuts_what_runs_and_no_call_is_sent_after_it() -> None:
    world, throne = World(), Throne()
    world.server.create(toy("bear"))
    async with world.running(spec_of(world, seconds=10), services=on_throne(throne)):
        throne.set(True)
        await world.rest(5)
        throne.set(False)
        await world.rest()
        [attempt] = world.attempts
        assert (attempt.verdict.outcome, attempt.verdict.message) == (
            Outcome.DROPPED,
            "The attempt was cut: the lease was lost.",
        )
        world.server.create(toy("robot"))
        await world.rest(60)
        assert (len(world.attempts), list(world.writes())) == (1, [])
        throne.set(True)
        await world.rest(15)
        again = world.attempts[1]
        assert [cause.kind for cause in again.start.causes] == [CauseKind.RETRY]
        assert again.start.causes[0].attempt == attempt.id
        assert sorted(write.key.name.partition("-")[0] for write in world.writes()) == ["bear", "robot"]


async def test_a_lease_that_ran_out_unsaid_closes_the_gate_for_calls_and_for_attempts() -> None:
    world, throne = World(), Throne()
    world.server.create(toy("bear"))
    async with world.running(spec_of(world, seconds=10), services=on_throne(throne)):
        throne.set(True)
        await world.rest(5)
        throne.expire()
        world.server.create(toy("robot"))
        await world.rest(20)
        assert [attempt.verdict.outcome for attempt in world.attempts] == [Outcome.DROPPED]
        assert list(world.writes()) == []
        throne.set(True)
        await world.rest(15)
    assert len(list(world.writes())) == 2


async def test_an_elector_that_can_never_lead_ends_the_run(world: World) -> None:
    class Usurped(Throne):
        async def run(self, on_lead: Callable[[], None], on_lost: Callable[[], None]) -> None:
            raise Refused("Another process holds the Lease.")

    summary = await world.run(spec_of(world), services=on_throne(Usurped()))
    assert summary.reason is Reason.FATAL
    assert present(summary.problem()).exit_code == 6


async def test_each_controller_has_a_lease_of_its_own() -> None:
    world = World(toy("bear"))
    thrones = {"toy": Throne(), "other": Throne()}

    async def nothing(ctx: Context, request: Request) -> None:
        pass

    other = controller("other", nothing).for_(TOYS)
    services = Services(elector=lambda name, client, tell: thrones[name])
    async with world.running(spec_of(world), other, services=services):
        thrones["other"].set(True)
        await world.rest(10)
        assert [attempt.start.controller for attempt in world.attempts] == ["other"]


async def test_what_happens_in_the_background_is_told_to_the_observers(world: World) -> None:
    tells: list[Tell] = []

    def elector(name: str, client: Client, tell: Tell) -> Elector:
        tells.append(tell)
        return Throne()

    async with world.running(spec_of(world), services=Services(elector=elector)):
        call = Call(id="x.1", verb="update", resource=LEASES, started=0.0)
        tells[0](BackgroundCall(attempt="", call=call))
    assert world.told(BackgroundCall) == [BackgroundCall(attempt="", call=call)]


async def test_events_pass_the_same_gate_as_calls() -> None:
    world, throne = World(), Throne()
    gates: list[Gate | None] = []

    def recorder(name: str, client: Client, tell: Tell) -> EventSender:
        gates.append(client.scope.gate)
        return NoEvents()

    services = Services(elector=on_throne(throne).elector, recorder=recorder)
    async with world.running(spec_of(world), services=services):
        [gate] = gates
        assert gate is not None
        with pytest.raises(NotLeading):
            gate()
        throne.set(True)
        assert gate() is None


# --- with the real elector ---


def candidate(world: World, clock: FakeClock, identity: str) -> Services:
    def elector(name: str, client: Client, tell: Tell) -> Elector:
        lease = LEASES.ref(f"kubectl-ctrl-{name}", "default")
        return LeaseElector(
            client, lease, Candidate(identity=identity, patient=True), clock=clock, rng=world.rng, tell=tell
        )

    return Services(elector=elector)


async def test_of_two_processes_one_works_and_the_other_takes_over_when_it_stops() -> None:
    world = World(toy("bear"))
    first = Running(world.manager(spec_of(world), services=candidate(world, world.clock, "one"), run_id="r001"))
    await world.rest(5)
    second = Running(world.manager(spec_of(world), services=candidate(world, world.clock, "two"), run_id="r002"))
    await world.rest(60)
    assert {attempt.id for attempt in world.attempts} == {"r001-1"}
    await first.stopped()
    await world.rest(5)
    assert {attempt.id for attempt in world.attempts} == {"r001-1", "r002-1"}
    await second.stopped()


@pytest.mark.parametrize("cut", [False, True])
async def test_a_stop_gives_the_lease_back_after_the_last_write(cut: bool) -> None:
    world = World(toy("bear"))
    running = world.running(spec_of(world, seconds=10), services=candidate(world, world.clock, "one"))
    async with running as run:
        await world.rest(5)
        run.stop.request()
        await world.rest(1)
        if cut:
            run.stop.request()
        await run.task
    written = [seen.path for seen in world.server.requests if seen.verb in ("create", "update")]
    assert "/leases/" in written[-1]
    assert any("/configmaps" in path for path in written) is not cut
    [lease] = world.server.objects(LEASES)
    assert lease["spec"]["holderIdentity"] == ""


async def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(world, seconds=1), services=candidate(world, world.clock, "one")):
        await world.rest(5)
        outage = world.server.faults.hang(Match(plural="leases"), times=None)
        began = world.clock.elapsed()
        while world.clock.elapsed() - began < 15:
            world.server.change(TOYS, "bear", {"spec": {"step": world.clock.elapsed()}})
            await world.rest(0.5)
        latest = max(attempt.start.started for attempt in world.attempts)
        assert latest - world.attempts[0].start.started < 5 + 10.5  # the renew deadline
        outage.stop()
        await world.rest(30)
        assert world.attempts[-1].verdict.outcome is Outcome.DONE
        assert world.attempts[-1].start.started > latest


async def test_what_to_install_is_said_as_the_user_types_it(caplog: pytest.LogCaptureFixture) -> None:
    world = World(toy("bear"))

    async def reconcile(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.status(bear, {"ready": True, "mood": "fine"})

    await world.run(controller("toy", reconcile).for_(TOYS), until_idle=True, words={"toy": "./mine/toy.py"})
    [told] = [record.getMessage() for record in caplog.records if "older than the controller" in record.getMessage()]
    assert told.endswith("Next: kubectl ctrl install ./mine/toy.py")


@pytest.mark.parametrize("offset", [0.5 * step for step in range(1, 20)])
async def test_a_type_that_appears_is_worked_on_at_once_whatever_discovery_said_before(offset: float) -> None:
    world = World(installed=False)

    async def reconcile(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.status(bear, {"ready": True})

    async with world.running(controller("toy", reconcile).for_(TOYS)):
        await world.rest(20 + offset)
        world.server.create(crd())
        world.server.create(toy("bear"))
        await world.rest(10)
        assert present(world.server.get(TOYS, "bear")).get("status") == {"ready": True}
