"""What becomes of a call when something goes wrong on its way: lost reads, load shedding, deadlines, a lost lease."""

from __future__ import annotations

import pytest

from kubectl_ctrl.client.options import PatchKind, Scope, WriteOptions
from kubectl_ctrl.errors import (
    AlreadyExists,
    BadAnswer,
    CallError,
    CallSite,
    ControllerError,
    CredentialsError,
    CtrlError,
    DeadlinePassed,
    NotLeading,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
    Unreachable,
    UsageError,
)
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.model.transport import NoAnswer
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import CONFIGMAPS, Rig, answer, configmap, on_answers, on_server, status

REF = CONFIGMAPS.ref("one", "default")
ME = WriteOptions(manager="me", force=True)

GET = Match(verb="get", plural="configmaps")
ALL = Match(plural="configmaps")

BROKEN = NoAnswer("Reset.", sent=True)
REFUSED = NoAnswer("Refused.", sent=False)


def requests(server: ScriptedServer) -> list[str]:
    """What reached the server, in the words of its verbs, also where it only remembers the method."""
    words = {"post": "create", "put": "update"}
    return [words.get(handled.verb, handled.verb) for handled in server.requests]


# --- lost reads


async def test_a_lost_read_is_repeated_a_little(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap(a="0"))
    server.faults.lose(GET, times=2)
    assert (await rig.client.get(REF))["data"] == {"a": "0"}
    server.faults.lose(GET, times=None)
    with pytest.raises(Unreachable, match=r"There was no answer to get configmaps default/one\. The connection was"):
        await rig.client.get(REF)
    assert rig.told == ["get 200 3", "get None 3"]


@pytest.mark.parametrize("write", [True, False])
async def test_a_refused_connection_is_told_at_once(write: bool) -> None:
    rig, canned = on_answers(REFUSED)
    with pytest.raises(Unreachable) as caught:
        await (rig.client.create(CONFIGMAPS, configmap()) if write else rig.client.get(REF))
    assert caught.value.exit_code == 3
    assert len(canned.requests) == 1


async def test_a_connection_refused_after_a_lost_send_is_not_the_end() -> None:
    rig, _canned = on_answers(BROKEN, REFUSED, REFUSED, answer(configmap()))
    made = await rig.client.patch(REF, configmap(), PatchKind.APPLY, ME)
    assert made["kind"] == "ConfigMap"
    assert rig.told == ["apply 200 4"]


# --- load shedding


@pytest.mark.parametrize("code", [429, 503])
async def test_f23_retry_after_is_waited_for_on_every_verb(code: int, rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(ALL, code, retry_after=3, times=2)
    began = rig.clock.elapsed()
    await rig.client.create(CONFIGMAPS, configmap(a="1"))
    assert 6.0 <= rig.clock.elapsed() - began <= 6.6
    assert rig.told == ["create 201 3"]
    assert rig.base.counters.requests == {("create", "POST", str(code)): 2, ("create", "POST", "201"): 1}
    assert rig.base.counters.resends == 2


async def test_a_server_that_sheds_for_ever_is_asked_ten_times(rig: Rig, server: ScriptedServer) -> None:
    fault = server.faults.fail(ALL, 429, retry_after=1, times=None)
    with pytest.raises(TooManyRequests) as caught:
        await rig.client.get(REF)
    assert fault.hits == 10
    assert caught.value.retry_after == 1.0


async def test_a_wait_that_does_not_fit_is_the_callers(rig: Rig, server: ScriptedServer) -> None:
    fault = server.faults.fail(ALL, 429, retry_after=60, times=None)
    began = rig.clock.elapsed()
    with pytest.raises(TooManyRequests) as caught:
        await rig.client.get(REF)
    assert (fault.hits, rig.clock.elapsed() - began) == (1, 0.0)
    assert caught.value.retry_after == 60.0


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_without_a_hint_the_pace_is_the_callers(code: int, rig: Rig, server: ScriptedServer) -> None:
    fault = server.faults.fail(ALL, code, message="not now", times=None)
    with pytest.raises((TooManyRequests, ServerError)):
        await rig.client.create(CONFIGMAPS, configmap())
    assert fault.hits == 1


# --- deadlines


@pytest.mark.parametrize(("timeout", "expected"), [(None, 30.0), (4.0, 4.0)])
async def test_a_hanging_read_ends_at_its_deadline(
    timeout: float | None, expected: float, rig: Rig, server: ScriptedServer
) -> None:
    server.faults.hang(GET, times=None)
    began = rig.clock.elapsed()
    with pytest.raises(DeadlinePassed, match=f"within {expected:g} s"):
        await rig.base.scoped(Scope(timeout=timeout)).get(REF)
    assert rig.clock.elapsed() - began == expected


async def test_a_transport_that_forgets_its_deadline_is_cut_off() -> None:
    rig, canned = on_answers()

    async def send(_request: object) -> None:
        await rig.clock.sleep(1e9)

    canned.send = send  # type: ignore[method-assign,assignment]
    began = rig.clock.elapsed()
    with pytest.raises(DeadlinePassed):
        await rig.client.get(REF)
    assert rig.clock.elapsed() - began == 30.5


# --- the gate


# The other reason for which nothing may be sent any more.
ATTEMPT_OVER = ControllerError("The attempt is over, whatever its lease says.")


class Lease:
    """A gate that can be shut."""

    def __init__(self, left: float | None = 100.0, error: CtrlError | None = None) -> None:
        self.left = left
        self.open = True
        self.asked = 0
        self.error = error or NotLeading("The lease may have passed.", site=CallSite("", ""))

    def __call__(self) -> float | None:
        self.asked += 1
        if not self.open:
            raise self.error
        return self.left


async def test_nothing_leaves_through_a_closed_gate() -> None:
    lease = Lease()
    lease.open = False
    rig, server = on_server(gate=lease)
    for act in (rig.client.get(REF), rig.client.create(CONFIGMAPS, configmap()), rig.client.list(CONFIGMAPS)):
        with pytest.raises(NotLeading, match="lease") as caught:
            await act
        assert "configmaps" in caught.value.site.target
    assert server.requests == []
    assert rig.notes == []


async def test_the_gate_is_asked_again_before_every_resend() -> None:
    lease = Lease()
    rig, server = on_server(gate=lease)

    def shut(_request: object) -> bool:
        lease.open = False
        return True

    server.faults.fail(Match(plural="configmaps", when=shut), 429, retry_after=1, times=None)
    with pytest.raises((NotLeading, TooManyRequests)):
        await rig.client.create(CONFIGMAPS, configmap())
    assert len(server.requests) == 1


async def test_a_gate_that_closes_while_waiting_stops_the_resend(rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(ALL, 429, retry_after=5, times=None)
    lease = Lease()
    end = rig.clock.elapsed() + 12

    def closing() -> float | None:
        lease.open = rig.clock.elapsed() < end
        return lease()

    client = rig.base.scoped(Scope(gate=closing))
    with pytest.raises(NotLeading):
        await client.get(REF)
    assert len(server.requests) == 3


@pytest.mark.parametrize("error", [None, ATTEMPT_OVER])
async def test_a_closed_gate_does_not_take_an_answer_that_came(error: CtrlError | None) -> None:
    lease = Lease(error=error)
    rig, server = on_server(gate=lease)

    def shut(_request: object) -> bool:
        lease.open = False
        return True

    server.faults.delay(Match(plural="configmaps", when=shut))
    assert await rig.client.create(CONFIGMAPS, configmap()) == server.get(CONFIGMAPS, "one")
    lease.open = True
    with pytest.raises(AlreadyExists):
        await rig.client.create(CONFIGMAPS, configmap())


@pytest.mark.parametrize("error", [None, ATTEMPT_OVER])
async def test_a_lost_write_behind_a_closed_gate_is_unknown(error: CtrlError | None) -> None:
    lease = Lease(error=error)
    rig, server = on_server(gate=lease)

    def shut(_request: object) -> bool:
        lease.open = False
        return True

    server.faults.lose(Match(plural="configmaps", when=shut))
    with pytest.raises(OutcomeUnknown, match="lease"):
        await rig.client.create(CONFIGMAPS, configmap())
    assert len(server.requests) == 1


async def test_the_gate_cuts_the_deadline(rig: Rig, server: ScriptedServer) -> None:
    server.faults.hang(ALL, times=None)
    end = rig.clock.elapsed() + 2.0
    client = rig.base.scoped(Scope(gate=lambda: end - rig.clock.elapsed()))
    with pytest.raises(DeadlinePassed):
        await client.get(REF)
    assert rig.clock.elapsed() == end
    with pytest.raises(DeadlinePassed, match="The deadline passed before"):
        await client.get(REF)
    assert len(server.requests) == 1


async def test_a_gate_without_limit_leaves_the_deadline() -> None:
    rig, server = on_server(gate=Lease(None))
    server.faults.hang(ALL, times=None)
    began = rig.clock.elapsed()
    with pytest.raises(DeadlinePassed):
        await rig.client.get(REF)
    assert rig.clock.elapsed() - began == 30.0


async def test_a_gate_that_has_no_time_left_sends_nothing() -> None:
    rig, server = on_server(gate=Lease(0.0))
    with pytest.raises(DeadlinePassed, match="The deadline passed before"):
        await rig.client.get(REF)
    assert server.requests == []


# --- what is no answer at all


async def test_our_own_errors_of_a_transport_pass_and_are_told() -> None:
    rig, _canned = on_answers(CredentialsError("The plugin failed."))
    with pytest.raises(CredentialsError):
        await rig.client.get(REF)
    assert rig.calls[0].error == "The plugin failed."
    assert rig.base.counters.requests == {("get", "GET", ""): 1}


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}.keys()])
async def test_a_body_that_json_cannot_hold_is_refused_before_it_leaves(
    value: object, rig: Rig, server: ScriptedServer
) -> None:
    obj = {**configmap(), "spec": value}
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        await rig.client.create(CONFIGMAPS, obj)
    assert server.requests == []
    assert rig.notes == []


async def test_an_error_knows_its_call(rig: Rig, server: ScriptedServer) -> None:
    with pytest.raises(CallError) as caught:
        await rig.client.get(ObjectRef(CONFIGMAPS, "one", "default", "status"))
    assert caught.value.site == CallSite("get", "configmaps default/one/status", "r7f3-12.1")


async def test_a_redirect_is_not_followed() -> None:
    rig, canned = on_answers(answer(b"", 302, location="https://login.example"))
    with pytest.raises(BadAnswer, match="302 and points to 'https://login"):
        await rig.client.get(REF)
    assert len(canned.requests) == 1


async def test_statuses_of_other_codes_keep_their_words() -> None:
    rig, _canned = on_answers(answer(status(413, "RequestEntityTooLarge", "limit is 3145728"), 413))
    with pytest.raises(CallError, match="413 RequestEntityTooLarge"):
        await rig.client.get(REF)
