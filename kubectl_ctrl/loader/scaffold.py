"""Writes the folder of a new controller from the templates in the package."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CtrlError, UsageError
from kubectl_ctrl.value import Value

# The files of a new controller, in the order in which to read them.
FILES = ("controller.py", "crd.yaml", "rbac.yaml", "example.yaml", "test_controller.py", "README.md")

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,60}")
_GROUP = re.compile(r"(?=.{1,200}$)([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z]([-a-z0-9]*[a-z0-9])?")
# Words that YAML parses as a boolean or null.
_NO_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# The start of a line that only one of the two forms has.
_ONLY = re.compile(r"^\{\{(short|full)\}\}(.*\n)", re.MULTILINE)
_MARK = re.compile(r"\{\{(\w+)\}\}")


class Draft(Value, kw_only=True):
    """The names of a new controller; an error for names that Kubernetes or Python would reject."""

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
                next_step=f"use another name, for instance my-{self.name}",
            )
        if not _KIND.fullmatch(self.kind) or self.kind.lower() in _NO_WORDS:
            raise UsageError(
                f"A kind cannot be named {self.kind!r}.",
                next_step="use at most 61 letters and digits, with a capital first: --kind CronJob",
            )
        if not _GROUP.fullmatch(self.group):
            raise UsageError(
                f"An API group cannot be named {self.group!r}.",
                next_step="use your own domain, in lower case and with a dot: --group example.com",
            )
        if self.group.endswith((".k8s.io", ".kubernetes.io")):
            raise UsageError(
                f"The API group {self.group!r} belongs to the Kubernetes project.",
                next_step="use your own domain: --group example.com",
            )

    @property
    def plural(self) -> str:
        """The kind in lower case, with a simple English plural."""
        word = self.kind.lower()
        if word.endswith(("s", "x", "z", "ch", "sh")):
            return f"{word}es"
        if word.endswith("y") and word[-2:-1] not in "aeiou":
            return f"{word[:-1]}ies"
        return f"{word}s"

    def render(self, template: str) -> str:
        """Replace the marks of the template."""
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
        """The template of a file; the full form has its own for code."""
        stem, dot, suffix = name.partition(".")
        return f"{stem}{'.full' if self.full and suffix == 'py' else ''}{dot}{suffix}.tmpl"


def kind_of(name: str) -> str:
    """`my-app` -> `MyApp`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("-"))


def write(draft: Draft, folder: Path) -> None:
    """Write the files. If one of them exists, nothing is written."""
    for name in FILES:
        if (folder / name).exists():
            raise UsageError(
                f"{folder / name} already exists; nothing was written.",
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
            f"Cannot write {error.filename or folder}: {error.strerror}.",
            next_step="choose another folder with --dir",
        ) from error
