"""Names in a recording for shell completion: rows without the documents of attempts.

Completion has a tenth of a second, so this loads no values of the model and reads no more rows than a shell can list.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from kubectl_ctrl.history import database
from kubectl_ctrl.history.sql import query

_MOST = 500


class TypeScope(NamedTuple):
    """A type and a namespace."""

    group: str
    plural: str
    namespace: str


class RunHint(NamedTuple):
    """A run, newest first."""

    name: str
    cluster: str
    server: str
    ca: str
    context: str
    controllers: tuple[str, ...]


class TypeHint(NamedTuple):
    """A type of recorded objects; the primary types of controllers come first."""

    group: str
    plural: str
    kind: str
    namespaced: bool
    singular: str
    short_names: tuple[str, ...]


class AttemptHint(NamedTuple):
    """An attempt, newest first."""

    run: str
    number: int
    controller: str
    outcome: str
    name: str


class Hints:
    """The names in a recording; without a path there are none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._connection = database.readable(path) if path is not None else None

    def __repr__(self) -> str:
        return f"Hints({str(self._path)!r})"

    def __enter__(self) -> Hints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._connection is not None:
            self._connection.close()

    def _rows(self, name: str, /, **values: Any) -> list[Any]:
        if self._connection is None:
            return []
        return self._connection.execute(query(name), {"most": _MOST, **values}).fetchall()

    def runs(self) -> list[RunHint]:
        found = []
        for name, cluster, document in self._rows("hint_runs"):
            run = database.loaded(document)
            controllers = tuple(played["name"] for played in run.get("controllers", ()))
            place = (run.get("server", ""), run.get("ca", ""), run.get("context", ""))
            found.append(RunHint(name, cluster, *place, controllers))
        return found

    def types(self, cluster: str) -> list[TypeHint]:
        return [
            TypeHint(group, plural, kind, bool(namespaced), singular, tuple(short.split()))
            for group, plural, kind, namespaced, singular, short, _ in self._rows("hint_types", cluster=cluster)
        ]

    def names(self, cluster: str, place: TypeScope, prefix: str) -> list[str]:
        """The newest primary objects first, then other recorded objects."""
        return [name for name, _ in self._rows("hint_names", cluster=cluster, prefix=prefix, **_bound(place))]

    def attempts(self, cluster: str, prefix: str = "") -> list[AttemptHint]:
        """The ended attempts of all objects."""
        return [AttemptHint(*row) for row in self._rows("hint_attempts", cluster=cluster, prefix=prefix)]

    def attempts_of(self, cluster: str, place: TypeScope, name: str) -> list[AttemptHint]:
        """The attempts of one object in its newest run."""
        found = [AttemptHint(*row) for row in self._rows("hint_numbers", cluster=cluster, name=name, **_bound(place))]
        return [one for one in found if one.run == found[0].run]


def _bound(place: TypeScope) -> dict[str, str]:
    return {"grp": place.group, "plural": place.plural, "namespace": place.namespace}
