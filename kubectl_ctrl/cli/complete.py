"""`kubectl_complete-ctrl`: what kubectl calls for completion. One candidate per line; silent on every error.

kubectl gives the plugin's words, the last of them unfinished (empty when a new one begins), and reads back
`value<TAB>description` lines and one `:N` line of cobra's directive bits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from kubectl_ctrl.cli import table
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Verb
from kubectl_ctrl.cli.flags import GLOBAL_FLAGS
from kubectl_ctrl.cli.grammar import Flag, before_verb, split

_FILES, _NO_FILES = 0, 4
# What the value of a flag is, where a recording knows such: a key of recalling.SORTS.
_VALUES = {"controller": "any controller", "recorded-cluster": "clusters", "run": "runs", "id": "numbers"}


def candidates(app: App, words: Sequence[str]) -> list[tuple[str, str]]:
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
        elif flag := _awaited(rest, verb.all_flags):
            sort = _VALUES.get(flag.long, "") if verb.recalls else ""
            offers = _recalled(app, verb, sort, rest[:-1], last)
        else:
            recalled = _recalled(app, verb, verb.recalls, rest, last)
            offers = [pair for pair in _once([*_plain(verb, rest), *recalled]) if pair[0] not in rest]
    # A recording holds names that nobody could type; none of them may drive the terminal.
    return [pair for pair in offers if pair[0].startswith(last) and all(map(str.isprintable, pair))]


def directive(words: Sequence[str]) -> int:
    """Whether the shell offers files where nothing else is: to somebody who began to write a path, and to flags."""
    last = words[-1] if words else ""
    if "/" in last or last.startswith((".", "~")):
        return _FILES
    name, rest = before_verb(list(words[:-1]), GLOBAL_FLAGS, table.names())
    if name not in table.names() or last.startswith("-"):
        return _NO_FILES
    verb = table.load(table.find(name))
    awaited = _awaited(rest, verb.all_flags)
    file = awaited.metavar in ("FILE", "DIR") if awaited is not None else verb.takes_file
    return _FILES if file else _NO_FILES


def _plain(verb: Verb, rest: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Of what recalls, only the first argument has candidates of its own."""
    return () if verb.recalls and split(rest, verb.all_flags).arguments else verb.completes()


def _recalled(app: App, verb: Verb, sort: str, rest: Sequence[str], last: str) -> list[tuple[str, str]]:
    """What a recording offers; nothing where there is none, or where it cannot be read."""
    if sort:
        # Not for those who complete the name of a verb.
        from kubectl_ctrl.cli.recalling import recalled

        with suppress(Exception):  # whatever it is, it must not break the user's line
            given = verb.parse(rest, app.environ)
            return recalled(sort, app, given, last) if given is not None else []
    return []


def _once(offers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first of each value: what is bundled has better words than what was recorded."""
    found: dict[str, str] = {}
    for value, text in offers:
        found.setdefault(value, text)
    return list(found.items())


def _awaited(rest: Sequence[str], flags: Sequence[Flag]) -> Flag | None:
    """The flag whose value the next word is; None where it is an argument."""
    word = rest[-1] if rest else ""
    return next((flag for flag in flags if not flag.switch and word in (f"--{flag.long}", f"-{flag.short}")), None)


def _flags(flags: Sequence[Flag]) -> list[tuple[str, str]]:
    return [(f"--{flag.long}", (flag.help or "").split(". ")[0].rstrip(".")) for flag in flags]


def main() -> int:
    """Print the candidates; an error offers nothing and says nothing."""
    try:
        lines = [f"{value}\t{text}" for value, text in candidates(App.of_this_process(), sys.argv[1:])]
        end = directive(sys.argv[1:])
    except Exception:  # noqa: BLE001 - anything on the terminal here would break the user's line
        lines, end = [], _NO_FILES
    print("\n".join([*lines, f":{end}"]))  # noqa: T201 - this is the protocol
    return 0


if __name__ == "__main__":
    sys.exit(main())
