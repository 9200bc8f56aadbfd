"""Plays a command on one cluster, and masks the parts of its output that each cluster may choose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.kube import Kubectl, Ran

FILES = Path(__file__).parent / "files"
_READS = ("get", "describe", "events", "top", "auth", "api-resources", "explain")
_MASKS = tuple(
    (re.compile(pattern, re.MULTILINE), text)
    for pattern, text in (
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}", "TIME"),
        (r"/tmp/(LIVE|MERGED)-\d+/", r"/tmp/\1/"),
        (r"^Waiting for .* rollout to finish: .*\n", ""),
        (r"^E\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", ""),
        (r"(Resource Version:) +\d+", r"\1 VERSION"),
        (r"resourceVersion(\"?): \"?\d+\"?", r"resourceVersion\1: VERSION"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        (r"https://[\w.]+:\d+", "SERVER"),
        # kwok's pods have two addresses, and no container runs for them.
        (r"^( *)IP: .*\n(\1IP: .*\n)+", r"\1IP:  ADDRESS\n"),
        (r"^( *(?:Container|Image) ID:).*", r"\1"),
        (r"^ *PodReadyToStartContainers .*\n", ""),
        (r"\b(?:node|sandbox)-\d+(?:/\d+(?:\.\d+){3})?", "NODE"),
        (r"\b\d{1,3}(\.\d{1,3}){3}\b", "ADDRESS"),
        (r"\b(2001:db8|fd00):[0-9a-f:]*(?=\W)", "ADDRESS"),
        (r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{6,10}(-[bcdfghjklmnpqrstvwxz2456789]{5})?\b", "RANDOM"),
        (r"(?<=(?:hash|HASH)[=:])(\s*\"?)[bcdfghjklmnpqrstvwxz2456789]{6,10}\b", r"\1RANDOM"),
        (r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b", "RANDOM"),
        (r"(?<=\s)(\d+[smhd]){1,2}(?=\s|$)( \(x\d+ over (\d+[smhd]){1,2}\))?", "AGE"),
        (r"(?<=\s)\d+(\.\d+)?m?s(?=\s|$|\))", "AGE"),
        (r"[ \t]+$", ""),
        (r"(?<=\S)[ \t]{2,}", "  "),
    )
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command; `gap` is the reason why its outputs may differ."""

    line: str
    gap: str = ""

    @property
    def reads(self) -> bool:
        return self.line.startswith(_READS)


def commands(chapter: str) -> Iterator[Command]:
    gap = ""
    for line in filter(None, map(str.strip, chapter.splitlines())):
        if line.startswith("# "):
            gap = f"{gap} {line[2:]}".lstrip()
        else:
            yield Command(line, gap)
            gap = ""


def played(command: Command, kubectl: Kubectl) -> str:
    return masked(kubectl.try_(*_words(command.line)))


def _words(line: str) -> list[str]:
    """No word has a space."""
    words = line.split()
    return [str(FILES / word) if words[place - 1] in ("-f", "-k") else word for place, word in enumerate(words)]


def masked(ran: Ran) -> str:
    text = f"{ran.out}{ran.err}" + (f"exit code {ran.code}\n" if ran.code else "")
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return "\n".join(_ordered(text.splitlines()))


def _ordered(lines: list[str]) -> list[str]:
    """Tables in the order of their masked names."""
    if lines and re.match(r"NAME\b|NAMESPACE\b|LAST SEEN\b", lines[0]):
        return [lines[0], *sorted(lines[1:])]
    return lines
