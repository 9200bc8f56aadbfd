"""The README's commands, a reader who types them, and the output of the first tour, for all lanes."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT, Ran, run, wait_until
from e2e.user import User

README = (CHECKOUT / "README.md").read_text()
_EDITS = tuple(f"kubectl {verb} " for verb in ("annotate", "label", "patch", "scale", "edit"))
_READS = tuple(f"kubectl {verb} " for verb in ("get", "events", "ctrl trace", "ctrl explain", "ctrl plan", "ctrl rbac"))


def commands(heading: str) -> list[str]:
    """The lines of a section's shell blocks, without comments."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [command for command, _ in steps(section)]


def steps(page: str) -> list[tuple[str, str]]:
    """The lines of a page's shell blocks without comments, each with the text block after it, or ""."""
    found: list[tuple[str, str]] = []
    for language, block in re.findall(r"^```(sh|text)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        if language == "sh":
            found += [(line.split("  #")[0].strip(), "") for line in block.splitlines()]
        else:
            found[-1] = (found[-1][0], block)
    return found


def absent(block: str, shown: str) -> str:
    """The first line of a text block that is missing from the output, in order; "" if none is.

    `...` matches any text, and whitespace any whitespace. A line of the block may be part of a line of the output.
    """
    at = 0
    for line in block.splitlines():
        parts = [r"\s+".join(map(re.escape, part.split())) for part in line.split("...")]
        if not (found := re.compile(r"[^\n]*?".join(parts)).search(shown, at)):
            return line
        at = found.end()
    return ""


class Reader:
    """Types commands into one shell; a `run` goes to the background until Ctrl-C."""

    def __init__(self, ctrl: Ctrl) -> None:
        self._ctrl = ctrl
        self._env = dict(ctrl.env)
        self._after = ctrl.folder / "environment"
        self._edited = 0

    def typed(self, command: str) -> Ran:
        """Whatever comes out; what the command makes of the shell's variables is there for the next one."""
        if command.startswith(_EDITS):
            # managedFields count in whole seconds: of two edits within one, `trace` cannot name the author.
            wait_until(lambda: int(time.time()) > self._edited, every=0.05, what="the next second")
        script = f"{command}\ncode=$?; env -0 >{shlex.quote(str(self._after))}; exit $code"
        ran = run("bash", "-o", "pipefail", "-c", script, env=self._env, timeout=300)
        if command.startswith(_EDITS):
            self._edited = int(time.time())
        pairs = [pair.partition("=") for pair in self._after.read_text().split("\0") if pair]
        self._env = {name: value for name, _, value in pairs}
        return replace(ran, command=(command,))

    def type(self, command: str) -> str:
        return self.typed(command).checked().out

    def shown(self, command: str, pattern: str) -> str:
        """Its output, which has to match the pattern; a command that only reads is repeated until it does."""
        return self._once(command, lambda text: "" if re.search(pattern, text) else pattern)

    def follow(self, page: str) -> None:
        """Type a page's commands, which have to print the page's text; Ctrl-C before `uninstall`."""
        for command, block in steps(page):
            if command.startswith("kubectl ctrl run "):
                self.begin(command)
                continue
            if command.startswith("kubectl ctrl uninstall "):
                self.end()
            self._once(command, partial(absent, block))

    def _once(self, command: str, missing: Callable[[str], str]) -> str:
        def output() -> str:
            ran = self.typed(command).checked()
            line = missing(ran.out + ran.err)
            assert not line, f"{command}\ndoes not print {line!r}:\n{ran.out}{ran.err}"
            return ran.out + ran.err

        return wait_until(output, what=command) if command.startswith(_READS) else output()

    def start(self, command: str) -> None:
        """`kubectl ctrl run ...`, until it has reconciled something."""
        self.begin(command)
        self._running.line(r"\bdone\b|rollout")

    def begin(self, command: str) -> None:
        words = shlex.split(command)
        assert words[:3] == ["kubectl", "ctrl", "run"]
        self._running = self._ctrl.started(*words[2:])

    def end(self) -> None:
        assert self._running.stop() == 0

    def kill(self) -> None:
        for started in self._ctrl.all_started:
            started.kill()


# The essential output of each line of the first block.
TOUR = (
    "",
    r"ok +{provider} v[^|]*Recordings",
    (
        r"memcached runs in the background \(process [^|]*context {provider}-\S+; "
        r"(your context \S+ is unchanged|you have no current context)\n.*cluster env"
    ),
    "",
    r"memcached-sample +3 +3 (.|\n)*(pod/memcached-sample-\S+ +1/1 +Running .*\n){3}",
    r"memcached-sample patched",
    r"spec\.size 3→5 by kubectl-patch .*apply Deployment/memcached-sample 200 (.|\n)*\nNEXT ",
    # Where the pods of a slow machine come late, the edit stands apart from the chain.
    r"^CONVERGED for (.|\n)* spec\.size 3→5 by kubectl-patch (.|\n)*\nCHAIN +kub(.|\n)*triggered by Memcached",
    # Of the five lines of the log, one may be a warning about a slow machine.
    r"(.* default/memcached-sample r\w+-\d+ .*\n){2}(.|\n)*memcached: run r\w+, process \d+",
    r"1 controller stopped(.|\n)*cluster \S+ \({provider}\) deleted(.|\n)*files deleted",
    r"^cluster \S+ \({provider}\), deleted (.|\n)*spec\.size 3→5 by kubectl-patch",
    "",
)


@contextmanager
def tourist(folder: Path, env: Mapping[str, str], kubeconfig: str) -> Iterator[Reader]:
    """A reader in a checkout, with this kubeconfig in the default place, which must not change."""
    config = folder / "home" / ".kube" / "config"
    config.parent.mkdir(parents=True)
    config.write_text(kubeconfig)
    env = {**env, "HOME": str(folder / "home")}
    del env["KUBECONFIG"]
    reader = Reader(Ctrl(env, folder))
    yield reader
    reader.kill()
    assert config.read_text() == kubeconfig, "The tour changed the reader's kubeconfig."


def take(reader: Reader, user: User, provider: str) -> None:
    """Type the first block and check its output; after `down` nothing of the user's cluster may be left."""
    typed = commands("First tour")
    assert len(typed) > len(TOUR)
    for step, pattern in zip(typed, TOUR, strict=False):
        shown = reader.shown(step, pattern.replace("{provider}", provider))
        if step == "kubectl ctrl down":
            assert (user.processes(), user.files()) == ([], []), shown
