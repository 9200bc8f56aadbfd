"""What `doctor` says of this machine: the programs that are there, and whether clusters can be made with them."""

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
from kubectl_ctrl.doctor.checks import PATIENCE, Bench, fail, info, ok, warn
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.target import guard
from kubectl_ctrl.text import counted
from kubectl_ctrl.value import Value
from kubectl_ctrl.version import VERSION

_PROGRAM = "kubectl-ctrl"
_CODE = Path(__file__).resolve().parents[2]  # the checkout, or whatever folder holds the package
_COMPLETION = "kubectl_complete-ctrl"
_MINOR = re.compile(r"v?(\d+)\.(\d+)")
_SKEW = 1  # minor versions that kubectl may be away from its server, either way


async def python(bench: Bench) -> Sequence[Line]:
    """Which Python runs us; that it is new enough is what whoever starts us has seen to."""
    how = installation(_CODE, Path(sys.prefix))
    return (ok("python", f"kubectl-ctrl {VERSION} {how}, with Python {platform.python_version()}"),)


def installation(package: Path, prefix: Path) -> str:
    """How we came to be here, told from where we lie."""
    if (package / "bin" / _PROGRAM).is_file() and (package / "pyproject.toml").is_file():
        return f"from the checkout {package}"
    parts = prefix.parts
    if "pipx" in parts:
        return "installed with pipx"
    if {"uv", "tools"} <= set(parts):
        return "installed with uv tool"
    return f"installed with pip in {prefix}"


async def plugin(bench: Bench) -> Sequence[Line]:
    """Whether kubectl finds us, and completes our words."""
    lines: list[Line] = []
    if _found(_PROGRAM, bench) is None:
        folder = _CODE / "bin"
        there = folder if (folder / _PROGRAM).is_file() else Path(sys.executable).parent
        text = f"{_PROGRAM} is not in PATH, so kubectl does not know ctrl"
        lines.append(warn("plugin", text, command=f"export PATH={command(there)}:$PATH"))
    if (path := _found(_COMPLETION, bench)) is not None:
        lines.append(ok("completion", f"kubectl completes our words with {path}"))
    else:
        text = f"completion is not installed: there is no {_COMPLETION} in PATH"
        lines.append(info("completion", text, command="kubectl ctrl completion install"))
    return lines


async def configuration(bench: Bench) -> Sequence[Line]:
    """Whether our own file can be read, which verbs that change a cluster need; most people have none."""
    file = bench.user.config_file
    allowed = guard.standing_list(file)  # raises where they would fail
    return (info("config", f"{file} allows {counted(len(allowed), 'context')}"),) if file.exists() else ()


# kubectl.


class Kubectl(Value, kw_only=True):
    """The kubectl that would be used; `version` is "" where it does not tell, and `why` says why."""

    path: str
    version: str = ""
    why: str = ""


async def kubectl_of(bench: Bench) -> Kubectl | None:
    """The one that called us, else the first in PATH."""
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
        return Kubectl(path=path, why="what it says of its version cannot be read.")
    return Kubectl(path=path, version=version)


async def kubectl(bench: Bench) -> Sequence[Line]:
    """Nothing of ours fails without it: the verbs work as kubectl-ctrl as well."""
    found = await kubectl_of(bench)
    if found is None:
        text = "kubectl is not in PATH; until then every verb is called as kubectl-ctrl VERB"
        return (warn("kubectl", text, command="kubectl-ctrl doctor --fix kubectl"),)
    if found.why:
        return (fail("kubectl", f"kubectl does not work: {found.why.rstrip('.')}", code=5, advice=_mend(found.path)),)
    return (ok("kubectl", f"kubectl {found.version} ({found.path})"),)


def _mend(path: str) -> str:
    return f"mend or replace {path}, or set KUBECTL_PATH to another one"


async def skew(bench: Bench) -> Sequence[Line]:
    """kubectl works with servers that are one minor version older or newer."""
    there = await bench.reach.reached()
    found = await kubectl_of(bench)
    if found is None or not found.version:
        return ()
    ours, theirs = minor(found.version), minor(there.version)
    if ours is None or theirs is None:
        text = f"whether kubectl {found.version} fits a server {there.version} cannot be told"
        return (info("skew", text),)
    if ours[0] == theirs[0] and abs(ours[1] - theirs[1]) <= _SKEW:
        return (ok("skew", f"kubectl {found.version} fits the server {there.version}"),)
    return (
        warn(
            "skew",
            f"kubectl {found.version} is too far from the server {there.version}: one minor version is supported",
            advice=f"get a kubectl of {theirs[0]}.{theirs[1]}, or set KUBECTL_PATH to one",
        ),
    )


def minor(version: str) -> tuple[int, int] | None:
    """`v1.36.3` and `v1.36.3-eks-1` are 1.36."""
    match = _MINOR.match(version)
    return (int(match[1]), int(match[2])) if match else None


# Providers.


async def providers(bench: Bench) -> Sequence[Line]:
    """Each way to make a cluster, and what it lacks; it is only a failure where there is neither way nor cluster."""
    found = await bench.fitness()
    able = any(one.usable for one in found.values())
    lonely = not able and await bench.reach.if_reached() is None
    lines = [line for name, one in found.items() for line in _provider(name, one)]
    lines = list(dict.fromkeys(lines))  # of a program that two of them lack it is told once
    if not able:
        text = "no cluster can be made on this machine"
        advice = "get one of the above: kubectl ctrl doctor --fix kwok needs no container runtime"
        lines.append(
            fail("providers", text, code=5, advice=advice) if lonely else warn("providers", text, advice=advice)
        )
    return lines


def _provider(name: str, found: Fitness) -> Sequence[Line]:
    head = ok(name, found.text) if found.usable else _unusable(name, found)
    told = [line for program, why in found.missing.items() if (line := _missing(program, why, found.text))]
    return [head, *told]


def _unusable(name: str, found: Fitness) -> Line:
    text = found.text if name in found.text else f"{name}: {found.text}"
    getting = str(ctrl("doctor", "--fix", name))
    if found.next_step == getting:
        return warn(name, text, command=getting)
    return warn(name, text, advice=found.next_step)


def _missing(program: str, why: str, told: str) -> Line | None:
    """What is wrong with one program, where that is not said yet."""
    return None if re.search(rf"\b{re.escape(program)}\b", told) else info(program, f"{program}: {why}")


# What is there.


def _found(program: str, bench: Bench) -> str | None:
    return shutil.which(program, path=search_path(bench.user.environ))


def search_path(environ: Mapping[str, str]) -> str:
    return environ.get("PATH", "")
