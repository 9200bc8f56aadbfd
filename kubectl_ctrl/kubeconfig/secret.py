"""Secret text: printed, formatted or logged, it is `Secret(hidden)`."""

from __future__ import annotations


class Secret:
    """A token, password or key. Only `reveal()` returns the text, so a search for it finds all uses."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> str:
        raise TypeError("A secret cannot be pickled.")
