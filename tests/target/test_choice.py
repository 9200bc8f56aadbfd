"""Which cluster is meant where clusters of ours come in: after the user's own contexts, and never in place of one."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.run import VERB
from kubectl_ctrl.clusters.registry import Phase
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig.resolution import load_again
from kubectl_ctrl.target.choice import deleted_cluster, kubectl_at
from kubectl_ctrl.user import User
from tests.cli.ours import kubeconfig, made
from tests.objects import present


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}))


def given(*words: str, environ: Mapping[str, str] | None = None) -> ParsedCommandLine:
    return present(VERB.parse(words, environ or {}))


def user(app: App, current: str = "", **servers: str) -> Path:
    file = app.user.home / ".kube" / "config"
    file.parent.mkdir(exist_ok=True)
    file.write_text(kubeconfig(current, **servers))
    return file


def test_context_finds_clusters_of_ours_after_the_users_own(app: App) -> None:
    user(app, "prod", prod="https://10.0.0.1:6443")
    made(app.registry, "ctrl", "https://127.0.0.1:4001")
    assert app.pointed(given()).context == "prod"
    found = app.pointed(given("--context=kind-ctrl", "-n", "apps"))
    assert (found.context, found.server, found.namespace) == ("kind-ctrl", "https://127.0.0.1:4001", "apps")


def test_kubectl_is_told_the_file_of_a_cluster_of_ours_whose_context_it_does_not_know(app: App) -> None:
    user(app, "prod", prod="https://10.0.0.1:6443")
    entry = made(app.registry, "ctrl", "https://127.0.0.1:4001")
    assert kubectl_at(app.pointed(given())) == ("kubectl", "--context", "prod")
    ours = ("kubectl", "--kubeconfig", str(entry.kubeconfig), "--context", "kind-ctrl")
    assert kubectl_at(app.pointed(given("--context=kind-ctrl"))) == ours


@pytest.mark.parametrize(
    ("variables", "words", "pin"),
    [
        ({"CONTEXT": "dev"}, (), "--context=dev"),
        ({"CONTEXT": "dev"}, ("--context=prod",), "--context=prod"),
        ({"CONTEXT": "dev", "USER": "prod"}, (), "--context=dev --user=prod"),
        ({}, (), ""),
    ],
)
def test_what_a_variable_of_ours_says_is_told_to_kubectl_too(
    app: App, variables: dict[str, str], words: tuple[str, ...], pin: str
) -> None:
    user(app, "prod", prod="https://10.0.0.1:6443", dev="https://10.0.0.2:6443")
    environ = {f"KUBECTL_CTRL_{name}": value for name, value in variables.items()}
    app.pointed(given(*words, environ=environ))
    assert (app.pin.ours, app.pin.theirs) == (pin, pin)


def test_an_entry_of_the_users_own_wins_and_is_never_mixed_with_ours(app: App) -> None:
    user(app, **{"kind-ctrl": "https://10.0.0.1:6443"})
    made(app.registry, "ctrl", "https://127.0.0.1:4001")
    assert app.pointed(given("--context=kind-ctrl")).server == "https://10.0.0.1:6443"
    file = app.user.home / ".kube" / "config"
    without = yaml.safe_load(file.read_text()) | {"contexts": []}
    file.write_text(yaml.safe_dump(without))
    assert app.pointed(given("--context=kind-ctrl")).server == "https://127.0.0.1:4001"


def test_without_any_current_context_the_only_cluster_of_ours_is_meant(app: App) -> None:
    made(app.registry, "ctrl", "https://127.0.0.1:4001")
    made(app.registry, "half", "https://127.0.0.1:4002", phase=Phase.CREATING)
    assert app.pointed(given()).context == "kind-ctrl"
    made(app.registry, "dev", "https://127.0.0.1:4003")
    with pytest.raises(ConfigError, match="there is no current-context") as caught:
        app.pointed(given())
    assert caught.value.next_step == "choose with --context one of 'kind-ctrl', 'kind-dev'"


def test_whoever_names_a_file_a_server_or_a_user_means_no_cluster_of_ours(app: App, tmp_path: Path) -> None:
    made(app.registry, "ctrl", "https://127.0.0.1:4001")
    empty = tmp_path / "empty"
    empty.write_text("apiVersion: v1\nkind: Config\n")
    for words in (["--kubeconfig", str(empty)], ["--kubeconfig", str(empty), "--context=kind-ctrl"], ["--user=x"]):
        with pytest.raises(ConfigError):
            app.pointed(given(*words))
    assert app.pointed(given("--server=http://127.0.0.1:9")).server == "http://127.0.0.1:9"
    app.user = User({**app.user.environ, "KUBERNETES_MASTER": "http://127.0.0.1:9"})
    assert app.pointed(given()).server == "http://127.0.0.1:9"


def test_a_name_that_nobody_has_is_refused_with_ours_among_the_choices(app: App) -> None:
    user(app, "prod", prod="https://10.0.0.1:6443")
    made(app.registry, "ctrl", "https://127.0.0.1:4001")
    with pytest.raises(ConfigError, match="The context 'kind-dev' does not exist") as caught:
        app.pointed(given("--context=kind-dev"))
    assert caught.value.next_step == "choose with --context one of 'prod', 'kind-ctrl'"


def test_s10_what_was_resolved_stays_what_a_reload_looks_for(app: App) -> None:
    file = user(app, "", prod="https://10.0.0.1:6443")
    made(app.registry, "ctrl", "https://127.0.0.1:4001")
    found = app.pointed(given())
    file.write_text(kubeconfig("prod", prod="https://10.0.0.1:6443", **{"kind-ctrl": "https://10.0.0.2:6443"}))
    made(app.registry, "dev", "https://127.0.0.1:4003")
    again = load_again(found)
    assert (again.context, again.server) == ("kind-ctrl", "https://127.0.0.1:4001")


def test_s10_a_shell_that_points_to_a_cluster_that_is_gone_means_no_other_one(app: App) -> None:
    gone = made(app.registry, "ctrl", "https://127.0.0.1:4001")
    app.user = User({**app.user.environ, "KUBECONFIG": str(gone.kubeconfig)})
    assert app.pointed(given()).context == "kind-ctrl"
    assert deleted_cluster(app.user, given().cluster_flags) == ""
    made(app.registry, "dev", "https://127.0.0.1:4003")
    app.registry.remove("ctrl")
    assert deleted_cluster(app.user, given().cluster_flags) == "ctrl"
    with pytest.raises(ConfigError, match="Cluster 'ctrl' no longer exists") as caught:
        app.pointed(given())
    assert "kubectl ctrl up --name ctrl" in caught.value.next_step
    assert app.pointed(given("--context=kind-dev")).context == "kind-dev"


def test_a_cluster_of_ours_is_pointed_at_through_its_own_file_whatever_the_user_says(app: App) -> None:
    user(app, "kind-ctrl", **{"kind-ctrl": "https://10.0.0.1:6443"})
    entry = made(app.registry, "ctrl", "https://127.0.0.1:4001")
    app.user = User({**app.user.environ, "KUBECONFIG": str(app.user.home / ".kube" / "config")})
    entry.kubeconfig.write_text(entry.kubeconfig.read_text().replace("current-context: kind-ctrl", "") + "\n")
    found = app.pointed_at(entry)
    assert (found.server, found.context, found.namespace) == ("https://127.0.0.1:4001", "kind-ctrl", "default")
    entry.kubeconfig.unlink()
    with pytest.raises(ConfigError, match="has no kubeconfig"):
        app.pointed_at(entry)
