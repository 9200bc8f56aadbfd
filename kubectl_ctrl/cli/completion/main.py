"""`kubectl_complete-ctrl`: what kubectl calls for completion. One candidate per line; silent on every error.

kubectl gives the plugin's words, the last of them unfinished (empty when a new one begins), and reads back
`value<TAB>description` lines and one `:N` line of cobra's directive bits. The scripts of `kubectl ctrl completion` ask
for the same with `kubectl-ctrl __complete`.
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
# What the value of a flag is, where a recording knows such: a key of recorded.SORTS.
_RECALLED = {
    "controller": "any controller",
    "id": "numbers",
    "recorded-cluster": "clusters",
    "run": "runs",
    "until": "goals",
}
# And where it is found elsewhere: a key of candidates.SORTS.
_OFFERED = {
    "allow-context": "contexts",
    "cluster": "kubeconfig clusters",
    "context": "contexts",
    "name": "our clusters",
    "namespace": "namespaces",
    "user": "users",
}
# Stands for the verb that is still to come.
_NO_VERB = Verb(name="", usage="", examples=(), body=lambda _app, _given: 0)


class _Place(Value, kw_only=True):
    """Where in the line the last word stands."""

    verb: Verb
    rest: Sequence[str]  # the words of the verb before it
    last: str  # of the value alone, behind `--flag=`
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


def candidates(app: App, words: Sequence[str]) -> list[tuple[str, str]]:
    """What may stand in place of the last word, or of the value in it, with descriptions."""
    place = _place(words)
    # A recording holds names that nobody could type; none of them may drive the terminal.
    return [
        pair
        for pair in _offers(app, place)
        if pair[0].startswith(place.last) and pair[0] and all(map(str.isprintable, pair))
    ]


def directive(words: Sequence[str], offered: Sequence[tuple[str, str]] = ()) -> int:
    """Whether the shell offers files where nothing else is, and whether a blank follows what it completes.

    Files are for somebody who began to write a path, and for what may be a file.
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
    """What the verb has of its own, which has better words than what was recorded, and that."""
    verb = place.verb
    own = () if (verb.recalls or verb.takes_one) and split(place.rest, verb.all_flags).arguments else verb.completes()
    offers: dict[str, str] = {}
    for value, text in [*own, *_found(app, place, verb.recalls)]:
        offers.setdefault(value, text)
    return offers.items()


def _found(app: App, place: _Place, sort: str) -> Pairs:
    """What there is of a sort; nothing where it cannot be read."""
    if not sort:
        return ()
    with suppress(Exception):  # whatever it is, it must not break the user's line
        given = place.verb.parse(place.rest, app.user.environ)
        if given is None:
            return ()
        # Not for those who complete the name of a verb.
        from kubectl_ctrl.cli.completion import candidates as offering

        if sort in offering.SORTS:
            return offering.offered(sort, app, given)
        from kubectl_ctrl.cli.completion.recorded import recalled

        return recalled(sort, app, given, place.last)
    return ()


def _flags(verb: Verb, rest: Sequence[str]) -> Pairs:
    """Those that the verb, or its action, takes and that are not there yet, or may be there again."""
    there = {word.partition("=")[0] for word in rest}
    taken = verb.flags_behind(split(rest, verb.all_flags).arguments)
    for flag in verb.all_flags:
        if flag in verb.flags and flag not in taken:
            continue
        if flag.multiple or not there & {f"--{flag.long}", f"-{flag.short}"}:
            yield f"--{flag.long}", (flag.help or "").split(". ")[0].rstrip(".")


def main(words: Sequence[str] | None = None) -> int:
    """Print the candidates; an error offers nothing and says nothing."""
    words = sys.argv[1:] if words is None else words
    try:
        offered = candidates(App.of_this_process(), words)
        lines, end = [f"{value}\t{text}" for value, text in offered], directive(words, offered)
    except Exception:  # noqa: BLE001 - anything on the terminal here would break the user's line
        lines, end = [], _NO_FILES
    print("\n".join([*lines, f":{end}"]))  # noqa: T201 - this is the protocol
    return 0


if __name__ == "__main__":
    sys.exit(main())
