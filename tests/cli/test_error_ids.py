"""Each error id as somebody at a shell meets it: a server that answers so, a file that is broken so, and one command.

`docs/errors.md` explains them; `tests/house/test_error_ids.py` knows which test is for which id.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.errors import CallSite, NotLeading
from kubectl_ctrl.runtime.verdict import judge_error
from kubectl_ctrl.value import replace
from tests.cli.bench import program
from tests.client.loopback import server_tls
from tests.history.made import begun, done, recording

Captured = pytest.CaptureFixture[str]
# What the server makes of a request: a status and a body; None breaks the connection.
Answer = Callable[[str, str, bytes], tuple[int, bytes] | None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a cluster, whose PATH has one folder; gives that."""
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def means(folder: Path, server: str, **user: Any) -> None:
    """The kubeconfig's only context is of this server."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kind-dev",
        "contexts": [{"name": "kind-dev", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))


@contextmanager
def answering(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that answers so; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):  # GET, PATCH and so on
                return self._told
            raise AttributeError(name)

        def _told(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            told = answer(self.command, self.path.partition("?")[0], body)
            if told is None:
                self.close_connection = True
                return
            code, body = told
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def says(code: int, reason: str, message: str = "no") -> tuple[int, bytes]:
    """A Status, as an API server refuses."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return code, json.dumps({**body, "code": code}).encode()


def namespace(path: str) -> tuple[int, bytes]:
    name = path.rpartition("/")[2]
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return 200, json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}).encode()


def told(capsys: Captured, id_: str, line: str, code: int) -> str:
    """One command ends with this error, in its three lines at most; what it said on stderr."""
    assert main(line.split()) == code
    said = capsys.readouterr().err
    lines = said.splitlines()
    at = next((at for at, one in enumerate(lines) if one.startswith("error[")), None)
    assert at is not None, said
    assert lines[at].startswith(f"error[{id_}]: "), said
    assert len(lines) - at <= 3, said
    assert all(one.startswith(("tried: ", "next: ")) for one in lines[at + 1 :]), said
    return said


# A server that answers otherwise than it should.


@pytest.mark.parametrize(
    ("id_", "code", "answer"),
    [
        ("CTRL-UNAUTHORIZED", 3, says(401, "Unauthorized")),
        ("CTRL-FORBIDDEN", 7, says(403, "Forbidden", 'customresourcedefinitions "x" is forbidden')),
        ("CTRL-API", 1, says(400, "BadRequest")),
        ("CTRL-BAD-ANSWER", 1, (200, b"<html>Sign in to the network</html>")),
    ],
)
def test_a_server_that_refuses(
    tmp_path: Path, capsys: Captured, id_: str, code: int, answer: tuple[int, bytes]
) -> None:
    with answering(lambda *_: answer) as server:
        means(tmp_path, server)
        told(capsys, id_, "install foo", code)


def test_a_server_that_does_not_answer_in_time(tmp_path: Path, capsys: Captured) -> None:
    released = threading.Event()

    def wait(*_: object) -> None:
        released.wait(20)

    with answering(wait) as server:
        means(tmp_path, server)
        told(capsys, "CTRL-DEADLINE", "install foo --request-timeout=200ms", 3)
        released.set()


def test_a_server_that_nobody_vouches_for(tmp_path: Path, capsys: Captured) -> None:
    with answering(lambda *_: says(404, "NotFound"), server_tls()) as server:
        means(tmp_path, server)
        told(capsys, "CTRL-TLS", "install foo", 3)


def test_nobody_who_listens(tmp_path: Path, capsys: Captured) -> None:
    means(tmp_path, "http://127.0.0.1:1")
    told(capsys, "CTRL-UNREACHABLE", "install foo", 3)


def test_a_write_of_which_nobody_knows_what_became(tmp_path: Path, capsys: Captured) -> None:
    labels = {"managed-by": "kubectl-ctrl", "name": "foo", "component": "controller"}
    meta: dict[str, Any] = {"name": "foo", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    meta["labels"] = {f"app.kubernetes.io/{key}": value for key, value in labels.items()}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    deployment = {**kind, "metadata": meta, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}}
    everything = {**kind, "kind": "DeploymentList", "metadata": {"resourceVersion": "1"}, "items": [deployment]}
    written: list[str] = []

    def answer(verb: str, path: str, _body: bytes) -> tuple[int, bytes] | None:
        if verb == "PATCH":
            written.append(path)
            return None
        if written:
            return says(403, "Forbidden")
        if path.endswith("/deployments/foo"):
            return 200, json.dumps(deployment).encode()
        if path.endswith("/deployments"):
            return 200, json.dumps(everything).encode()
        return namespace(path) if path.startswith("/api/v1/namespaces/") else says(404, "NotFound")

    with answering(answer) as server:
        means(tmp_path, server)
        told(capsys, "CTRL-OUTCOME-UNKNOWN", "run foo --takeover", 1)
    assert written


def test_a_wait_that_ends_before_what_it_waits_for(tmp_path: Path, capsys: Captured) -> None:
    there: dict[str, bytes] = {}

    def answer(verb: str, path: str, body: bytes) -> tuple[int, bytes]:
        if verb != "GET":
            there[path] = body
        return (200, there[path]) if path in there else says(404, "NotFound")

    with answering(answer) as server:
        means(tmp_path, server)
        assert "is not Established" in told(capsys, "CTRL-TIMEOUT", "install foo --crds-only --wait=100ms", 124)


def test_a_namespace_that_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    with answering(lambda *_: says(404, "NotFound")) as server:
        means(tmp_path, server)
        told(capsys, "CTRL-NOT-FOUND", "run foo --namespace=mistyped", 4)


def test_a_controller_whose_crd_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    def answer(_verb: str, path: str, _body: bytes) -> tuple[int, bytes]:
        if not path.startswith("/api/v1/namespaces/"):
            return says(404, "NotFound")
        return namespace(path)

    with answering(answer) as server:
        means(tmp_path, server)
        told(capsys, "CTRL-NOT-INSTALLED", "plan foo/web", 8)


# Which cluster, and as whom.


def test_a_kubeconfig_that_names_no_such_context(tmp_path: Path, capsys: Captured) -> None:
    means(tmp_path, "http://127.0.0.1:1")
    told(capsys, "CTRL-KUBECONFIG", "install foo --context=nowhere", 3)


def test_a_credential_plugin_that_gives_none(tmp_path: Path, home: Path, capsys: Captured) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    means(tmp_path, "https://127.0.0.1:1", exec={**plugin, "command": str(program(home, "plugin", "exit 1"))})
    told(capsys, "CTRL-CREDENTIALS", "install foo", 3)


def test_a_cluster_that_was_not_named_as_one_to_be_changed(tmp_path: Path, capsys: Captured) -> None:
    means(tmp_path, "https://10.0.0.1:6443")
    told(capsys, "CTRL-REFUSED", "install foo", 6)


def test_words_that_mean_nothing(capsys: Captured) -> None:
    told(capsys, "CTRL-USAGE", "install foo --no-such-flag", 2)


# This machine.


def test_a_program_that_is_not_there(capsys: Captured) -> None:
    told(capsys, "CTRL-PREREQUISITE", "doctor --fix kind", 5)


def test_a_program_that_fails(home: Path, capsys: Captured) -> None:
    program(home, "go", "echo no network >&2; exit 1")
    assert "no network" in told(capsys, "CTRL-PROGRAM", "doctor --fix kind --yes", 1)


def test_a_cluster_whose_page_is_broken(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "state" / "kubectl-ctrl" / "clusters" / "torn"
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_text("{")
    told(capsys, "CTRL-CLUSTER", "cluster kubeconfig torn", 1)


def test_a_cluster_that_is_none_of_ours(capsys: Captured) -> None:
    told(capsys, "CTRL-NO-CLUSTER", "cluster kubeconfig nowhere", 4)


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    told(capsys, "CTRL-ERROR", f"new mine --dir={tmp_path / 'file' / 'folder'}", 1)


def test_a_controller_that_is_declared_wrongly(tmp_path: Path, capsys: Captured) -> None:
    code = tmp_path / "mine.py"
    code.write_text("CONTROLLER = 'not a controller'\n")
    told(capsys, "CTRL-CONTROLLER", f"run {code}", 1)


# Recordings.


def test_nothing_that_is_recorded(capsys: Captured) -> None:
    told(capsys, "CTRL-NOT-RECORDED", "trace foo/web --offline", 4)


def test_a_write_of_a_process_that_may_lead_no_more(tmp_path: Path, capsys: Captured) -> None:
    """It ends no command: its attempt is dropped, and a trace has the reason."""
    folder = tmp_path / "state" / "kubectl-ctrl"
    folder.mkdir(parents=True, mode=0o700)
    verdict = judge_error(
        NotLeading("The lease may have passed.", site=CallSite("apply", "deployments.apps default/web"))
    )
    recording(folder, replace(done(begun(1)), verdict=verdict))
    assert main(["trace", "foo/web", "--offline", "--output=json"]) == 0
    (attempt,) = json.loads(capsys.readouterr().out)["attempts"]
    assert (attempt["outcome"], attempt["errorId"]) == ("dropped", "CTRL-NOT-LEADING")


def test_a_recording_that_is_none(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "state" / "kubectl-ctrl"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "history.db").write_bytes(b"this is no database, whatever its name says. " * 100)
    told(capsys, "CTRL-RECORDING", "record list", 1)
