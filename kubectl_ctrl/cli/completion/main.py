"""`kubectl_complete-ctrl`, which kubectl calls for completion. One candidate per line; silent on every error.

kubectl passes the plugin's arguments, the last of them unfinished (empty at the start of a new one), and reads
`value<TAB>description` lines and one `:N` line of cobra's directive bits. The scripts of `kubectl ctrl completion` call
`kubectl-ctrl __complete`, which does the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import GLOBAL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import Flag, before_verb, split
from kubectl_ctrl.cli.parsing.verb import Verb
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.value import Value

Pairs = Iterable[tuple[str, str]]

_FILES, _NO_SPACE, _NO_FILES = 0, 2, 4
# Flags whose values are completed from the recording: a key of recorded.SORTS.
_RECALLED = {
    "controller": "any controller",
    "id": "numbers",
    "recorded-cluster": "clusters",
    "run": "runs",
    "until": "goals",
}
# Flags whose values are completed from other sources: a key of candidates.SORTS.
_OFFERED = {
    "allow-context": "contexts",
    "cluster": "kubeconfig clusters",
    "context": "contexts",
    "name": "our clusters",
    "namespace": "namespaces",
    "user": "users",
}
# Before the verb is typed.
_NO_VERB = Verb(name="", usage="", examples=(), body=lambda _app, _given: 0)


class _Place(Value, kw_only=True):
    """The position of the last word in the command line."""

    verb: Verb
    rest: Sequence[str]  # the words between the verb and the last one
    last: str  # without `--flag=`
    awaited: Flag | None = None  # the flag whose value it is
    begins_flag: bool = False


def _place(words: Sequence[str]) -> _Place:
    given, last = list(words[:-1]), words[-1] if words else ""
    name, rest = before_verb(given, GLOBAL_FLAGS, table.names())
    verb = table.load(table.find(name)) if name not in ("", "help") else _NO_VERB
    if "--" in rest:
        return _Place(verb=verb, rest=rest, last=last)
    before = rest[-1] if rest else ""
    for flag in verb.all_flags:
        names = (f"--{flag.long}", f"-{flag.short}" if flag.short else f"--{flag.long}")
        typed, equals, value = last.partition("=")
        if equals and typed in names:
            return _Place(verb=verb, rest=rest, last=value, awaited=flag)
        if before in names and not flag.switch:
            return _Place(verb=verb, rest=rest[:-1], last=last, awaited=flag)
    return _Place(verb=verb, rest=rest, last=last, begins_flag=last.startswith("-"))


def completions(app: App, words: Sequence[str]) -> list[tuple[str, str]]:
    """Completions of the last word, or of the flag value in it, with descriptions."""
    place = _place(words)
    # Recorded names may contain control characters, which must not reach the terminal.
    return [
        pair
        for pair in _offers(app, place)
        if pair[0].startswith(place.last) and pair[0] and all(map(str.isprintable, pair))
    ]


def directive(words: Sequence[str], offered: Sequence[tuple[str, str]] = ()) -> int:
    """cobra's directive bits: whether the shell offers files if there are no completions, and whether it adds a space.

    It offers files for words that look like a path, and for arguments that can be a file.
    """
    last = words[-1] if words else ""
    if "/" in last or last.startswith((".", "~")):
        return _FILES
    try:
        place = _place(words)
    except CtrlError:
        return _NO_FILES
    if place.awaited is not None:
        file = place.awaited.metavar in ("FILE", "DIR", "CONTROLLER")
    else:
        file = place.verb.takes_file and not place.begins_flag
    open_ended = offered and all(value.endswith("=") for value, _ in offered)
    return (_FILES if file else _NO_FILES) | (_NO_SPACE if open_ended else 0)


def _offers(app: App, place: _Place) -> Pairs:
    verb, flag = place.verb, place.awaited
    if flag is not None:
        return _values(app, place, flag)
    if place.begins_flag:
        return _flags(verb, place.rest)
    if verb is _NO_VERB:
        return ((entry.name, entry.summary) for entry in table.VERBS)
    return [pair for pair in _arguments(app, place) if pair[0] not in place.rest]


def _values(app: App, place: _Place, flag: Flag) -> Pairs:
    if flag.choices:
        return ((word, "") for word in flag.choices)
    if flag.metavar == "CONTROLLER":
        return bundled.candidates()
    return _found(app, place, _RECALLED.get(flag.long) or _OFFERED.get(flag.long, ""))


def _arguments(app: App, place: _Place) -> Pairs:
    """The verb's own candidates first, which have better descriptions, then recorded ones."""
    verb = place.verb
    own = () if (verb.recalls or verb.takes_one) and split(place.rest, verb.all_flags).arguments else verb.completes()
    offers: dict[str, str] = {}
    for value, text in [*own, *_found(app, place, verb.recalls)]:
        offers.setdefault(value, text)
    return offers.items()


def _found(app: App, place: _Place, sort: str) -> Pairs:
    """The candidates of one sort; none if they cannot be read."""
    if not sort:
        return ()
    with suppress(Exception):  # no error may reach the user's command line
        given = place.verb.parse(place.rest, app.user.environ)
        if given is None:
            return ()
        # Imported here: completion of verbs and flags does without it.
        from kubectl_ctrl.cli.completion import candidates

        if sort in candidates.SORTS:
            return candidates.offered(sort, app, given)
        from kubectl_ctrl.cli.completion.recorded import recalled

        return recalled(sort, app, given, place.last)
    return ()


def _flags(verb: Verb, rest: Sequence[str]) -> Pairs:
    """The flags of the verb, or of its action, that are not given yet or can be repeated."""
    there = {word.partition("=")[0] for word in rest}
    taken = verb.flags_behind(split(rest, verb.all_flags).arguments)
    for flag in verb.all_flags:
        if flag in verb.flags and flag not in taken:
            continue
        if flag.multiple or not there & {f"--{flag.long}", f"-{flag.short}"}:
            yield f"--{flag.long}", (flag.help or "").split(". ")[0].rstrip(".")


def main(words: Sequence[str] | None = None) -> int:
    """Print the completions; after an error, none."""
    words = sys.argv[1:] if words is None else words
    try:
        offered = completions(App.of_this_process(), words)
        lines, end = [f"{value}\t{text}" for value, text in offered], directive(words, offered)
    except Exception:  # noqa: BLE001 - an error message would corrupt the user's command line
        lines, end = [], _NO_FILES
    print("\n".join([*lines, f":{end}"]))  # noqa: T201 - this is the protocol
    return 0


if __name__ == "__main__":
    sys.exit(main())
