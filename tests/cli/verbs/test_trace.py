"""`trace` on recordings that runs left behind, without any cluster: what is meant, and how it is told."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.cli.verbs.trace.main import since
from kubectl_ctrl.clock import SystemClock, parse_rfc3339
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.attempt import Attempt, Call, ControllerState, ObjectRead, Outcome, Verdict
from kubectl_ctrl.model.cause import Cause, CauseKind
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import RecordedRun
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.value import replace
from tests.history.made import FOO, FOOS, NOON, RUN, recording
from tests.objects import started
from tests.render.samples import WEB

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: dev
clusters:
- {{name: dev, cluster: {{server: "{server}"}}}}
contexts:
- {{name: dev, context: {{cluster: dev, user: me, namespace: {namespace}}}}}
users: [{{name: me, user: {{token: not-a-token}}}}]
"""
MINE = replace(RUN, server="https://127.0.0.1:1", ca="", context="dev")
OTHER = replace(MINE, id="r0bb", cluster="c2-far-away", server="https://10.0.0.1:6443", context="staging")

Told = Callable[..., str]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs record, of a user whose current context is the cluster of `MINE`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    context(tmp_path, monkeypatch, MINE.server)
    return tmp_path / "kubectl-ctrl"


def context(folder: Path, monkeypatch: pytest.MonkeyPatch, server: str, namespace: str = "default") -> None:
    config = folder / "kubeconfig"
    config.write_text(KUBECONFIG.format(server=server, namespace=namespace))
    monkeypatch.setenv("KUBECONFIG", str(config))


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """What it prints; or, where a code is expected, what it complains of."""

    def told(*words: str, code: int = 0) -> str:
        assert main(["trace", *words]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return told


def attempt(number: int, *causes: Cause, run: RecordedRun = MINE, calls: tuple[Call, ...] = (), **said: Any) -> Attempt:
    reads: tuple[ObjectRead, ...] = said.pop("reads", ())
    start = started(
        f"{run.id}-{number}",
        *(causes or [seen(uid=said.pop("uid", "uid-web"), key=WEB)]),
        at=NOON + number,
        controller=said.pop("controller", "foo"),
        request=said.pop("request", WEB),
    )
    return Attempt(start=start, took=0.04, verdict=Verdict(outcome=Outcome.DONE), calls=calls, reads=reads)


def seen(uid: str, key: Key) -> Cause:
    return Cause(kind=CauseKind.ADDED, at=NOON, resource=FOOS, key=key, uid=uid, new_version="1")


def created(number: int, uid: str = "uid-deployment") -> Call:
    return Call(
        id=f"r7f3-{number}.1",
        verb="create",
        resource=DEPLOYMENTS,
        namespace="default",
        name="web",
        started=NOON + number,
        took=0.01,
        code=201,
        uid=uid,
        new_version="77",
    )


def numbers(text: str) -> list[str]:
    return re.findall(r"^ *(r[0-9a-z]+-\d+) ", text, re.MULTILINE)


def test_a_state_from_before_the_last_reconcile_does_not_decide_what_is_next(state: Path, told: Told) -> None:
    """A run reports its state every half second at most: this one is from before its caches were complete."""
    message = "the cache of deployments.apps is starting"
    starting = ControllerState(controller="foo", at=NOON, leading=True, synced=False, entries=(), message=message)
    path = recording(state, starting, attempt(1), run=MINE)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET ended = NULL")  # it was heard just now
    assert "NEXT  nothing is queued, no timer" in told("foo/web", "--offline")


@pytest.mark.parametrize(
    "words",
    [
        ["foo/web"],
        ["foo", "web"],
        ["foos/web"],
        ["Foo/web"],
        ["foos.samplecontroller.k8s.io/web"],
        ["foos.samplecontroller/web"],
        ["foo.v1alpha1.samplecontroller.k8s.io", "web"],
    ],
)
def test_an_object_by_every_way_to_name_it(state: Path, told: Told, words: list[str]) -> None:
    recording(state, attempt(1), run=MINE)
    text = told(*words)
    assert text.startswith("Foo default/web · dev")
    assert numbers(text) == ["r7f3-1"]


def test_a_recording_that_another_process_keeps_locked_is_an_error(state: Path, told: Told) -> None:
    """As on a network file system, where who writes locks the whole file."""
    path = recording(state, attempt(1), run=MINE)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = TRUNCATE")
        other.execute("BEGIN EXCLUSIVE")
        assert "another process has locked it" in told("foo/web", "-w", code=1)
        other.execute("COMMIT")
        assert numbers(told("foo/web")) == ["r7f3-1"]


def test_which_reconciles(state: Path, told: Told) -> None:
    recording(state, *(attempt(number) for number in range(1, 31)), run=MINE)
    assert len(numbers(told("foo/web"))) == 30
    text = told("foo/web", "--last=2")
    assert numbers(text) == ["r7f3-29", "r7f3-30"]
    assert "28 older reconciles not shown" in text
    assert "30 reconciles" in text
    assert numbers(told("foo/web", "--since=2026-01-01T12:00:28Z")) == ["r7f3-28", "r7f3-29", "r7f3-30"]
    for words in (["foo/web", "7"], ["foo/web", "--id=7"], ["foo/web", "r7f3-7"], ["r7f3-7"]):
        assert "· r7f3-7 of foo" in told(*words)
    assert "has no attempt 99" in told("foo/web", "99", code=4)


def test_all_that_is_recorded_is_counted_however_little_is_looked_at(
    state: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_ctrl.story.chronicle._MOST", 4)
    failed = Verdict(outcome=Outcome.TERMINAL, message="no")
    early = [replace(attempt(number, calls=(created(number),)), verdict=failed) for number in range(1, 4)]
    recording(state, *early, *(attempt(number) for number in range(4, 11)), run=MINE)
    text = told("foo/web", "--last=2")
    assert "10 reconciles · 3 writes · 3 errors" in text
    assert "8 older reconciles not shown" in text
    assert "6 reconciles · 0 writes · 0 errors" in told("foo/web", "--last=4", "--since=2026-01-01T12:00:05Z")


def test_the_head_counts_the_runs_of_all_that_it_counts(state: Path, told: Told) -> None:
    again = replace(MINE, id="r8aa", pid=77, began=NOON + 60)
    recording(state, attempt(1), attempt(2), run=MINE)
    recording(state, replace(attempt(1, run=again), took=0.1), run=again)
    head = told("foo/web", "--last=1").splitlines()[1]
    assert head.startswith("recorded by 2 runs since 2026-01-01T12:00:01.000")
    assert "last foo@laptop (run r8aa, pid 77), ended " in head
    assert "3 reconciles" in head


def test_of_a_run_that_is_over_the_object_is_told_as_of_its_end(state: Path, told: Told) -> None:
    """As explain does: until then it watched, whether or not anything made it reconcile."""
    late = SystemClock().now()
    kept = attempt(1, changed("generation", 1), reads=(read(1),))
    recording(state, kept, run=MINE)
    first = told("foo/web").splitlines()[0]
    assert "generation 7" in first
    assert late - 60 < parse_rfc3339(first.rpartition("as of ")[2]) < late + 60


def changed(path: str, number: int) -> Cause:
    """A change of the Foo's status, which counts generations."""
    old, new = versioned(number - 1), versioned(number)
    return Cause(
        kind=CauseKind.MODIFIED,
        at=NOON + number,
        resource=FOOS,
        key=WEB,
        uid="uid-web",
        old_version=f"{number - 1}",
        new_version=f"{number}",
        old=old,
        new=new | {path: {"beat": number}},
    )


def versioned(number: int) -> Obj:
    meta = {"name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": f"{number}", "generation": 7}
    return {"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": meta}


def read(number: int) -> ObjectRead:
    found = (("uid-web", f"{number}"),)
    return ObjectRead(verb="get", resource=FOOS, query="default/web", found=found, objects=(versioned(number),))


def test_the_hint_names_the_filter_that_would_have_spared_what_changed_nothing(state: Path, told: Told) -> None:
    beats = [attempt(number, changed("status", number), reads=(read(number),)) for number in range(1, 4)]
    recording(state, *beats, attempt(4, changed("spec", 4)), run=MINE)
    text = told("foo/web")
    assert "HINT  when=generation_changed on Foo would have saved 3 of 4 reconciles that changed nothing" in text
    assert "kubectl ctrl explain foo" in text


def test_no_hint_where_no_filter_would_help(state: Path, told: Told) -> None:
    """Retries and timers pass every filter, and so does whatever counts no generation."""
    failed = Verdict(outcome=Outcome.RETRY, delay=1.0, message="no")
    timer = Cause(kind=CauseKind.TIMER, at=NOON, attempt="r7f3-1", detail="5s")
    again = Cause(kind=CauseKind.RETRY, at=NOON, attempt="r7f3-1", count=1, detail="no")
    recording(state, *(replace(attempt(number, again), verdict=failed) for number in (1, 2, 3)), run=MINE)
    assert "HINT" not in told("foo/web")
    recording(state, *(attempt(number, timer, run=OTHER) for number in (1, 2, 3)), run=OTHER)
    assert "HINT" not in told("foo/web", "--recorded-cluster=staging")
    plain = replace(MINE, id="r1cc", cluster="c3", context="plain")
    recording(state, *(attempt(number, changed("status", number), run=plain) for number in (1, 2, 3)), run=plain)
    assert "HINT" not in told("foo/web", "--recorded-cluster=plain")


def test_what_an_object_caused_and_what_wrote_it(state: Path, told: Told) -> None:
    woken = Cause(
        kind=CauseKind.MODIFIED, at=NOON, resource=DEPLOYMENTS, key=WEB, uid="uid-deployment", new_version="78"
    )
    recording(state, attempt(1, calls=(created(1),)), attempt(2), attempt(3, woken), run=MINE)
    text = told("deploy/web")
    assert numbers(text) == ["r7f3-1", "r7f3-3"]
    assert "of other objects, which this one triggered or which wrote it" in text
    assert "Foo default/web" in text
    assert "r7f3-3 of foo" in told("deploy/web", "3")


def test_the_newest_object_of_a_name(state: Path, told: Told) -> None:
    older = [attempt(number, seen("uid-old", WEB)) for number in (1, 2)]
    recording(state, *older, attempt(3, seen("uid-new", WEB)), run=MINE)
    text = told("foo/web")
    assert numbers(text) == ["r7f3-3"]
    assert "an earlier object with this name: 2 reconciles" in text
    assert "(--uid uid-old)" in text
    assert numbers(told("foo/web", "--uid=uid-old")) == ["r7f3-1", "r7f3-2"]
    assert "recorded: uid-new, uid-old" in told("foo/web", "--uid=nobody", code=4)


def test_several_controllers_have_a_column(state: Path, told: Told) -> None:
    run = replace(MINE, controllers=(FOO, replace(FOO, name="bar", word="./bar.py")))
    recording(state, attempt(1), attempt(2, controller="bar"), run=run)
    assert "CONTROLLER" in told("foo/web")
    assert numbers(told("foo/web", "--controller=bar")) == ["r7f3-2"]


def test_all_objects_of_a_type(state: Path, told: Told) -> None:
    away = Key("elsewhere", "far")
    recording(state, attempt(1), attempt(2), attempt(3, seen("uid-far", away), request=away), run=MINE)
    lines = told("foo").splitlines()
    assert [line.split()[:3] for line in lines] == [["NAME", "RECONCILES", "FAILED"], ["web", "2", "0"]]
    assert [line.split()[:2] for line in told("foo", "-A").splitlines()[1:]] == [
        ["default", "web"],
        ["elsewhere", "far"],
    ]
    assert "far" in told("foo", "-n", "elsewhere")


def test_the_context_s_cluster_goes_first(state: Path, told: Told) -> None:
    recording(state, attempt(1, run=OTHER), run=OTHER)
    recording(state, attempt(1), run=MINE)
    assert numbers(told("foo/web")) == ["r7f3-1"]
    for name in ("staging", "c2-far-away", "c2-f", "https://10.0.0.1:6443"):
        assert numbers(told("foo/web", f"--recorded-cluster={name}")) == ["r0bb-1"]
    assert "staging (c2-far-a)" in told("foo/web", "--recorded-cluster=nix", "--offline", code=4)


def test_a_foreign_context_means_the_only_cluster_that_knows_the_object(
    state: Path, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Key("default", "there")
    recording(state, attempt(1), run=MINE)
    recording(state, attempt(1, run=OTHER), attempt(2, seen("uid-there", there), run=OTHER, request=there), run=OTHER)
    context(tmp_path, monkeypatch, "https://127.0.0.1:2", namespace="payments")
    text = told("foo/there", "--offline")
    assert text.splitlines()[0] == "cluster staging (c2-far-a): the only recorded cluster with it"
    assert numbers(text) == ["r0bb-2"]
    named = told("foo/there", "--offline", "--context=nosuch")
    assert named.splitlines()[0] == f"{text.splitlines()[0]}. The context 'nosuch' does not exist."
    complaint = told("foo/web", "--offline", code=4)
    assert "recorded: " in complaint
    assert "--recorded-cluster" in complaint


def test_what_is_not_recorded_names_what_is(state: Path, told: Told) -> None:
    assert "run CONTROLLER" in told("foo/web", "--offline", code=4)
    away = Key("elsewhere", "far")
    recording(state, attempt(1), attempt(2, seen("uid-far", away), request=away), run=MINE)
    assert "did you mean web?" in told("foo/wbe", "--offline", code=4)
    assert "add -n elsewhere" in told("foo/far", "--offline", code=4)
    assert "recorded: deployments.apps, foos.samplecontroller.k8s.io" in told("bar/web", "--offline", code=4)


@pytest.mark.parametrize(
    "words", [[], ["foo/web", "1", "2"], ["foo/"], ["foo/web", "-w", "-o", "html"], ["foo/web", "--last=-1"]]
)
def test_wrong_words_are_2(state: Path, told: Told, words: list[str]) -> None:
    recording(state, attempt(1), run=MINE)
    assert told(*words, code=2).startswith("error[CTRL-USAGE]")


def test_no_cluster_is_asked_instead_of_a_file_that_was_named(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recording(tmp_path / "sent", attempt(1), run=MINE)
    for words in (["foo/web", f"--from={tmp_path}/none.db"], ["foo/other", f"--from={file}"]):
        assert main(["trace", *words]) == 4
        assert "cluster did not answer" not in capsys.readouterr().err


def test_as_recorded_and_for_programs(state: Path, told: Told) -> None:
    recording(state, attempt(1), attempt(2), run=MINE)
    assert [json.loads(line)["id"] for line in told("foo/web", "--raw").splitlines()] == ["r7f3-1", "r7f3-2"]
    assert [json.loads(line)["attempt"] for line in told("foo/web", "-o", "jsonl").splitlines()] == ["r7f3-1", "r7f3-2"]
    document = json.loads(told("foo/web", "-o", "json"))
    assert (document["name"], document["uid"], len(document["attempts"])) == ("web", "uid-web", 2)
    assert len(json.loads(told("foo", "-o", "json"))["objects"]) == 1


def test_what_is_printed_as_recorded_is_json_whatever_is_in_it(state: Path, told: Told) -> None:
    message = "a\x7fb\x85c\x9b31m\u2028\u202e\x1b é"
    recording(state, replace(attempt(1), verdict=Verdict(outcome=Outcome.RETRY, message=message)), run=MINE)
    assert json.loads(told("foo/web", "--raw"))["verdict"]["message"] == message


def test_it_needs_neither_a_client_nor_an_event_loop(state: Path) -> None:
    recording(state, attempt(1, calls=(created(1),)), run=MINE)
    code = (
        "import sys\n"
        "from kubectl_ctrl.cli.main import main\n"
        "words = [['foo/web', '--calls', '--diff'], ['foo/web', '1'], ['foo'], ['deploy/web'], ['foo/web', '--raw']]\n"
        "words += [['foo/web', '-o', form] for form in ('json', 'jsonl', 'yaml', 'dot')]\n"
        "codes = [main(['trace', *each]) for each in words]\n"
        "client = {name for name in sys.modules if name.startswith('kubectl_ctrl.client.')}\n"
        "loaded = {'asyncio', 'aiohttp', 'kubernetes', 'rich', 'kubectl_ctrl.runtime'} & set(sys.modules) | client\n"
        "sys.exit(f'{codes} {loaded}' if loaded or any(codes) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_since_when() -> None:
    assert since("", NOON, utc=True) is None
    assert since("90s", NOON, utc=True) == NOON - 90
    assert since("11:30", NOON, utc=True) == NOON - 1800
    assert since("12:30", NOON, utc=True) == NOON - 23.5 * 3600  # yesterday's: today's is still to come
    assert since("2026-01-01T11:00:00Z", NOON, utc=True) == NOON - 3600
    assert since("2026-01-01 11:00", NOON, utc=True) == NOON - 3600
    assert since("2026-01-01", NOON, utc=True) == NOON - 12 * 3600
    for wrong in ("soon", "25:00", "3"):
        with pytest.raises(UsageError):
            since(wrong, NOON, utc=True)


def test_what_was_recorded_and_that_no_cluster_answered_are_two_things(state: Path, told: Told) -> None:
    recording(state)
    assert "(c1); the cluster did not answer: There was no answer" in told("nosuch/x", code=4)
