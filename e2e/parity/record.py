"""All scenarios, and the recorded answers of a real server to them, against which the sandbox is tested without it."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e.parity import (
    applying,
    auth,
    builtin,
    crds,
    deleting,
    encoding,
    patches,
    reading,
    shapes,
    types,
    watching,
    writing,
)
from e2e.parity.asks import ADMIN, Ask, Scenario, even_crd, foo_crd, shape_crd
from e2e.parity.play import Administrator, Player
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.sandbox.auth.bootstrap import bootstrap
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.testing.server import ScriptedServer

ROOMS = (reading, writing, patches, applying, deleting, shapes, crds, types, watching, auth, builtin, encoding)
SCENARIOS = [scenario for room in ROOMS for scenario in room.SCENARIOS]
RECORD = Path(__file__).with_name("answers.jsonl.xz")
STALE = "The scenarios have changed; record again: hack/e2e kwok -n 1 e2e/test_scripted_parity.py --record"

_NUMBERS = {scenario.name: number for number, scenario in enumerate(SCENARIOS)}

Answers = Sequence[Any]  # of one scenario, without noise


def namespace_of(scenario: Scenario) -> str:
    return f"parity-{_NUMBERS[scenario.name]}"


def digest() -> str:
    """Of all that a server is asked; a gap is no part of it."""
    asked = [(one.name, one.asks, one.played, one.guarded) for one in SCENARIOS]
    return hashlib.sha256(repr((asked, foo_crd(), even_crd(), shape_crd())).encode()).hexdigest()


def recorded(path: Path = RECORD) -> Mapping[str, Answers]:
    """The answers by the name of the scenario."""
    head, *lines = map(json.loads, lzma.decompress(path.read_bytes()).splitlines())
    assert head == {"digest": digest()}, STALE
    return {line["name"]: line["answers"] for line in lines}


def write_record(answers: Mapping[str, Answers], path: Path = RECORD) -> None:
    """In the order of the scenarios, so that equal answers are an equal file."""
    played = (one.name for one in SCENARIOS if one.name in answers)
    lines = [{"digest": digest()}, *({"name": name, "answers": answers[name]} for name in played)]
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(lzma.compress(text.encode(), preset=9))


async def sandbox_answers(scenario: Scenario, clock: Clock) -> Answers:
    namespace = namespace_of(scenario)
    server = ScriptedServer(clock, Authenticator(key=b"parity", admin_token=ADMIN) if scenario.guarded else None)
    if scenario.guarded:
        bootstrap(server)
    for obj in (foo_crd(), even_crd(), shape_crd(), place(namespace)):
        server.create(obj, manager="setup")
    player = Player(Administrator(server), server, namespace, scenario, clock)
    try:
        return [await player.ask(ask) for ask in scenario.asks]
    finally:
        await server.close()


def place(namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}


def check(scenario: Scenario, expected: Answers, found: Answers) -> None:
    """Fail if the answers differ, or if those of a scenario with a gap do not."""
    lines = [text for asked in zip(scenario.asks, expected, found, strict=True) if (text := _difference(*asked))]
    if scenario.gap:
        assert lines, f"The servers agree: {scenario.gap!r} is no gap any more."
    else:
        assert not lines, "\n".join(lines)


def _difference(ask: Ask, expected: Any, found: Any) -> str:
    lines = [f"  {path}: expected {one}, found {other}" for path, one, other in unequal(expected, found)]
    return "\n".join([f"{ask.method} {ask.path} {dict(ask.query)}", *lines]) if lines else ""


def unequal(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """The paths at which two JSON values differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one | other):
            yield from unequal(one.get(key, ...), other.get(key, ...), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (item, counterpart) in enumerate(zip(one, other, strict=True)):
            yield from unequal(item, counterpart, f"{path}[{index}]")
    elif one != other:
        yield path, _shown(one), _shown(other)


def _shown(value: Any) -> str:
    return "nothing" if value is ... else json.dumps(value)
