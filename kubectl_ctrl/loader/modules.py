"""Finds the user's code by file or module name, loads it, and loads it again after changes.

During a load, the folder of the code is first in sys.path, as with `python mine.py`. Afterwards it is last, so that a
user's file with the name of a standard module does not replace that module for this program. Modules of different
folders may have the same name; each folder gets its own.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import os
import re
import site
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.loader.code_errors import CodePosition, from_error, shown, site_packages
from kubectl_ctrl.value import Value

T = TypeVar("T")

importing = ContextVar(
    "importing", default=False
)  # during the import of a user's module; asyncio.run() in it inherits the value

_OURS = "kubectl_ctrl"
_EXTRA = "KUBECTL_CTRL_PYTHONPATH"
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STDLIB = Path(os.__file__).resolve().parent


class Main(Value):
    """A module to load."""

    name: str  # for import: mine, package.controller
    file: Path


class Code:
    """The modules below one folder, which may import each other and so are loaded together."""

    def __init__(self, root: Path, paths: Iterable[Path], *, beside: Iterable[Code] = (), package: str = "") -> None:
        self.root = root
        self.modules: dict[str, ModuleType] = {}
        self.failed: frozenset[Path] = frozenset()  # files that a failed load had read
        self._paths = [str(path) for path in dict.fromkeys(paths)]
        self._beside = beside  # other loaded code, whose modules may have the same names
        self._package = package  # of a bundled controller, whose modules are recognized by name
        self._mains: dict[Path, Main] = {}
        self._counted = 0  # len(sys.modules) when self.modules was last updated

    @property
    def bundled(self) -> bool:
        return bool(self._package)

    def load(self, main: Main) -> ModuleType:
        """Import the module once; ControllerError with the position of an error in it."""
        self._mains[main.file] = main
        known = self.modules.get(main.name)
        if known is not None:
            return known
        with self._searching():
            module = self._guarded(main)
        self.modules = self._loaded()
        return module

    def again(self, then: Callable[[], T]) -> T:
        """Load all modules again from their files and call `then`; after an error the old modules are restored."""
        before = self.modules | self._loaded()  # including later imports in functions
        _unload(before)
        importlib.invalidate_caches()
        linecache.checkcache()
        try:
            with self._searching(), _never_cached():
                for main in self._mains.values():
                    self._guarded(main)
            self.modules = self._loaded()
            result = then()
        except BaseException:
            fresh = self._loaded()
            self.failed |= _files(fresh)
            _unload(fresh)
            sys.modules.update(before)
            self.modules = before
            raise
        self.failed = frozenset()
        return result

    @property
    def files(self) -> frozenset[Path]:
        """The files of the loaded code, and those of the last failed load."""
        if len(sys.modules) != self._counted:  # a function has imported something
            self._counted = len(sys.modules)
            self.modules |= self._loaded()
        return _files(self.modules) | self.failed | frozenset(self._mains)

    def owns(self, file: Path) -> bool:
        """Whether a file is part of the code; Python and installed packages are not, even below its folder."""
        if file in self._mains:
            return True
        if self.root.name in _INSTALLED or not file.is_relative_to(self.root):
            return False
        return _INSTALLED.isdisjoint(file.relative_to(self.root).parts) and not file.is_relative_to(_STDLIB)

    def _guarded(self, main: Main) -> ModuleType:
        before = importing.set(True)
        try:
            return self._imported(main)
        except (Exception, SystemExit) as error:
            if isinstance(error, _NameTaken):
                raise
            problem, place = from_error(error, main.file, self.owns, os.environ)
            self.failed = frozenset({place.file}) if self.owns(place.file) else frozenset()
            raise problem from error
        finally:
            importing.reset(before)

    def _imported(self, main: Main) -> ModuleType:
        if main.name in sys.modules and main.name in self._loaded():
            return sys.modules[main.name]
        if "." in main.name:  # the packages around it come first
            module = importlib.import_module(main.name)
            if Path(module.__file__ or "").resolve() != main.file:
                raise _NameTaken(
                    f"{shown(main.file)} is module {main.name!r}, and another module has that name: {module.__file__}.",
                    next_step="rename its folder, or start from another folder",
                )
            return module
        spec = spec_from_file_location(main.name, main.file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[main.name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[main.name]
            raise
        return module

    @contextmanager
    def _searching(self) -> Iterator[None]:
        """Search its folders first, and hide other code's modules of the same names."""
        hidden = {name: module for name, module in self._others() if self._has(name.partition(".")[0])}
        _unload(hidden)
        before = sys.path[:]
        sys.path[:] = [*self._paths, *(path for path in before if path not in self._paths)]
        try:
            with redirect_stdout(sys.stderr):  # stdout is for answers
                yield
        finally:
            added = [path for path in sys.path if path not in before and path not in self._paths]
            sys.path[:] = [*before, *added, *(path for path in self._paths if path not in before)]
            for name, module in hidden.items():
                sys.modules.setdefault(name, module)

    def _has(self, name: str) -> bool:
        return any((Path(path) / name).is_dir() or (Path(path) / f"{name}.py").exists() for path in self._paths)

    def _others(self) -> Iterator[tuple[str, ModuleType]]:
        return ((name, module) for code in self._beside if code is not self for name, module in code.modules.items())

    def _loaded(self) -> dict[str, ModuleType]:
        taken = {id(module) for _, module in self._others()}  # of code in a folder below this one
        loaded = {name: module for name, module in list(sys.modules.items()) if self._is_own(name, module)}
        return {name: module for name, module in loaded.items() if id(module) not in taken}

    def _is_own(self, name: str, module: ModuleType) -> bool:
        if self._package:
            return name == self._package or name.startswith(f"{self._package}.")
        if name == "__main__" or name.partition(".")[0] == _OURS:
            return False
        place = getattr(module, "__file__", None)
        if place is None:  # a package without __init__.py
            place = next(iter(getattr(module, "__path__", ())), "")
        # Compare strings first: this is called for every module of the process.
        return str(place).startswith(str(self.root)) and self.owns(Path(place))

    def __repr__(self) -> str:
        return f"Code({shown(self.root)}, mains={len(self._mains)}, modules={len(self.modules)})"


class _NameTaken(ControllerError):
    """Raised without the position of an import error, since it has none."""


def _files(modules: dict[str, ModuleType]) -> frozenset[Path]:
    return frozenset(Path(module.__file__) for module in modules.values() if module.__file__)


def _unload(modules: dict[str, ModuleType]) -> None:
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


@contextmanager
def _never_cached() -> Iterator[None]:
    """Ignore bytecode caches: they compare size and seconds, which misses a second save."""
    before = sys.pycache_prefix, sys.dont_write_bytecode
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    try:
        yield
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = before


def see_installed_packages() -> None:
    """Add the packages of the active environment and of KUBECTL_CTRL_PYTHONPATH to sys.path.

    They come last, so that packages of this program take precedence.
    """
    folders = [Path(folder) for folder in os.environ.get(_EXTRA, "").split(os.pathsep) if folder]
    if active := os.environ.get("VIRTUAL_ENV"):
        folders.append(site_packages(Path(active)))
    for folder in folders:
        if folder.is_dir() and str(folder.resolve()) not in sys.path:
            site.addsitedir(str(folder.resolve()))  # also reads .pth files, as of editable installs


def of_file(file: Path) -> tuple[Main, Path, list[Path]]:
    """The module of a file, the top folder of its code, and the folders to search for imports."""
    file = file.resolve()
    top = file.parent
    if not (top / "__init__.py").exists():
        return Main(_free_name(file.stem), file), top, [top]
    while (top.parent / "__init__.py").exists():
        top = top.parent
    parts = [*file.parent.relative_to(top.parent).parts, *([] if file.stem == "__init__" else [file.stem])]
    return Main(".".join(parts), file), top, [top.parent, file.parent]


def of_module(name: str) -> tuple[Main, Path, list[Path]] | None:
    """The same for a module in the current folder or an installed package; it is not imported."""
    here = Path.cwd()
    spec = _found(name, here)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    file = Path(spec.origin).resolve()
    top = _found(name.partition(".")[0], here)
    places = list(top.submodule_search_locations or ()) if top is not None else []
    return Main(name, file), Path(places[0]).resolve() if places else file.parent, [here]


def _found(name: str, here: Path) -> ModuleSpec | None:
    search: list[str] | None = [str(here), *sys.path]
    spec: ModuleSpec | None = None
    known = ""
    for part in name.split("."):
        known = f"{known}.{part}" if known else part
        spec = PathFinder.find_spec(known, search) if search else None
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or ())
    return spec


def _free_name(stem: str) -> str:
    """The name of the file, with an underscore before it if a standard or installed module has that name."""
    name = re.sub(r"\W", "_", stem)
    known = sys.modules.get(name)
    parts = Path(getattr(known, "__file__", None) or "").parts
    taken = name in sys.stdlib_module_names or name == _OURS or not _INSTALLED.isdisjoint(parts)
    return name if stem.isidentifier() and not taken else f"_{name}"


def declared_at(file: Path, attribute: str) -> CodePosition:
    """The position in the file where the name is defined."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return CodePosition(file)
    for node in reversed(tree.body):
        names: list[str] = []
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        if attribute in names:
            return CodePosition(file, node.lineno, node.col_offset + 1, text.splitlines()[node.lineno - 1])
    return CodePosition(file)
