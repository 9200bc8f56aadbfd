"""`kubectl_complete-ctrl`: what kubectl calls for completion. One candidate per line; silent on every error.

kubectl gives the plugin's words, the last of them unfinished (empty when a new one begins), and reads back
`value<TAB>description` lines and one `:N` line of cobra's directive bits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from kubectl_ctrl.cli import table
from kubectl_ctrl.cli.flags import GLOBAL_FLAGS
from kubectl_ctrl.cli.grammar import Flag, before_verb

_FILES, _NO_FILES = 0, 4


def candidates(words: Sequence[str]) -> list[tuple[str, str]]:
    """What may stand in place of the last word, with descriptions."""
    given, last = list(words[:-1]), words[-1] if words else ""
    name, rest = before_verb(given, GLOBAL_FLAGS, table.names())
    if not name:
        offers: Iterable[tuple[str, str]] = ((entry.name, entry.summary) for entry in table.VERBS)
        offers = [*offers, *_flags(GLOBAL_FLAGS)] if last.startswith("-") else offers
    else:
        verb = table.load(table.find(name))
        if last.startswith("-"):
            offers = _flags(verb.all_flags)
        elif rest and _wants_value(rest[-1], verb.all_flags):
            offers = ()
        else:
            offers = [pair for pair in verb.completes() if pair[0] not in rest]
    return [(value, text) for value, text in offers if value.startswith(last)]


def directive(words: Sequence[str]) -> int:
    """Whether the shell offers files: to somebody who began to write a path, as to a controller of their own."""
    last = words[-1] if words else ""
    return _FILES if "/" in last or last.startswith((".", "~")) else _NO_FILES


def _wants_value(word: str, flags: Sequence[Flag]) -> bool:
    """Whether the next word is the value of this flag, and no argument."""
    return any(not flag.switch and word in (f"--{flag.long}", f"-{flag.short}") for flag in flags)


def _flags(flags: Sequence[Flag]) -> list[tuple[str, str]]:
    return [(f"--{flag.long}", (flag.help or "").split(". ")[0].rstrip(".")) for flag in flags]


def main() -> int:
    """Print the candidates; an error offers nothing and says nothing."""
    try:
        lines = [f"{value}\t{text}" for value, text in candidates(sys.argv[1:])]
    except Exception:  # noqa: BLE001 - anything on the terminal here would break the user's line
        lines = []
    print("\n".join([*lines, f":{directive(sys.argv[1:])}"]))  # noqa: T201 - this is the protocol
    return 0


if __name__ == "__main__":
    sys.exit(main())
