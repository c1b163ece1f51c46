"""Scenes as datasets, and maps: from band files and polygons to georeferenced maps."""

from .installed import check_installed

check_installed()

from .maps import write_map  # noqa: E402 - only if the extra is installed
from .opening import open_scene  # noqa: E402
from .scene import Scene  # noqa: E402

__all__ = ["Scene", "open_scene", "write_map"]
