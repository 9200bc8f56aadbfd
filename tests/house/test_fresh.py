"""hack/fresh without root, Debian systems and a package index: its commands, and its judgement of their results."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

README = """\
`pip install .` and `uv tool install .` install it; `kubectl ctrl options` is no install.

```sh
bin/kubectl-ctrl up foo     # the first call
hack/test                   # all
make coffee
```

```sh
kubectl ctrl new lizard                    # a folder
```
"""


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of hack/fresh, which are not part of an installed package."""
    for folder in ("hack/realkube.d", "hack/fresh.d"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    ours = ("fresh", "readme", "machine", "debian")
    yield {name: importlib.import_module(name) for name in (*ours, "realkube.rootfs")}
    for name in [name for name in sys.modules if name.split(".")[0] in (*ours, "realkube")]:
        del sys.modules[name]


def typed(modules: dict[str, ModuleType], readme: Path) -> list[str]:
    return [step.command for step in modules["fresh"].steps(modules["readme"].Readme(readme), "hack/test --quickly")]


def test_what_the_readme_says_is_what_a_newcomer_types(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README)
    commands = typed(modules, tmp_path / "README.md")
    assert [word for word in commands if word.startswith(("bin/", "hack/test", "make"))] == [
        "bin/kubectl-ctrl up foo",
        "hack/test --quickly",
        "make coffee",
    ]
    installs = [command for command in commands if " install . " in command]
    assert [any(words in command for command in installs) for words in ("pip install", "uv tool", "pipx")] == [1, 1, 0]
    assert "kubectl-ctrl new lizard && cd lizard" in commands[-1]


@pytest.mark.parametrize("missing", ["```sh", "install .", "new lizard"])
def test_readme_without_a_command_fails(missing: str, modules: dict[str, ModuleType], tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(README.replace(missing, "gone"))
    with pytest.raises(LookupError, match=r"README\.md has no command"):
        typed(modules, tmp_path / "README.md")


def test_the_readme_of_this_checkout_has_all_of_it(modules: dict[str, ModuleType]) -> None:
    commands = typed(modules, ROOT / "README.md")
    assert {"bin/kubectl-ctrl down", "hack/test --quickly"} <= set(commands)
    for tool in ("pip", "pipx", "uv tool"):
        assert any(f"{tool} install ." in command for command in commands)


def test_tests_have_no_network(modules: dict[str, ModuleType]) -> None:
    steps = modules["fresh"].steps(modules["readme"].Readme(ROOT / "README.md"), "hack/test")
    assert [step.command for step in steps if not step.index] == ["hack/test"]


@pytest.mark.parametrize(
    ("code", "output", "verdict"),
    [
        (3, "error[X]: no", ""),
        (0, "error[X]: no", "exit code 0; expected exit code 3 and 'error[X]'"),
        (3, "Traceback", "exit code 3; expected exit code 3 and 'error[X]'"),
    ],
)
def test_step_that_ends_otherwise_than_documented_fails(
    code: int, output: str, verdict: str, modules: dict[str, ModuleType]
) -> None:
    step = modules["fresh"].Step(command="x", code=3, prints="error[X]")
    assert modules["fresh"].mismatch(step, modules["machine"].Ended(code=code, output=output)) == verdict


@pytest.mark.parametrize(
    ("name", "handed_on"),
    [
        ("PIP_INDEX_URL", True),
        ("https_proxy", True),
        ("HTTPS_PROXY", True),
        ("SSL_CERT_FILE", True),
        ("PIP_CACHE_DIR", False),
        ("PYTHONPATH", False),
        ("KUBECONFIG", False),
        ("CI", False),
    ],
)
def test_only_the_way_to_the_index_is_handed_on(name: str, handed_on: bool, modules: dict[str, ModuleType]) -> None:
    assert bool(modules["machine"].INDEX_VARIABLES.fullmatch(name)) is handed_on


def test_without_root_it_cannot_run(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "apt-get").touch(0o755)
    monkeypatch.setattr(modules["realkube.rootfs"], "SYSTEM_PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["hack/fresh", "prepare"])
    assert modules["fresh"].main() == 3
    assert "debootstrap must be installed: that requires root." in capsys.readouterr().err
