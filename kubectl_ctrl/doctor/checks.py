"""How `doctor` looks: every check is a small function that gets one value and gives lines, and all of them at once.

No check can hold up the others: each has a time by which it must have answered, and what it had to say then is that it
did not. What the cluster is asked goes over one connection, which is made once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.provider import ClusterSpec, Fitness, Provider
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.doctor.diagnosis import Group, Line, Mark, Told
from kubectl_ctrl.errors import ApiError, CallSite, CredentialsError, CtrlError, DeadlinePassed
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.story.query import Target
from kubectl_ctrl.target import connection
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value

PATIENCE = 4.0
# What is told of a provider has to be there before the check that tells it gives up.
_FITTING = 3.5


class Reached(Value, kw_only=True):
    """A cluster that answered, and who we are there."""

    client: Unshown[Client]
    resolved: Resolved
    cluster: str  # its key, as recordings have it
    user: str  # "" where the server does not tell
    version: str  # gitVersion


class Reach:
    """The cluster that is meant, asked once for all who want to know."""

    def __init__(self, asked: asyncio.Task[Reached]) -> None:
        self._asked = asked

    async def reached(self) -> Reached:
        """Raises what kept us from it."""
        return await asyncio.shield(self._asked)

    async def if_reached(self) -> Reached | None:
        """None where it is not reached: the check of the context alone says why."""
        with suppress(Exception):
            return await self.reached()
        return None

    def __repr__(self) -> str:
        return f"Reach(asked={self._asked.done()})"


@asynccontextmanager
async def reaching(user: User, target: Target, clock: Clock) -> AsyncIterator[Reach]:
    """For the block: the cluster that flags and kubeconfig mean, or in time what keeps us from it."""
    clients: list[Client] = []

    async def ask() -> Reached:
        resolved = target.resolved()
        try:
            async with clock.timeout(PATIENCE):
                clients.append(await target.connected(resolved, clock))
                return await met(clients[0], resolved)
        except TimeoutError:
            raise _too_slow(user, resolved, connected=bool(clients)) from None

    asked = asyncio.create_task(ask(), name="reach")
    try:
        yield Reach(asked)
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        for client in clients:
            await client.close()


async def met(client: Client, resolved: Resolved) -> Reached:
    """What the server says of itself and of us."""
    version, user, cluster = await asyncio.gather(
        client.raw("GET", "/version"), _user(client), connection.cluster_id(client, resolved)
    )
    told = str(orjson.loads(version.body).get("gitVersion", ""))
    return Reached(client=client, resolved=resolved, cluster=cluster, user=user, version=told)


async def _user(client: Client) -> str:
    """Who the server takes us for; "" for a server too old to tell (before 1.28)."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await asked(client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    except ApiError as error:
        if error.code in (403, 404):
            return ""
        raise
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")


async def asked(client: Client, path: str, review: Mapping[str, Any]) -> Any:
    """The answer to a review: a POST that changes nothing."""
    answer = await client.raw("POST", path, body=dict(review))
    return orjson.loads(answer.body)


def _too_slow(user: User, resolved: Resolved, *, connected: bool) -> CtrlError:
    late = f"did not answer within {PATIENCE:g} s"
    if connected:
        site = CallSite("get", resolved.server)
        helps = connection.started_by(user, resolved) or "kubectl cluster-info"
        return DeadlinePassed(f"{resolved.server} {late}.", site=site, next_step=helps)
    asked = connection.credentials_from(resolved)
    return CredentialsError(
        f"{resolved.server} was not asked: {asked} {late}.", next_step="start it by hand: it may wait for a login"
    )


class Bench(Value, kw_only=True):
    """What a check may look at."""

    user: User
    target: Unshown[Target]
    clock: Clock
    narrate: Unshown[Callable[[str], None]]
    providers: Unshown[Mapping[str, Provider]]
    fits: Unshown[Mapping[str, asyncio.Task[Fitness]]]
    reach: Reach

    @property
    def registry(self) -> Registry:
        return Registry.of(self.user)

    async def fitness(self) -> dict[str, Fitness]:
        """What each provider can do here, asked once for all checks."""
        found = await asyncio.gather(*(asyncio.shield(task) for task in self.fits.values()))
        return dict(zip(self.fits, found, strict=True))


@asynccontextmanager
async def benched(
    target: Target,
    spec: ClusterSpec,
    clock: Clock,
    providers: Mapping[str, Provider],
    *,
    user: User,
    narrate: Callable[[str], None],
) -> AsyncIterator[Bench]:
    """For the block: what checks may look at, some of it asked already."""
    async with reaching(user, target, clock) as reach:
        fits = {name: asyncio.create_task(_fitness(one, spec, clock), name=name) for name, one in providers.items()}
        try:
            yield Bench(
                user=user,
                target=target,
                clock=clock,
                narrate=narrate,
                providers=providers,
                fits=fits,
                reach=reach,
            )
        finally:
            for task in fits.values():
                task.cancel()
            await asyncio.gather(*fits.values(), return_exceptions=True)


async def _fitness(provider: Provider, spec: ClusterSpec, clock: Clock) -> Fitness:
    try:
        async with clock.timeout(_FITTING):
            return await provider.fitness(spec)
    except TimeoutError:
        return Fitness(usable=False, text=f"{provider.name}: what it works with did not answer within {_FITTING:g} s")


Look = Callable[[Bench], Awaitable[Sequence[Line]]]


class Check(Value, kw_only=True):
    """One check. `remote`: it asks the cluster, and its time begins when that is reached.

    `waits`: it tells what others found out, who have their own time for that.
    """

    name: str
    group: Group
    look: Unshown[Look]
    remote: bool = False
    waits: bool = False


def ok(check: str, text: str) -> Line:
    return Line(check=check, mark=Mark.OK, text=text)


def info(check: str, text: str, *, advice: str = "", command: str = "") -> Line:
    return Line(check=check, mark=Mark.INFO, text=text, advice=advice, command=command)


def warn(check: str, text: str, *, advice: str = "", command: str = "") -> Line:
    return Line(check=check, mark=Mark.WARN, text=text, advice=advice, command=command)


def fail(check: str, text: str, *, code: int, advice: str = "", command: str = "") -> Line:
    return Line(check=check, mark=Mark.FAIL, text=text, advice=advice, command=command, code=code)


def failed(check: str, error: CtrlError) -> Line:
    """An error as a line that fails."""
    what = error.message.rstrip(".") + (f" ({error.tried})" if error.tried else "")
    advice, command = split(error.next_step)
    return fail(check, what, code=error.exit_code, advice=advice, command=command)


def split(next_step: str) -> tuple[str, str]:
    """What an error advises, as words or as a command."""
    return ("", next_step) if next_step.startswith("kubectl ") else (next_step, "")


async def looked(checks: Sequence[Check], bench: Bench) -> tuple[Told, ...]:
    """All checks at once; their lines in the order of groups, and in each in that of the checks."""
    answers = await asyncio.gather(*(_one(check, bench) for check in checks))
    return tuple(
        Told(
            group=group,
            lines=tuple(
                line for check, lines in zip(checks, answers, strict=True) if check.group is group for line in lines
            ),
        )
        for group in Group
    )


async def _one(check: Check, bench: Bench) -> Sequence[Line]:
    if check.remote and await bench.reach.if_reached() is None:
        return ()
    try:
        async with bench.clock.timeout(None if check.waits else PATIENCE):
            return await check.look(bench)
    except TimeoutError:
        text = f"{check.name}: not known, as nothing answered within {PATIENCE:g} s"
        return (fail(check.name, text, code=3) if check.remote else warn(check.name, text),)
    except CtrlError as error:
        return (failed(check.name, error),)
    except Exception as error:  # noqa: BLE001 - one check that is wrong must not keep the others from being told
        text = f"{check.name}: this is a bug in kubectl-ctrl: {type(error).__name__}: {error}"
        return (fail(check.name, text, code=1, command="kubectl ctrl doctor -v 6"),)
