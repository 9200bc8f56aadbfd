"""Writes the folder of a new controller from the templates in the package."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CtrlError, UsageError
from kubectl_ctrl.value import Value

# What is written, in the order in which it is worth reading.
FILES = ("controller.py", "crd.yaml", "rbac.yaml", "example.yaml", "test_controller.py", "README.md")

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,60}")
_GROUP = re.compile(r"(?=.{1,200}$)([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z]([-a-z0-9]*[a-z0-9])?")
# What YAML takes for a truth value or for nothing.
_NO_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# At the head of a line that only one of the two forms has.
_ONLY = re.compile(r"^\{\{(short|full)\}\}(.*\n)", re.MULTILINE)
_MARK = re.compile(r"\{\{(\w+)\}\}")


class Draft(Value, kw_only=True):
    """What a new controller is called; refuses what a cluster or Python would."""

    name: str
    kind: str
    group: str
    full: bool = False  # also waits, has an index, and records events

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"A controller cannot be named {self.name!r}.",
                next_step="use at most 40 lower-case letters, digits and dashes: a letter first, no dash at the end",
            )
        if self.name in BUNDLED:
            raise UsageError(
                f"There is a bundled controller named {self.name!r}.",
                next_step=f"give yours a name of its own, for instance my-{self.name}",
            )
        if not _KIND.fullmatch(self.kind) or self.kind.lower() in _NO_WORDS:
            raise UsageError(
                f"A kind cannot be named {self.kind!r}.",
                next_step="use a word of at most 61 letters and digits, a capital first: --kind CronJob",
            )
        if not _GROUP.fullmatch(self.group):
            raise UsageError(
                f"An API group cannot be named {self.group!r}.",
                next_step="use a domain of yours, in lower case and with a dot: --group example.com",
            )
        if self.group.endswith((".k8s.io", ".kubernetes.io")):
            raise UsageError(
                f"The API group {self.group!r} is the Kubernetes project's.",
                next_step="use a domain of yours: --group example.com",
            )

    @property
    def plural(self) -> str:
        """As kubectl and the API server would have it: lower case, English where that is easy."""
        word = self.kind.lower()
        if word.endswith(("s", "x", "z", "ch", "sh")):
            return f"{word}es"
        if word.endswith("y") and word[-2:-1] not in "aeiou":
            return f"{word[:-1]}ies"
        return f"{word}s"

    def render(self, template: str) -> str:
        """The template with its marks filled in."""
        words = {
            "name": self.name,
            "Kind": self.kind,
            "KINDS": self.plural.upper(),
            "singular": self.kind.lower(),
            "plural": self.plural,
            "group": self.group,
            "imports": ", ".join(sorted(("CONTROLLER", self.plural.upper()))),
        }
        form = "full" if self.full else "short"
        template = _ONLY.sub(lambda line: line[2] if line[1] == form else "", template)
        return _MARK.sub(lambda mark: words[mark[1]], template)

    def template(self, name: str) -> str:
        """The name of the template of a file; the full form has its own for code."""
        stem, dot, suffix = name.partition(".")
        return f"{stem}{'.full' if self.full and suffix == 'py' else ''}{dot}{suffix}.tmpl"


def kind_of(name: str) -> str:
    """`my-app` -> `MyApp`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("-"))


def write(draft: Draft, folder: Path) -> None:
    """Write every file, or none: what is there already is never touched."""
    for name in FILES:
        if (folder / name).exists():
            raise UsageError(
                f"{folder / name} is there already, and nothing was written.",
                next_step="choose another name, or another folder with --dir",
            )
    templates = files("kubectl_ctrl.loader") / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            text = draft.render((templates / draft.template(name)).read_text(encoding="utf-8"))
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise CtrlError(
            f"{error.filename or folder} cannot be written: {error.strerror}.",
            next_step="choose another folder with --dir",
        ) from error
