"""Stores have names that can be given without importing them."""

from oldgrowth.storage.store_names import STORE_NAMES
from oldgrowth.storage.stores import STORES


def test_all_stores_are_named() -> None:
    assert tuple(STORES) == STORE_NAMES
