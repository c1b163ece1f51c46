"""The names of the stores, without their imports: for the options and the help of the command line."""

from __future__ import annotations

STORE_NAMES = ("memory", "disk", "gather")
