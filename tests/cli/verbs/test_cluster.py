"""`cluster`, `up` and `down` as far as they only look into the registry, or refuse to."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.clusters import names
from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.devcluster.access import pointers
from kubectl_ctrl.devcluster.up import UpOptions
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.loader.sources import resolve
from kubectl_ctrl.runs import background_notes
from kubectl_ctrl.runs.runners import only_runner
from kubectl_ctrl.user import User
from kubectl_ctrl.value import replace
from tests.cli.ours import made, runner_on
from tests.cli.own import PRODUCTION
from tests.objects import present

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def kubeconfig(production: Path) -> Path:
    """The user's own, which points to a cluster that nobody may touch."""
    return production


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "state" / "kubectl-ctrl" / "clusters")


def add(registry: Registry, name: str, phase: Phase = Phase.READY) -> ClusterEntry:
    """A page, as making a cluster leaves it."""
    entry = ClusterEntry(
        name=name,
        provider="kwok",
        phase=phase,
        began=1_767_225_600.0,
        folder=registry.place(name),
        context=f"kwok-{name}",
        server="https://127.0.0.1:32764",
        version="v1.36.3",
    )
    registry.write(entry)
    if phase is Phase.READY:
        registry.write_kubeconfig(entry, "kind: Config\n")
    return entry


@pytest.mark.parametrize("words", [["env"], ["kubeconfig"], ["kubeconfig", "--path"]])
def test_a_kubeconfig_that_others_had_mean_another_cluster_is_not_given_out(
    registry: Registry, capsys: Captured, words: list[str]
) -> None:
    """Whoever logs in elsewhere in a shell of `env` has current-context switched in it."""
    entry = add(registry, "ctrl")
    for own in ("kwok-ctrl", '"kwok-ctrl"', "", '""'):
        registry.write_kubeconfig(entry, f"kind: Config\ncurrent-context: {own}\n")
        assert cli.main(["cluster", *words]) == 0
    capsys.readouterr()
    registry.write_kubeconfig(entry, "kind: Config\ncurrent-context: prod-eu\n")
    assert cli.main(["cluster", *words]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "The kubeconfig of cluster 'ctrl' selects another context now: prod-eu." in said.err
    assert f"again: kubectl --kubeconfig {entry.kubeconfig} config use-context kwok-ctrl\n" in said.err


@pytest.mark.parametrize("current", ["web", "my own name"])
def test_a_kubeconfig_may_mean_the_cluster_by_another_context_of_it(
    registry: Registry, capsys: Captured, current: str
) -> None:
    """As one for a namespace, or after `kubectl config rename-context`."""
    entry = made(registry, "ctrl", "https://127.0.0.1:4001")
    content = yaml.safe_load(entry.kubeconfig.read_text())
    (own,) = content["contexts"]
    kept = [] if current == "my own name" else [own]
    content |= {"contexts": [*kept, {**own, "name": current}], "current-context": current}
    entry.kubeconfig.write_text(yaml.safe_dump(content))
    assert cli.main(["cluster", "kubeconfig", "--path"]) == 0
    assert cli.main(["cluster", "env"]) == 0
    assert capsys.readouterr().err == ""


def test_env_prints_the_line_for_the_shell(registry: Registry, capsys: Captured) -> None:
    path = add(registry, "ctrl").kubeconfig
    assert cli.main(["cluster", "env"]) == 0
    assert cli.main(["cluster", "env", "ctrl", "--shell", "fish"]) == 0
    assert cli.main(["cluster", "env", "--shell=pwsh"]) == 0
    assert capsys.readouterr() == (
        f"export KUBECONFIG={path}\nset -gx KUBECONFIG '{path}'\n$env:KUBECONFIG = '{path}'\n",
        "",
    )


def test_a_shell_reads_the_path_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    home = tmp_path / "it's $HOME"
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    path = str(add(Registry(home / "kubectl-ctrl" / "clusters"), "ctrl").kubeconfig)
    for shell in ("sh", "fish", "pwsh"):
        cli.main(["cluster", "env", f"--shell={shell}"])
    bash, fish, pwsh = capsys.readouterr().out.splitlines()
    assert bash == "export KUBECONFIG='" + path.replace("'", "'\"'\"'") + "'"
    assert fish == "set -gx KUBECONFIG '" + path.replace("'", "\\'") + "'"
    assert pwsh == "$env:KUBECONFIG = '" + path.replace("'", "''") + "'"


def test_kubeconfig_prints_its_content_or_where_it_lies(registry: Registry, capsys: Captured) -> None:
    entry = add(registry, "ctrl")
    assert cli.main(["cluster", "kubeconfig"]) == 0
    assert cli.main(["cluster", "kubeconfig", "ctrl", "--path"]) == 0
    assert capsys.readouterr() == (f"kind: Config\n{entry.kubeconfig}\n", "")


def test_without_its_kubeconfig_one_can_only_be_given_up(registry: Registry, capsys: Captured) -> None:
    add(registry, "two").kubeconfig.unlink()
    assert cli.main(["cluster", "kubeconfig"]) == 1
    told = capsys.readouterr().err
    assert "The kubeconfig of cluster 'two' cannot be read: No such file or directory." in told
    assert (
        "next: make it readable, or recreate the cluster: kubectl ctrl down two, then kubectl ctrl up --name two"
        in told
    )


@pytest.mark.parametrize("words", [["env"], ["kubeconfig"], ["logs"], ["load", "mine:dev"], ["env", "two"]])
def test_what_is_not_in_the_book_is_not_found(registry: Registry, capsys: Captured, words: list[str]) -> None:
    assert cli.main(["cluster", *words]) == 4
    told = capsys.readouterr()
    assert told.out == ""
    assert "error[CTRL-NO-CLUSTER]: There is no managed cluster" in told.err


def test_the_only_one_is_meant_and_ctrl_among_several(registry: Registry, capsys: Captured) -> None:
    add(registry, "two")
    assert cli.main(["cluster", "kubeconfig", "--path"]) == 0
    add(registry, "one")
    assert cli.main(["cluster", "kubeconfig", "--path"]) == 2
    assert "next: choose one of: one, two" in capsys.readouterr().err
    add(registry, "ctrl")
    assert cli.main(["cluster", "kubeconfig", "--path"]) == 0
    assert capsys.readouterr().out.endswith("/ctrl/kubeconfig\n")


def test_one_that_was_not_made_to_its_end_cannot_be_used(registry: Registry, capsys: Captured) -> None:
    add(registry, "two", Phase.CREATING)
    assert cli.main(["cluster", "env"]) == 1
    told = capsys.readouterr()
    assert "Cluster 'two' was not completely created." in told.err
    assert "next: kubectl ctrl down two deletes the rest of it, kubectl ctrl up --name two recreates it" in told.err


def test_the_list_says_how_each_stands(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl")
    add(registry, "two", Phase.CREATING)
    assert cli.main(["cluster", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NAME   PROVIDER   STATE        VERSION   CONTEXT",
        "ctrl   kwok       absent       v1.36.3   kwok-ctrl",
        "two    kwok       incomplete   v1.36.3   kwok-two",
    ]
    assert cli.main(["cluster", "list", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["clusters"]
    assert [(one["name"], one["state"], one["began"]) for one in found] == [
        ("ctrl", "absent", "2026-01-01T00:00:00Z"),
        ("two", "incomplete", "2026-01-01T00:00:00Z"),
    ]
    assert cli.main(["cluster", "list", "-o", "name"]) == 0
    assert "two" in capsys.readouterr().out
    with registry.locked("two"):
        assert cli.main(["cluster", "list", "-o", "yaml"]) == 0
    assert [one["state"] for one in yaml.safe_load(capsys.readouterr().out)["clusters"]] == ["absent", "creating"]


def test_the_list_has_also_what_nobody_can_read(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl")
    (add(registry, "broken").folder / "cluster.json").write_text("{")
    assert cli.main(["cluster", "list"]) == 0
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["broken", "-", "unreadable"],
        ["ctrl", "kwok", "absent"],
    ]


_ENV = 'for this shell: eval "$(kubectl ctrl cluster env)"'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PRODUCTION, ["context kwok-ctrl; your context prod is unchanged", _ENV]),
        ("", ["context kwok-ctrl; you have no current context", _ENV]),
        (
            PRODUCTION.replace("prod", "kwok-ctrl"),
            ["your kubeconfig has another context kwok-ctrl, which --context selects; to use this cluster:", _ENV],
        ),
        ("clusters: [", None),
    ],
)
def test_up_ends_by_saying_what_means_the_cluster(
    registry: Registry, kubeconfig: Path, text: str, told: list[str] | None
) -> None:
    kubeconfig.write_text(text)
    options = UpOptions(name="ctrl", provider="auto", spec=ClusterSpec(nodes=0), use=False)
    first, *lines = pointers(User(os.environ), options, add(registry, "ctrl"))
    assert first == "it has no nodes, so pods stay pending"
    if told is None:
        assert lines[0].startswith("context kwok-ctrl; your kubeconfig is unchanged, and cannot be read: ")
    else:
        assert lines == told


def test_of_no_clusters_the_list_is_empty(capsys: Captured) -> None:
    assert cli.main(["cluster", "list"]) == 0
    assert capsys.readouterr() == ("", "there is no managed cluster\n")


@pytest.mark.parametrize("words", [["up"], ["cluster", "env"], ["cluster", "kubeconfig"]])
def test_a_page_that_cannot_be_read_is_named_and_nothing_is_guessed(
    registry: Registry, capsys: Captured, words: list[str]
) -> None:
    page = add(registry, "ctrl").folder / "cluster.json"
    page.write_text("{")
    assert cli.main(words) == 1
    told = capsys.readouterr().err
    assert "error[CTRL-CLUSTER]: The registry entry of cluster 'ctrl' cannot be read" in told
    assert f"tried: {page}" in told
    assert "kubectl ctrl down ctrl" in told
    assert page.read_text() == "{"


@pytest.mark.parametrize("words", [["down"], ["down", "ctrl"], ["down", "--all"], ["cluster", "delete"]])
@pytest.mark.parametrize("content", ["", "{"])
def test_of_a_page_that_cannot_be_read_what_can_be_found_is_taken_away(
    registry: Registry, capsys: Captured, words: list[str], content: str
) -> None:
    # A loss of power leaves empty files; no name may be lost to that for good.
    entry = add(registry, "ctrl")
    (entry.folder / "cluster.json").write_text(content)
    assert cli.main(words) == 0
    assert "files deleted" in capsys.readouterr().err
    assert not entry.folder.exists()


@pytest.mark.parametrize("words", [["down"], ["down", "ctrl"], ["down", "--all"], ["cluster", "delete", "ctrl"]])
def test_down_of_nothing_is_fine(tmp_path: Path, capsys: Captured, words: list[str]) -> None:
    assert cli.main(words) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("there is no managed cluster")
    assert not list((tmp_path / "state").rglob("*")), "It leaves no trace of having looked."


def test_down_alone_wants_a_name_among_several(registry: Registry, capsys: Captured) -> None:
    add(registry, "one")
    add(registry, "two")
    assert cli.main(["down"]) == 2
    assert "next: choose one of: one, two" in capsys.readouterr().err
    assert [entry.name for entry in registry.entries()] == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["up", "--detach", "--until-idle", "foo"], "--detach and --until-idle exclude each other."),
        (["up", "--detach"], "--detach needs a controller."),
        (["up", "--example"], "--example needs a controller."),
        (["up", "--until-idle"], "--until-idle needs a controller."),
        (["up", "foo", "--detach", "--timeout=1m"], "--timeout is for controllers in the foreground."),
        (["up", "foo", "--timeout=0"], "Invalid value for --timeout: it must be more than zero"),
        (["up", "fooo"], "next: did you mean foo?"),
        (["up", "--name", "A"], "'A' is not a valid cluster name."),
        (["up", "--name", "a/../b"], "'a/../b' is not a valid cluster name."),
        (["up", "--nodes=-1"], "Invalid value for --nodes"),
        (["up", "--wait=0"], "Invalid value for --wait"),
        (["up", "--config=none.yaml"], "There is no file 'none.yaml'."),
        (["up", "--bin-dir=none"], "There is no folder 'none'."),
        (["up", "--provider=foo"], "Invalid value for --provider: 'foo'."),
        (["cluster", "create", "--provider=foo"], "Invalid value for --provider: 'foo'."),
        (["up", "foo", "-n", "Bad_NS"], "'Bad_NS' is not a valid namespace name."),
        (["up", "--load="], "--load needs an image."),
        (["down", "--all", "--name=a"], "--all and a name exclude each other."),
        (["up", "--progress=loud"], "Invalid value for --progress: 'loud'."),
        (["down", "a", "b"], "Only one name is allowed, not a b."),
        (["down", "a", "--all"], "--all and a name exclude each other."),
        (["down", "../a"], "'../a' is not a valid cluster name."),
        (["cluster"], "cluster needs an action."),
        (["cluster", "creat"], "next: did you mean create?"),
        (["cluster", "env", "--nodes=3"], "--nodes is for cluster create."),
        (["cluster", "env", "--nodes=3"], "next: kubectl ctrl cluster --help"),
        (["cluster", "create", "a", "b"], "Only one name is allowed, not a b."),
        (["cluster", "env", "--shell=tcsh"], "next: use one of: sh, fish, pwsh"),
        (["cluster", "load"], "cluster load needs an image."),
        (["cluster", "list", "a"], "cluster list takes no name."),
    ],
)
def test_wrong_words_end_before_anything_is_touched(
    tmp_path: Path, capsys: Captured, words: list[str], told: str
) -> None:
    assert cli.main(words) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_a_variable_that_is_set_for_other_calls_fails_none(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    add(registry, "ctrl")
    for name, value in (
        ("TIMEOUT", "5m"),
        ("UNTIL_IDLE", "true"),
        ("EXAMPLE", "true"),
        ("NODES", "3"),
        ("PATH", "true"),
    ):
        monkeypatch.setenv(f"KUBECTL_CTRL_{name}", value)
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli.main(["cluster", "env"]) == 0
    assert cli.main(["up", "--name", "two", "--provider", "kwok"]) == 5, "It got so far as to look for programs."
    assert "error[CTRL-PREREQUISITE]: kwok cannot work here" in capsys.readouterr().err


def test_the_name_may_come_from_the_environment_for_all_that_mean_one(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for name in ("ctrl", "two", "three"):
        add(registry, name)
    monkeypatch.setenv("KUBECTL_CTRL_NAME", "two")
    assert cli.main(["cluster", "kubeconfig", "--path"]) == 0
    assert cli.main(["cluster", "kubeconfig", "three", "--path"]) == 0
    assert cli.main(["cluster", "kubeconfig", "--name=ctrl", "--path"]) == 0
    found = [Path(line).parent.name for line in capsys.readouterr().out.splitlines()]
    assert found == ["two", "three", "ctrl"]
    assert cli.main(["down"]) == 0
    assert [entry.name for entry in registry.entries()] == ["ctrl", "three"]


def test_images_for_pods_that_nobody_runs_are_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli.main(["up", "--load=mine:dev", "--provider=kwok"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error[CTRL-USAGE]: kwok does not support this: its pods are simulated"), "No step failed."
    assert not list((tmp_path / "state").rglob("cluster.json"))


def test_what_is_left_is_not_promised_while_another_process_changes_it(registry: Registry) -> None:
    add(registry, "ctrl")
    assert names.left(registry, "ctrl") == "cluster ctrl is kept; to delete it: kubectl ctrl down"
    with registry.locked("ctrl"):
        assert names.left(registry, "ctrl") == "cluster ctrl is kept; to delete it: kubectl ctrl down", "It is us."
        (registry.folder / "ctrl.lock").write_text("1")
        assert names.left(registry, "ctrl") == "process 1 is changing cluster ctrl right now"


def test_one_that_is_being_made_is_to_be_waited_for(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl", Phase.CREATING)
    with registry.locked("ctrl"):
        (registry.folder / "ctrl.lock").write_text("1")
        assert cli.main(["cluster", "env"]) == 1
    told = capsys.readouterr().err
    assert "Cluster 'ctrl' is not completely created yet: process 1 is changing it." in told
    assert "next: wait for that process, and repeat the command" in told


@pytest.mark.parametrize("words", [["cluster", "env", "--help"], ["help", "cluster", "env"]])
def test_help_of_one_action_has_its_flags_alone(capsys: Captured, words: list[str]) -> None:
    assert cli.main(words) == 0
    assert re.findall(r"^    --(\w[-\w]*)", capsys.readouterr().out, re.MULTILINE) == ["name", "shell"]
    assert cli.main(["cluster", "--help"]) == 0
    assert "--bin-dir" in capsys.readouterr().out


def test_an_answer_that_finds_no_room_is_an_error_and_what_is_said_beside_it_is_none(registry: Registry) -> None:
    add(registry, "ctrl")
    with Path("/dev/full").open("w") as out, Path("/dev/full").open("w") as err:
        app = App(out=out, err=err, user=User({}))
        app.narrate("It is lost.")
        with pytest.raises(CtrlError, match="Cannot write to standard output: No space left on device"):
            cli.run(app, ["cluster", "kubeconfig"])


def test_a_step_that_is_doubtful_is_no_success(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl")
    (registry.folder.parent / "history.db").write_text("This is no database." * 100)
    assert cli.main(["down"]) == 0
    assert re.search(r"^ ! The recording does not note its deletion: ", capsys.readouterr().err, re.MULTILINE)


def test_machines_get_an_object_for_wrong_words_too(capsys: Captured) -> None:
    assert cli.main(["up", "nosuch", "--progress=json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"] == "CTRL-USAGE"


def test_what_runs_in_the_background_is_named_with_the_verbs_for_it(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = add(registry, "ctrl")
    options = UpOptions(
        name="ctrl", provider="auto", spec=ClusterSpec(nodes=0), use=False, sourced=resolve(["foo"]), detach=True
    )
    told = "in the background: kubectl ctrl logs foo -f{0}; kubectl ctrl stop foo{0}"
    assert pointers(App.of_this_process().user, options, entry)[1] == told.format(" --name ctrl")
    registry.write_kubeconfig(entry, PRODUCTION.replace("prod", "kwok-ctrl"))
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    assert pointers(App.of_this_process().user, options, entry)[1:] == [
        told.format(""),
        "context kwok-ctrl is your current one",
    ]


def test_of_what_runs_in_a_terminal_no_log_is_named(registry: Registry) -> None:
    entry = replace(add(registry, "ctrl"), uid="uid-of-ctrl")
    both = resolve(["foo", "memcached"])
    options = UpOptions(name="ctrl", provider="auto", spec=ClusterSpec(nodes=0), use=False, sourced=both, detach=True)
    app = App.of_this_process()
    with only_runner(app.user.state, runner_on(entry, "r1")):
        line = "in the background: kubectl ctrl logs memcached -f --name ctrl; kubectl ctrl stop memcached --name ctrl"
        assert pointers(app.user, options, entry)[1] == line
        alone = replace(options, sourced=both[:1])
        assert [line for line in pointers(app.user, alone, entry) if "background" in line] == []
        log = background_notes.log_of(entry, "foo")
        log.parent.mkdir()
        background_notes.write(
            log, background_notes.BackgroundNote(word="foo", scope="default", pid=os.getpid(), began=1.0)
        )
        assert "logs foo -f --name ctrl" in pointers(app.user, alone, entry)[1]


@pytest.mark.parametrize("words", [["up"], ["cluster", "create"]])
def test_what_the_flags_say_is_what_is_wished_of_a_provider(tmp_path: Path, words: list[str]) -> None:
    config = tmp_path / "kind.yaml"
    config.touch()
    flags = ["--image=node:1", f"--config={config}", "--wait=30s", "--keep-on-failure", "--offline", "--nodes=2"]
    given = present(table.load(table.find(words[0])).parse([*words[1:], *flags, f"--bin-dir={tmp_path}"], {}))
    assert new_cluster.spec(given) == ClusterSpec(
        image="node:1", config=config, wait=30.0, keep_on_failure=True, bin_dir=tmp_path, offline=True, nodes=2
    )
    assert new_cluster.spec(present(table.load(table.find(words[0])).parse(words[1:], {}))) == ClusterSpec()
