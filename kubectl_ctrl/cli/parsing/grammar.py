"""pflag's grammar with click's parameters, so that command lines work as with kubectl.

click converts values. Splitting into flags and arguments follows pflag, because click supports neither `-o=json` nor
`--watch=false`: all flags are rewritten to `--name=value` before click parses them.
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

# These confirm a single call; a variable that is set once and forgotten must not.
_NEVER_FROM_ENVIRONMENT = frozenset({"yes", "allow-context", "takeover", "force", "crds", "help"})

# How similar a word must be to a flag, from 0 to 1, to suggest it: at most one letter of four in the wrong place.
_SIMILARITY = 0.75


def truth(word: str) -> bool | None:
    """The value of a boolean as strconv.ParseBool parses it; None if it is invalid."""
    return word in _TRUE if word in (*_TRUE, *_FALSE) else None


class GoBool(click.ParamType[bool]):
    name = "bool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        parsed = truth(value)
        if parsed is None:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return parsed


class GoDuration(click.ParamType[float]):
    """Seconds, from a duration in Go's format."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error).rstrip("."), param, ctx)


class Size(click.ParamType[int]):
    """Bytes, from a Kubernetes quantity (`200M`, `1Gi`), optionally followed by B."""

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
    """The environment variable of a flag."""
    return "KUBECTL_CTRL_" + long.upper().replace("-", "_")


class Flag(click.Option):
    """One flag. Without a `value` name it is a boolean.

    `bare` is its value without `=value`; a flag that has it never takes the next word (pflag's NoOptDefVal).
    `choices` are for completion only; the verb checks the value.
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
        """The value of its variable in the environment of the context; click itself would read the process's."""
        environ: Mapping[str, str] = ctx.obj
        return environ.get(self.envvar) or None if isinstance(self.envvar, str) else None

    @property
    def switch(self) -> bool:
        """Whether it can be given without a value."""
        return bool(self.bare)


class Words(Value):
    """A split command line: the flags in order, each as `--name=value`, and the arguments."""

    flags: tuple[str, ...]
    arguments: tuple[str, ...]

    def for_click(self) -> list[str]:
        return [*self.flags, "--", *self.arguments]


class _Splitter:
    """Splits words by pflag's rules, with its error messages."""

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
    """Split a command line with these flags, as pflag does; `hint` is the next step for unknown flags."""
    return _Splitter(flags, hint).split(words)


def _near(name: str, known: Iterable[str]) -> str:
    """`did you mean ...?` for a flag with one word more or less, a prefix of a flag, or a similar spelling."""
    from difflib import get_close_matches

    known = list(known)
    by_words = [one for one in known if one.startswith(f"{name}-") or name.startswith(f"{one}-")]
    longer = [one for one in known if len(name) > 2 and one.startswith(name)]
    alike = get_close_matches(name, known, n=1, cutoff=_SIMILARITY)
    return next((f"did you mean --{one}?" for one in (*by_words, *longer, *alike)), "")


def before_verb(words: Sequence[str], flags: Sequence[Flag], verbs: Sequence[str]) -> tuple[str, list[str]]:
    """The verb, and all other words with flags before the verb moved behind it; "" if there is no verb.

    Flags of the verb itself may also be before it: the word after such a flag is its value, unless it is a verb.
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
