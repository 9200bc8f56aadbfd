"""`doctor` about this machine: the installed programs, and whether they can create clusters."""

from __future__ import annotations

import json
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl.clusters.provider import Fitness
from kubectl_ctrl.doctor.checks import PATIENCE, CheckInput, fail, info, ok, warn
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.target import guard
from kubectl_ctrl.text import counted
from kubectl_ctrl.value import Value
from kubectl_ctrl.version import VERSION

_PROGRAM = "kubectl-ctrl"
_CODE = Path(__file__).resolve().parents[2]  # the folder with the package, such as a checkout
_COMPLETION = "kubectl_complete-ctrl"
_MINOR = re.compile(r"v?(\d+)\.(\d+)")
_SKEW = 1  # the supported difference of the minor versions of kubectl and its server


async def python(bench: CheckInput) -> Sequence[Line]:
    """The version of Python; the start script has checked that it is supported."""
    how = installation(_CODE, Path(sys.prefix))
    return (ok("python", f"kubectl-ctrl {VERSION} {how}, with Python {platform.python_version()}"),)


def installation(package: Path, prefix: Path) -> str:
    """The way of installation, from the paths of the package and of Python."""
    if (package / "bin" / _PROGRAM).is_file() and (package / "pyproject.toml").is_file():
        return f"from the checkout {package}"
    parts = prefix.parts
    if "pipx" in parts:
        return "installed with pipx"
    if {"uv", "tools"} <= set(parts):
        return "installed with uv tool"
    return f"installed with pip in {prefix}"


async def plugin(bench: CheckInput) -> Sequence[Line]:
    """Whether kubectl finds the plugin, and its completion."""
    lines: list[Line] = []
    if _found(_PROGRAM, bench) is None:
        folder = _CODE / "bin"
        own = folder if (folder / _PROGRAM).is_file() else Path(sys.executable).parent
        text = f"{_PROGRAM} is not in PATH, so `kubectl ctrl` does not work"
        lines.append(warn("plugin", text, command=f"export PATH={command(own)}:$PATH"))
    if (path := _found(_COMPLETION, bench)) is not None:
        lines.append(ok("completion", f"kubectl completes `kubectl ctrl` with {path}"))
    else:
        text = f"completion is not installed: there is no {_COMPLETION} in PATH"
        lines.append(info("completion", text, command="kubectl ctrl completion install"))
    return lines


async def configuration(bench: CheckInput) -> Sequence[Line]:
    """Whether the configuration file, if there is one, can be read."""
    file = bench.user.config_file
    allowed = guard.standing_list(file)  # raises if verbs that change a cluster would fail
    return (info("config", f"{file} allows {counted(len(allowed), 'context')}"),) if file.exists() else ()


# kubectl.


class Kubectl(Value, kw_only=True):
    """The kubectl that is used; if it does not report its version, `why` has the reason."""

    path: str
    version: str = ""
    why: str = ""


async def kubectl_of(bench: CheckInput) -> Kubectl | None:
    """The kubectl that started kubectl ctrl, or else the first in PATH."""
    path = bench.user.environ.get("KUBECTL_PATH") or _found("kubectl", bench)
    if not path:
        return None
    try:
        said = await programs.run(
            [path, "version", "--client", "--output=json"], timeout=PATIENCE / 2, env=bench.user.environ
        )
        version = str(json.loads(said.stdout)["clientVersion"]["gitVersion"])
    except CtrlError as error:
        return Kubectl(path=path, why=error.message)
    except (ValueError, KeyError, TypeError):
        return Kubectl(path=path, why="its version cannot be read.")
    return Kubectl(path=path, version=version)


async def kubectl(bench: CheckInput) -> Sequence[Line]:
    """A missing kubectl is no failure: all verbs work as kubectl-ctrl too."""
    found = await kubectl_of(bench)
    if found is None:
        text = "kubectl is not in PATH; without it, use kubectl-ctrl VERB"
        return (warn("kubectl", text, command="kubectl-ctrl doctor --fix kubectl"),)
    if found.why:
        advice = f"repair or replace {found.path}, or set KUBECTL_PATH to another one"
        return (fail("kubectl", f"kubectl does not work: {found.why.rstrip('.')}", code=5, advice=advice),)
    return (ok("kubectl", f"kubectl {found.version} ({found.path})"),)


async def skew(bench: CheckInput) -> Sequence[Line]:
    """kubectl supports servers that are one minor version older or newer."""
    there = await bench.reach.reached()
    found = await kubectl_of(bench)
    if found is None or not found.version:
        return ()
    ours, theirs = minor(found.version), minor(there.version)
    if ours is None or theirs is None:
        text = f"the versions of kubectl ({found.version}) and the server ({there.version}) cannot be compared"
        return (info("skew", text),)
    if ours[0] == theirs[0] and abs(ours[1] - theirs[1]) <= _SKEW:
        return (ok("skew", f"kubectl {found.version} supports the server's version {there.version}"),)
    return (
        warn(
            "skew",
            f"kubectl {found.version} and the server ({there.version}) differ by more than one minor version",
            advice=f"install kubectl {theirs[0]}.{theirs[1]}, or set KUBECTL_PATH to it",
        ),
    )


def minor(version: str) -> tuple[int, int] | None:
    """`v1.36.3` and `v1.36.3-eks-1` are 1.36."""
    match = _MINOR.match(version)
    return (int(match[1]), int(match[2])) if match else None


# Providers.


async def providers(bench: CheckInput) -> Sequence[Line]:
    """Each provider and the programs that it lacks. One always works: the sandbox, which is part of this package."""
    found = await bench.fitness()
    lines = [line for name, one in found.items() for line in _provider(name, one)]
    return list(dict.fromkeys(lines))  # a program that two providers lack is reported once


def _provider(name: str, found: Fitness) -> Sequence[Line]:
    text = found.text if name in found.text else f"{name}: {found.text}"
    installation = str(ctrl("doctor", "--fix", name))
    if found.usable:
        head = ok(name, found.text)
    elif found.next_step == installation:
        head = warn(name, text, command=installation)
    else:
        head = warn(name, text, advice=found.next_step)
    # A program that the text names is reported already.
    missing = {one: why for one, why in found.missing.items() if not re.search(rf"\b{re.escape(one)}\b", found.text)}
    return [head, *(info(program, f"{program}: {why}") for program, why in missing.items())]


def _found(program: str, bench: CheckInput) -> str | None:
    return shutil.which(program, path=search_path(bench.user.environ))


def search_path(environ: Mapping[str, str]) -> str:
    return environ.get("PATH", "")
