"""The declaration of a verb: a click command with pflag's grammar and help in kubectl's format."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import COMMON_FLAGS, KUBECTL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import Flag, split, variable
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.value import Value, field

if TYPE_CHECKING:
    from kubectl_ctrl.kubeconfig.resolution import ConfigFlags

_SECRET = ("--token", "--password")


class ParsedCommandLine(Value):
    """A parsed command line: the values of flags by parameter name, and the arguments."""

    flags: Mapping[str, Any]
    arguments: tuple[str, ...]
    typed: tuple[str, ...] = ()  # the flags of the command line, each as --name=value

    def __getitem__(self, name: str) -> Any:
        return self.flags[name]

    @property
    def cluster_flags(self) -> ConfigFlags:
        """The values of kubectl's flags; the parameters have the names of the fields."""
        from kubectl_ctrl.kubeconfig.resolution import ConfigFlags

        return ConfigFlags(**{name: self[name] for name in ConfigFlags.__struct_fields__})

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        """The value of a flag that must be one of these words; "" allows the flag to be missing."""
        value: str = self[name]
        if value not in words:
            flag, choice = name.replace("_", "-"), ", ".join(filter(None, words))
            raise UsageError(
                f"Invalid value for {_source(flag, self.typed)}: {value!r}.", next_step=f"use one of: {choice}"
            )
        return value

    def content(self, name: str) -> tuple[bytes, str]:
        """The content of the flag's file, and its name for messages; - is stdin."""
        file: str = self[name]
        if file == "-":
            return sys.stdin.buffer.read(), "stdin"
        try:
            return Path(file).read_bytes(), file
        except OSError as error:
            raise UsageError(
                f"Cannot read the file {file!r}: {error.strerror}.", next_step="use a readable file, or - for stdin"
            ) from None

    def saying(self, *names: str) -> list[str]:
        """The flags of the command line, and those of these names that a variable sets."""
        typed = {flag.partition("=")[0] for flag in self.typed}
        return [*self.typed, *(f"--{name}={self[name]}" for name in names if self[name] and f"--{name}" not in typed)]

    def again(self, verb: str, *more: str) -> str:
        """The same command with more flags, for suggestions; it contains no secrets."""
        named = {flag.partition("=")[0] for flag in more}
        kept = [_shown(flag) for flag in self.typed if flag.partition("=")[0] not in named]
        if any(word.startswith("-") for word in self.arguments):
            return str(ctrl(verb, *kept, *more, "--", *self.arguments))
        return str(ctrl(verb, *self.arguments, *kept, *more))


def _source(long: str, typed: Sequence[str]) -> str:
    """The source of a value that is not the default: the flag, or its variable."""
    return f"--{long}" if any(flag.partition("=")[0] == f"--{long}" for flag in typed) else variable(long)


def _shown(flag: str) -> str:
    name, _, value = flag.partition("=")
    if name in _SECRET:
        return f"{name}=..."
    return name if value == "true" else flag


# The body of a verb; returns the exit code.
Body = Callable[[App, ParsedCommandLine], int]


def later(code: str) -> Body:
    """The body at `module:attribute`, imported when it is called, so that help and completion are fast."""

    def body(app: App, given: ParsedCommandLine) -> int:
        return table.attribute(code)(app, given)  # type: ignore[no-any-return]

    return body


class Verb(Value, kw_only=True):
    """The declaration of one verb, used for parsing, help, completion and the reference."""

    name: str
    usage: str  # "run CONTROLLER... [flags]"
    examples: tuple[tuple[str, str], ...]  # (description, command line without "kubectl ctrl")
    body: Body
    flags: tuple[Flag, ...] = ()
    details: str = ""
    cluster: bool = True  # takes kubectl's 21 flags
    completes: Callable[[], Sequence[tuple[str, str]]] = lambda: ()  # candidates for its arguments
    recalls: str = ""  # more candidates: a key of SORTS in recorded or candidates
    takes_one: bool = False  # `completes` is for the first argument only; so it is with `recalls`
    takes_file: bool = False  # an argument may be a file
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)  # flags of some actions only: flag -> actions

    @property
    def summary(self) -> str:
        return table.find(self.name).summary

    @property
    def all_flags(self) -> tuple[Flag, ...]:
        return (*self.flags, *COMMON_FLAGS, *(KUBECTL_FLAGS if self.cluster else ()))

    def _refuse_kubectls(self, words: Sequence[str]) -> None:
        """An error for kubectl's flags if the verb uses no cluster: a suggestion of a similar flag would mislead."""
        others = {flag.long for flag in KUBECTL_FLAGS} - {flag.long for flag in self.all_flags}
        for word in takewhile(lambda one: one != "--", words):
            name = word.removeprefix("--").partition("=")[0]
            if word.startswith("--") and name in others:
                raise UsageError(
                    f"{self.name} does not take --{name}: it uses no cluster of your kubeconfig.", next_step=self.hint
                )

    def parse(self, words: Sequence[str], environ: Mapping[str, str]) -> ParsedCommandLine | None:
        """The parsed command line, or None for --help."""
        self._refuse_kubectls(words)
        parts = split(words, self.all_flags, self.hint)
        if "--help=true" in parts.flags:
            return None
        command = click.Command(
            self.name, params=[*self.all_flags, click.Argument(["arguments"], nargs=-1)], add_help_option=False
        )
        try:
            with command.make_context(self.name, parts.for_click(), auto_envvar_prefix=None, obj=environ) as context:
                values = dict(context.params)
        except click.BadParameter as error:
            where = f" for {_source(error.param.long, parts.flags)}" if isinstance(error.param, Flag) else ""
            raise UsageError(f"Invalid value{where}: {error.message.rstrip('.')}.", next_step=self.hint) from None
        except click.ClickException as error:
            raise UsageError(f"{error.format_message().rstrip('.')}.", next_step=self.hint) from None
        return ParsedCommandLine(values, tuple(values.pop("arguments")), parts.flags)

    @property
    def hint(self) -> str:
        return str(ctrl(self.name, "--help"))

    def flags_behind(self, arguments: Sequence[str]) -> list[Flag]:
        """Its own flags; if an action is among the arguments, only the flags of that action."""
        known = {action for actions in self.own.values() for action in actions}
        action = next((word for word in arguments if word in known), "")
        return [flag for flag in self.flags if not action or action in self.own.get(flag.long, known)]

    def help(self, words: Sequence[str] = ()) -> str:
        """The help text, at most 80 columns wide; if the words contain an action, with the flags of that action."""
        flags = self.flags_behind(split(words, self.all_flags, self.hint).arguments)
        blocks = [self.summary]
        if self.details:
            blocks.append(self.details)
        examples = "\n\n".join(f"  # {what}\n  {typed(line)}" for what, line in self.examples)
        blocks.append(f"Examples:\n{examples}")
        if flags:
            blocks.append("Flags:\n" + describe(sorted(flags, key=lambda flag: flag.long)))
        blocks.append(f"Usage:\n  kubectl ctrl {self.usage}")
        also = " and kubectl's own" if self.cluster else ""
        blocks.append(f'Use "kubectl ctrl options" for the flags that all verbs take{also}.')
        return "\n\n".join(blocks) + "\n"


def typed(example: str) -> str:
    """The command line of an example. Some examples start with another program."""
    return f"kubectl ctrl {example}" if example.split(maxsplit=1)[0] in table.names() else example


def describe(flags: Sequence[Flag]) -> str:
    """Flags in kubectl's format: `-o, --output='':` and the indented help below."""

    def wrapped(text: str) -> str:  # users copy `custom-columns=`, so do not break it
        return textwrap.fill(text, 78, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)

    return "\n\n".join(f"    {_declaration(flag)}:\n{wrapped(flag.help or '')}" for flag in flags)


def _declaration(flag: Flag) -> str:
    names = f"-{flag.short}, --{flag.long}" if flag.short else f"--{flag.long}"
    default: object = flag.default
    if flag.multiple:
        shown = "[]"
    elif isinstance(default, bool):
        shown = str(default).lower()
    elif isinstance(default, int | float) or (isinstance(default, str) and default[:1].isdigit()):
        shown = str(default)
    else:
        shown = f"'{default}'" if isinstance(default, str) else "''"
    return f"{names}={shown}"
