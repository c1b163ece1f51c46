"""Scenes as datasets, and maps: from band files and polygons to georeferenced maps."""

from .installed import check_installed

check_installed()

from .assessment.accuracy import Accuracy, area_adjusted  # noqa: E402 - only if the extra is installed
from .assessment.assess import assess_map  # noqa: E402
from .assessment.sample import sample_map  # noqa: E402
from .maps.maps import write_map  # noqa: E402
from .maps.remembered import scene_like  # noqa: E402
from .scenes.block_kfold import BlockKFold  # noqa: E402
from .scenes.opening import open_scene  # noqa: E402
from .scenes.scene import Scene  # noqa: E402
from .xarrays.xarray_maps import predict_xarray  # noqa: E402

__all__ = [
    "Accuracy",
    "BlockKFold",
    "Scene",
    "area_adjusted",
    "assess_map",
    "open_scene",
    "predict_xarray",
    "sample_map",
    "scene_like",
    "write_map",
]
