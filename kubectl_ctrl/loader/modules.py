"""Code that is not part of this program: found by file or by module name, loaded, and loaded again when it changed.

It is imported as `python mine.py` would import it: the modules beside it are found first. Once it is loaded its folder
stands at the end of the search path, so that a file of the user's named like a module of the standard library does not
get in the way of ours. Modules of different folders may have the same name; each folder gets its own.
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
from kubectl_ctrl.loader.code_errors import Place, from_error, shown, site_packages
from kubectl_ctrl.value import Value

T = TypeVar("T")

importing = ContextVar("importing", default=False)  # whether a user's module is; asyncio.run() in it hands that on

_OURS = "kubectl_ctrl"
_EXTRA = "KUBECTL_CTRL_PYTHONPATH"
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STDLIB = Path(os.__file__).resolve().parent


class Main(Value):
    """A module that somebody named."""

    name: str  # by which it is imported: mine, package.controller
    file: Path


class Code:
    """The modules below one folder, loaded together because they may import each other."""

    def __init__(self, root: Path, paths: Iterable[Path], *, beside: Iterable[Code] = (), package: str = "") -> None:
        self.root = root
        self.modules: dict[str, ModuleType] = {}
        self.failed: frozenset[Path] = frozenset()  # files that a load which failed had looked at
        self._paths = [str(path) for path in dict.fromkeys(paths)]
        self._beside = beside  # other code that was loaded: its modules may have the names of ours
        self._package = package  # of a bundled controller: its modules are found by their names
        self._mains: dict[Path, Main] = {}
        self._counted = 0  # modules of the whole process, when ours were last picked out of them

    @property
    def bundled(self) -> bool:
        """Whether it is a bundled controller's."""
        return bool(self._package)

    def load(self, main: Main) -> ModuleType:
        """The module, imported when it was not yet; a ControllerError says what is wrong with it, and where."""
        self._mains[main.file] = main
        known = self.modules.get(main.name)
        if known is not None:
            return known
        with self._searching():
            module = self._guarded(main)
        self.modules = self._loaded()
        return module

    def again(self, then: Callable[[], T]) -> T:
        """Load everything anew, from the files as they are now, and do `then`; when that fails all is as it was."""
        before = self.modules | self._loaded()  # some were imported since, by functions that ran
        _take_out(before)
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
            _take_out(fresh)
            sys.modules.update(before)
            self.modules = before
            raise
        self.failed = frozenset()
        return result

    @property
    def files(self) -> frozenset[Path]:
        """What it was made from, and what the last load that failed wanted to make it from."""
        if len(sys.modules) != self._counted:  # a function that ran has imported something
            self._counted = len(sys.modules)
            self.modules |= self._loaded()
        return _files(self.modules) | self.failed | frozenset(self._mains)

    def owns(self, file: Path) -> bool:
        """Whether a file is part of it; Python and what is installed are not, also where they lie below its folder."""
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
            if isinstance(error, _InTheWay):
                raise
            told, place = from_error(error, main.file, self.owns, os.environ)
            self.failed = frozenset({place.file}) if self.owns(place.file) else frozenset()
            raise told from error
        finally:
            importing.reset(before)

    def _imported(self, main: Main) -> ModuleType:
        if main.name in sys.modules and main.name in self._loaded():
            return sys.modules[main.name]
        if "." in main.name:  # the packages around it come first
            module = importlib.import_module(main.name)
            if Path(module.__file__ or "").resolve() != main.file:
                raise _InTheWay(
                    f"{shown(main.file)} is module {main.name!r}, and another module of that name is in the way: "
                    f"{module.__file__}.",
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
        """Its folders are searched first, and namesakes of its modules are out of sight."""
        hidden = {name: module for name, module in self._others() if self._has(name.partition(".")[0])}
        _take_out(hidden)
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
        taken = {id(module) for _, module in self._others()}  # by code in a folder below ours
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
        # Most modules are somewhere else, and that is asked often.
        return str(place).startswith(str(self.root)) and self.owns(Path(place))

    def __repr__(self) -> str:
        return f"Code({shown(self.root)}, mains={len(self._mains)}, modules={len(self.modules)})"


class _InTheWay(ControllerError):
    """Told as it is."""


def _files(modules: dict[str, ModuleType]) -> frozenset[Path]:
    return frozenset(Path(module.__file__) for module in modules.values() if module.__file__)


def _take_out(modules: dict[str, ModuleType]) -> None:
    for name, module in modules.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


@contextmanager
def _never_cached() -> Iterator[None]:
    """Compiled files are told apart by size and second, which is too coarse for somebody who saves twice."""
    before = sys.pycache_prefix, sys.dont_write_bytecode
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    try:
        yield
    finally:
        sys.pycache_prefix, sys.dont_write_bytecode = before


def see_installed_packages() -> None:
    """Let code of the user's import what is installed for it: in the active environment, or where a variable says.

    Our own packages win over others of the same name.
    """
    folders = [Path(folder) for folder in os.environ.get(_EXTRA, "").split(os.pathsep) if folder]
    if active := os.environ.get("VIRTUAL_ENV"):
        folders.append(site_packages(Path(active)))
    for folder in folders:
        if folder.is_dir() and str(folder.resolve()) not in sys.path:
            site.addsitedir(str(folder.resolve()))  # with what its .pth files add, as of editable installs


# From a file or a module name to where its code is.


def of_file(file: Path) -> tuple[Main, Path, list[Path]]:
    """How a file is imported: the module, the folder of its own code, and what has to be searched for it."""
    file = file.resolve()
    top = file.parent
    if not (top / "__init__.py").exists():
        return Main(_free_name(file.stem), file), top, [top]
    while (top.parent / "__init__.py").exists():
        top = top.parent
    parts = [*file.parent.relative_to(top.parent).parts, *([] if file.stem == "__init__" else [file.stem])]
    return Main(".".join(parts), file), top, [top.parent, file.parent]


def of_module(name: str) -> tuple[Main, Path, list[Path]] | None:
    """The same for a module that the current directory or an installed package has; nothing is imported for it."""
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
    """The file's own name where nothing else has it: it may be called like a module that everybody uses."""
    name = re.sub(r"\W", "_", stem)
    taken = name in sys.stdlib_module_names or (name in sys.modules and _installed(sys.modules[name]))
    return name if stem.isidentifier() and not taken else f"_{name}"


def _installed(module: ModuleType) -> bool:
    parts = Path(getattr(module, "__file__", None) or "").parts
    return not _INSTALLED.isdisjoint(parts) or module.__name__ == _OURS


def declared_at(file: Path, attribute: str) -> Place:
    """Where a module gives that name to something."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return Place(file)
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
            return Place(file, node.lineno, node.col_offset + 1, text.splitlines()[node.lineno - 1])
    return Place(file)
