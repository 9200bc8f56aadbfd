"""One table of kubeconfigs, flags and environments for kubectl and kubectl-ctrl: the server must see the same.

Compared are: the presence of a request, its path, credentials, impersonation and compression, the name in the TLS
handshake, the client certificate, and the proxy. In-cluster configuration is not tested here, because its files have
fixed paths.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from e2e.kube import run
from kubectl_ctrl.client.connect import connect
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import ConfigError, CtrlError
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, load
from tests.client.auth.test_oidc import Provider, id_token
from tests.client.auth.test_oidc import user as oidc_user
from tests.client.loopback import Loopback, Request, plain, proxying, server_tls, serving
from tests.kubeconfig.kubeconfigs import CERTIFICATES, certificate, kubeconfig, written

V1 = "client.authentication.k8s.io/v1"


def b64(name: str) -> str:
    return base64.b64encode(certificate(name)).decode()


CA = {"certificate-authority-data": b64("ca")}
CLIENT = {"client-certificate-data": b64("client"), "client-key-data": b64("client.key")}
FILES = {"client_certificate": str(CERTIFICATES / "client.pem"), "client_key": str(CERTIFICATES / "client.key.pem")}
PASSWORD = {"username": "u", "password": "p:q"}
LIKE = {"as": "them", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v"], "l/m%": ["w", "x"]}}


def plugin(answer: str = '"token": "from-plugin"', **changes: Any) -> dict[str, Any]:
    script = (
        'printf %s "$KUBERNETES_EXEC_INFO" >"$INFO";'
        f' echo \'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{{answer}}}}}\''
    )
    env = [{"name": "INFO", "value": "info"}]
    return {
        "exec": {
            "apiVersion": V1,
            "command": "sh",
            "args": ["-c", script],
            "env": env,
            "interactiveMode": "Never",
            **changes,
        }
    }


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kubeconfig and a command line; {url} and {port} are those of the server."""

    cluster: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] | None = None
    context: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, Any] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    current: str | None = None
    tls: str = "server"  # the server's certificate; "" for plain HTTP
    reaches: bool = True
    proxied: bool = False


def certificates_of_the_plugin() -> str:
    pair = {
        "clientCertificateData": certificate("client").decode(),
        "clientKeyData": certificate("client.key").decode(),
    }
    return json.dumps(pair)[1:-1].replace("\\n", "\\\\n")


CASES: dict[str, Case] = {
    "token": Case(),
    "token flag": Case(flags={"token": "flag"}),
    "token file": Case(user={"tokenFile": "token-file"}),
    "token file and token": Case(user={"tokenFile": "token-file", "token": "t"}),
    "token file that is missing and token": Case(user={"tokenFile": "gone", "token": "t"}),
    "token file that is missing": Case(user={"tokenFile": "gone"}, reaches=False),
    "token file and token flag": Case(user={"tokenFile": "token-file"}, flags={"token": "flag"}),
    "password": Case(user=PASSWORD),
    "password flags": Case(user={}, flags=PASSWORD),
    "username without password": Case(user={"username": "u"}),
    "password without username": Case(user={"password": "p"}, reaches=False),
    "password and token": Case(user=PASSWORD | {"token": "t"}, reaches=False),
    "password and token flag": Case(user=PASSWORD, flags={"token": "t"}, reaches=False),
    "password and token file": Case(user=PASSWORD | {"tokenFile": "token-file"}, reaches=False),
    "nothing": Case(user={}, reaches=False),
    "client certificate": Case(user=CLIENT),
    "client certificate and token": Case(user=CLIENT | {"token": "t"}),
    "client certificate flags over data": Case(user=CLIENT, flags=FILES),
    "client certificate without key": Case(user={"client-certificate-data": b64("client")}, reaches=False),
    "client key of another": Case(user=CLIENT | {"client-key-data": b64("server.key")}, reaches=False),
    "client key that is encrypted": Case(user=CLIENT | {"client-key-data": b64("client.encrypted")}, reaches=False),
    "client certificate twice": Case(user=CLIENT | {"client-certificate": FILES["client_certificate"]}, reaches=False),
    "client certificate that is missing": Case(
        flags={"client_certificate": "gone", "client_key": "gone"}, reaches=False
    ),
    "plugin": Case(user=plugin()),
    "plugin with cluster info": Case(
        user=plugin(provideClusterInfo=True),
        cluster={
            "extensions": [
                {"name": "client.authentication.k8s.io/exec", "extension": {"a": [1, 1.5, True, None, "x"]}}
            ],
            "tls-server-name": "localhost",
        },
    ),
    "plugin with certificate": Case(user=plugin(certificates_of_the_plugin())),
    "plugin v1beta1": Case(user=plugin(apiVersion="client.authentication.k8s.io/v1beta1"), reaches=False),
    "plugin without answer": Case(user=plugin(args=["-c", "true"]), reaches=False),
    "plugin that fails": Case(user=plugin(args=["-c", "exit 3"]), reaches=False),
    "plugin that is missing": Case(user=plugin(command="no-such-plugin"), reaches=False),
    "plugin beside the kubeconfig": Case(user=plugin(command="./beside")),
    "plugin with a wrong mode": Case(user=plugin(interactiveMode="Sometimes"), reaches=False),
    "plugin without a mode": Case(user=plugin(interactiveMode=None), reaches=False),
    "plugin that needs a terminal": Case(user=plugin(interactiveMode="Always"), reaches=False),
    "plugin of an old version": Case(user=plugin(apiVersion="client.authentication.k8s.io/v1alpha1"), reaches=False),
    "plugin and token": Case(user=plugin() | {"token": "t"}),
    "plugin and token flag": Case(user=plugin(), flags={"token": "flag"}),
    "plugin and username": Case(user=plugin(), flags={"username": "u"}),
    "plugin and client certificate": Case(user=plugin() | CLIENT),
    "plugin and auth-provider": Case(user=plugin() | {"auth-provider": {"name": "oidc"}}, reaches=False),
    "auth-provider that is gone": Case(user={"auth-provider": {"name": "gcp"}}, reaches=False),
    "auth-provider that is gone and token": Case(user={"auth-provider": {"name": "gcp"}, "token": "t"}, reaches=False),
    "impersonation": Case(user={"token": "t", **LIKE}),
    "impersonation flags": Case(
        user={"token": "t", **LIKE},
        flags={"as_user": "me", "as_uid": "8", "as_group": ("c", "d"), "as_user_extra": ("k=1", "k=2=3", "n=")},
    ),
    "impersonation without user": Case(flags={"as_group": ("g",)}, reaches=False),
    "server flag": Case(cluster={"server": "https://127.0.0.1:1"}, flags={"server": "{url}"}),
    "server flag drops the server name": Case(cluster={"tls-server-name": "wrong"}, flags={"server": "{url}"}),
    "server with a path": Case(cluster={"server": "{url}/k8s/clusters/c-1/"}),
    "server with a query": Case(cluster={"server": "{url}/a?b=c#d"}),
    "server with a login": Case(cluster={"server": "https://me:p%40ss@127.0.0.1:{port}"}),
    "server in capitals": Case(cluster={"server": "HTTPS://LOCALHOST:{port}"}),
    "server without scheme": Case(cluster={"server": "127.0.0.1:{port}"}, tls=""),
    "server missing": Case(cluster={"server": ""}, reaches=False),
    "server of another scheme": Case(cluster={"server": "ftp://127.0.0.1:{port}"}, reaches=False),
    "kubernetes master": Case(cluster={"server": ""}, environ={"KUBERNETES_MASTER": "{url}"}),
    "kubernetes master does not replace a server": Case(environ={"KUBERNETES_MASTER": "https://127.0.0.1:1"}),
    "plain http": Case(tls="", user={"token": "t", "as": "them"}),
    "plain http with a plugin": Case(tls="", user=plugin()),
    "plain http without a user": Case(tls="", context={"user": ""}),
    "authority in a file": Case(cluster={"certificate-authority-data": "", "certificate-authority": "ca.pem"}),
    "authority in both": Case(cluster={"certificate-authority": "ca.pem"}, reaches=False),
    "authority that is another": Case(cluster={"certificate-authority-data": b64("bare")}, reaches=False),
    "authority that is none": Case(cluster={"certificate-authority-data": "YQ=="}, reaches=False),
    "authority that is no base64": Case(cluster={"certificate-authority-data": "%"}, reaches=False),
    "authority that is missing": Case(flags={"certificate_authority": "gone"}, reaches=False),
    "authority flag": Case(
        cluster={"certificate-authority-data": b64("bare")},
        flags={"certificate_authority": str(CERTIFICATES / "ca.pem")},
    ),
    "authority without key identifiers": Case(cluster={"certificate-authority-data": b64("bare")}, tls="under-bare"),
    "authority below another": Case(cluster={"certificate-authority-data": b64("middle")}, tls="under-middle"),
    "server's own certificate as authority": Case(cluster={"certificate-authority-data": b64("alone")}, tls="alone"),
    "server that signed itself": Case(tls="alone", reaches=False),
    "server with another name": Case(tls="named", reaches=False),
    "server with another name, told": Case(tls="named", cluster={"tls-server-name": "api.example"}),
    "server with another name, flag": Case(tls="named", flags={"tls_server_name": "api.example"}),
    "server with a common name alone": Case(
        tls="nameless", cluster={"server": "https://localhost:{port}"}, reaches=False
    ),
    "insecure": Case(tls="alone", cluster={"certificate-authority-data": "", "insecure-skip-tls-verify": True}),
    "insecure and authority": Case(cluster={"insecure-skip-tls-verify": True}, reaches=False),
    "insecure flag": Case(tls="alone", flags={"insecure_skip_tls_verify": True}),
    "insecure flag and server name": Case(
        tls="alone", flags={"insecure_skip_tls_verify": True, "tls_server_name": "api.example"}
    ),
    "insecure, and an authority flag": Case(
        cluster={"certificate-authority-data": "", "insecure-skip-tls-verify": True},
        flags={"certificate_authority": str(CERTIFICATES / "ca.pem")},
    ),
    "no compression": Case(cluster={"disable-compression": True}),
    "no compression flag": Case(flags={"disable_compression": True}),
    "request timeout": Case(flags={"request_timeout": "20"}),
    "request timeout in words": Case(flags={"request_timeout": "soon"}, reaches=False),
    "context flag": Case(current="gone", flags={"context": "dev"}),
    "context that is missing": Case(flags={"context": "gone"}, reaches=False),
    "current-context that is missing": Case(current="gone", reaches=False),
    "current-context that is missing, with a server": Case(current="gone", flags={"server": "{url}"}, reaches=False),
    "no current-context": Case(current="", reaches=False),
    "no current-context, cluster and user flags": Case(current="", flags={"cluster": "dev", "user": "dev"}),
    "no current-context, server and token flags": Case(current="", tls="", flags={"server": "{url}", "token": "t"}),
    "cluster that is missing": Case(flags={"cluster": "gone"}, reaches=False),
    "user that is missing": Case(flags={"user": "gone"}, reaches=False),
    "context's cluster is missing": Case(context={"cluster": "gone"}, reaches=False),
    "context's cluster is missing, with a server": Case(
        context={"cluster": "gone"}, flags={"server": "{url}", "insecure_skip_tls_verify": True}
    ),
    "context's user is missing": Case(context={"user": "gone"}, reaches=False),
    "context's user is missing, with a token": Case(context={"user": "gone"}, flags={"token": "flag"}),
    "number as namespace": Case(context={"namespace": 5}, reaches=False),
    "text as boolean": Case(cluster={"insecure-skip-tls-verify": "true"}, reaches=False),
    "proxy": Case(cluster={"proxy-url": "{proxy}"}, proxied=True),
    "proxy with a login": Case(cluster={"proxy-url": "http://me:p%40ss@127.0.0.1:{proxyport}"}, proxied=True),
    "proxy to plain http": Case(tls="", cluster={"proxy-url": "{proxy}"}, proxied=True),
    "proxy of another kind": Case(cluster={"proxy-url": "ftp://127.0.0.1:1"}, reaches=False),
    "proxy of the environment, to this machine": Case(environ={"HTTPS_PROXY": "{proxy}"}),
}

# NO_PROXY for https://api.far.example:6443, which only the proxy can resolve.
NO_PROXY = {
    "": True,
    "*": False,
    "far.example": False,
    ".far.example": False,
    "*.far.example": False,
    "api.FAR.example": False,
    "r.example": True,
    "far.example:6443": False,
    "far.example:443": True,
    "other, far.example": False,
    "10.0.0.0/8": True,
    ":6443": True,
}


@dataclass(frozen=True)
class Seen:
    """The observations of the server, and of the proxy before it."""

    path: str
    headers: tuple[tuple[str, str], ...]
    host: str
    server_name: str | None
    client: str
    info: Any  # the input of a plugin
    proxy: tuple[tuple[str, str, tuple[str, ...]], ...]


OF_INTEREST = ("authorization", "impersonate", "accept-encoding", "proxy-authorization")


def filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {key: filled(inner, names) for key, inner in value.items()}
    return [filled(inner, names) for inner in value] if isinstance(value, list) else value


def argv(flags: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in flags.items():
        option = "--as" if name == "as_user" else f"--{name.replace('_', '-')}"
        items = value if isinstance(value, tuple) else (value,)
        words += [option if item is True else f"{option}={item}" for item in items]
    return words


async def version(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(plain(b'{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}', Content_Type="application/json"))


class Pair:
    """kubectl and kubectl-ctrl, in the same folder, home and environment."""

    def __init__(
        self, folder: Path, kubectl: Path, content: Any, flags: dict[str, Any], environ: dict[str, str]
    ) -> None:
        self.folder, self.kubectl, self.content, self.flags = folder, kubectl, content, flags
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **environ}
        (folder / "token-file").write_text("from-file\n")
        (folder / "ca.pem").write_bytes(certificate("ca"))
        (folder / "beside").symlink_to("/bin/sh")

    async def theirs(self) -> bool:
        file = written(self.folder, self.content)
        command = [
            "env",
            "-C",
            str(self.folder),
            str(self.kubectl),
            f"--kubeconfig={file}",
            *argv(self.flags),
            "version",
        ]
        return (await asyncio.to_thread(run, *command, env=self.environ)).code == 0

    async def ours(self) -> bool:
        file = written(self.folder, self.content)
        assert set(self.flags) <= set(ConfigFlags.__struct_fields__)
        clock = SystemClock()
        try:
            found = load(ConfigFlags(kubeconfig=str(file), **self.flags), self.environ, self.folder)
            client = await connect(found, clock=clock, rng=Random(1), environ=self.environ, user_agent="x")
            try:
                await client.raw("GET", "/version")
            finally:
                await client.close()
        except CtrlError:
            return False
        return True


async def seen(ask: Coroutine[Any, Any, bool], box: Loopback, proxy: Loopback, folder: Path) -> Seen | None:
    """The observations of the server; None if no request came, and then the program must fail."""
    box.requests.clear()
    box.server_name = None
    proxy.requests.clear()
    (folder / "info").unlink(missing_ok=True)
    worked = await ask
    assert worked == bool(box.requests)
    if not box.requests:
        return None
    last = box.last
    info = (folder / "info").read_text() if (folder / "info").exists() else "null"
    return Seen(
        path=urlsplit(last.target).path,
        headers=tuple(sorted((k.lower(), v) for k, v in last.headers if k.lower().startswith(OF_INTEREST))),
        host=(last.one("host") or "").lower(),
        server_name=last.server_name and last.server_name.lower(),
        client=last.peer,
        info=json.loads(info),
        proxy=tuple(
            (one.method, one.target.partition("?")[0], tuple(one.all("proxy-authorization"))) for one in proxy.requests
        ),
    )


@pytest.mark.parametrize("name", CASES)
def test_a_server_sees_the_same(name: str, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)

    async def compare() -> None:
        tls = server_tls(case.tls) if case.tls else None
        async with serving(version, tls=tls) as box, proxying() as proxy:
            names = {"url": box.url, "port": str(box.port), "proxy": proxy.url, "proxyport": str(proxy.port)}
            cluster = {"server": box.url, **(CA if case.tls else {}), **filled(case.cluster, names)}
            content = kubeconfig(cluster=cluster, user=case.user, context=case.context, current=case.current)
            pair = Pair(tmp_path, programs / "kubectl", content, filled(case.flags, names), filled(case.environ, names))
            theirs = await seen(pair.theirs(), box, proxy, tmp_path)
            ours = await seen(pair.ours(), box, proxy, tmp_path)
            assert ours == theirs
            assert (theirs is not None) == case.reaches
            assert bool(theirs and theirs.proxy) == case.proxied

    asyncio.run(compare())
    monkeypatch.undo()


@pytest.mark.parametrize(("rule", "proxied"), NO_PROXY.items())
def test_the_same_way_through_a_proxy(rule: str, proxied: bool, programs: Path, tmp_path: Path) -> None:
    async def compare() -> None:
        async with serving(version, tls=server_tls("named")) as box, proxying(to=box.port) as proxy:
            content = kubeconfig(
                cluster={"server": "https://api.far.example:6443", "tls-server-name": "api.example", **CA}
            )
            environ = {"HTTPS_PROXY": f"127.0.0.1:{proxy.port}", "NO_PROXY": rule}
            pair = Pair(tmp_path, programs / "kubectl", content, {}, environ)
            theirs = await seen(pair.theirs(), box, proxy, tmp_path)
            ours = await seen(pair.ours(), box, proxy, tmp_path)
            assert ours == theirs
            assert (theirs is not None) == proxied

    asyncio.run(compare())


@pytest.mark.parametrize(
    ("token", "form_only", "reaches"),
    [(60, False, True), (5, False, True), (None, True, True), ("broken", False, False)],
)
def test_the_same_with_an_identity_provider(
    token: Any, form_only: bool, reaches: bool, programs: Path, tmp_path: Path
) -> None:
    async def compare() -> None:
        clock = SystemClock()
        provider = Provider(clock)
        provider.form_only = form_only
        provider.fixed = id_token(clock.now() + 3600)
        async with (
            serving(provider, tls=server_tls(ask=False)) as issuer,
            serving(version, tls=server_tls()) as box,
            proxying() as proxy,
        ):
            provider.url = issuer.url
            held = token if token in (None, "broken") else id_token(clock.now() + token)
            user = oidc_user(issuer, **{"id-token": held or ""})
            content = kubeconfig(cluster={"server": box.url, **CA}, user=user)
            pair = Pair(tmp_path, programs / "kubectl", content, {}, {})
            theirs = await seen(pair.theirs(), box, proxy, tmp_path)
            asked = [(one.method, one.target, one.body, one.all("authorization")) for one in issuer.requests]
            issuer.requests.clear()
            ours = await seen(pair.ours(), box, proxy, tmp_path)
            assert ours == theirs
            assert (theirs is not None) == reaches
            assert [(one.method, one.target) for one in issuer.requests] == [(one[0], one[1]) for one in asked]
            assert [one.all("authorization") for one in issuer.requests] == [one[3] for one in asked]

    asyncio.run(compare())


UNQUOTED = """\
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: 2026-01-01}}]
clusters: [{name: k, cluster: {server: 'https://k'}}]
users: [{name: u, user: {token: 12:30:45}}]
"""
ANCHORED = """\
current-context: c
contexts: [{name: c, context: &c {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: 'https://k'}}]
users: [{name: u, user: {<<: *c, token: t}}]
"""
OVERLAID = """\
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters:
- {name: base, cluster: &base {server: 'https://base', tls-server-name: base}}
- {name: k, cluster: {server: 'https://k', <<: *base}}
users: [{name: u, user: {token: t}}]
"""
MIXED = [
    kubeconfig(user={"token": "1"}, context={"namespace": "one"}),
    kubeconfig(user={"username": "2"}, cluster={"server": "https://2", "tls-server-name": "x"}),
]
SPREAD = [
    {"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "b", "user": "a"}}]},
    kubeconfig(name="a", user={"token": "a"}),
    kubeconfig(name="b", cluster={"server": "https://b"}),
]
TWICE = {"users": [{"name": "a", "user": {}}, {"name": "a", "user": {}}]}

# The files of KUBECONFIG in their order, None for a missing one.
MERGES: dict[str, list[Any]] = {
    "two files": [kubeconfig(name="a"), kubeconfig(name="b")],
    "the second has the current-context": [kubeconfig(name="a", current=""), kubeconfig(name="b")],
    "entries are not mixed": MIXED,
    "entries in several files": SPREAD,
    "a file that is missing": [None, kubeconfig(name="b")],
    "a file that is empty": ["", "# nothing\n", kubeconfig(name="b")],
    "a file that is broken": [kubeconfig(name="b"), "[", ""],
    "a file of another kind": [kubeconfig(name="b"), {"kind": "Pod", "apiVersion": "v1"}],
    "a list": [kubeconfig(name="b"), "- a"],
    "two entries of one name": [TWICE, kubeconfig()],
    "unquoted values": [UNQUOTED],
    "anchors": [ANCHORED],
    "an anchor after what it says too": [OVERLAID],
    "an anchor before what it says too": [
        OVERLAID.replace("server: 'https://k', <<: *base", "<<: *base, server: 'https://k'")
    ],
    "several anchors": [OVERLAID.replace("<<: *base", "<<: [*base, {server: 'https://last'}]")],
}


@pytest.mark.parametrize("name", MERGES)
def test_files_are_merged_the_same(name: str, programs: Path, tmp_path: Path) -> None:
    contents = MERGES[name]
    files = [tmp_path / f"config-{number}" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        if content is not None:
            written(tmp_path, content, file.name)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": os.pathsep.join(map(str, files))}
    shown = run(programs / "kubectl", "config", "view", "--minify", "--raw", "-o", "json", env=environ)
    try:
        found = load(ConfigFlags(), environ, tmp_path)
    except ConfigError:
        assert shown.code != 0
        return
    view = json.loads(shown.checked().out)
    cluster, user, context = (view[plural][0] for plural in ("clusters", "users", "contexts"))
    assert (found.context, found.cluster, found.user) == (view["current-context"], cluster["name"], user["name"])
    assert found.server == cluster["cluster"]["server"]
    assert found.tls.server_name == cluster["cluster"].get("tls-server-name", "")
    assert found.namespace == context["context"].get("namespace", "default")
    assert (found.auth.token.reveal() if found.auth.token else None) == user["user"].get("token")
    assert found.auth.username == user["user"].get("username", "")
