"""The flags and arguments of the verbs that create, change and delete a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.errors import UsageError

_MOST_NODES = 1000


def spec(given: ParsedCommandLine) -> ClusterSpec:
    """The cluster that the flags describe; raises for invalid flags before anything is changed."""
    from kubectl_ctrl.clusters.providers import AUTO, PROVIDERS  # slow to import, and not needed by `cluster env`

    nodes, wait = given["nodes"], given["wait"]
    check_nodes(nodes)
    if not 0 < wait <= 1e9:
        raise UsageError("Invalid value for --wait: it must be positive.", next_step="for instance: --wait 3m")
    images = given.flags.get("load", ())
    if "" in images:
        raise UsageError("--load needs an image.", next_step="for instance: --load mine:dev")
    given.one_of("provider", (AUTO, *PROVIDERS))
    return ClusterSpec(
        image=given["image"],
        config=_existing(given["config"], "--config", "file"),
        wait=wait,
        keep_on_failure=given["keep_on_failure"],
        bin_dir=_existing(given["bin_dir"], "--bin-dir", "folder"),
        offline=given["offline"],
        nodes=nodes,
        load=bool(images),
    )


def check_nodes(nodes: int | None) -> None:
    if nodes is not None and not 0 <= nodes <= _MOST_NODES:
        raise UsageError(
            f"Invalid value for --nodes: it must be a whole number from 0 to {_MOST_NODES}.",
            next_step="for instance: --nodes 3",
        )


def _existing(word: str, flag: str, what: str) -> Path | None:
    if not word:
        return None
    path = Path(word).expanduser().absolute()
    if not (path.is_dir() if what == "folder" else path.is_file()):
        raise UsageError(f"There is no {what} {word!r}.", tried=str(path), next_step=f"correct {flag}")
    return path


def named(given: ParsedCommandLine, words: Sequence[str]) -> str:
    """The name in the arguments, or else of --name or its environment variable, or ""."""
    if len(words) > 1:
        raise UsageError(
            f"Only one name is allowed, not {' '.join(words)}.", next_step="repeat the command for each of them"
        )
    return words[0] if words else str(given["name"])
