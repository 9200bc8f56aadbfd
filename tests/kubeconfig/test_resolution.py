from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.errors import ConfigError, CtrlError, UsageError
from kubectl_ctrl.kubeconfig import incluster
from kubectl_ctrl.kubeconfig.resolution import (
    AuthSettings,
    ConfigFlags,
    Impersonation,
    Resolved,
    TlsSettings,
    ca_fingerprint,
    load,
    load_again,
)
from kubectl_ctrl.kubeconfig.secret import Secret
from tests.kubeconfig.kubeconfigs import CERTIFICATES, certificate, kubeconfig, resolved, written
from tests.objects import present

CANARY = "c4nary-in-the-mine"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_everything_of_a_plain_context(tmp_path: Path) -> None:
    content = kubeconfig(cluster={"certificate-authority-data": b64(b"CA")}, context={"namespace": "apps"})
    found = resolved(tmp_path, content)
    assert found == Resolved(
        context="dev",
        cluster="dev",
        user="dev",
        server="https://127.0.0.1:6443",
        namespace="apps",
        tls=TlsSettings(ca_data=b"CA"),
        auth=AuthSettings(token=Secret("t0ken")),
        impersonate=Impersonation(),
        proxy_url=None,
        cluster_proxy="",
        request_timeout=None,
        disable_compression=False,
        cache_dir=tmp_path / ".kube" / "cache",
        files=(tmp_path / "config",),
        in_cluster=False,
        server_overridden=False,
        origin=found.origin,
    )


class TestFiles:
    def test_home_is_read_without_kubeconfig_in_the_environment(self, tmp_path: Path) -> None:
        (tmp_path / ".kube").mkdir()
        file = written(tmp_path / ".kube", kubeconfig(name="home"))
        assert load(ConfigFlags(), {"KUBECONFIG": ""}, tmp_path).files == (file,)

    def test_the_first_file_wins_entries_and_current_context(self, tmp_path: Path) -> None:
        first = kubeconfig(cluster={"server": "https://first"}, user={"token": "first"}, context={"namespace": "one"})
        second = kubeconfig(cluster={"server": "https://second", "tls-server-name": "second"}, user={"token": "second"})
        second["current-context"] = "other"
        second["contexts"].append({"name": "other", "context": {"cluster": "dev", "user": "dev", "namespace": "two"}})
        files = [written(tmp_path, first, "a"), written(tmp_path, second, "b")]
        environ = {"KUBECONFIG": os.pathsep.join(map(str, files))}
        found = load(ConfigFlags(), environ, tmp_path)
        assert (found.context, found.server, found.namespace) == ("dev", "https://first", "one")
        assert found.tls.server_name == ""  # entries are never mixed
        assert load(ConfigFlags(context="other"), environ, tmp_path).namespace == "two"

    def test_an_empty_current_context_is_taken_from_the_next_file(self, tmp_path: Path) -> None:
        first, second = kubeconfig(name="a", current=""), kubeconfig(name="b")
        files = [written(tmp_path, first, "a"), written(tmp_path, second, "b")]
        environ = {"KUBECONFIG": os.pathsep.join([*map(str, files), "", str(files[0]), str(tmp_path / "absent")])}
        found = load(ConfigFlags(), environ, tmp_path)
        assert found.context == "b"
        assert found.files == tuple(files)

    def test_the_flag_goes_before_the_environment(self, tmp_path: Path) -> None:
        other = written(tmp_path, "not: [a kubeconfig", "other")
        found = resolved(tmp_path, kubeconfig(), environ={"KUBECONFIG": str(other)})
        assert found.files == (tmp_path / "config",)

    def test_relative_names_belong_to_the_file_that_has_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "deep").mkdir()
        user = {"client-certificate": "../c.pem", "client-key": "/abs/k.pem", "tokenFile": "t"}
        written(tmp_path / "deep", kubeconfig(cluster={"certificate-authority": "ca.pem"}, user=user))
        monkeypatch.chdir(tmp_path)
        found = load(ConfigFlags(kubeconfig="deep/config"), {}, tmp_path)
        assert found.tls.ca_file == str(tmp_path / "deep" / "ca.pem")
        assert found.auth.certificate_file == str(tmp_path / "c.pem")
        assert found.auth.key_file == "/abs/k.pem"
        assert found.auth.token_file == str(tmp_path / "deep" / "t")
        monkeypatch.undo()

    def test_relative_names_in_flags_belong_to_the_working_directory(self, tmp_path: Path) -> None:
        flags: dict[str, Any] = {
            "client_certificate": "c.pem",
            "client_key": "k.pem",
            "certificate_authority": "ca.pem",
        }
        found = resolved(tmp_path, kubeconfig(), **flags)
        names = (found.auth.certificate_file, found.auth.key_file, found.tls.ca_file)
        assert names == ("c.pem", "k.pem", "ca.pem")


SERVERS = {
    "https://h:1/": "https://h:1",
    "HTTPS://H:1": "https://h:1",
    "https://h/k8s/clusters/c1/": "https://h/k8s/clusters/c1",
    "https://h:1/Path?q=1#f": "https://h:1/Path",
    "https://[::1]:6443": "https://[::1]:6443",
    "h:1": "http://h:1",
    "127.0.0.1:8080": "http://127.0.0.1:8080",
    "localhost": "http://localhost",
}


@pytest.mark.parametrize(("written_as", "meant"), SERVERS.items())
def test_servers(tmp_path: Path, written_as: str, meant: str) -> None:
    assert resolved(tmp_path, kubeconfig(cluster={"server": written_as})).server == meant


def test_a_login_in_the_server_url_is_used_and_not_shown(tmp_path: Path) -> None:
    found = resolved(tmp_path, kubeconfig(cluster={"server": f"https://me:{CANARY}%2F@h"}))
    assert found.server == "https://h"
    assert found.auth == AuthSettings(username="me", password=Secret(f"{CANARY}/"))


def test_a_plain_http_server_gets_no_credentials_but_the_impersonation(tmp_path: Path) -> None:
    content = kubeconfig(cluster={"server": "http://h", "tls-server-name": "x"}, user={"token": "t", "as": "them"})
    found = resolved(tmp_path, content)
    assert (found.auth, found.tls, found.impersonate) == (AuthSettings(), TlsSettings(), Impersonation(user="them"))


FULL_CLUSTER = {"certificate-authority-data": b64(b"CA"), "tls-server-name": "own", "disable-compression": True}
CERTIFIED = {"client-certificate-data": b64(b"C"), "client-key-data": b64(b"K")}
LIKE = {"as": "them", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v"], "l": ["w"]}}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, ("https://127.0.0.1:6443", "own", False)),
        ({"server": "https://x"}, ("https://x", "", True)),
        ({"server": "https://x", "tls_server_name": "y"}, ("https://x", "y", True)),
        ({"tls_server_name": "y"}, ("https://127.0.0.1:6443", "y", False)),
    ],
)
def test_server_flags(tmp_path: Path, flags: Any, expected: Any) -> None:
    found = resolved(tmp_path, kubeconfig(cluster={"tls-server-name": "own"}), **flags)
    assert (found.server, found.tls.server_name, found.server_overridden) == expected


@pytest.mark.parametrize(
    ("cluster", "flags", "expected"),
    [
        (FULL_CLUSTER, {"insecure_skip_tls_verify": True}, TlsSettings(insecure=True, server_name="own")),
        (FULL_CLUSTER, {"certificate_authority": "x"}, TlsSettings(ca_file="x", server_name="own")),
        ({"insecure-skip-tls-verify": True}, {"certificate_authority": "x"}, TlsSettings(ca_file="x")),
        ({"insecure-skip-tls-verify": True}, {}, TlsSettings(insecure=True)),
        (FULL_CLUSTER, {}, TlsSettings(ca_data=b"CA", server_name="own")),
    ],
)
def test_authority_flags(tmp_path: Path, cluster: Any, flags: Any, expected: TlsSettings) -> None:
    assert resolved(tmp_path, kubeconfig(cluster=cluster), **flags).tls == expected


@pytest.mark.parametrize(
    ("user", "flags", "expected"),
    [
        ({"token": "a"}, {"token": "b"}, AuthSettings(token=Secret("b"))),
        ({"token": "a", "tokenFile": "/f"}, {}, AuthSettings(token=Secret("a"), token_file="/f")),
        ({"tokenFile": "/f"}, {"token": "b"}, AuthSettings(token=Secret("b"), token_file="/f")),
        ({"username": "u", "password": "p"}, {"password": "q"}, AuthSettings(username="u", password=Secret("q"))),
        ({}, {"username": "u"}, AuthSettings(username="u", password=Secret(""))),
        (CERTIFIED, {}, AuthSettings(certificate_data=b"C", key_data=Secret("K"))),
        (CERTIFIED, {"client_certificate": "c", "client_key": "k"}, AuthSettings(certificate_file="c", key_file="k")),
        (CERTIFIED, {"client_key": "k"}, AuthSettings(certificate_data=b"C", key_file="k")),
        ({"client-key-data": b64(b"K")}, {}, AuthSettings()),
        (
            {"auth-provider": {"name": "oidc", "config": {"client-id": "x"}}},
            {},
            AuthSettings(provider="oidc", provider_config={"client-id": "x"}),
        ),
    ],
)
def test_user_flags(tmp_path: Path, user: Any, flags: Any, expected: AuthSettings) -> None:
    assert resolved(tmp_path, kubeconfig(user=user), **flags).auth == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, Impersonation(user="them", uid="7", groups=("a", "b"), extra=(("k", ("v",)), ("l", ("w",))))),
        (
            {"as_user": "me", "as_uid": "8"},
            Impersonation(user="me", uid="8", groups=("a", "b"), extra=(("k", ("v",)), ("l", ("w",)))),
        ),
        (
            {"as_group": ("c",), "as_user_extra": ("k=x=y", "k=", "m=n")},
            Impersonation(
                user="them", uid="7", groups=("c",), extra=(("k", ("x=y", "")), ("l", ("w",)), ("m", ("n",)))
            ),
        ),
    ],
)
def test_impersonation_flags(tmp_path: Path, flags: Any, expected: Impersonation) -> None:
    assert resolved(tmp_path, kubeconfig(user={"token": "t", **LIKE}), **flags).impersonate == expected


def test_cluster_user_and_namespace_flags(tmp_path: Path) -> None:
    content, other = kubeconfig(context={"namespace": "apps"}), kubeconfig(name="other", user={"token": "2"})
    content["clusters"] += [{"name": "other", "cluster": {"server": "https://other"}}]
    content["users"] += other["users"]
    found = resolved(tmp_path, content, cluster="other", user="other", namespace="mine")
    assert (found.context, found.cluster, found.user) == ("dev", "other", "other")
    assert (found.server, found.auth.token, found.namespace) == ("https://other", Secret("2"), "mine")
    assert found.server_overridden  # the context's name no longer tells which cluster it is
    assert not resolved(tmp_path, content, cluster="dev", user="other").server_overridden


def test_no_context_is_needed_with_flags(tmp_path: Path) -> None:
    found = resolved(tmp_path, kubeconfig(current=""), server="https://x", token="t")
    assert (found.context, found.server, found.auth.token, found.namespace) == (
        None,
        "https://x",
        Secret("t"),
        "default",
    )
    found = resolved(tmp_path, kubeconfig(current=""), cluster="dev", user="dev")
    assert (found.context, found.server, found.server_overridden) == (None, "https://127.0.0.1:6443", True)


@pytest.mark.parametrize(("text", "seconds"), [("0", None), ("5", 5.0), ("1m30s", 90.0), ("0s", None), ("300ms", 0.3)])
def test_request_timeout(tmp_path: Path, text: str, seconds: float | None) -> None:
    assert resolved(tmp_path, kubeconfig(), request_timeout=text).request_timeout == seconds


def test_other_settings(tmp_path: Path) -> None:
    found = resolved(tmp_path, kubeconfig(cluster={"disable-compression": True}), environ={"KUBECACHEDIR": "/c"})
    assert (found.disable_compression, found.cache_dir) == (True, Path("/c"))
    found = resolved(tmp_path, kubeconfig(), cache_dir="/d", disable_compression=True)
    assert (found.disable_compression, found.cache_dir) == (True, Path("/d"))


def test_a_proxy_of_the_cluster_goes_before_the_environment(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://env:1"}
    content = kubeconfig(cluster={"server": "https://far.example", "proxy-url": "http://own:2"})
    found = resolved(tmp_path, content, environ=environ)
    assert (found.proxy_url, found.cluster_proxy) == ("http://own:2", "http://own:2")
    found = resolved(tmp_path, kubeconfig(cluster={"server": "https://far.example"}), environ=environ)
    assert (found.proxy_url, found.cluster_proxy) == ("http://env:1", "")
    assert resolved(tmp_path, kubeconfig(), environ=environ).proxy_url is None  # this machine itself


def test_a_plugin(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "./bin/login",
        "args": ["-x"],
        "env": [{"name": "A", "value": "1"}],
        "provideClusterInfo": True,
        "installHint": "buy it",
    }
    extensions = [
        {"name": "client.authentication.k8s.io/exec", "extension": {"n": 1}},
        {"name": "other", "extension": {}},
    ]
    found = present(resolved(tmp_path, kubeconfig(user={"exec": plugin}, cluster={"extensions": extensions})).auth.exec)
    assert (found.command, found.args, found.env) == (str(tmp_path / "bin" / "login"), ("-x",), (("A", "1"),))
    assert (found.interactive_mode, found.provide_cluster_info) == ("IfAvailable", True)
    assert (found.cluster_config, found.install_hint) == ({"n": 1}, "buy it")


def plugin(**fields: Any) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": "login", "interactiveMode": "Never", **fields}}


# (what to change) -> part of the one sentence that the user gets
ERRORS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"current": "gone"}, {}, "The current-context 'gone' does not exist."),
    ({}, {"context": "gone"}, "The context 'gone' does not exist."),
    ({}, {"cluster": "gone"}, "The cluster 'gone' does not exist."),
    ({}, {"user": "gone"}, "The user 'gone' does not exist."),
    ({"context": {"cluster": "gone"}}, {}, "names the cluster 'gone', which does not exist"),
    ({"context": {"cluster": ""}}, {}, "names no cluster"),
    ({"context": {"user": "gone"}}, {}, "names the user 'gone', which does not exist"),
    ({"cluster": {"server": ""}}, {}, "'server' of cluster 'dev'"),
    ({"cluster": {"server": "ftp://h"}}, {}, "has the scheme 'ftp'"),
    ({"cluster": {"server": "https://h:x"}}, {}, "is not a URL or host:port"),
    ({"cluster": {"server": "h/path"}}, {}, "is not a URL or host:port"),
    ({"cluster": {"server": "https://h h"}}, {}, "is not a URL or host:port"),
    ({"cluster": {"server": 1}}, {}, "'server' of cluster 'dev' in"),
    ({"cluster": {"insecure-skip-tls-verify": "yes"}}, {}, "must be true or false, not text"),
    ({"cluster": {"certificate-authority-data": "%"}}, {}, "'certificate-authority-data' of cluster 'dev'"),
    ({"cluster": {"certificate-authority": "a", "certificate-authority-data": "YQ=="}}, {}, "Both certificate-auth"),
    ({"cluster": {"certificate-authority": "a", "insecure-skip-tls-verify": True}}, {}, "and insecure-skip-tls"),
    ({}, {"certificate_authority": "a", "insecure_skip_tls_verify": True}, "and insecure-skip-tls"),
    ({"cluster": {"proxy-url": "socks5://h:1"}}, {}, "is a socks5 proxy"),
    ({"cluster": {"proxy-url": "h:1"}}, {}, "is not a proxy's URL"),
    ({"user": {"token": "a", "username": "u"}}, {}, "Both a token and a username"),
    ({"user": {"username": "u", "password": "p"}}, {"token": "t"}, "Both a token and a username"),
    ({"user": {"client-certificate": "c"}}, {}, "without its key"),
    ({"user": {"client-certificate": "c", **CERTIFIED}}, {}, "Both client-certificate and client-certificate-data"),
    ({"user": {"client-key": "c", **CERTIFIED}}, {}, "Both client-key and client-key-data"),
    ({"user": {"client-key-data": "%", "client-certificate": "c"}}, {}, "'client-key-data' of user 'dev'"),
    ({"user": {"token": "a", "as-groups": ["g"]}}, {}, "without a user"),
    ({"user": {"token": "a", "as": ["g"]}}, {}, "'as' of user 'dev'"),
    ({"user": {"token": "a", "as": "b", "as-groups": "g"}}, {}, "must be a list of strings"),
    ({"user": plugin() | {"auth-provider": {"name": "x"}}}, {}, "Both exec and auth-provider"),
    ({"user": plugin(command="")}, {}, "has no command"),
    ({"user": plugin(apiVersion="client.authentication.k8s.io/v1alpha1")}, {}, "apiVersion 'client.auth"),
    ({"user": plugin(interactiveMode=None)}, {}, "interactiveMode of user 'dev'"),
    ({"user": plugin(interactiveMode="Sometimes")}, {}, "interactiveMode of user 'dev'"),
    ({"user": plugin(env=[{"value": "v"}])}, {}, "environment variable without a name"),
    ({"user": plugin(env=["v"])}, {}, "must be a list of mappings"),
]


@pytest.mark.parametrize(("change", "flags", "sentence"), ERRORS)
def test_errors(tmp_path: Path, change: Any, flags: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(tmp_path, kubeconfig(**change), **flags)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert caught.value.exit_code == 3


def test_a_name_that_is_wrong_is_answered_with_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(tmp_path, kubeconfig(), context="prod")
    assert caught.value.next_step == "choose with --context one of 'dev'"
    assert caught.value.tried == f"--kubeconfig {tmp_path / 'config'}"
    many = {"contexts": [{"name": f"c{number}"} for number in range(20)]}
    with pytest.raises(ConfigError) as caught:
        resolved(tmp_path, many, context="prod")
    assert caught.value.next_step.endswith("'c10', 'c11' and 8 more")


@pytest.mark.parametrize("flags", [{"request_timeout": "soon"}, {"request_timeout": "-1s"}, {"as_user_extra": ("x",)}])
def test_wrong_flags_are_usage_errors(tmp_path: Path, flags: Any) -> None:
    with pytest.raises(UsageError):
        resolved(tmp_path, kubeconfig(), as_user="me", **flags)


def test_without_any_configuration_the_order_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(ConfigFlags(), {"KUBECONFIG": f"{tmp_path}/a{os.pathsep}{tmp_path}/b"}, tmp_path)
    assert str(caught.value).startswith("No cluster is configured")
    assert caught.value.tried == (
        f"KUBECONFIG={tmp_path}/a{os.pathsep}{tmp_path}/b (not found: {tmp_path}/a, {tmp_path}/b), "
        "the service account of a pod, KUBERNETES_MASTER"
    )
    assert caught.value.next_step == "create a local cluster with kubectl ctrl up, or set KUBECONFIG"
    with pytest.raises(ConfigError) as caught:
        load(ConfigFlags(), {}, tmp_path)
    assert caught.value.tried.startswith(f"{tmp_path}/.kube/config (not found), ")
    with pytest.raises(ConfigError) as caught:
        resolved(tmp_path, kubeconfig(current=""))
    assert caught.value.next_step == "choose with --context one of 'dev'"


def test_kubernetes_master_stands_in_for_a_missing_server(tmp_path: Path) -> None:
    found = load(ConfigFlags(), {"KUBERNETES_MASTER": "http://10.0.0.1:8080"}, tmp_path)
    assert (found.context, found.server, found.server_overridden) == (None, "http://10.0.0.1:8080", True)
    with pytest.raises(ConfigError, match=r"The KUBERNETES_MASTER is not a URL"):
        load(ConfigFlags(), {"KUBERNETES_MASTER": "http://"}, tmp_path)


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The files and the environment of a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token")
    (folder / "ca.crt").write_bytes(certificate("ca"))
    (folder / "namespace").write_text("pod-namespace\n")
    monkeypatch.setattr(incluster, "FOLDER", folder)
    return {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


class TestInCluster:
    def test_the_service_account_is_used_when_nothing_else_is_there(self, tmp_path: Path, pod: dict[str, str]) -> None:
        found = load(ConfigFlags(), pod, tmp_path)
        assert (found.in_cluster, found.context, found.server) == (True, None, "https://10.96.0.1:443")
        assert found.namespace == "pod-namespace"
        assert found.tls.ca_file == str(tmp_path / "serviceaccount" / "ca.crt")
        assert found.auth == AuthSettings(token_file=str(tmp_path / "serviceaccount" / "token"))

    def test_it_goes_before_an_http_kubernetes_master(self, tmp_path: Path, pod: dict[str, str]) -> None:
        assert load(ConfigFlags(), pod | {"KUBERNETES_MASTER": "http://x"}, tmp_path).in_cluster
        assert not load(ConfigFlags(), pod | {"KUBERNETES_MASTER": "https://x"}, tmp_path).in_cluster

    def test_an_ipv6_address_is_bracketed(self, tmp_path: Path, pod: dict[str, str]) -> None:
        assert (
            load(ConfigFlags(), pod | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path).server
            == "https://[fd00::1]:443"
        )

    def test_flags_replace_its_parts(self, tmp_path: Path, pod: dict[str, str]) -> None:
        found = load(ConfigFlags(token="mine", certificate_authority="x", namespace="n", as_user="me"), pod, tmp_path)
        assert (found.in_cluster, found.auth, found.tls) == (
            True,
            AuthSettings(token=Secret("mine")),
            TlsSettings(ca_file="x"),
        )
        assert (found.namespace, found.impersonate.user) == ("n", "me")

    def test_a_kubeconfig_goes_before_it_but_takes_its_namespace(self, tmp_path: Path, pod: dict[str, str]) -> None:
        found = resolved(tmp_path, kubeconfig(), environ=pod)
        assert (found.in_cluster, found.context, found.namespace) == (False, "dev", "pod-namespace")
        found = resolved(tmp_path, kubeconfig(), environ=pod | {"POD_NAMESPACE": "downward"})
        assert found.namespace == "downward"

    def test_a_broken_context_is_not_replaced_by_it(self, tmp_path: Path, pod: dict[str, str]) -> None:
        with pytest.raises(ConfigError):
            resolved(tmp_path, kubeconfig(context={"cluster": "gone"}), environ=pod)

    def test_without_its_environment_or_token_it_is_not_there(self, tmp_path: Path, pod: dict[str, str]) -> None:
        with pytest.raises(ConfigError):
            load(ConfigFlags(), pod | {"KUBERNETES_SERVICE_PORT": ""}, tmp_path)
        (tmp_path / "serviceaccount" / "token").unlink()
        with pytest.raises(ConfigError):
            load(ConfigFlags(), pod, tmp_path)


def test_loading_again_keeps_to_the_context(tmp_path: Path) -> None:
    content = kubeconfig()
    first = resolved(tmp_path, content)
    content["contexts"].append({"name": "other", "context": {"cluster": "other", "user": "dev"}})
    content["clusters"].append({"name": "other", "cluster": {"server": "https://other"}})
    content["current-context"] = "other"
    content["users"][0]["user"]["token"] = "new"
    written(tmp_path, content)
    again = load_again(first)
    assert (again.context, again.server, again.auth.token) == ("dev", "https://127.0.0.1:6443", Secret("new"))


def test_the_fingerprint_is_that_of_the_authority_however_it_is_given(tmp_path: Path) -> None:
    in_file = resolved(tmp_path, kubeconfig(cluster={"certificate-authority": str(CERTIFICATES / "ca.pem")}))
    as_data = resolved(tmp_path, kubeconfig(cluster={"certificate-authority-data": b64(certificate("ca"))}))
    other = resolved(tmp_path, kubeconfig(cluster={"certificate-authority-data": b64(certificate("bare"))}))
    assert ca_fingerprint(in_file) == ca_fingerprint(as_data) != ca_fingerprint(other)
    assert ca_fingerprint(resolved(tmp_path, kubeconfig())) == ""
    absent = resolved(tmp_path, kubeconfig(cluster={"certificate-authority": "/nowhere/ca.pem"}))
    with pytest.raises(ConfigError, match=r"certificate-authority of cluster 'dev', '/nowhere/ca.pem', cannot be read"):
        ca_fingerprint(absent)


@pytest.mark.parametrize(
    "user",
    [
        {"token": CANARY},
        {"username": "u", "password": CANARY},
        {"client-certificate-data": b64(b"C"), "client-key-data": b64(CANARY.encode())},
        {"auth-provider": {"name": "oidc", "config": {"refresh-token": CANARY, "client-secret": CANARY}}},
        plugin(args=[CANARY], env=[{"name": "A", "value": CANARY}]),
    ],
)
def test_secrets_are_never_shown(tmp_path: Path, user: dict[str, Any]) -> None:
    cluster = {"server": f"https://me:{CANARY}@far.example", "proxy-url": f"http://me:{CANARY}@h:1"}
    environ = {"HTTPS_PROXY": f"http://me:{CANARY}@h:1", "AWS_SECRET": CANARY}
    token = "" if "username" in user else CANARY
    for entry in (cluster, {}):
        found = resolved(tmp_path, kubeconfig(cluster=entry, user=user), environ=environ, token=token)
        for value in (found, found.auth, found.origin, found.origin.flags, found.tls):
            assert CANARY not in f"{value!r} {value}"
            assert b64(CANARY.encode()) not in repr(value)


@pytest.mark.parametrize("change", [change for change, flags, _ in ERRORS if "user" in change and not flags])
def test_errors_never_show_a_secret(tmp_path: Path, change: Any) -> None:
    text = json.dumps(kubeconfig(**change)).replace('"t"', f'"{CANARY}"').replace('"a"', f'"{CANARY}"')
    with pytest.raises(CtrlError) as caught:
        resolved(tmp_path, text)
    assert CANARY not in f"{caught.value} {caught.value.tried} {caught.value.next_step}"


def test_importing_it_is_cheap() -> None:
    heavy = ("kubernetes", "aiohttp", "asyncio", "rich", "ssl", "subprocess", "sqlite3")
    code = f"import sys, kubectl_ctrl.kubeconfig.resolution; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
