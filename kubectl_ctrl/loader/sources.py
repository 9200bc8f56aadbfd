"""Finds the controllers that a command line names: their declarations and folders.

An argument is the name of a bundled controller, the path of a file or a folder (`./mine.py`, `./mine`, anything with a
slash), or a module that can be imported from the current folder (`package.module`). After a colon is the name of one of
several controllers: `./mine.py:ONE`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import ControllerError, CtrlError, UsageError
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.loader.code_errors import CodePosition, error_at, shown
from kubectl_ctrl.loader.modules import Code, Main, declared_at, of_file, of_module, see_installed_packages
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.text import nearest
from kubectl_ctrl.value import Value, field

if TYPE_CHECKING:
    from kubectl_ctrl.install.parts import Parts
    from kubectl_ctrl.runtime.builder import ControllerSpec

_FILE = "controller.py"
_EXAMPLE = 'declare it at the top of the file: CONTROLLER = controller("mine", reconcile).for_(RESOURCE)'


class CodeSource(Value, kw_only=True):
    """The code of a declaration."""

    code: Code
    main: Main
    attribute: str = ""  # "" for the only one in the module
    settings: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> ControllerSpec:
        """The declaration in the loaded code; ControllerError if there is none."""
        module = self.code.load(self.main)
        if takes := self.takes(module):
            made: ControllerSpec = module.configured(**takes)
            return made
        return _declared(module, self.main.file, self.attribute)

    def takes(self, module: ModuleType) -> dict[str, str]:
        """The settings that the module's function `configured` takes, which then returns its CONTROLLER."""
        configured = getattr(module, "configured", None)
        if configured is None or self.attribute not in ("", "CONTROLLER"):
            return {}
        known = inspect.signature(configured).parameters if self.settings else ()
        return {name: self.settings[name] for name in known if name in self.settings}

    @property
    def place(self) -> CodePosition:
        names = [self.attribute] if self.attribute else list(_specs(self.code.load(self.main)))
        return declared_at(self.main.file, names[0]) if names else CodePosition(self.main.file)


class SourcedController(Value, kw_only=True):
    """A controller with its code."""

    word: str  # the argument, for suggested commands
    spec: ControllerSpec
    folder: Path  # of its manifests, if it has any
    source: CodeSource

    @property
    def settings(self) -> dict[str, str]:
        """The settings that the controller takes."""
        return self.source.takes(self.source.code.load(self.source.main))

    @property
    def file(self) -> str:
        """The file of its code; "" for a bundled controller."""
        return "" if self.word in BUNDLED else str(self.source.main.file)

    @property
    def bundled(self) -> bool:
        return self.source.code.bundled

    def parts(self) -> Parts:
        from kubectl_ctrl.install.parts import read_parts

        return read_parts(self.folder, self.spec.name)

    def example(self) -> str:
        """The content of example.yaml beside the code."""
        path = self.folder / "example.yaml"
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ControllerError(
                f"Controller {self.spec.name!r} has no {path.name}.",
                tried=shown(path),
                next_step="kubectl ctrl new NAME creates a folder with one",
            ) from None


def resolve(words: Sequence[str], settings: Mapping[str, str] | None = None) -> tuple[SourcedController, ...]:
    """The controllers of these arguments, without duplicates.

    `settings` are passed to the controllers that have parameters of these names; a setting that none takes is an error.
    """
    library: dict[Path, Code] = {}
    given = dict(settings or {})
    sources = [(word, _source(word, library, given)) for word in dict.fromkeys(words)]
    found: dict[tuple[Path, int], SourcedController] = {}
    for word, source in sources:
        spec = source.read()
        sourced = SourcedController(word=word, spec=spec, folder=source.main.file.parent, source=source)
        found.setdefault((source.main.file, id(spec)), sourced)
    _check_settings(sources, given)
    _check_together(list(found.values()))
    return tuple(found.values())


def _source(word: str, library: dict[Path, Code], settings: Mapping[str, str]) -> CodeSource:
    if word in BUNDLED:
        return _bundled(word, library, settings)
    name, attribute = _split(word)
    if not _is_path(name):
        if not attribute and "." not in name:
            raise _unknown(name)
        see_installed_packages()
        located = of_module(name)
        if located is None:
            raise _no_module(name)
    else:
        file = _file(name)
        if file.parent.parent == bundled.folder("") and file.parent.name in BUNDLED:
            return _bundled(file.parent.name, library, settings)
        see_installed_packages()
        located = of_file(file)
    main, root, paths = located
    code = library.setdefault(root, Code(root, paths, beside=library.values()))
    return CodeSource(code=code, main=main, attribute=attribute, settings=settings)


def _bundled(name: str, library: dict[Path, Code], settings: Mapping[str, str]) -> CodeSource:
    folder = bundled.folder(name)
    package = f"kubectl_ctrl.controllers.{name}"
    code = library.setdefault(folder, Code(folder, [], package=package))
    main = Main(package, (folder / "__init__.py").resolve())
    return CodeSource(code=code, main=main, attribute="CONTROLLER", settings=settings)


def _split(word: str) -> tuple[str, str]:
    name, colon, attribute = word.rpartition(":")
    if not colon or (_is_path(word) and Path(word).exists()):
        return word, ""
    if not name.strip():
        raise UsageError(f"{word!r} is not a controller: nothing is before the colon.", next_step=_choice())
    if not attribute.isidentifier():
        raise UsageError(
            f"{word!r} is not a controller: {attribute!r} after the colon is not a name.",
            next_step="use its name in the file, for instance ./mine.py:CONTROLLER",
        )
    return name, attribute


def _is_path(word: str) -> bool:
    return "/" in word or word.endswith(".py") or word in (".", "..")


def _file(word: str) -> Path:
    path = Path(word).expanduser()
    if path.is_dir():
        for name in (_FILE, "__init__.py"):
            if (path / name).is_file():
                return (path / name).resolve()
        others = ", ".join(sorted(one.name for one in path.glob("*.py"))[:5])
        name = path.name.strip(".")
        wrong = ControllerError if name else UsageError  # `.` or `/`: not the name of a controller
        raise wrong(
            f"The folder {word!r} contains no controller: it has neither {_FILE} nor __init__.py.",
            tried=f"it contains {others}" if others else "" if name else str(path.resolve()),
            next_step=f"use the path of a file, or create a folder: {ctrl('new', name or 'mine')}",
        )
    if not path.exists():
        raise UsageError(f"File {word!r} does not exist.", tried=str(path.absolute()), next_step=_near(path))
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(f"{word!r} is not a Python file.", next_step="use a file that ends in .py, or a folder")
    return path.resolve()


def _near(path: Path) -> str:
    """A suggestion from the files in the same folder."""
    try:
        entries = sorted(path.parent.iterdir())
    except OSError:
        return f"its folder {str(path.parent)!r} does not exist"
    known = [one.name for one in entries if _holds(one)]
    close = nearest(path.name, known)
    if close:
        return close.replace(" mean ", f" mean {path.parent}/")
    return f"the folder contains {', '.join(known[:5])}" if known else "kubectl ctrl new NAME creates a controller"


def _unknown(word: str) -> UsageError:
    """The error for a name that is not bundled; it may be a file without `./`."""
    local = {one.stem if one.suffix == ".py" else one.name: one for one in sorted(Path.cwd().iterdir()) if _holds(one)}
    if word in local:
        hint = f"did you mean ./{local[word].name}?"
    else:
        hint = nearest(word, [*BUNDLED, *local])
        name = hint.removeprefix("did you mean ").removesuffix("?")
        if name not in BUNDLED and name in local:
            hint = f"did you mean ./{local[name].name}?"
    text = f"There is no controller {word!r}." if word.strip() else "An empty name is not a controller."
    return UsageError(text, next_step=hint or _choice(word))


def _choice(word: str = "") -> str:
    """The possible controllers; with the word as the name of a file if that is valid."""
    own = word if word.replace("-", "").isidentifier() else "mine"
    return f"the bundled controllers are: {', '.join(BUNDLED)}; your own: ./{own}.py"


def _holds(path: Path) -> bool:
    return path.suffix == ".py" or (path / _FILE).exists()


def _no_module(name: str) -> UsageError:
    top, _, rest = name.partition(".")
    located = of_module(top)
    if (Path.cwd() / top).is_dir() or (located is not None and located[0].file.stem == "__init__"):
        what = f"the package {top!r} has no {rest!r}"
    elif located is not None:
        what = f"{top!r} is a module, not a package"
    else:
        what = "it is not a module either"
    return UsageError(
        f"There is no controller {name!r}: {what}.",
        tried=f"bundled controllers, and modules in {Path.cwd()} and in installed packages",
        next_step=f"did you mean ./{name.replace('.', '/')}.py?",
    )


def _specs(module: ModuleType) -> dict[str, ControllerSpec]:
    """The declarations in a module, each once, under its first name."""
    from kubectl_ctrl.runtime.builder import ControllerSpec

    found: dict[int, tuple[str, ControllerSpec]] = {}
    for name, value in vars(module).items():
        if isinstance(value, ControllerSpec):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


def _declared(module: ModuleType, file: Path, attribute: str) -> ControllerSpec:
    from kubectl_ctrl.runtime.builder import ControllerSpec, check_together

    specs = _specs(module)
    if not attribute:
        if not specs:
            raise error_at(CodePosition(file), "There is no controller in this file.", _EXAMPLE)
        if len(specs) > 1:
            listed = ", ".join(f"{name} (line {declared_at(file, name).line})" for name in specs)
            raise error_at(
                CodePosition(file),
                f"There are {len(specs)} controllers in this file: {listed}.",
                f"select one: {shown(file)}:{next(iter(specs))}",
            )
        attribute = next(iter(specs))
    place = declared_at(file, attribute)
    if not hasattr(module, attribute):
        hint = nearest(attribute, specs) or (f"there is: {', '.join(specs)}" if specs else _EXAMPLE)
        raise error_at(CodePosition(file), f"There is no {attribute!r} in this file.", hint)
    spec = getattr(module, attribute)
    if not isinstance(spec, ControllerSpec):
        raise error_at(place, f"{attribute!r} is not a controller but a {type(spec).__name__}.", _EXAMPLE)
    try:
        check_together([spec])
    except CtrlError as error:
        raise error_at(place, error.message, error.next_step) from error
    return spec


def _check_settings(sources: Sequence[tuple[str, CodeSource]], settings: Mapping[str, str]) -> None:
    taken = {name for _, source in sources for name in source.takes(source.code.load(source.main))}
    for name in settings:
        if name not in taken:
            words = ", ".join(word for word, _ in sources)
            raise UsageError(
                f"No controller here takes --{name.replace('_', '-')}: {words}.", next_step="leave the flag out"
            )


def _check_together(sourced: Sequence[SourcedController]) -> None:
    """An error for controllers of the same name, or that own each other's objects in a cycle."""
    for at, one in enumerate(sourced):
        for other in sourced[:at]:
            if one.spec.name == other.spec.name:
                raise ControllerError(
                    f"Two controllers are named {one.spec.name!r}: {_where(other)} and {_where(one)}.",
                    next_step="rename one: writes, Leases and recordings are identified by the name",
                )
            if _owns(one.spec, other.spec) and _owns(other.spec, one.spec):
                raise ControllerError(
                    f"Two controllers own each other's objects: {_where(other)} and {_where(one)}.",
                    tried=f"{other.spec.primary} owns {one.spec.primary}, which owns {other.spec.primary}",
                    next_step="let one of them watch the other's objects with .watches(..., to=...) instead",
                )


def _owns(one: ControllerSpec, other: ControllerSpec) -> bool:
    from kubectl_ctrl.runtime.builder import Via

    owned = {source.resource for source in one.sources if source.via is Via.OWNER and not source.through}
    return one.primary != other.primary and not owned.isdisjoint(other.primaries)


def _where(sourced: SourcedController) -> str:
    return f"{sourced.word} (bundled)" if sourced.word in BUNDLED else str(sourced.source.place)
