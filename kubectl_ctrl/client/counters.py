"""Counters of a client for metrics and history."""

from __future__ import annotations


class Counters:
    """Numbers that only grow, except for the open watches."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, str], int] = {}  # (verb, HTTP method, code, which is "" without a response)
        self.resends = 0  # requests that repeated an earlier one of the same call
        self.watches_open = 0
        self.bytes_in = 0  # bodies and watch lines
        self.bytes_out = 0

    def count(self, verb: str, method: str, code: int | None) -> None:
        key = (verb, method, "" if code is None else str(code))
        self.requests[key] = self.requests.get(key, 0) + 1

    @property
    def sent(self) -> int:
        return sum(self.requests.values())

    def __repr__(self) -> str:
        return f"Counters(sent={self.sent}, resends={self.resends}, watches_open={self.watches_open})"
