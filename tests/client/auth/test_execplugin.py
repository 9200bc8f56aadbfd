from __future__ import annotations

import asyncio
import json
import os
from math import inf
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.client.auth.execplugin import ExecPlugin
from kubectl_ctrl.client.auth.grants import Grant
from kubectl_ctrl.errors import CredentialsError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.kubeconfig.secret import Secret
from tests.kubeconfig.kubeconfigs import certificate, kubeconfig, resolved

CANARY = "c4nary-in-the-mine"
V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

pytestmark = pytest.mark.programs("cat")


def environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "FROM_OUTSIDE": "yes"}


def answer(status: Any, version: str = V1) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def described(
    folder: Path,
    script: str,
    *,
    cluster: dict[str, Any] | None = None,
    flags: dict[str, Any] | None = None,
    **fields: Any,
) -> Resolved:
    """A user whose plugin is this shell script."""
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    settings = {"apiVersion": V1, "command": "./plugin", "interactiveMode": "IfAvailable", **fields}
    return resolved(folder, kubeconfig(user={"exec": settings}, cluster=cluster), **(flags or {}))


def obtain(found: Resolved, *, interactive: bool = False) -> Grant:
    return asyncio.run(ExecPlugin(found, environ=environ(), interactive=interactive).obtain())


def prints(text: str) -> str:
    return f"cat <<'END'\n{text}\nEND"


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_a_token_until_it_expires(tmp_path: Path, version: str) -> None:
    status = {"token": "abc", "expirationTimestamp": "2026-03-01T10:00:00Z"}
    grant = obtain(described(tmp_path, prints(answer(status, version)), apiVersion=version))
    assert grant.authorization == Secret("Bearer abc")
    assert (grant.certificate, grant.expires) == (None, 1772359200.0)


def test_a_certificate_that_never_expires(tmp_path: Path) -> None:
    chain, key = certificate("client").decode(), certificate("client.key").decode()
    grant = obtain(described(tmp_path, prints(answer({"clientCertificateData": chain, "clientKeyData": key}))))
    assert (grant.authorization, grant.expires) == (None, inf)
    assert grant.certificate is not None
    assert (grant.certificate.chain, grant.certificate.key) == (chain.encode(), Secret(key))
    assert "plugin" in grant.certificate.origin


def test_yaml_is_an_answer_too(tmp_path: Path) -> None:
    text = f"apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: abc\n  expirationTimestamp: 2026-03-01T10:00:00Z"
    grant = obtain(described(tmp_path, prints(text)))
    assert (grant.authorization, grant.expires) == (Secret("Bearer abc"), 1772359200.0)


def test_what_the_plugin_is_told(tmp_path: Path) -> None:
    script = (
        f'printf "%s" "$KUBERNETES_EXEC_INFO" >info; echo "$A $FROM_OUTSIDE $*" >rest; {prints(answer({"token": "x"}))}'
    )
    env = [{"name": "A", "value": "own"}, {"name": "FILE", "value": "x"}]
    found = described(tmp_path, f"cd {tmp_path}; {script}", env=env, args=["-a", "b c"])
    obtain(found)
    assert json.loads((tmp_path / "info").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }
    assert (tmp_path / "rest").read_text() == "own yes -a b c\n"


def test_the_cluster_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"CA")
    cluster = {
        "server": "https://far.example/",
        "certificate-authority": "ca.pem",
        "tls-server-name": "name",
        "proxy-url": "http://proxy:1",
        "disable-compression": True,
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": ["x"], "n": 1.5}}],
    }
    script = f'printf "%s" "$KUBERNETES_EXEC_INFO" >{tmp_path}/info; {prints(answer({"token": "x"}))}'
    obtain(described(tmp_path, script, cluster=cluster, provideClusterInfo=True))
    assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
        "server": "https://far.example",
        "tls-server-name": "name",
        "certificate-authority-data": "Q0E=",
        "proxy-url": "http://proxy:1",
        "disable-compression": True,
        "config": {"audience": ["x"], "n": 1.5},
    }
    obtain(described(tmp_path, script, provideClusterInfo=True, flags={"insecure_skip_tls_verify": True}))
    assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "insecure-skip-tls-verify": True,
        "config": None,
    }


@pytest.mark.parametrize(
    ("mode", "terminal", "told"), [("Never", True, False), ("IfAvailable", False, False), ("IfAvailable", True, True)]
)
def test_interactive_modes(tmp_path: Path, mode: str, terminal: bool, told: bool) -> None:
    script = f'printf "%s" "$KUBERNETES_EXEC_INFO" >{tmp_path}/info; {prints(answer({"token": "x"}))}'
    obtain(described(tmp_path, script, interactiveMode=mode), interactive=terminal)
    assert json.loads((tmp_path / "info").read_text())["spec"]["interactive"] == told


def test_always_needs_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="needs a terminal"):
        obtain(described(tmp_path, prints(answer({"token": "x"})), interactiveMode="Always"))


def test_m06_a_plugin_that_is_not_there_comes_with_its_hint(tmp_path: Path) -> None:
    found = described(tmp_path, "", command="no-such-plugin", installHint="brew install it\x1b[31m\nnow")
    with pytest.raises(CredentialsError) as caught:
        obtain(found)
    assert str(caught.value) == "The credential plugin 'no-such-plugin' of user 'dev' is not installed."
    assert caught.value.next_step == "brew install it\\x1b[31m now"
    assert caught.value.exit_code == 3


def test_a_plugin_that_cannot_be_run(tmp_path: Path) -> None:
    found = described(tmp_path, "")
    (tmp_path / "plugin").write_text("#!/no/such/interpreter\n")
    with pytest.raises(CredentialsError, match="cannot be run"):
        obtain(found)


def test_m06_a_plugin_that_fails_is_quoted_without_secrets(tmp_path: Path) -> None:
    script = f"echo {CANARY}-out; echo first >&2; echo 'expired \x1b[1m; secret was {CANARY}' >&2; exit 7"
    found = described(tmp_path, script, env=[{"name": "S", "value": CANARY}], args=[f"{CANARY}-arg"])
    with pytest.raises(CredentialsError) as caught:
        obtain(found)
    assert str(caught.value) == f"The credential plugin '{tmp_path}/plugin' of user 'dev' exited with code 7."
    assert caught.value.tried == "first expired \\x1b[1m; secret was (hidden)"
    assert CANARY not in repr(caught.value.__dict__)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", "it did not print an ExecCredential"),
        (CANARY, "it did not print an ExecCredential"),
        (f"{{{CANARY}", "The output is not valid YAML"),
        ('{"kind": "Secret"}', "it did not print an ExecCredential"),
        (answer({"token": CANARY}, V1BETA1), f"the apiVersion of its answer is not the '{V1}' of the kubeconfig"),
        (answer(None), "its ExecCredential has no status"),
        (answer([CANARY]), "its ExecCredential has no status"),
        (answer({}), "it returned neither a token nor a certificate"),
        (answer({"token": 5}), "status.token is not a string"),
        (answer({"token": "", "clientKeyData": CANARY}), "it returned a certificate without its key, or a key without"),
        (answer({"token": "t", "expirationTimestamp": CANARY}), "status.expirationTimestamp is not an RFC 3339 time"),
        (answer({"token": f"{CANARY}\n"}), "characters that are not allowed in a header"),
    ],
)
def test_wrong_answers_are_named_and_not_quoted(tmp_path: Path, output: str, why: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        obtain(described(tmp_path, prints(output)))
    assert why in f"{caught.value} {caught.value.tried}"
    assert CANARY not in f"{caught.value} {caught.value.tried}"


def test_it_shows_its_command_alone(tmp_path: Path) -> None:
    found = described(tmp_path, "", args=[CANARY], env=[{"name": "A", "value": CANARY}])
    plugin = ExecPlugin(found, environ=environ(), interactive=False)
    assert repr(plugin) == f"ExecPlugin('{tmp_path}/plugin')"
