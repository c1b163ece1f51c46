"""The names of the stores, for those who must not wait for what the stores import: options and their help."""

from __future__ import annotations

STORE_NAMES = ("memory", "disk", "gather")
