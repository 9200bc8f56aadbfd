"""Reading and merging kubeconfig files.

The rules are kubectl's: `--kubeconfig` alone, or each file of KUBECONFIG, or ~/.kube/config. Missing files are skipped.
The first file that has an entry, or a current-context, provides all of it.
Fields are read through KubeconfigEntry: an error names file, entry and field, but never the value, which may be secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Unshown, Value, field


class KubeconfigEntry(Value, kw_only=True):
    """One context, cluster or user, and its file. Its fields may be secret, so they are not in the repr."""

    kind: str
    name: str
    fields: Unshown[Mapping[str, Any]] = field(default_factory=dict)
    file: Path | None = None

    def text(self, key: str) -> str:
        """A string; "" if absent or null."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(key, f"must be a string, not {_kind_of(value)}")
        return value

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, not {_kind_of(value)}")
        return value

    def data(self, key: str) -> bytes:
        """A base64 string, decoded; b"" if absent."""
        text = self.text(key)
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(key, "is not valid base64") from None

    def path(self, key: str) -> str:
        """A path; a relative one is relative to the folder of the kubeconfig."""
        return self.beside(self.text(key))

    def beside(self, name: str) -> str:
        if not name or self.file is None or Path(name).is_absolute():
            return name
        return os.path.normpath(Path.cwd() / self.file.parent / name)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.fields.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, "must be a list of strings")
        return tuple(value)

    def part(self, key: str) -> KubeconfigEntry | None:
        """A mapping inside the entry."""
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, f"must be a mapping, not {_kind_of(value)}")
        return KubeconfigEntry(kind=self.kind, name=self.name, fields=value, file=self.file)

    def parts(self, key: str) -> tuple[KubeconfigEntry, ...]:
        """A list of mappings inside the entry."""
        value = self.fields.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "must be a list of mappings")
        return tuple(KubeconfigEntry(kind=self.kind, name=self.name, fields=item, file=self.file) for item in value)

    def wrong(self, key: str, why: str) -> ConfigError:
        return ConfigError(f"{key!r} of {self} {why}.")

    def __str__(self) -> str:
        where = f" in {str(self.file)!r}" if self.file else ""
        return f"{self.kind} {self.name!r}{where}"


class Merged(Value, kw_only=True):
    """The content of all files."""

    current_context: str = ""
    contexts: Mapping[str, KubeconfigEntry] = field(default_factory=dict)
    clusters: Mapping[str, KubeconfigEntry] = field(default_factory=dict)
    users: Mapping[str, KubeconfigEntry] = field(default_factory=dict)
    read: tuple[Path, ...] = ()
    order: str = ""  # for messages: the candidates, and which of them are missing


def read(explicit: str, environ: Mapping[str, str], home: Path) -> Merged:
    """Read and merge the files; ConfigError if one exists but cannot be used."""
    files, order = candidates(explicit, environ, home)
    found = [(file, content) for file in files if (content := _content(file, must_exist=bool(explicit))) is not None]
    absent = [str(file) for file in files if file not in {file for file, _ in found}]
    which = f": {', '.join(absent)}" if len(files) > 1 else ""
    wholes = (KubeconfigEntry(kind="kubeconfig", name=str(file), fields=content) for file, content in found)
    return Merged(
        current_context=next((name for file in wholes if (name := file.text("current-context"))), ""),
        contexts=_entries(found, "contexts", "context"),
        clusters=_entries(found, "clusters", "cluster"),
        users=_entries(found, "users", "user"),
        read=tuple(file for file, _ in found),
        order=order + (f" (not found{which})" if absent else ""),
    )


def candidates(explicit: str, environ: Mapping[str, str], home: Path) -> tuple[list[Path], str]:
    """The paths to read in order, and the same for messages."""
    if explicit:
        return [Path(explicit)], str(command("--kubeconfig", explicit))
    if listed := environ.get("KUBECONFIG"):
        names = dict.fromkeys(name for name in listed.split(os.pathsep) if name)
        return [Path(name) for name in names], f"KUBECONFIG={listed}"
    default = home / ".kube" / "config"
    return [default], str(default)


def _content(file: Path, *, must_exist: bool) -> dict[str, Any] | None:
    try:
        raw = file.read_bytes()
    except FileNotFoundError as error:
        if not must_exist:
            return None
        raise ConfigError(f"The kubeconfig {str(file)!r} does not exist.", next_step="check --kubeconfig") from error
    except OSError as error:
        raise ConfigError(f"The kubeconfig {str(file)!r} cannot be read: {error.strerror}.") from error
    content = parse(raw, f"The kubeconfig {str(file)!r}")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"The kubeconfig {str(file)!r} contains {_kind_of(content)} instead of a mapping.")
    version, kind = content.get("apiVersion") or "v1", content.get("kind") or "Config"
    if (version, kind) != ("v1", "Config"):
        raise ConfigError(f"{str(file)!r} is not a kubeconfig: it has apiVersion {version!r}, kind {kind!r}.")
    return content


def parse(raw: bytes, what: str) -> Any:
    """The values of a YAML or JSON text. An error has line and column but no text, which may be secret."""
    try:
        text = raw.decode()
        if text.startswith("{"):
            # JSON may contain tabs, which are invalid in YAML.
            with suppress(json.JSONDecodeError):
                return json.loads(text)
        return _yaml(text, what)
    except UnicodeDecodeError:
        raise ConfigError(f"{what} is not UTF-8 text.") from None
    except RecursionError:
        raise ConfigError(f"{what} is nested too deeply.") from None


def _yaml(text: str, what: str) -> Any:
    import yaml

    from kubectl_ctrl.model.manifests import Loader

    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - built on the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        # Some problems quote the text: only the words before the quote may be repeated.
        problem = (error.problem or "").split("'")[0].split('"')[0].strip() or "unreadable"
        raise ConfigError(f"{what} is not valid YAML{where}: {problem}.") from None
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"{what} is not valid YAML.") from None


def _entries(found: Iterable[tuple[Path, dict[str, Any]]], plural: str, kind: str) -> dict[str, KubeconfigEntry]:
    merged: dict[str, KubeconfigEntry] = {}
    for file, content in found:
        for name, entry in _entries_of(file, content, plural, kind).items():
            merged.setdefault(name, entry)
    return merged


def _entries_of(file: Path, content: dict[str, Any], plural: str, kind: str) -> dict[str, KubeconfigEntry]:
    entries: dict[str, KubeconfigEntry] = {}
    whole = KubeconfigEntry(kind="kubeconfig", name=str(file), fields=content)
    for item in whole.parts(plural):
        name = item.text("name")
        if name in entries:
            raise ConfigError(f"The kubeconfig {str(file)!r} has two {plural} named {name!r}.")
        fields = KubeconfigEntry(kind=kind, name=name, fields=item.fields, file=file).part(kind)
        entries[name] = KubeconfigEntry(kind=kind, name=name, fields=fields.fields if fields else {}, file=file)
    return entries


def _kind_of(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(value), type(value).__name__)
