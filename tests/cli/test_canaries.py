"""S4: what Secrets hold is nowhere: not in a recording's bytes, a log or an export, nor in anything that is printed."""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.history import database
from kubectl_ctrl.history.rows import RowWriter
from kubectl_ctrl.loader import sources
from kubectl_ctrl.model.attempt import Attempt, CallProgress, Observed
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import RecordedController
from kubectl_ctrl.model.resources import SECRETS
from kubectl_ctrl.model.secrecy import Secrecy, secrets_in
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.user import User
from kubectl_ctrl.value import replace
from tests.cli.foreground.test_output import plan, reporter
from tests.cli.own import Write
from tests.history import made
from tests.runtime.toy import TOYS
from tests.runtime.world import World, toy

# Each way in has a value of its own, so that a leak says where it came from.
READ = "Canary-of-data-41"
APPLIED = "Canary-of-last-applied-42"
WRITTEN = "Canary-of-stringData-43"
ROTATED = "Canary-of-rotation-44"
VARIABLE = "Canary-of-env-45"
PRIVATE = "Canary-of-private-46"
FOREIGN = "Canary-of-config-47"
BARE, LISTED, NAMED = "Canary-of-a-bare-49", "Canary-of-a-list-50", "Canary-of-a-name-51"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJDYW5hcnkiOjQ4fQ.Q2FuYXJ5LTQ4"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{PRIVATE}\n-----END RSA PRIVATE KEY-----\n"
CANARIES = (READ, APPLIED, WRITTEN, ROTATED, VARIABLE, PRIVATE, FOREIGN, TOKEN, BARE, LISTED, NAMED)

CODE = f"""\
from kubectl_ctrl import CONFIGMAPS, DEPLOYMENTS, SECRETS, Context, Request, Resource, Result, controller

TOYS = Resource("toys.example.com", "v1", "toys", "Toy")
HANDED = []


async def reconcile(ctx: Context, request: Request) -> Result | None:
    toy = await ctx.read.get(TOYS, request.name)
    login = await ctx.read.get(SECRETS, "login")
    if toy is None or login is None:
        return None
    import base64
    word = base64.b64decode(login["data"]["plain"]).decode()
    HANDED.append(word)
    made = {{"metadata": {{"name": "made"}}, "stringData": {{"x": "{WRITTEN}", "again": word}}}}
    await ctx.write.ensure(made, owner=toy, resource=SECRETS)
    url = f"db://app:{{word}}@db/app"
    line = f"the word is {{word}} now"
    size = str(toy["spec"]["size"])
    config = {{"metadata": {{"name": "config"}}, "data": {{"url": url, "line": line, "token": "{FOREIGN}", "n": size}}}}
    await ctx.write.ensure(config, owner=toy, resource=CONFIGMAPS)
    variable = {{"name": "DB_PASSWORD", "value": "{VARIABLE}"}}
    container = {{"name": "app", "image": "app", "env": [variable], "args": ["--jwt", "{TOKEN}"]}}
    labels = {{"app": "app"}}
    template = {{"metadata": {{"labels": labels}}, "spec": {{"containers": [container]}}}}
    spec = {{"selector": {{"matchLabels": labels}}, "template": template}}
    await ctx.write.ensure({{"metadata": {{"name": "app"}}, "spec": spec}}, owner=toy, resource=DEPLOYMENTS)
    await ctx.outside("peek", lambda: ctx.in_thread(lambda: {{"words": [word], "made": "is {WRITTEN}"}}))
    await ctx.outside("jwt", lambda: ctx.in_thread(lambda: "{TOKEN}"))
    await ctx.outside("vault token", lambda: ctx.in_thread(lambda: "{BARE}"))
    await ctx.outside("users", lambda: ctx.in_thread(lambda: [{{"user": "a", "password": "{LISTED}"}}, "{TOKEN}"]))
    await ctx.outside("settings", lambda: ctx.in_thread(lambda: {{"SMTP_PASS": "{NAMED}"}}))
    await ctx.read.list(CONFIGMAPS, labels=f"word={{word}}")
    ctx.write.event(toy, reason="Logged", message=f"Logged in with {{word}}.")
    if toy["spec"]["size"] == 2:
        try:
            await ctx.write.create({{"metadata": {{"name": "bad"}}, "data": {{"v": word}}}}, resource=CONFIGMAPS)
        finally:
            raise ValueError(f"Cannot log in with {{word}} and {{made}}")
    return Result(after=5)


CONTROLLER = controller("toy", reconcile).for_(TOYS).owns(SECRETS).owns(CONFIGMAPS).owns(DEPLOYMENTS)
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def login(word: str) -> Obj:
    applied = json.dumps({"kind": "Secret", "data": {"old": encoded(APPLIED)}, "stringData": {"s": APPLIED}})
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    meta = {"name": "login", "namespace": "default", "annotations": annotations}
    data = {"plain": encoded(word), "tls.key": encoded(KEY)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def refusal(word: str) -> HttpResponse:
    """As a server words it: with the value that it does not like."""
    message = f'ConfigMap "bad" is invalid: data[v]: Invalid value: "{word}": must not be a secret'
    causes = [{"field": "data[v]", "reason": "FieldValueInvalid", "message": f'Invalid value: "{word}"'}]
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Invalid",
        "code": 422,
        "message": message,
        "details": {"name": "bad", "kind": "ConfigMap", "causes": causes},
    }
    return HttpResponse(status=422, headers={"Content-Type": "application/json"}, body=json.dumps(status).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    code: Path
    recording: Path
    observed: tuple[Observed, ...]
    failed: str  # the attempt that raised
    logged: str


@pytest.fixture
def scene(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A controller that has to do with Secrets in every way, and spills what it can; each value committed by itself."""
    code = write("mine.py", CODE)
    (sourced,) = sources.resolve(["./mine.py"])

    async def play() -> World:
        world = World(login(READ), toy("bear", size=2))
        # In the very first attempt, when nothing is known yet of what has to be hidden.
        bad = Match(verb="create", plural="configmaps", when=lambda request: b'"bad"' in (request.body or b""))
        world.server.faults.answer(bad, refusal(READ))
        async with world.running(sourced.spec, run_id="r7f3", observers=[learn]):
            await world.rest(1)
            world.server.change(TOYS, "bear", {"spec": {"size": 1}})
            await world.rest(1)
            world.server.change(SECRETS, "login", {"data": {"plain": encoded(ROTATED)}})
            world.server.change(TOYS, "bear", {"spec": {"size": 3}})
            await world.rest(10)
        return world

    log, secrecy = io.StringIO(), Secrecy()

    def learn(value: Observed) -> None:
        if isinstance(value, Attempt):
            secrecy.learn(secrets_in(value))

    told = [logging_to(log.write, form=form, verbosity=9, hide=secrecy.text) for form in ("text", "json")]
    with told[0], told[1]:
        world = run_virtual(play())
    played = RecordedController(
        name="toy", word="./mine.py", code=str(code), primaries=(TOYS,), manager=sourced.spec.field_manager
    )
    path = tmp_path / "history.db"
    with closing(database.writable(path)) as connection:
        store = RowWriter(connection, replace(made.RUN, controllers=(played,)))
        for value in world.observed:
            with database.transaction(connection):
                store.put([value])
        with database.transaction(connection):
            store.touch(seen=made.NOON, gaps=0, ended=made.NOON)
        # As a crash leaves it: the log beside it as well.
        for one in tmp_path.glob("history.db*"):
            (tmp_path / f"crashed{one.name.removeprefix('history')}").write_bytes(one.read_bytes())
    failed = next(one.id for one in world.attempts if one.verdict.message)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert {READ, ROTATED} <= set(sourced.spec.reconcile.__globals__["HANDED"])
    return Scene(code=code, recording=path, observed=tuple(world.observed), failed=failed, logged=log.getvalue())


def spellings(canary: str) -> Iterator[bytes]:
    """Every way in which it may be written; encoded also at other offsets."""
    for text in (canary, quote(canary, safe=""), canary[::-1], canary.encode().hex()):
        yield text.encode()
    for offset in range(3):
        whole = base64.b64encode(b"x" * offset + canary.encode())
        yield whole[4 : len(whole) // 4 * 4 - 4]


def assert_clean(what: str, content: bytes) -> None:
    for canary in CANARIES:
        for spelling in spellings(canary):
            at = content.find(spelling)
            assert at < 0, f"{what} holds {canary}: ...{content[max(at - 120, 0) : at + 60]!r}"


def blobs(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every value of every table, unpacked where it is packed."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, str | bytes):
                        raw = value.encode() if isinstance(value, str) else value
                        yield table, raw
                        with suppress(zlib.error):
                            yield table, zlib.decompress(raw)


def test_s04_the_scene_spills_it_all(scene: Scene) -> None:
    """Or the tests below would prove nothing."""
    everything = repr(scene.observed).encode() + b"".join(
        repr((getattr(one, "calls", ()), getattr(one, "reads", ()))).encode() for one in scene.observed
    )
    for canary in (READ, WRITTEN, ROTATED):
        assert any(spelling in everything for spelling in spellings(canary)), canary
    refused = [one.call for one in scene.observed if isinstance(one, CallProgress) and one.call.code == 422]
    assert READ in refused[0].error
    assert any("Cannot log in" in str(getattr(one, "traceback", "")) for one in scene.observed)


def test_s04_the_file_and_its_log_hold_none_of_it(scene: Scene, tmp_path: Path) -> None:
    files = [*tmp_path.glob("history.db*"), *tmp_path.glob("crashed.db*")]
    assert len(files) > 2
    for file in files:
        assert_clean(file.name, file.read_bytes())
    for table, value in blobs(scene.recording):
        assert_clean(table, value)


def test_s04_the_run_logs_none_of_it(scene: Scene) -> None:
    assert scene.logged
    assert_clean("the log", scene.logged.encode())


@pytest.mark.parametrize("log", ["text", "json"])
def test_s04_the_run_prints_none_of_it(scene: Scene, tmp_path: Path, log: str) -> None:
    app = App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}), verbosity=9)
    secrecy = Secrecy()
    with logging_to(app.narrate, form=log, verbosity=9, hide=secrecy.text):
        show = reporter(app, plan(tmp_path), log, secrecy).observer(lambda: None)
        for value in scene.observed:
            show(value)
    assert isinstance(app.out, io.StringIO)
    assert isinstance(app.err, io.StringIO)
    assert "Cannot log in with ***" in app.out.getvalue()
    assert_clean("stdout", app.out.getvalue().encode())
    assert_clean("stderr", app.err.getvalue().encode())


FORMS = ("text", "wide", "json", "jsonl", "yaml", "dot", "otlp", "perfetto", "html")


@pytest.mark.parametrize(
    "words",
    [
        *(["trace", "toy.toys.example.com/bear", "--offline", f"--output={form}"] for form in FORMS),
        ["trace", "toys/bear", "--offline", "--calls", "--diff"],
        ["trace", "toys/bear", "--offline", "--raw"],
        ["trace", "secrets/login", "--offline", "--calls", "--diff"],
        ["trace", "secrets/login", "--offline", "--output=json"],
        ["trace", "configmaps/config", "--offline", "--diff"],
        ["trace", "FAILED", "--offline"],
        ["trace", "FAILED", "--offline", "--output=json"],
        ["explain", "toys/bear", "--offline"],
        ["explain", "toys/bear", "--offline", "--output=json"],
        ["explain", "toys/bear", "FAILED", "--offline"],
        ["explain", "toy", "--offline"],
        ["replay", "FAILED"],
        ["replay", "FAILED", "--output=json"],
        ["queue", "--output=json"],
        ["rbac", "toy", "--from-trace"],
        ["record", "list", "--output=json"],
        ["record", "show", "r7f3", "--output=yaml"],
        ["record", "export", "FAILED"],
        ["record", "export", "--all"],
        ["record", "export", "toys/bear"],
    ],
    ids=" ".join,
)
def test_s04_no_verb_prints_any_of_it(
    scene: Scene, words: list[str], capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    words = [scene.failed if word == "FAILED" else word for word in words]
    code = cli.main([*words, f"--from={scene.recording}"])
    out, err = capfdbinary.readouterr()
    assert code in (0, 4, 9), err
    assert b"bug in kubectl-ctrl" not in err, err
    assert out or code != 0 or words[0] == "queue", err
    assert_clean("stdout", out)
    assert_clean("stderr", err)
    if out.startswith(b"SQLite"):
        (tmp_path / "copy.db").write_bytes(out)
        for table, value in blobs(tmp_path / "copy.db"):
            assert_clean(table, value)
