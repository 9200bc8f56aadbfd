"""What clusters, kubeconfig files and logs say must not drive the terminal; held for the verbs that manage clusters."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.runs import background_notes
from kubectl_ctrl.value import replace
from tests.cli.test_hostile import EVIL_NAME, assert_tame

EVIL = EVIL_NAME.replace("\r\n", "\r")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig all of whose names are hostile, and a cluster of ours whose server is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": EVIL, "interactiveMode": "Never"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": EVIL,
        "contexts": [{"name": EVIL, "context": {"cluster": EVIL, "user": EVIL, "namespace": EVIL}}],
        "clusters": [{"name": EVIL, "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": EVIL, "user": {"exec": plugin}}],
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    registry = Registry(tmp_path / "state" / "kubectl-ctrl" / "clusters")
    entry = ClusterEntry(
        name="ctrl",
        provider=EVIL,
        phase=Phase.READY,
        began=1.0,
        folder=registry.place("ctrl"),
        context=EVIL,
        server="https://127.0.0.1:1",
        version=EVIL,
        uid=EVIL,
        notes={"from": EVIL},
    )
    with registry.locked("ctrl"):
        registry.write(entry)
        registry.write_kubeconfig(entry, yaml.safe_dump(config))
    entry.controllers.mkdir()
    log = background_notes.log_of(entry, "foo")
    log.write_text(f"a\t{EVIL}\n{EVIL}\n", newline="")
    note = background_notes.BackgroundNote(word=EVIL, scope=EVIL, pid=os.getpid(), began=1.0)
    background_notes.write(log, replace(note, ended=2.0, code=1))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "status -A -o wide",
        "status -A -o yaml",
        "status -A -o jsonpath={.controllers}",
        "status -A -o custom-columns=A:.word,B:.context",
        "logs foo",
        "logs",
        "logs nothing",
        "stop foo",
        "stop foo --name ctrl",
        "cluster list",
        "cluster list -o wide",
        "cluster list -o yaml",
        "cluster list -o name",
        "cluster list -o jsonpath={.clusters[*].version}",
        "cluster env",
        "cluster logs ctrl",
        "cluster load x",
        "list",
        "list --sort-by=.nothing",
        "install foo",
        "run foo",
        "doctor",
        "doctor --fix",
        "doctor -o yaml",
        "doctor -o json",
        "up foo --offline",
        "up --provider kwok --offline --name two",
        "down --progress plain",
        "down --progress json",
    ],
)
def test_s12_no_verb_lets_it_through(home: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(words.split())
    out, err = capsys.readouterr()
    assert "bug in kubectl-ctrl" not in err, err
    assert out or err
    # What was a tab in a log is one, and divides the cells of nothing else.
    assert_tame("stdout", out.replace("a\t", "a") if words.startswith("logs") else out)
    assert_tame("stderr", err)


class _Server(BaseHTTPRequestHandler):
    """Answers everything with what is hostile."""

    def do_GET(self) -> None:
        said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "reason": EVIL, "message": EVIL}
        body = json.dumps({**said, "gitVersion": EVIL, "major": EVIL, "minor": EVIL}).encode()
        self.send_response(200 if self.path.startswith("/version") else 500)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815 - as the server wants them

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(home: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        config = yaml.safe_load((home / "kubeconfig").read_text())
        config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{serving.server_port}"
        config["users"][0]["user"] = {}
        (home / "kubeconfig").write_text(yaml.safe_dump(config))
        yield config["clusters"][0]["cluster"]["server"]
        serving.shutdown()
        thread.join()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "words",
    [
        "list",
        "install foo",
        "install foo --dry-run client",
        "uninstall foo",
        "plan foo/web",
        "explain foo/web --live",
        "simulate deployment/web",
        "doctor",
        "doctor --fix",
        "run foo --timeout 1s",
    ],
)
def test_s12_no_server_says_it_through_a_verb(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    verb, *rest = words.split()
    cli.main([verb, "--allow-context", EVIL, *rest] if verb in ("install", "uninstall", "run") else [verb, *rest])
    out, err = capsys.readouterr()
    assert "bug in kubectl-ctrl" not in err, err
    assert out or err
    assert_tame("stdout", out)
    assert_tame("stderr", err)
