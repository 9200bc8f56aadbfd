"""Names out of a recording for whoever completes a command line: rows alone, and none of the documents of attempts.

It has to answer within the blink of a key, so it makes no values of the model and asks for no more than can be shown.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from kubectl_ctrl.history import database
from kubectl_ctrl.history.raw_json import loaded
from kubectl_ctrl.history.sql import query

# More than anybody reads, and little enough for a shell.
_MOST = 500


class Place(NamedTuple):
    """A type, and where its objects are looked for."""

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
    """A type of which an object is recorded; those that controllers are for come first."""

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
    """A recording, asked for names; `prefix` is how they begin."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = database.readable(path)

    def __repr__(self) -> str:
        return f"Hints({str(self._path)!r})"

    def __enter__(self) -> Hints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def _rows(self, question: str, /, **values: Any) -> list[Any]:
        return self._connection.execute(query(question), {"most": _MOST, **values}).fetchall()

    def runs(self) -> list[RunHint]:
        found = []
        for name, cluster, document in self._rows("hint_runs"):
            run = loaded(document)
            controllers = tuple(played["name"] for played in run.get("controllers", ()))
            place = (run.get("server", ""), run.get("ca", ""), run.get("context", ""))
            found.append(RunHint(name, cluster, *place, controllers))
        return found

    def types(self, cluster: str) -> list[TypeHint]:
        return [
            TypeHint(group, plural, kind, bool(namespaced), singular, tuple(short.split()))
            for group, plural, kind, namespaced, singular, short, _ in self._rows("hint_types", cluster=cluster)
        ]

    def names(self, cluster: str, place: Place, prefix: str) -> list[str]:
        """The newest subjects first, then what else was met."""
        return [name for name, _ in self._rows("hint_names", cluster=cluster, prefix=prefix, **_bound(place))]

    def attempts(self, cluster: str, prefix: str = "") -> list[AttemptHint]:
        """Of all objects: those that have ended."""
        return [AttemptHint(*row) for row in self._rows("hint_attempts", cluster=cluster, prefix=prefix)]

    def attempts_of(self, cluster: str, place: Place, name: str) -> list[AttemptHint]:
        """Of one object, and of the newest run that has it."""
        found = [AttemptHint(*row) for row in self._rows("hint_numbers", cluster=cluster, name=name, **_bound(place))]
        return [one for one in found if one.run == found[0].run]


class Nothing:
    """Stands for a recording that is not there, or that cannot be read."""

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def runs(self) -> list[RunHint]:
        return []

    def types(self, cluster: str) -> list[TypeHint]:
        return []

    def names(self, cluster: str, place: Place, prefix: str) -> list[str]:
        return []

    def attempts(self, cluster: str, prefix: str = "") -> list[AttemptHint]:
        return []

    def attempts_of(self, cluster: str, place: Place, name: str) -> list[AttemptHint]:
        return []


def _bound(place: Place) -> dict[str, str]:
    return {"grp": place.group, "plural": place.plural, "namespace": place.namespace}
