from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.cli.verbs.table import VERBS, VerbEntry
from kubectl_ctrl.clusters.registry import Phase, Registry
from kubectl_ctrl.errors import ConfigError, Refused
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, TlsSettings, load
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.target.guard import AllowedContext, check, context_name, is_local, managed, standing_list, trusted
from kubectl_ctrl.value import replace
from tests.cli.ours import kubeconfig, made


def resolved(tmp_path: Path, name: str, server: str, flags: ConfigFlags | None = None, proxy: str = "") -> Resolved:
    cluster = {"server": server} | ({"proxy-url": proxy} if proxy else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": "apps"}}],
        "clusters": [
            {"name": "c", "cluster": cluster},
            {"name": "other", "cluster": {"server": "https://127.0.0.1:1"}},
        ],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    return load(flags or ConfigFlags(), {"KUBECONFIG": str(path)}, tmp_path)


LOCAL = [
    ("kind-dev", "https://127.0.0.1:34567"),
    ("kind-dev", "https://localhost:34567"),
    ("kind-dev", "https://[::1]:34567"),
    ("kind-dev", "https://dev-control-plane:6443"),
    ("kwok-play", "https://127.0.0.1:32764"),
    ("kwok-play", "http://127.0.0.1:32764"),
    ("colima", "https://127.0.0.1:6443"),
    ("colima-big", "https://127.0.0.1:6443"),
    ("orbstack", "https://127.0.0.1:26443"),
    ("rancher-desktop", "https://127.0.0.1:6443"),
    ("k3d-a", "https://0.0.0.0:6550"),
    ("docker-desktop", "https://kubernetes.docker.internal:6443"),
    ("minikube", "https://127.0.0.1:32771"),
]
FOREIGN = [
    ("prod-eu", "https://10.0.0.1:6443"),
    ("prod-eu", "https://127.0.0.1:6443"),  # a tunnel to anywhere
    ("kind-dev", "https://kind.example.com:6443"),
    ("kind-dev", "https://a.b-control-plane:6443"),
    ("kind-", "https://127.0.0.1:6443"),
    ("my-kind-dev", "https://127.0.0.1:6443"),
    ("kwok-play", "https://0.0.0.0:6443"),
    ("minikube", "https://8.8.8.8:8443"),
    ("docker-desktop", "https://127.0.0.1.example.com:6443"),
    ("docker-desktop", "http://kubernetes.docker.internal:6443"),
    ("kind-dev", "https://prod-control-plane:6443"),
    ("kind-dev", "https://x-dev-control-plane:6443"),
    ("kind-dev", "http://dev-control-plane:6443"),
    ("kind-a.b", "https://a.b-control-plane:6443"),
    ("minikube", "https://192.168.1.50:6443"),
    ("minikube", "https://192.168.49.2:8443"),
]
MINE = TlsSettings(ca_data=b"mine")


@pytest.mark.parametrize(("name", "server"), LOCAL)
def test_local_is_a_name_and_a_server_that_fit_together(tmp_path: Path, name: str, server: str) -> None:
    assert is_local(resolved(tmp_path, name, server))


@pytest.mark.parametrize(
    ("tls", "server", "local"),
    [
        (MINE, "https://192.168.49.2:8443", True),
        (MINE, "https://172.17.48.10:8443", True),  # as under Hyper-V
        (MINE, "https://8.8.8.8:8443", False),
        (MINE, "http://192.168.49.2:8080", False),
        (replace(MINE, insecure=True), "https://192.168.49.2:8443", False),
        (TlsSettings(ca_data=b"other"), "https://192.168.49.2:8443", False),
    ],
)
@pytest.mark.parametrize("variable", [None, "", "/.minikube"])
def test_minikube_is_local_where_its_own_authority_proves_it(
    tmp_path: Path, tls: TlsSettings, server: str, local: bool, variable: str | None
) -> None:
    (tmp_path / ".minikube").mkdir()
    (tmp_path / ".minikube" / "ca.crt").write_bytes(MINE.ca_data + b"\n")
    seen = resolved(tmp_path, "minikube", server)
    environ = {} if variable is None else {"MINIKUBE_HOME": f"{tmp_path}{variable}"}
    home = tmp_path if variable is None else tmp_path / "elsewhere"
    assert is_local(replace(seen, tls=tls, origin=replace(seen.origin, environ=environ, home=home))) is local


@pytest.mark.parametrize(
    ("context", "server"), [("minikube", "https://192.168.1.50:6443"), ("kind-x", "https://prod-control-plane:6443")]
)
def test_a_verb_refuses_a_cluster_that_only_is_called_like_a_local_one(
    production: Path, capsys: pytest.CaptureFixture[str], context: str, server: str
) -> None:
    text = production.read_text().replace("http://127.0.0.1:1", server).replace("prod", "PROD")
    production.write_text(text.replace(server.replace("prod", "PROD"), server).replace("PROD", context))
    assert main(["install", "foo"]) == 6
    assert f"repeat with --allow-context {context} if" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "server"), FOREIGN)
def test_anything_else_is_foreign(tmp_path: Path, name: str, server: str) -> None:
    assert not is_local(resolved(tmp_path, name, server))


def test_a_proxy_or_an_override_makes_a_local_context_foreign(tmp_path: Path) -> None:
    name, server = LOCAL[0]
    assert not is_local(resolved(tmp_path, name, server, proxy="http://10.1.1.1:3128"))
    assert not is_local(resolved(tmp_path, name, server, ConfigFlags(server="https://127.0.0.1:9")))
    assert not is_local(resolved(tmp_path, name, server, ConfigFlags(cluster="other")))


@pytest.mark.parametrize("entry", VERBS, ids=lambda entry: entry.name)
def test_every_verb_that_writes_is_stopped_before_a_foreign_context(tmp_path: Path, entry: VerbEntry) -> None:
    effect = entry.effect
    prod = resolved(tmp_path, "prod-eu", "https://10.0.0.1:6443")
    if effect in (CommandEffect.WRITE, CommandEffect.DESTROY):
        with pytest.raises(Refused) as caught:
            check(effect, prod, allow="", standing=(), registry=Registry(tmp_path))
        assert caught.value.tried == "context 'prod-eu', server https://10.0.0.1:6443, namespace 'apps'"
        assert "--allow-context prod-eu" in caught.value.next_step
    else:
        check(effect, prod, allow="", standing=(), registry=Registry(tmp_path))


def test_permission_is_the_resolved_name_and_nothing_near_it(tmp_path: Path) -> None:
    prod = resolved(tmp_path, "prod-eu", "https://10.0.0.1:6443")
    check(CommandEffect.WRITE, prod, allow="prod-eu", standing=(), registry=Registry(tmp_path))
    with pytest.raises(Refused, match="is not the context in use"):
        check(CommandEffect.WRITE, prod, allow="prod", standing=(), registry=Registry(tmp_path))


@pytest.mark.parametrize("name", ["$(touch x)", "a b", "it's", "; true #", "-x", "~", "arn:aws:eks:eu-1:1:cluster/x"])
def test_the_name_to_repeat_is_a_single_word_to_a_shell(tmp_path: Path, name: str) -> None:
    prod = resolved(tmp_path, name, "https://10.0.0.1:6443")
    for allow in ("", "prod"):
        with pytest.raises(Refused) as caught:
            check(CommandEffect.WRITE, prod, allow=allow, standing=(), registry=Registry(tmp_path))
        words = shlex.split(caught.value.next_step)
        assert words[words.index("--allow-context") + 1] == name


@pytest.mark.parametrize("flags", [ConfigFlags(server="https://10.0.0.9:6443"), ConfigFlags(cluster="other")])
def test_a_context_does_not_permit_a_server_that_is_not_its_own(tmp_path: Path, flags: ConfigFlags) -> None:
    """A variable may have chosen it, long ago, in the same shell."""
    elsewhere = resolved(tmp_path, "staging", "https://10.0.0.1:6443", flags)
    with pytest.raises(Refused, match="'staging' is not the server in use") as caught:
        check(CommandEffect.WRITE, elsewhere, allow="staging", standing=(), registry=Registry(tmp_path))
    assert caught.value.tried == f"context 'staging', server {elsewhere.server}, namespace 'apps'"
    assert caught.value.next_step == f"--allow-context {elsewhere.server}"
    check(CommandEffect.WRITE, elsewhere, allow=elsewhere.server, standing=(), registry=Registry(tmp_path))
    there = AllowedContext("staging", elsewhere.server)
    check(CommandEffect.WRITE, elsewhere, allow="", standing=(there,), registry=Registry(tmp_path))


def test_a_context_flag_is_not_permission(tmp_path: Path) -> None:
    prod = resolved(tmp_path, "prod-eu", "https://10.0.0.1:6443", ConfigFlags(context="prod-eu"))
    with pytest.raises(Refused):
        check(CommandEffect.WRITE, prod, allow="", standing=(), registry=Registry(tmp_path))


def test_the_standing_list_wants_context_and_server(tmp_path: Path) -> None:
    prod = resolved(tmp_path, "prod-eu", "https://10.0.0.1:6443")
    check(
        CommandEffect.WRITE,
        prod,
        allow="",
        standing=(AllowedContext("prod-eu", "https://10.0.0.1:6443"),),
        registry=Registry(tmp_path),
    )
    with pytest.raises(Refused):
        check(
            CommandEffect.WRITE,
            prod,
            allow="",
            standing=(AllowedContext("prod-eu", "https://10.0.0.2:6443"),),
            registry=Registry(tmp_path),
        )


def test_in_cluster_credentials_have_a_name_of_their_own(tmp_path: Path) -> None:
    bare = resolved(tmp_path, "kind-dev", "https://127.0.0.1:1", ConfigFlags(server="https://9.9.9.9"))
    assert context_name(bare) == "kind-dev"


def test_the_list_is_read_from_the_users_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    assert standing_list(path) == ()
    path.write_text("allowContexts:\n- {context: staging, server: 'https://s:6443'}\n")
    assert standing_list(path) == (AllowedContext("staging", "https://s:6443"),)
    path.write_text("")
    assert standing_list(path) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("allowContexts: [staging]", "allowContexts must be a list of contexts"),
        ("allowContexts: staging", "allowContexts must be a list of contexts"),
        ("allowContexts: {a: b}", "allowContexts must be a list of contexts"),
        ("allowContexts: [{context: x}]", "allowContexts must be a list of contexts"),
        ("- a", "it is not a mapping"),
        ("a: [", "is not valid YAML at line "),
    ],
)
def test_a_list_of_the_wrong_shape_is_an_error_not_an_empty_list(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=why) as caught:
        standing_list(path)
    assert caught.value.message.removeprefix("Invalid configuration ").startswith(f"'{path}'")
    assert caught.value.tried == ""
    assert caught.value.next_step == "write it like this: allowContexts: [{context: NAME, server: URL}]"


# Ours.

SERVER = "https://10.89.0.2:6443"  # as of kind on another machine's runtime: nothing about it is local


def meant(folder: Path, text: str, flags: ConfigFlags | None = None, **environ: str) -> Resolved:
    file = folder / "config"
    file.write_text(text)
    return load(flags or ConfigFlags(), {"KUBECONFIG": str(file), **environ}, folder)


def test_s10_ours_is_what_has_the_server_and_the_authority_of_a_cluster_of_ours(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "clusters")
    made(registry, "ctrl", SERVER)
    under_our_name = meant(tmp_path, kubeconfig("kind-ctrl", **{"kind-ctrl": SERVER}))
    renamed = meant(tmp_path, kubeconfig("play", play=SERVER))
    for one in (under_our_name, renamed):
        assert not is_local(one)
        assert managed(one, registry)
        check(CommandEffect.DESTROY, one, allow="", standing=(), registry=registry)
    assert not managed(renamed, Registry(tmp_path / "none"))


@pytest.mark.parametrize("server", ["https://10.0.0.1:6443", "https://10.89.0.2:6444", "http://10.89.0.2:6443"])
def test_s10_our_name_with_another_server_is_foreign(tmp_path: Path, server: str) -> None:
    registry = Registry(tmp_path / "clusters")
    made(registry, "ctrl", SERVER)
    other = meant(tmp_path, kubeconfig("kind-ctrl", **{"kind-ctrl": server}))
    assert not trusted(other, registry)
    with pytest.raises(Refused) as caught:
        check(CommandEffect.WRITE, other, allow="", standing=(), registry=registry)
    assert caught.value.exit_code == 6
    assert caught.value.tried == f"context 'kind-ctrl', server {server}, namespace 'default'"


def test_s10_our_server_is_foreign_where_tls_would_prove_nothing(tmp_path: Path) -> None:
    """Another authority, none, TLS unchecked, a proxy, an override: somebody else could answer there."""
    registry = Registry(tmp_path / "clusters")
    made(registry, "ctrl", SERVER)
    ours = kubeconfig("play", play=SERVER)
    content = yaml.safe_load(ours)
    cluster = content["clusters"][0]["cluster"]
    ways: list[Resolved] = []
    for changed in (
        {"server": SERVER, "certificate-authority-data": "b3RoZXI="},
        {"server": SERVER},
        {"server": SERVER, "insecure-skip-tls-verify": True},
        {**cluster, "server": "https://10.89.0.2:7443"},
        {**cluster, "proxy-url": "http://10.1.1.1:3128"},
    ):
        content["clusters"][0]["cluster"] = changed
        ways.append(meant(tmp_path, yaml.safe_dump(content)))
    ways.append(meant(tmp_path, ours, ConfigFlags(insecure_skip_tls_verify=True)))
    ways.append(meant(tmp_path, ours, ConfigFlags(server=SERVER)))
    ways.append(meant(tmp_path, ours, HTTPS_PROXY="http://10.1.1.1:3128"))
    assert managed(meant(tmp_path, ours), registry)
    assert [managed(one, registry) for one in ways] == [None] * len(ways)


@pytest.mark.parametrize("phase", [Phase.CREATING, Phase.DELETING])
def test_s10_a_cluster_that_is_not_ready_is_not_ours_to_change(tmp_path: Path, phase: Phase) -> None:
    registry = Registry(tmp_path / "clusters")
    entry = made(registry, "ctrl", SERVER)
    one = meant(tmp_path, kubeconfig("play", play=SERVER))
    assert managed(one, registry)
    registry.write(replace(entry, phase=phase))
    assert not managed(one, registry)


def test_a_page_without_an_authority_makes_nothing_ours(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "clusters")
    registry.write(replace(made(registry, "ctrl", SERVER), ca=""))
    content = yaml.safe_load(kubeconfig("play", play=SERVER))
    del content["clusters"][0]["cluster"]["certificate-authority-data"]
    assert not managed(meant(tmp_path, yaml.safe_dump(content)), registry)
