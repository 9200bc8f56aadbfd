"""The examples of `--help`, typed: each works when a user copies it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.ctrl import Ctrl
from e2e.kube import Kubectl, Ran, run
from e2e.rights import granted_by_now
from kubectl_ctrl.cli.parsing.verb import typed
from kubectl_ctrl.cli.verbs import table
from tests.cli.parsing.test_help import calls

# Exit codes that are results: a verdict, or a missing --yes.
ANSWERS = {"plan": (0, 1), "replay": (0, 9), "explain": (0, 1), "uninstall": (0, 6)}

# Examples that are not typed, and the reasons.
UNTYPED = {
    "kubectl ctrl rbac memcached --missing -o yaml | kubectl apply -f -": "nothing was refused: e2e/test_rbac_trace.py",
    "kubectl ctrl completion pwsh | Out-String | Invoke-Expression": "there is no PowerShell",
    "kubectl ctrl cluster load mine:dev": "nodes of kwok take no images; see e2e/test_kind.py",
    "kubectl ctrl doctor --fix kwok --yes": "it would install a program on this machine",
    "kubectl ctrl plan foo/web --diff": "its program is told by KUBECTL_EXTERNAL_DIFF; see e2e/test_plan.py",
    "kubectl ctrl sandbox -- pytest tests": "there are no tests: e2e/test_sandbox_command.py",
    "kubectl ctrl sandbox -- env USE_EXISTING_CLUSTER=true go test ./...": "there are no tests either",
    "kubectl ctrl sandbox --port 8443": "the port may be in use: e2e/test_sandbox_command.py",
    "kubectl ctrl up": "auto may choose kind; see e2e/test_up.py and e2e/test_kind_clusters.py",
}

OF_CLUSTERS = ("up", "logs", "stop", "status", "cluster", "down")
# The order in which a user would type them.
ON_A_CLUSTER = (
    *("new", "list", "completion", "options", "version", "install", "example", "simulate", "run", "queue", "trace"),
    *("explain", "plan", "record", "replay", "rbac", "doctor", "sandbox", "uninstall"),
)

_WEB = """\
apiVersion: apps/v1
kind: {kind}
metadata:
  name: {name}
  annotations: {{ars.44smkn.github.io/start: "0 7 * * mon-fri", ars.44smkn.github.io/stop: "0 20 * * mon-fri"}}
spec:
  replicas: 1
  serviceName: {name}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: web, image: nginx}}]}}
"""


class Typist:
    """Types examples without changes, in its own folder; stops with Ctrl-C what would not end."""

    def __init__(self, ctrl: Ctrl, folder: Path) -> None:
        self.ctrl = ctrl
        self.folder = folder
        self.wrong: list[str] = []
        self.meaning: dict[str, str] = {}  # words of examples, and their replacements here

    def bash(self, line: str) -> Ran:
        return run("bash", "-o", "pipefail", "-c", line, env=self.ctrl.env, timeout=180)

    def type(self, example: str) -> None:
        line = typed(example)
        if line in UNTYPED or ("jq" in line and not shutil.which("jq")):
            return
        for word, meant in self.meaning.items():
            line = re.sub(rf"(?<![\w-]){word}(?![\w-])", meant, line)
        right: tuple[int, ...]
        if self._goes_on(line):
            started = self.ctrl.started(*shlex.split(line)[2:])
            started.line(r"Ctrl-C stops it|^\{" if " run " in line or " up " in line else ".")
            code, said, right = started.stop(), started.output(), (0,)
        else:
            ran = self.bash(line)
            code, said, right = ran.code, ran.out + ran.err, ANSWERS.get(calls(line)[0][0], (0,))
        if code not in right:
            self.wrong.append(f"$ {line}\n{said}ended with {code}")

    def assert_all_was_right(self) -> None:
        assert not self.wrong, "\n\n".join(self.wrong)

    @staticmethod
    def _goes_on(line: str) -> bool:
        (words, *more) = calls(line)
        ends = any(word.startswith("--until") for word in words) or more
        return bool({"-w", "-f"} & set(words) and words[0] in ("trace", "queue", "logs")) or (
            words[0] in ("run", "up") and not ends and "--detach" not in words
        )


@pytest.fixture
def typist(ctrl: Ctrl, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Typist]:
    """With a kubeconfig that also has the cluster as `staging`."""
    folder = tmp_path / "typing"
    (folder / ".config" / "fish" / "completions").mkdir(parents=True)
    (folder / "bin").mkdir()
    content = yaml.safe_load(kubeconfig.read_text())
    content["contexts"].append({**content["contexts"][0], "name": "staging"})
    own = folder / "kubeconfig"
    own.write_text(yaml.safe_dump(content))
    monkeypatch.chdir(folder)
    path = f"{folder / 'bin'}:{ctrl.env['PATH']}"
    env = {**ctrl.env, "HOME": str(folder), "KUBECONFIG": str(own), "PATH": path}
    typist = Typist(Ctrl(env, tmp_path), folder)
    yield typist
    for started in typist.ctrl.all_started:
        started.kill()


def examples(verb: str) -> list[str]:
    return [line for _, line in table.load(table.find(verb)).examples]


def test_every_verb_is_typed() -> None:
    assert sorted((*OF_CLUSTERS, *ON_A_CLUSTER)) == sorted(table.names())
    assert set(UNTYPED) <= {typed(line) for verb in table.names() for line in examples(verb)}


def test_on_a_cluster(typist: Typist, kubectl: Kubectl, namespace: str) -> None:
    prepared = {"simulate": workloads, "run": objects, "queue": ran, "plan": rights, "doctor": whole}
    for verb in ON_A_CLUSTER:
        if verb in prepared:
            prepared[verb](typist, kubectl)
        for example in examples(verb):
            typist.type(example)
        if verb == "new":
            own(typist)
    typist.assert_all_was_right()


def own(typist: Typist) -> None:
    """A custom controller, as a folder and as a file."""
    typist.bash("cp -r greeting mine && cp greeting/controller.py mine.py && cp greeting/*.yaml .").checked()
    typist.bash("kubectl ctrl install ./mine").checked()


def workloads(typist: Typist, kubectl: Kubectl) -> None:
    for kind, name in (("Deployment", "web"), ("StatefulSet", "db")):
        text = _WEB.format(kind=kind, name=name)
        if kind == "Deployment":
            text = text.replace("  serviceName: web\n", "")
        (typist.folder / f"{name}.yaml").write_text(text)
        kubectl("apply", "-f", str(typist.folder / f"{name}.yaml"))


def objects(typist: Typist, kubectl: Kubectl) -> None:
    typist.bash(
        "kubectl ctrl example foo | sed 's/name: .*/name: web/; s/Name: .*/Name: pods/' | kubectl apply -f -"
    ).checked()
    typist.bash("kubectl ctrl example memcached | sed s/memcached-sample/cache/ | kubectl apply -f -").checked()
    typist.bash("kubectl ctrl example ./mine | sed 's/name: .*/name: hello/' | kubectl apply -f -").checked()


def ran(typist: Typist, kubectl: Kubectl) -> None:
    """Recorded runs; the last one has both controllers."""
    typist.bash("kubectl ctrl run ./mine.py --until-idle").checked()
    newest = typist.bash("kubectl ctrl trace greeting/hello -o jsonl").checked().out
    attempt = re.findall(r"\br[0-9a-f]{3,}-\d+\b", newest)
    assert attempt, newest
    number = re.findall(r"\br[0-9a-f]{3,}-(\d+)\b", typist.bash("kubectl ctrl trace foo/web -o jsonl").checked().out)
    typist.meaning = {"r7f3-12": attempt[0], "12": number[-1]}


def rights(typist: Typist, kubectl: Kubectl) -> None:
    kubectl("create", "role", "all", "--verb=*", "--resource=*.*")
    kubectl("create", "rolebinding", "jane", "--role=all", "--user=jane")
    granted_by_now(kubectl, "jane", "create", "events")


def whole(typist: Typist, kubectl: Kubectl) -> None:
    """More than the CRDs, which doctor finds."""
    typist.bash("kubectl ctrl install memcached").checked()


def test_with_managed_clusters(typist: Typist) -> None:
    own_kubeconfig = f"{typist.ctrl.env['XDG_STATE_HOME']}/kubectl-ctrl/clusters/ctrl/kubeconfig"
    typist.ctrl.env = {**typist.ctrl.env, "KUBECTL_CTRL_PROVIDER": "kwok"}
    try:
        typist.bash("kubectl ctrl new mine && cp mine/controller.py mine.py && cp mine/*.yaml .").checked()
        for verb in OF_CLUSTERS:
            if verb == "logs":  # as after `eval "$(kubectl ctrl cluster env)"`, with logs of both controllers
                typist.ctrl.env = {**typist.ctrl.env, "KUBECONFIG": own_kubeconfig}
                for name in ("ctrl", "two"):
                    typist.bash(f"kubectl ctrl up foo memcached --name {name} --detach").checked()
            for example in examples(verb):
                typist.type(example)
    finally:
        typist.bash("kubectl ctrl down --all").checked()
    typist.assert_all_was_right()
