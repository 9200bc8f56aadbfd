"""The sandbox beside kube-apiserver with etcd, under the same load; and its work for requests in this process.

Rates are per second of processor time of the servers: other load of the machine changes them little, and that of the
client, which is the same for both, not at all.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack
from random import Random

import aiohttp
import servers
from figure import Figure, rate
from foos import FOOS_FOLDER, foos, until_idle
from servers import CLIENTS, Server

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox.cluster import Cluster
from kubectl_ctrl.sandbox.endpoint import Endpoint
from tests.cache.pods import pod

_PATH = "/api/v1/namespaces/default/pods"
_LISTED = 400
_OBJECTS = 10_000
_READS = 4_000
_LISTS = 60
_WRITES = 1_000
_WATCHERS = 100
_CHANGES = 200
_FOOS = 1_000
_JSON = {"Content-Type": "application/json"}
_MERGE = {"Content-Type": "application/merge-patch+json"}
_APPLY = {"Content-Type": "application/apply-patch+yaml"}
_AGAINST = "by kube-apiserver and etcd"

Load = Callable[[aiohttp.ClientSession], Awaitable[int]]  # returns its number of units


def figures() -> Iterable[Figure]:
    yield from _in_process()
    with ExitStack() as stack:
        both = [stack.enter_context(server(2)) for server in (servers.sandbox, servers.real)]
        yield from _compared(both)
    yield _converged()


# -- over HTTPS


def _compared(both: list[Server]) -> Iterable[Figure]:
    ours, theirs = both
    yield _beside("start to serving", ours.start, "s", theirs.start, bar="<= 0.5 s")
    yield _beside("memory at rest", ours.memory(), "MB", theirs.memory(), bar="<= 60 MB")
    tokens = [server.token() for server in both]

    def compare(name: str, bar: str, load: Load, clients: int = CLIENTS) -> Figure:
        rates = [_rate(server, token, load, clients) for server, token in zip(both, tokens, strict=True)]
        return _beside(name, rates[0], "/CPU s", rates[1], bar=bar)

    compare("", "", _creates("listed", _LISTED))
    yield compare("gets of a Pod", ">= 1", _gets)
    yield compare(f"lists of {_LISTED} Pods", ">= 1", _lists("identity"))
    yield compare(f"lists of {_LISTED} Pods, compressed", ">= 1", _lists("gzip"))
    yield compare("merge patches of a Pod", ">= 0.5", _patches)
    yield compare("applies of a Pod", ">= 0.5", _applies)
    yield compare(f"events to {_WATCHERS} watchers", ">= 1", _fan_out, _WATCHERS + 1)
    before = [server.memory() for server in both]
    yield compare("creations of a Pod", ">= 0.5", _creates("many", _OBJECTS))
    after = [server.memory() for server in both]
    yield _beside(f"memory with {_OBJECTS:,} Pods", after[0], "MB", after[1])
    grown = [(late - early) * 1000 / _OBJECTS for early, late in zip(before, after, strict=True)]
    yield _beside("of it, for each Pod", grown[0], "KB", grown[1])


def _beside(name: str, value: float, unit: str, baseline: float, *, bar: str = "") -> Figure:
    return Figure(name=name, value=value, unit=unit, baseline=baseline, against=f"{unit} {_AGAINST}", bar=bar)


def _rate(server: Server, token: str, load: Load, clients: int) -> float:
    async def measured() -> float:
        async with server.session(token, clients) as session:
            before = server.cpu()
            done = await load(session)
            return done / (server.cpu() - before)

    return asyncio.run(measured())


async def _spread(count: int, act: Callable[[int], Awaitable[None]]) -> int:
    """Each number once, by several clients."""
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            await act(number)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return count


def _body(name: str, number: int) -> Obj:
    """A Pod that no controller handles."""
    made = pod(number)
    spec = {key: value for key, value in made["spec"].items() if key not in ("nodeName", "priority", "serviceAccount")}
    spec |= {"serviceAccountName": "default", "schedulerName": "none"}
    meta = {"name": f"{name}-{number}", "labels": made["metadata"]["labels"]}
    meta["annotations"] = made["metadata"]["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def _asked(session: aiohttp.ClientSession, method: str, path: str, *, body: Obj, kind: dict[str, str]) -> None:
    async with session.request(method, path, data=json.dumps(body), headers=kind) as answer:
        await answer.read()
        answer.raise_for_status()


def _creates(name: str, count: int) -> Load:
    async def load(session: aiohttp.ClientSession) -> int:
        return await _spread(count, lambda number: _asked(session, "POST", _PATH, body=_body(name, number), kind=_JSON))

    return load


async def _gets(session: aiohttp.ClientSession) -> int:
    async def get(number: int) -> None:
        async with session.get(f"{_PATH}/listed-{number % _LISTED}") as answer:
            await answer.read()
            answer.raise_for_status()

    return await _spread(_READS, get)


def _lists(encoding: str) -> Load:
    async def load(session: aiohttp.ClientSession) -> int:
        async def list_all(_: int) -> None:
            async with session.get(_PATH, headers={"Accept-Encoding": encoding}) as answer:
                assert (await answer.read()).count(b'"name":"listed-') == _LISTED

        return await _spread(_LISTS, list_all)

    return load


async def _patches(session: aiohttp.ClientSession) -> int:
    return await _spread(_WRITES, lambda number: _patch(session, number))


async def _patch(session: aiohttp.ClientSession, number: int) -> None:
    change = {"metadata": {"labels": {"turn": str(number)}}}
    await _asked(session, "PATCH", f"{_PATH}/listed-{number % _LISTED}", body=change, kind=_MERGE)


async def _applies(session: aiohttp.ClientSession) -> int:
    """Of labels, annotations and containers, of which one annotation changes."""

    async def apply(number: int) -> None:
        body = _body("listed", number % _LISTED)
        body["metadata"]["annotations"]["turn"] = str(number)
        path = f"{_PATH}/listed-{number % _LISTED}?fieldManager=bench&force=true"
        await _asked(session, "PATCH", path, body=body, kind=_APPLY)

    return await _spread(_WRITES, apply)


async def _fan_out(session: aiohttp.ClientSession) -> int:
    """Changes of one Pod after the other, until every watcher has seen all of them."""
    async with session.get(f"{_PATH}?limit=1") as answer:
        version = (await answer.json())["metadata"]["resourceVersion"]
    opened = [await session.get(f"{_PATH}?watch=true&resourceVersion={version}") for _ in range(_WATCHERS)]

    async def seen(answer: aiohttp.ClientResponse) -> None:
        count = 0
        async for piece in answer.content.iter_any():
            count += piece.count(b"\n")
            if count >= _CHANGES:
                return

    watching = [asyncio.create_task(seen(answer)) for answer in opened]
    for number in range(_CHANGES):
        await _patch(session, number)
    await asyncio.gather(*watching)
    for answer in opened:
        answer.close()
    return _CHANGES * _WATCHERS


def _converged() -> Figure:
    """Seconds of `run foo` for new Foos, on a new cluster."""
    seconds = []
    for server in (servers.sandbox, servers.real):
        with server(12) as one:
            one.run("apply", f"--filename={FOOS_FOLDER / 'crd.yaml'}")
            one.run("wait", "--for=condition=Established", "crd/foos.samplecontroller.k8s.io")
            one.run("create", "--filename=-", given=foos(_FOOS))
            seconds.append(until_idle(one.env)[1])
    return _beside(f"{_FOOS:,} Foos to converged and idle", seconds[0], "s", seconds[1], bar="<= 1")


# -- in this process


def _in_process() -> Iterable[Figure]:
    gc.set_threshold(20_000, 20, 50)  # as the process of the sandbox has it
    api = Cluster(Endpoint(SystemClock(), rng=Random(1), full=True)).server
    text = json.dumps(_body("one", 1))

    def parse() -> int:
        for _ in range(1_000):
            json.dumps(json.loads(text))
        return 1_000

    baseline = 1e6 / rate(parse)
    numbers = iter(range(10**9))

    def ask(method: str, path: str = "", body: Obj | None = None, kind: dict[str, str] | None = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        query = (("fieldManager", "bench"),) if kind == _APPLY else ()
        request = HttpRequest(method=method, path=_PATH + path, query=query, headers=kind or {}, body=data)
        answer = api.handle_now(request)
        assert answer.status < 300, answer.body

    def apply() -> None:
        body = _body("a", 1)
        body["metadata"]["annotations"]["turn"] = str(next(numbers))
        ask("PATCH", "/a-1", body, _APPLY)

    def create() -> None:
        ask("POST", "", _body("a", next(numbers)), _JSON)

    for number in range(_LISTED):
        ask("POST", "", _body("a", number), _JSON)
    for _ in range(_LISTED):
        next(numbers)
    for name, count, bar, act in (
        ("get", 2_000, 15, lambda: ask("GET", "/a-1")),
        (f"list of {_LISTED}", 20, 5_000, lambda: ask("GET")),
        ("apply", 300, 500, apply),
        ("create", 300, 500, create),
    ):
        yield Figure(
            name=f"{name} in process",
            value=1e6 / rate(_repeated(act, count)),
            unit="us CPU",
            baseline=baseline,
            against="us json of a Pod",
            bar=f"<= {bar:,} us",
        )


def _repeated(act: Callable[[], None], count: int) -> Callable[[], int]:
    def work() -> int:
        for _ in range(count):
            act()
        return count

    return work
