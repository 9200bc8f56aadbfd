"""pflag's grammar over click's parameters: kubectl's habits on the command line hold here too.

click converts and documents; the splitting of words into flags and arguments follows pflag, because click knows neither
`-o=json` nor `--watch=false`. Words are rewritten to `--name=value` before click sees them, so there is one parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.durations import parse_duration
from kubectl_ctrl.value import Value

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")

# These confirm something about one call; a variable that is set once and forgotten must not.
_NEVER_FROM_ENVIRONMENT = frozenset({"yes", "allow-context", "takeover", "force", "crds", "help"})

# How like a word a flag has to be, from 0 to 1, to be what was meant: one letter of four in the wrong place is enough.
_LIKE = 0.75


def truth(word: str) -> bool | None:
    """What the word says, as strconv.ParseBool reads it; None where it says neither."""
    return word in _TRUE if word in (*_TRUE, *_FALSE) else None


class GoBool(click.ParamType[bool]):
    """true and false as strconv.ParseBool reads them."""

    name = "bool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        said = truth(value)
        if said is None:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return said


class GoDuration(click.ParamType[float]):
    """Seconds, written as Go writes durations."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error).rstrip("."), param, ctx)


class Size(click.ParamType[int]):
    """Bytes, as Kubernetes writes quantities (`200M`, `1Gi`), also with a B behind."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a size; write it like 200MB or 1GiB", param, ctx)
        base = 1024 if match["binary"] else 1000
        return int(float(match["number"]) * base ** " KMGT".index((match["unit"] or " ").upper()))


BOOL = GoBool()
DURATION = GoDuration()
SIZE = Size()
_SIZE = re.compile(r"(?P<number>\d{1,9}(\.\d{1,9})?)((?P<unit>[kKMGT])(?P<binary>i?))?B?")


def variable(long: str) -> str:
    """What sets the flag of that name in the environment."""
    return "KUBECTL_CTRL_" + long.upper().replace("-", "_")


class Flag(click.Option):
    """One flag. Without a `value` name it is a switch; with one it takes a value.

    `bare` is what the flag means without `=value`; a flag that has it never takes the next word (pflag's NoOptDefVal).
    `choices` are what completion offers as its value; what is right is the verb's to say.
    """

    def __init__(self, *names: str, value: str = "", bare: str = "", choices: Sequence[str] = (), **attrs: Any) -> None:
        long = next(name for name in names if name.startswith("--")).removeprefix("--")
        if not value:
            attrs.setdefault("type", BOOL)
            attrs.setdefault("default", False)
        if long not in _NEVER_FROM_ENVIRONMENT:
            attrs.setdefault("envvar", variable(long))
        super().__init__(list(names), metavar=value or None, is_flag=False, **attrs)
        self.long = long
        self.short = next((name[1] for name in names if not name.startswith("--") and name.startswith("-")), "")
        self.bare = bare if value else "true"
        self.choices = tuple(choices) if value else ("true", "false")

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The value of its variable in the environment that the context carries: click itself reads the process's."""
        environ: Mapping[str, str] = ctx.obj
        return environ.get(self.envvar) or None if isinstance(self.envvar, str) else None

    @property
    def switch(self) -> bool:
        """Whether it is complete without a value."""
        return bool(self.bare)


class Words(Value):
    """A command line taken apart: flags in the order given, as `--name=value`, and arguments."""

    flags: tuple[str, ...]
    arguments: tuple[str, ...]

    def for_click(self) -> list[str]:
        return [*self.flags, "--", *self.arguments]


class _Splitter:
    """One pass over the words; pflag's rules, and its texts for what is wrong."""

    def __init__(self, flags: Sequence[Flag], hint: str) -> None:
        self._hint = hint
        self._long = {flag.long: flag for flag in flags}
        self._short = {flag.short: flag for flag in flags if flag.short}

    def split(self, words: Sequence[str]) -> Words:
        flags: list[str] = []
        arguments: list[str] = []
        rest = iter(words)
        for word in rest:
            if word == "--":
                arguments.extend(rest)
            elif word.startswith("--"):
                flags.append(self._long_flag(word[2:], rest))
            elif word.startswith("-") and word != "-":
                flags.extend(self._short_flags(word[1:], rest))
            else:
                arguments.append(word)
        return Words(tuple(flags), tuple(arguments))

    def _long_flag(self, word: str, rest: Iterator[str]) -> str:
        name, equals, value = word.partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"Bad flag syntax: '--{word}'.", next_step=self._hint)
        flag = self._long.get(name)
        if flag is None:
            raise UsageError(f"Unknown flag: '--{name}'.", next_step=_near(name, self._long) or self._hint)
        if equals:
            return f"--{name}={value}"
        return f"--{name}={flag.bare or self._next(rest, f'--{name}')}"

    def _short_flags(self, letters: str, rest: Iterator[str]) -> Iterator[str]:
        for at, letter in enumerate(letters):
            flag = self._short.get(letter)
            if flag is None:
                raise UsageError(f"Unknown shorthand flag: {letter!r} in '-{letters}'.", next_step=self._hint)
            tail = letters[at + 1 :]
            if tail.startswith("="):
                yield f"--{flag.long}={tail[1:]}"
                return
            if not flag.switch:
                yield f"--{flag.long}={tail or self._next(rest, f'-{letter}')}"
                return
            yield f"--{flag.long}={flag.bare}"

    @staticmethod
    def _next(rest: Iterator[str], flag: str) -> str:
        value = next(rest, None)
        if value is None:
            raise UsageError(f"Flag needs an argument: '{flag}'.", next_step=f"write it as {flag}=VALUE")
        return value


def split(words: Sequence[str], flags: Sequence[Flag], hint: str = "") -> Words:
    """Take a command line apart as pflag would, knowing these flags; `hint` is what helps whoever used others."""
    return _Splitter(flags, hint).split(words)


def _near(name: str, known: Iterable[str]) -> str:
    """`did you mean ...?` where a flag is longer by a word, shorter by one, not finished, or spelt much like this."""
    from difflib import get_close_matches

    known = list(known)
    by_words = [one for one in known if one.startswith(f"{name}-") or name.startswith(f"{one}-")]
    begun = [one for one in known if len(name) > 2 and one.startswith(name)]
    alike = get_close_matches(name, known, n=1, cutoff=_LIKE)
    return next((f"did you mean --{one}?" for one in (*by_words, *begun, *alike)), "")


def before_verb(words: Sequence[str], flags: Sequence[Flag], verbs: Sequence[str]) -> tuple[str, list[str]]:
    """The verb and all other words, flags before the verb moved behind it; "" when there is no verb.

    A flag that only the verb knows may stand before it too: the next word is taken for its value unless it is a verb.
    """
    takes_value = {f"--{flag.long}" for flag in flags if not flag.switch} | {
        f"-{flag.short}" for flag in flags if flag.short and not flag.switch
    }
    known = {f"--{flag.long}" for flag in flags} | {f"-{flag.short}" for flag in flags if flag.short}
    moved: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("--", "-") or not word.startswith("-"):
            return (word, [*moved, *words[at + 1 :]]) if word != "--" else ("", moved)
        moved.append(word)
        at += 1
        foreign = word not in known and "=" not in word
        if at < len(words) and (word in takes_value or (foreign and _looks_like_value(word, words[at], verbs))):
            moved.append(words[at])
            at += 1
    return "", moved


def _looks_like_value(flag: str, word: str, verbs: Sequence[str]) -> bool:
    clustered = not flag.startswith("--") and len(flag) > 2
    return not clustered and not word.startswith("-") and word not in verbs
