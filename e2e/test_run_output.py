"""The output of `run`, its HTTP pages, and its exit by signals and closed pipes."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from e2e.crds import install_crd
from e2e.ctrl import PROGRAM, AssertRests, Ctrl, Started
from e2e.kube import Kubectl, wait_until
from e2e.terminal import at_terminal
from e2e.test_foo import converged, foo
from e2e.test_run import uninstall

ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


# Signals.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_f52_the_first_signal_drains_and_ends_with_0(kubectl: Kubectl, ctrl: Ctrl, number: int) -> None:
    kubectl.apply(foo("web"))
    running = ctrl.started("run", "foo")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    running.signal(number)
    assert running.wait() == 0


@pytest.fixture
def stuck(kubectl: Kubectl, ctrl: Ctrl, namespace: str) -> Iterator[Callable[..., Started]]:
    """Starts runs whose only attempt waits for a response: admission calls a webhook that never answers."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(64)
        held: list[socket.socket] = []

        def asked() -> bool:
            _probe(kubectl)
            held.extend(_callers(deaf))
            return bool(held)

        _ask_at_admission(kubectl, namespace, deaf.getsockname()[1])
        wait_until(asked, what="admission asks the webhook")
        kubectl.apply(foo("web"))

        def started(*words: str) -> Started:
            held.extend(_callers(deaf))
            running = ctrl.started("run", "foo", *words)
            held.extend(wait_until(lambda: _callers(deaf), what="the attempt is under way", every=0.02))
            return running

        yield started
        for caller in held:
            caller.close()
        kubectl("delete", "validatingwebhookconfiguration", f"deaf-{namespace}")


def _ask_at_admission(kubectl: Kubectl, namespace: str, port: int) -> None:
    hook = {
        "name": "deaf.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
        "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    kubectl.apply({**kind, "metadata": {"name": f"deaf-{namespace}"}, "webhooks": [hook]})


def _probe(kubectl: Kubectl) -> None:
    """A Deployment for admission; nobody waits for it."""
    kubectl.try_("create", "deployment", "probe", "--image=x", "--dry-run=server", "--request-timeout=1s")


def _callers(deaf: socket.socket) -> list[socket.socket]:
    """The open connections since; a closed one would be a response."""
    deaf.setblocking(False)
    callers = []
    with contextlib.suppress(BlockingIOError):
        while True:
            callers.append(deaf.accept()[0])
    return callers


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.real
def test_f52_the_second_signal_stops_it_and_it_names_the_unfinished_work(
    stuck: Callable[..., Started], namespace: str, number: int, code: int
) -> None:
    running = stuck()
    running.signal(number)
    running.line("Stopping: 1 reconcile in progress may take up to 30s to finish; Ctrl-C again cancels")
    assert running.process.poll() is None
    running.signal(number)
    assert running.wait() == code
    running.line("unfinished at exit: 1")
    running.line(f"  foo {namespace}/web  ")


@pytest.mark.real
def test_f52_a_drain_that_takes_too_long_stops_like_a_second_signal(stuck: Callable[..., Started]) -> None:
    running = stuck("--drain=1s")
    running.signal(signal.SIGINT)
    assert running.wait() == 130
    assert "unfinished at exit: 1" in running.output()


# Closed pipes.


def test_m36_a_closed_pipe_ends_it_quietly(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(*(foo(f"web-{at}") for at in range(5)))
    command = [str(PROGRAM), "run", "foo", "--workers=1"]
    with subprocess.Popen(command, env=ctrl.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"web-" in process.stdout.readline()
        process.stdout.close()
        kubectl.apply(foo("later"))  # everything else may have been printed by then
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(120)
        process.kill()
        assert process.wait() == 0
        told = process.stderr.read().decode().splitlines()
    assert [line for line in told if "Broken" in line or "Error" in line or "Traceback" in line] == []


# Output for programs.


def test_with_log_json_every_line_is_an_object(kubectl: Kubectl, ctrl: Ctrl, namespace: str) -> None:
    kubectl.apply(foo("web"), foo("nameless", deployment=""))
    ran = ctrl("run", "foo", "--until-idle", "--timeout=3m", "--log=json", "-v=4")
    attempts = [json.loads(line) for line in ran.out.splitlines()]
    assert {one["schema"] for one in attempts} == {"kubectl-ctrl.attempt/v1"}
    first = next(one for one in attempts if one["name"] == "web")
    assert (first["controller"], first["namespace"], first["try"]) == ("foo", namespace, 1)
    made = first["calls"][0]
    assert (made["verb"], made["resource"], made["code"]) == ("create", "deployments.apps", 201)
    told = [json.loads(line) for line in ran.err.splitlines()]
    assert [told[0]["action"], told[-1]["action"]] == ["run.begin", "run.end"]
    assert all({"time", "level", "message"} <= set(line) for line in told)
    assert any(line["action"] == "call" for line in told)


def test_with_log_json_an_error_is_an_object_too(kubectl: Kubectl, ctrl: Ctrl) -> None:
    uninstall(kubectl)
    ran = ctrl("run", "foo", "--once", "--log=json")
    last = [json.loads(line) for line in ran.err.splitlines()][-1]
    assert (ran.code, last["exitCode"]) == (8, 8)
    assert last["error"] == "CTRL-NOT-INSTALLED"
    assert "kubectl ctrl install foo" in last["next"]


# Output for people.


def test_lines_fit_a_terminal_of_80_columns(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(foo("web"), foo("a-name-that-is-long-enough-to-be-in-the-way-of-everything-else"))
    env = {**ctrl.env, "TERM": "xterm", "NO_COLOR": "1"}
    code, shown = at_terminal(PROGRAM, "run", "foo", "--until-idle", "--timeout=3m", env=env)
    assert code == 0
    attempts = [line for line in shown.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert len(attempts) >= 4
    assert max(map(len, attempts)) <= 80
    assert ESCAPE not in shown


@pytest.mark.parametrize(("settings", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals_that_want_it(
    kubectl: Kubectl, ctrl: Ctrl, settings: dict[str, str], colored: bool
) -> None:
    kubectl.apply(foo("web"))
    env = {**ctrl.env, "TERM": "xterm", **settings}
    env = env if "NO_COLOR" in settings else {name: value for name, value in env.items() if name != "NO_COLOR"}
    code, shown = at_terminal(PROGRAM, "run", "foo", "--until-idle", "--timeout=3m", env=env)
    assert code == 0
    assert "waiting" in shown
    assert (ESCAPE in shown) == colored


def test_control_characters_in_objects_do_not_reach_the_terminal(
    kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests
) -> None:
    kubectl.apply(foo("web"))
    running = ctrl.started("run", "foo")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    change = {"metadata": {"annotations": {f"{at}": f"{ESCAPE}[2J{at}" for at in "ab"}}, "spec": {"replicas": 2}}
    kubectl("patch", "foo", "web", "--type=merge", "--patch", json.dumps(change))
    wait_until(converged(kubectl, "web", 2), deadline=60)
    # Only the first of several causes is printed in full: no change of the Deployment may come with the next edit.
    assert_rests()
    change["metadata"] = {"annotations": {"a": f"{ESCAPE}[31mred"}}
    kubectl("patch", "foo", "web", "--type=merge", "--patch", json.dumps(change | {"spec": {"replicas": 3}}))
    wait_until(converged(kubectl, "web", 3), deadline=60)
    running.stop()
    text = running.output()
    assert "\\x1b[31mred" in text
    assert ESCAPE not in text


# HTTP pages.


def _fetch(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


ANY_PORT = "127.0.0.1:0"


def _port(running: Started, page: str) -> int:
    """A free port, on which it reports to serve that page."""
    where = re.compile(rf"Serving .*{page}\b.* on http://127\.0\.0\.1:(\d+)")
    found = where.search(running.line(where.pattern))
    assert found
    return int(found[1])


def _value(text: str, name: str, **labels: str) -> float:
    """The sum over all series of that name with these labels."""
    lines = [line for line in text.splitlines() if re.match(rf"{name}(?:{{| )", line)]
    matching = [line for line in lines if all(f'{label}="{value}"' in line for label, value in labels.items())]
    return sum(float(line.rsplit(" ", 1)[1]) for line in matching)


def test_metrics_move_with_the_work(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(foo("web"))
    running = ctrl.started("run", "foo", f"--metrics-bind-address={ANY_PORT}")
    port = _port(running, "/metrics")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    name = "controller_runtime_reconcile_total"
    before = _value(_fetch(port, "/metrics")[1], name, controller="foo")
    assert before >= 1
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"replicas":2}}')
    wait_until(converged(kubectl, "web", 2), deadline=60)
    code, text = _fetch(port, "/metrics")
    assert code == 200
    assert _value(text, name, controller="foo") > before
    assert _value(text, "rest_client_requests_total", code="201") >= 1
    assert _fetch(port, "/nothing")[0] == 404


def test_ready_means_that_it_has_its_crd_and_caches(kubectl: Kubectl, ctrl: Ctrl) -> None:
    uninstall(kubectl)
    running = ctrl.started("run", "foo", f"--health-probe-bind-address={ANY_PORT}")
    port = _port(running, "/readyz")
    running.line("waiting for it")
    # The caches of existing types may come a moment later.
    unready = (500, "foos.samplecontroller.k8s.io is not installed\n")
    wait_until(lambda: _fetch(port, "/readyz") == unready)
    assert _fetch(port, "/healthz") == (200, "ok")
    install_crd(kubectl, "foo")
    wait_until(lambda: _fetch(port, "/readyz") == (200, "ok"))


def test_m33_a_port_in_use_is_named(ctrl: Ctrl) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = ctrl("run", "foo", f"--metrics-bind-address={address}")
    assert ran.code == 2
    assert f"error[CTRL-USAGE]: Cannot listen on '{address}'" in ran.err
    assert "in use" in ran.err
    assert len(ran.err.splitlines()) <= 5
