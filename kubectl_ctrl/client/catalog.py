"""The resource types that an API server serves, and names resolved to them as in kubectl.

They are in kubectl's order of precedence: the core group first, then groups as the server lists them; in each group the
preferred version first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value


class ApiResource(Value, kw_only=True):
    """One resource type in one version."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class NameMatch(Value):
    """The type of a name; `others` are types of lower precedence with the same name."""

    found: ApiResource
    others: tuple[ApiResource, ...] = ()


class Reading(Value, kw_only=True):
    """One interpretation of a name: TYPE, TYPE.GROUP, or TYPE.VERSION.GROUP."""

    type: str
    version: str = ""
    group: str = ""


class Catalog:
    """Immutable."""

    def __init__(self, resources: Sequence[ApiResource], failed: Sequence[str] = ()) -> None:
        self.resources = tuple(resources)
        self.failed = tuple(failed)  # group versions whose discovery failed, such as `metrics.k8s.io/v1beta1`
        self._by_resource = {api.resource: api for api in self.resources}

    def get(self, resource: Resource) -> ApiResource | None:
        return self._by_resource.get(resource)

    def match(self, text: str) -> NameMatch | None:
        """The type that kubectl resolves `text` to; UsageError if the name is ambiguous.

        Unlike in kubectl, a kind without a group is found in all groups.
        """
        readings = tuple(_readings(text))
        ways = [(reading, fits) for reading in readings for fits in (_named, _short)]
        ways += [(reading, _of_kind) for reading in readings]
        for reading, fits in ways:
            if found := self._found(reading, fits):
                if fits is not _short:  # of equal short names the first is used, as in kubectl
                    _refuse_equals(text, found)
                return _first(found)
        return None

    def nearest(self, text: str) -> tuple[str, ...]:
        """Types with similar names, the most similar first."""
        names = {name: str(api.resource) for api in reversed(self.resources) for name in _names(api)}
        close = get_close_matches(text.partition(".")[0].lower(), list(names), n=3, cutoff=0.7)
        return tuple(dict.fromkeys(names[name] for name in close))

    def _found(self, reading: Reading, fits: Callable[[ApiResource, str], bool]) -> list[ApiResource]:
        """All types of that reading, in order. A prefix of a group is enough unless it is a group's full name."""
        candidates = [
            api for api in self.resources if fits(api, reading.type) and reading.version in {"", api.resource.version}
        ]
        if not reading.group:
            return candidates
        exact = [api for api in candidates if api.resource.group == reading.group]
        if exact or reading.version or fits is _of_kind:
            return exact
        return [api for api in candidates if api.resource.group.startswith(reading.group)]

    def __repr__(self) -> str:
        return f"Catalog(resources={len(self.resources)}, failed={len(self.failed)})"


def _readings(text: str) -> Iterator[Reading]:
    parts = text.split(".", 2)
    if len(parts) == 3:
        yield Reading(type=parts[0], version=parts[1], group=parts[2])
    name, _, group = text.partition(".")
    yield Reading(type=name, group=group)


def _named(api: ApiResource, name: str) -> bool:
    return name.lower() in {api.resource.plural, api.singular}


def _short(api: ApiResource, name: str) -> bool:
    return name.lower() in api.short_names


def _of_kind(api: ApiResource, name: str) -> bool:
    return name.lower() == api.resource.kind.lower()


def _names(api: ApiResource) -> tuple[str, ...]:
    return (api.resource.plural, api.singular, *api.short_names)


def _refuse_equals(text: str, found: list[ApiResource]) -> None:
    """UsageError for two types of the same group and version, because neither has precedence."""
    best = found[0].resource
    equals = [api for api in found if (api.resource.group, api.resource.version) == (best.group, best.version)]
    if len(equals) > 1:
        names = ", ".join(str(api.resource) for api in equals)
        raise UsageError(f"{text!r} is the name of several resource types: {names}.", next_step="Use the plural name.")


def _first(found: list[ApiResource]) -> NameMatch:
    types: dict[str, ApiResource] = {}
    for api in found:
        types.setdefault(str(api.resource), api)
    best, *others = types.values()
    return NameMatch(best, tuple(others))
