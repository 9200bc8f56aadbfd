"""The version, in a place that a checkout and an installed package both have."""

from __future__ import annotations

VERSION = "0.1.0"
