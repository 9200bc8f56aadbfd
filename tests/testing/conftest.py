"""The fixtures of tests/sandbox."""

from __future__ import annotations

from tests.sandbox.conftest import call, server

__all__ = ["call", "server"]
