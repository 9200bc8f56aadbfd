"""Called through real kubectl, and with the same command line syntax."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from e2e.ctrl import PROGRAM
from e2e.kube import Cluster, Kubectl, wait_until
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb
from kubectl_ctrl.cli.verbs.table import VERBS
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.version import VERSION
from tests.kubeconfig.kubeconfigs import CERTIFICATES

# The plugin.


@pytest.mark.real
def test_kubectl_finds_it(kubectl: Kubectl) -> None:
    assert kubectl("ctrl", "version").startswith(f"kubectl-ctrl {VERSION} ")
    assert json.loads(kubectl("ctrl", "version", "-ojson"))["version"] == VERSION
    assert kubectl("ctrl", "list", "--output", "name").split() == list(BUNDLED)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["nonsense"], 2),
        (["run"], 2),
        (["run", "foo", "--kubeconfig=/nonexistent"], 3),
        (["run", "foo", "--server=https://127.0.0.1:1"], 6),
        (["--help"], 0),
        ([], 0),
    ],
)
def test_its_exit_code_is_kubectls(kubectl: Kubectl, words: list[str], code: int) -> None:
    assert kubectl.try_("ctrl", *words).code == code


def test_it_can_be_piped_into_kubectl(kubectl: Kubectl) -> None:
    kubectl("create", "--filename=-", "--dry-run=client", stdin=kubectl("ctrl", "install", "foo", "--print"))


def completed(kubectl: Kubectl, *words: str) -> list[str]:
    """The shell's completions of the last argument."""
    lines = kubectl("__complete", "ctrl", *words).splitlines()
    assert lines[-1] == ":4", "Files would be offered too."
    return [line.split("\t")[0] for line in lines[:-1]]


def test_tab_completes_verbs_controllers_and_flags(kubectl: Kubectl) -> None:
    assert completed(kubectl, "") == [entry.name for entry in VERBS]
    assert completed(kubectl, "ru") == ["run"]
    assert completed(kubectl, "run", "") == list(BUNDLED)
    assert completed(kubectl, "run", "foo", "") == [name for name in BUNDLED if name != "foo"]
    assert completed(kubectl, "run", "--until") == ["--until", "--until-idle"]
    assert completed(kubectl, "nonsense", "") == []


def test_tab_completes_names_from_the_cluster(kubectl: Kubectl, cluster: Cluster, namespace: str) -> None:
    """Without a recording; kubectl has 0.3 s, and a failure is remembered for 10 s."""
    kubectl("create", "configmap", "settings")
    wait_until(lambda: completed(kubectl, "trace", "configmap", "se") == ["settings"], deadline=240)
    wait_until(lambda: namespace in completed(kubectl, "run", "--namespace", ""), deadline=240)
    assert completed(kubectl, "run", "--context", "") == [cluster.context]
    assert completed(kubectl, "run", "--color=al") == ["always"]


def test_krews_users_get_the_helper(kubectl: Kubectl, tmp_path: Path) -> None:
    """krew links one program into its folder; the completion program has to be beside it."""
    (tmp_path / "krew").mkdir()
    (tmp_path / "krew" / "kubectl-ctrl").symlink_to(PROGRAM)
    path = ":".join(
        [str(tmp_path / "krew"), *(one for one in kubectl.env["PATH"].split(":") if one != str(PROGRAM.parent))]
    )
    user = Kubectl(kubectl.program, {**kubectl.env, "PATH": path})
    assert "trace" not in user("__complete", "ctrl", "trac")
    assert user("ctrl", "completion", "install") == f"{tmp_path}/krew/kubectl_complete-ctrl created\n"
    assert completed(user, "trac") == ["trace"]
    assert user("ctrl", "completion", "install", "--remove") == f"{tmp_path}/krew/kubectl_complete-ctrl removed\n"


# The syntax: the flags of `kubectl config view`, declared like those of kubectl-ctrl.

VIEW = Verb(
    name="view",
    usage="view [flags]",
    examples=(),
    flags=(
        Flag("-o", "--output", value="FORMAT", default="yaml"),
        Flag("--minify"),
        Flag("--raw"),
        Flag("--flatten"),
        Flag("--merge", default=True),
    ),
    body=lambda _app, _given: 0,
)

ACCEPTED: list[list[str]] = [
    [],
    ["-o", "json"],
    ["-o=json"],
    ["-ojson"],
    ["--output", "json"],
    ["--output=json"],
    ["--output=yaml", "-o", "json"],
    ["-ojson", "--output=yaml"],
    ["--minify"],
    ["--minify=true"],
    ["--minify=T"],
    ["--minify=1"],
    ["--minify=FALSE"],
    ["--minify=true", "--minify=false"],
    ["--merge=t"],
    ["--raw", "--flatten", "-ojson"],
    ["-v=2", "-o", "json"],
    ["-v2"],
    ["-v", "2"],
    ["--v=2"],
    ["--v", "2"],
    ["-n", "x", "--minify"],
    ["-n=x"],
    ["-nx"],
    ["--namespace", "--minify"],  # a value that looks like a flag
    ["--request-timeout", "5s"],
    ["--request-timeout=5"],
    ["--as-group", "a", "--as-group=b", "--as=c"],
    ["--insecure-skip-tls-verify=false"],
    ["--minify", "--"],
]
REFUSED: list[list[str]] = [
    ["-o"],
    ["--output"],
    ["--nope"],
    ["--nope=1"],
    ["-x"],
    ["-ox", "-x"],
    ["-xo", "json"],
    ["---minify"],
    ["--=json"],
    ["--minify=maybe"],
    ["--minify=yes"],
    ["--minify="],
    ["--min"],  # no abbreviations
    ["-v=x"],
    ["-v"],
    ["--v="],
    ["--namespace"],
    ["-n"],
    ["--insecure-skip-tls-verify=2"],
]


def understood(words: list[str]) -> ParsedCommandLine | None:
    """The result of the parser for these arguments; None if it refuses them."""
    try:
        return VIEW.parse(words, {})
    except UsageError:
        return None


@pytest.mark.parametrize("words", ACCEPTED, ids=" ".join)
def test_arguments_that_kubectl_accepts_have_the_same_meaning(
    kubectl: Kubectl, words: list[str], tmp_path: Path
) -> None:
    place = {"server": "https://127.0.0.1:1", "certificate-authority": str(CERTIFICATES / "ca.pem")}
    cluster, context = {"name": "one", "cluster": place}, {"name": "one", "context": {"cluster": "one"}}
    file = tmp_path / "with-a-file"
    file.write_text(json.dumps({"current-context": "one", "clusters": [cluster], "contexts": [context]}))
    said = Kubectl(kubectl.program, {**kubectl.env, "KUBECONFIG": str(file)})("config", "view", *words)
    given = understood(words)
    assert given is not None
    assert ("json" if said.startswith("{") else "yaml") == given["output"]
    shown = yaml.safe_load(said)
    assert ("certificate-authority-data" in shown["clusters"][0]["cluster"]) == given["flatten"]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_arguments_that_kubectl_refuses_are_refused(kubectl: Kubectl, words: list[str]) -> None:
    assert kubectl.try_("config", "view", *words).code != 0
    assert understood(words) is None
