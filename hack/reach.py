"""The tests that a change can affect, by a graph: a file uses

- the modules that it imports, anywhere in the file, except under TYPE_CHECKING;
- modules that its strings name, to load them later: "package.module:name", f"package.{name}", program text;
- paths of the checkout that it names ("docs/errors.md", ROOT / "hack" / "check"), except that the package also runs
  without a checkout, and that only pytest runs tests;
- data, by its name ("schema.sql") or by the name of its folder without code ("golden");
- every conftest.py in the folders above it.

Settings, and data that no file names, affect all tests. An ambiguous name counts: a test too many costs seconds, a test
too few hides a failure.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath

# Files that affect every test.
SETTINGS = re.compile(r"[^/]*\.(toml|lock)|hack/(environment\.\w+|.*\.lock)")
TEST = re.compile(r"tests/(.*/)?test_\w+\.py")
IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?import\s+\(?([\w., ]+)", re.MULTILINE)
WORD = re.compile(r"[\w./-]+")

# A file, and whether the names in its strings count: a package that is imported with a module loads nothing by name.
Node = tuple[str, bool]


class UnknownChange(Exception):
    """git has no answer."""


def changes(root: Path) -> tuple[str, list[str]]:
    """The merge base of HEAD and main, and the files that differ from it, including deleted and new ones."""
    for main in ("origin/main", "main"):
        if base := _git(root, "merge-base", "HEAD", main):
            differing = _git(root, "diff", "--name-only", "--no-renames", "-z", base[0].strip())
            return f"{main} at {base[0][:10]}", sorted({*differing, *_git(root, "ls-files", "--others", *_OURS)})
    raise UnknownChange("HEAD and main have no common commit, so the changed files are unknown.")


def tests(root: Path, changed: Iterable[str]) -> list[str]:
    """The test files that a change of these files can affect."""
    here = _git(root, "ls-files", "--cached", "--others", *_OURS)
    return Tree(root, {*here, *changed}).reached(changed)


_OURS = ("--exclude-standard", "-z")


def _git(root: Path, *words: str) -> list[str]:
    """The names that git prints; none if it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split("\0") if name] if not done.returncode else []


class Tree:
    """The files of a checkout, including deleted ones."""

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self._root = root
        self._files = frozenset(files)
        self.tests = sorted(file for file in self._files if TEST.fullmatch(file))

    def reached(self, changed: Iterable[str]) -> list[str]:
        changed = set(changed)
        data = {file for file in changed if not file.endswith(".py")}
        if any(map(SETTINGS.fullmatch, changed)) or any((file, True) not in self._users for file in data):
            return self.tests
        seen: set[Node] = set()
        ahead = [(file, wholly) for file in changed for wholly in (True, False)]
        while ahead:
            if (node := ahead.pop()) not in seen:
                seen.add(node)
                ahead += self._users.get(node, ())
        return [test for test in self.tests if (test, True) in seen]

    @cached_property
    def _users(self) -> dict[Node, set[Node]]:
        found: dict[Node, set[Node]] = {}
        for file in self._files:
            imports, names = self._uses(file)
            for wholly, uses in ((True, imports | names), (False, imports)):
                for used in uses - {file}:
                    for node in ((used, True), *((package, False) for package in self._packages(used))):
                        found.setdefault(node, set()).add((file, wholly))
        return found

    def _packages(self, file: str) -> list[str]:
        """The packages that Python imports with a module."""
        above = PurePosixPath(file).parents if file.endswith(".py") else ()
        return [package for folder in above if (package := f"{folder}/__init__.py") in self._files]

    def _uses(self, file: str) -> tuple[set[str], set[str]]:
        """The imports of a file, and the files that it may load later."""
        path = self._root / file
        if file.endswith(".py"):
            above = {f"{folder}/conftest.py".removeprefix("./") for folder in PurePosixPath(file).parents}
            words = Words.of(path.read_text() if path.exists() else "")
            imports = {module for name in words.imports for module in self._imported(name, file)}
            names = {used for text in words.strings for used in self._named(text, file)}
            names |= {used for path in words.paths for used in self._at(path, file)}
            names |= {module for prefix in words.prefixes for module in self._below(prefix, words.strings, file)}
            names |= self._data_of(file, {part for text in words.strings for part in text.split("/")})
            return imports | (above & self._files), names
        if path.is_file() and path.suffix in {"", ".sh", ".toml", ".tmpl"}:
            code = re.sub("(?m)^ *#.*", "", path.read_text(errors="replace"))
            texts = {word.strip("./") for word in WORD.findall(code) if "/" in word or "." in word}
            beside = {f"{PurePosixPath(file).parent}/{text}" for text in texts}
            used = {name for text in texts | beside for name in self._named(text, file)}
            return used | self._data_of(file, {part for text in texts for part in text.split("/")}), set()
        return set(), set()

    def _imported(self, name: str, file: str) -> set[str]:
        """The file of `a.b.c`, a module or the name c of the module a.b."""
        for known in (name, name.rpartition(".")[0]):
            if found := self._modules.get(known) or (not self._is_packaged(file) and self._scripts.get(known)):
                return found
        return set()

    @cached_property
    def _modules(self) -> dict[str, set[str]]:
        return {
            file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): {file}
            for file in self._files
            if file.endswith(".py")
        }

    @cached_property
    def _scripts(self) -> dict[str, set[str]]:
        """Modules by their name in a folder that cannot be a package: the scripts of hack/bench.d import each other."""
        found: dict[str, set[str]] = {}
        for name, files in self._modules.items():
            if inside := re.search(r"\.d\.(.+)$", name):
                found.setdefault(inside[1], set()).update(files)
        return found

    def _named(self, text: str, file: str) -> Iterator[str]:
        if "\n" in text:
            for origin, names in IMPORT.findall(text):
                for name in names.split(","):
                    yield from self._imported(f"{origin}.{name.strip()}" if origin else name.strip(), file)
            return
        path = text.partition(":")[0].rstrip("/")
        if "." in path:
            yield from self._imported(path, file)
        if "/" in path:
            yield from self._at(path, file)

    def _at(self, path: str, file: str) -> set[str]:
        """The files at a path of the checkout."""
        if self._is_packaged(file):
            return set()
        return {found for found in {path, *self._below_folder.get(path, ())} & self._files if not TEST.fullmatch(found)}

    def _is_packaged(self, file: str) -> bool:
        return f"{file.split('/', maxsplit=1)[0]}/__init__.py" in self._files

    @cached_property
    def _below_folder(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for file in self._files:
            for folder in PurePosixPath(file).parents:
                found.setdefault(str(folder), set()).add(file)
        return found

    def _data_of(self, file: str, parts: set[str]) -> set[str]:
        """The data files that parts of paths in a file name."""
        meant = {data for part in parts for near, data in self._data.get(part, ()) if file.startswith(near)}
        return {data for data in meant if self._is_packaged(data) or not self._is_packaged(file)}

    @cached_property
    def _data(self) -> dict[str, list[tuple[str, str]]]:
        """Name of a file, or of a folder without code -> the folder in which the name means it, the file."""
        code = {str(folder) for file in self._files if file.endswith(".py") for folder in PurePosixPath(file).parents}
        found: dict[str, list[tuple[str, str]]] = {}
        for file in self._files:
            path = PurePosixPath(file)
            # The name of a program is also a word of the language: only its path means it.
            if path.suffix not in {"", ".py"}:
                found.setdefault(path.name, []).append(("", file))
            for folder in path.parents if path.suffix != ".py" else ():
                if str(folder) not in code:
                    near = "" if folder.parent == PurePosixPath() else f"{folder.parent}/"
                    found.setdefault(folder.name, []).append((near, file))
        return found

    def _below(self, prefix: str, strings: Iterable[str], file: str) -> set[str]:
        """The modules that an f-string may name: its prefix with the strings beside it, or else all with the prefix."""
        modules = self._modules if self._is_packaged(file) else {**self._scripts, **self._modules}
        named = [modules.get(f"{prefix}{text}", set()) for text in strings]
        known = [files for name, files in modules.items() if name.startswith(prefix)]
        return set().union(*(named if any(named) else known))


@dataclass(slots=True)
class Words(ast.NodeVisitor):
    """The names of other files in a module's text."""

    imports: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    _constants: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Words:
        words = cls()
        words.visit(ast.parse(text))
        return words

    def visit_If(self, node: ast.If) -> None:
        ahead = (
            node.orelse if ast.unparse(node.test).endswith("TYPE_CHECKING") else [node.test, *node.body, *node.orelse]
        )
        for each in ahead:
            self.visit(each)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports |= {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports |= {f"{node.module}.{alias.name}" for alias in node.names}

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        for part, following in pairwise(node.values):
            if isinstance(part, ast.Constant) and isinstance(following, ast.FormattedValue):
                self.prefixes |= set(re.findall(r"[\w.]+\.$", str(part.value)))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        if isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.BinOp):
            self._constants[node.targets[0].id] = self._path(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.paths.add(self._path(node))
        self.generic_visit(node)

    def _path(self, node: ast.expr) -> str:
        """The path of `ROOT / "hack" / "check"` within the checkout; empty for other expressions."""
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            left = self._path(node.left)
            return f"{left}/{node.right.value!s}".lstrip("/") if left or _is_folder(node.left) else ""
        return self._constants.get(node.id, "") if isinstance(node, ast.Name) else ""

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)


def _is_folder(node: ast.expr) -> bool:
    """A constant like ROOT, or an expression with __file__."""
    return (isinstance(node, ast.Name) and node.id.isupper()) or "__file__" in ast.unparse(node)
