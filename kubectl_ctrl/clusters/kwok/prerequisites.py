"""The programs that a kwok cluster needs: their paths, and those that kwokctl would have to download."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kubectl_ctrl.clusters import programs
from kubectl_ctrl.clusters.kwok import kwokctl
from kubectl_ctrl.clusters.kwok.config import OPTIONS, Configuration
from kubectl_ctrl.clusters.provider import ClusterSpec, Fitness, Machine
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.exec import run
from kubectl_ctrl.value import Value, field, replace

OLDEST = (0, 6)  # the first version of kwokctl that supports all flags and options used here
_GET = "kubectl ctrl doctor --fix kwok"
_FOLDER = "use a folder with them: --bin-dir DIR"
# The approximate sizes of the downloads in megabytes. Longest names first: some are prefixes of others.
_SIZES = {
    "kube-controller-manager": 74,
    "kube-apiserver": 88,
    "kube-scheduler": 50,
    "kubectl": 59,
    "etcd": 24,
    "kwok": 50,
}


class FoundPrograms(Value, kw_only=True):
    """The programs that were found. If the fitness is not usable, the other fields are empty."""

    fitness: Fitness
    version: str = ""  # of kwokctl
    links: Mapping[str, Path] = field(default_factory=dict)  # existing programs
    cache: Path = Path()
    downloads: Mapping[str, str] = field(default_factory=dict)  # program -> URL

    @property
    def announcement(self) -> str:
        size = sum(_SIZES[name] for name in self.downloads)
        hosts = " and ".join(sorted({urlsplit(url).hostname or "" for url in self.downloads.values()}))
        names = _list(self.downloads)
        return f"kwokctl downloads about {size} MB from {hosts}, kept in {str(self.cache)!r}: {names}"


async def needs_of(spec: ClusterSpec, configuration: Configuration, machine: Machine) -> FoundPrograms:
    program = programs.found("kwokctl", machine.environ, spec.bin_dir)
    if program is None:
        where = f"not in --bin-dir {str(spec.bin_dir)!r}" if spec.bin_dir else "not in PATH"
        step = "" if spec.bin_dir else _GET
        return _unusable(f"kwokctl is {where}", step or "use the folder that contains it", {"kwokctl": f"is {where}"})
    version, wrong = await _version(program)
    if wrong:
        # `doctor --fix` does not replace an existing program.
        step = f"install kwokctl v{OLDEST[0]}.{OLDEST[1]} or newer"
        return _unusable(f"{str(program)!r} {wrong}", step, {"kwokctl": wrong})
    kubectl = programs.found("kubectl", machine.environ, spec.bin_dir) or programs.found("kubectl", machine.environ)
    links = {"kwokctl": program, **({"kubectl": kubectl} if kubectl else {})}
    folder = spec.bin_dir or program.parent
    wanted = [name for name in OPTIONS if name != "kubectl"]
    lacking = {name: clause for name in wanted if (clause := programs.wrong(folder / name))}
    if kubectl is None:
        lacking["kubectl"] = "is neither in that folder nor in PATH"
    cache = Path(configuration.options.get("cacheDir") or machine.cache / "kwok")
    if spec.bin_dir is None and lacking:
        found = FoundPrograms(fitness=Fitness(usable=True, text=f"kwok {version}"), version=version, links=links)
        return await _with_downloads(spec, replace(found, cache=cache), machine)
    # A program whose path is set in the user's file is the user's responsibility.
    missing = {name: clause for name, clause in lacking.items() if OPTIONS[name] not in configuration.options}
    if missing:
        text = ", ".join(f"{name} {clause}" for name, clause in missing.items())
        return _unusable(f"in --bin-dir {str(folder)!r}: {text}", "add them to the folder, or omit --bin-dir", missing)
    links |= {name: folder.absolute() / name for name in wanted if name not in lacking}
    fitness = Fitness(usable=True, text=f"kwok {version}")
    return FoundPrograms(fitness=fitness, version=version, links=links, cache=cache)


async def _version(program: Path) -> tuple[str, str]:
    """The version, and the problem with the program, as a clause."""
    if clause := programs.wrong(program):
        return "", clause
    try:
        output = (await run([str(program), "--version"], timeout=10, env={})).stdout
    except CtrlError:
        return "", "cannot be run"
    found = re.search(r"v(\d+)\.(\d+)\S*", output)
    if found is None:
        return "", f"does not report its version: {output.strip()[:60]!r}"
    if (int(found[1]), int(found[2])) < OLDEST:
        return "", f"is {found[0]}, and v{OLDEST[0]}.{OLDEST[1]} or newer is needed"
    return found[0], ""


async def _with_downloads(spec: ClusterSpec, needs: FoundPrograms, machine: Machine) -> FoundPrograms:
    """Ask kwokctl for the URLs of the programs; it does not download those in its cache again."""
    words = ["get", "artifacts", "--runtime", "binary", "--filter", "binary"]
    config = ["--config", str(spec.config)] if spec.config else []
    env = kwokctl.environ(Path("/nonexistent"), machine.environ, path=Path("/nonexistent"))
    try:
        output = await run([str(needs.links["kwokctl"]), *words, *config], timeout=10, env=env)
    except CtrlError as error:
        return _unusable(f"kwokctl does not report its requirements: {error.message.rstrip('.')}", _FOLDER)
    wanted = {name: url for name, url in _named(output.stdout.split()) if name not in needs.links}
    missing = {name: url for name, url in wanted.items() if not _cached(url, needs.cache).exists()}
    if not missing:
        return needs
    if spec.offline:
        clauses = dict.fromkeys(missing, f"is not in {str(needs.cache)!r}")
        text = f"kwokctl would have to download {_list(missing)}, and --offline forbids it"
        return _unusable(text, f"{_FOLDER}, or omit --offline once", clauses)
    size = sum(_SIZES[name] for name in missing)
    fitness = Fitness(usable=True, text=f"{needs.fitness.text}, which downloads about {size} MB first")
    return replace(needs, fitness=fitness, downloads=missing)


def _named(artifacts: Iterable[str]) -> Iterable[tuple[str, str]]:
    """The programs of every cluster with their URLs, without the paths of local files: kwokctl reports missing ones."""
    for url in artifacts:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https"):
            file = parts.fragment or parts.path.rpartition("/")[2]
            name = next((name for name in _SIZES if file.startswith(name)), "")
            if name:
                yield name, url


def _cached(url: str, cache: Path) -> Path:
    """kwokctl's cache file for a URL; a file from an archive (after `#`) is cached beside the archive."""
    parts = urlsplit(url)
    place = cache / parts.scheme / parts.netloc / parts.path.lstrip("/")
    return place.with_name(parts.fragment) if parts.fragment else place


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _unusable(text: str, next_step: str, missing: Mapping[str, str] | None = None) -> FoundPrograms:
    return FoundPrograms(fitness=Fitness(usable=False, text=text, next_step=next_step, missing=missing or {}))
