"""Runs the checks of `doctor` concurrently; each is a function that takes a `CheckInput` and returns lines.

No check can delay the others: each has a timeout, and a check that exceeds it is reported as such. All requests to the
cluster use one connection.
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
from kubectl_ctrl.doctor.diagnosis import Group, GroupLines, Line, Mark
from kubectl_ctrl.errors import ApiError, CallSite, CredentialsError, CtrlError, DeadlinePassed
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.story.query import TargetCluster
from kubectl_ctrl.target import connection
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Unshown, Value

PATIENCE = 4.0
# Less than PATIENCE, so that the check of the providers can still report the others.
_FITTING = 3.5


class ConnectedCluster(Value, kw_only=True):
    """A cluster that answered, and our user there."""

    client: Unshown[Client]
    resolved: Resolved
    cluster: str  # its key, as recordings have it
    user: str  # "" if the server does not report it
    version: str  # gitVersion


class ClusterConnection:
    """The connection to the selected cluster, shared by all checks."""

    def __init__(self, asked: asyncio.Task[ConnectedCluster]) -> None:
        self._asked = asked

    async def reached(self) -> ConnectedCluster:
        """Raises the reason if the cluster cannot be reached."""
        return await asyncio.shield(self._asked)

    async def if_reached(self) -> ConnectedCluster | None:
        """None if it cannot be reached; only the check of the context reports the reason."""
        with suppress(Exception):
            return await self.reached()
        return None

    def __repr__(self) -> str:
        return f"ClusterConnection(asked={self._asked.done()})"


@asynccontextmanager
async def reaching(user: User, target: TargetCluster, clock: Clock) -> AsyncIterator[ClusterConnection]:
    """Connect, for the block, to the cluster that the flags and the kubeconfig select."""
    clients: list[Client] = []

    async def ask() -> ConnectedCluster:
        resolved = target.resolved()
        try:
            async with clock.timeout(PATIENCE):
                clients.append(await target.connected(resolved, clock))
                return await identify(clients[0], resolved)
        except TimeoutError:
            raise _too_slow(user, resolved, connected=bool(clients)) from None

    asked = asyncio.create_task(ask(), name="reach")
    try:
        yield ClusterConnection(asked)
    finally:
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        for client in clients:
            await client.close()


async def identify(client: Client, resolved: Resolved) -> ConnectedCluster:
    """Ask the server for its version, its identity and our user."""
    version, user, cluster = await asyncio.gather(
        client.raw("GET", "/version"), _user(client), connection.cluster_id(client, resolved)
    )
    git_version = str(orjson.loads(version.body).get("gitVersion", ""))
    return ConnectedCluster(client=client, resolved=resolved, cluster=cluster, user=user, version=git_version)


async def _user(client: Client) -> str:
    """Our user name on the server; "" from a server before 1.28, which does not report it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await review_of(client, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    except ApiError as error:
        if error.code in (403, 404):
            return ""
        raise
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")


async def review_of(client: Client, path: str, review: Mapping[str, Any]) -> Any:
    """The answer to a review, a POST that changes nothing."""
    answer = await client.raw("POST", path, body=dict(review))
    return orjson.loads(answer.body)


def _too_slow(user: User, resolved: Resolved, *, connected: bool) -> CtrlError:
    late = f"did not answer within {PATIENCE:g} s"
    if connected:
        site = CallSite("get", resolved.server)
        next_step = connection.started_by(user, resolved) or "kubectl cluster-info"
        return DeadlinePassed(f"{resolved.server} {late}.", site=site, next_step=next_step)
    source = connection.credentials_from(resolved)
    return CredentialsError(
        f"No request was sent to {resolved.server}: {source} {late}.",
        next_step="run it by hand: it may wait for a login",
    )


class CheckInput(Value, kw_only=True):
    user: User
    target: Unshown[TargetCluster]
    clock: Clock
    narrate: Unshown[Callable[[str], None]]
    providers: Unshown[Mapping[str, Provider]]
    fits: Unshown[Mapping[str, asyncio.Task[Fitness]]]
    reach: ClusterConnection

    @property
    def registry(self) -> Registry:
        return Registry.of(self.user)

    async def fitness(self) -> dict[str, Fitness]:
        """The fitness of each provider, determined once for all checks."""
        found = await asyncio.gather(*(asyncio.shield(task) for task in self.fits.values()))
        return dict(zip(self.fits, found, strict=True))


@asynccontextmanager
async def benched(
    target: TargetCluster,
    spec: ClusterSpec,
    clock: Clock,
    providers: Mapping[str, Provider],
    *,
    user: User,
    narrate: Callable[[str], None],
) -> AsyncIterator[CheckInput]:
    """The input of the checks, for the block; the queries that take long are started."""
    async with reaching(user, target, clock) as reach:
        fits = {name: asyncio.create_task(_fitness(one, spec, clock), name=name) for name, one in providers.items()}
        try:
            yield CheckInput(
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
        return Fitness(usable=False, text=f"{provider.name}: its programs did not answer within {_FITTING:g} s")


Look = Callable[[CheckInput], Awaitable[Sequence[Line]]]


class Check(Value, kw_only=True):
    name: str
    group: Group
    look: Unshown[Look]
    remote: bool = False  # it asks the cluster; its timeout starts when the cluster is reached
    waits: bool = False  # it reports results that have their own timeouts


def ok(check: str, text: str) -> Line:
    return Line(check=check, mark=Mark.OK, text=text)


def info(check: str, text: str, *, advice: str = "", command: str = "") -> Line:
    return Line(check=check, mark=Mark.INFO, text=text, advice=advice, command=command)


def warn(check: str, text: str, *, advice: str = "", command: str = "") -> Line:
    return Line(check=check, mark=Mark.WARN, text=text, advice=advice, command=command)


def fail(check: str, text: str, *, code: int, advice: str = "", command: str = "") -> Line:
    return Line(check=check, mark=Mark.FAIL, text=text, advice=advice, command=command, code=code)


def failed(check: str, error: CtrlError) -> Line:
    """The line for an error."""
    what = error.message.rstrip(".") + (f" ({error.tried})" if error.tried else "")
    advice, command = split(error.next_step)
    return fail(check, what, code=error.exit_code, advice=advice, command=command)


def split(next_step: str) -> tuple[str, str]:
    """The next step of an error as (advice, command); one of them is empty."""
    return ("", next_step) if next_step.startswith("kubectl ") else (next_step, "")


async def run_checks(checks: Sequence[Check], bench: CheckInput) -> tuple[GroupLines, ...]:
    """Run all checks concurrently; the lines are in the order of groups, and of the checks in a group."""
    answers = list(zip(checks, await asyncio.gather(*(_run(check, bench) for check in checks)), strict=True))
    return tuple(
        GroupLines(group=group, lines=tuple(line for check, lines in answers if check.group is group for line in lines))
        for group in Group
    )


async def _run(check: Check, bench: CheckInput) -> Sequence[Line]:
    if check.remote and await bench.reach.if_reached() is None:
        return ()
    try:
        async with bench.clock.timeout(None if check.waits else PATIENCE):
            return await check.look(bench)
    except TimeoutError:
        text = f"{check.name}: unknown, since there was no answer within {PATIENCE:g} s"
        return (fail(check.name, text, code=3) if check.remote else warn(check.name, text),)
    except CtrlError as error:
        return (failed(check.name, error),)
    except Exception as error:  # noqa: BLE001 - a bug in one check must not hide the results of the others
        text = f"{check.name}: this is a bug in kubectl-ctrl: {type(error).__name__}: {error}"
        return (fail(check.name, text, code=1, command="kubectl ctrl doctor -v 6"),)
