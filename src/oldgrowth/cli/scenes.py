"""Scenes as sources of the subcommands: rasters with labels to train on, and for a saved forest."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ..datasets.base import Dataset
from ..datasets.columns import AllBut
from ..datasets.files import is_url
from ..datasets.map_files import has_rasters, is_pattern, is_vector, names_below
from ..errors import DataError, MissingMaskError
from ..forest.batch_predict import columns_for
from ..messages.log import warn
from ..messages.surface import listed
from .columns import Columns
from .options import STANDARD
from .scene_options import LABELS

if TYPE_CHECKING:
    from ..raster import Scene


def are_scenes(paths: tuple[str, ...], options: dict[str, Any], reading: dict[str, Any]) -> bool:
    """Whether sources are rasters; refuse a mixture, and options of the other kind."""
    vector = next((path for path in paths if is_vector(path)), None)
    if vector is not None:
        raise click.UsageError(
            f"{vector!r} is a vector file, which has no features: name it with --target, and the rasters "
            "that it lies on as SOURCE."
        )
    rasters = [path for path in paths if has_rasters(path)]
    tables = [path for path in paths if path not in rasters]
    if tables and (rasters or options):
        check_exist(tables)
    if rasters and tables:
        raise click.UsageError(
            f"{rasters[0]!r} contains rasters, but {tables[0]!r} does not: name one or the other."
        )
    if not rasters and options:
        name = next(iter(options)).replace("_", "-")
        raise click.UsageError(f"--{name} is for rasters, but {tables[0]!r} contains no rasters.")
    if rasters and reading:
        name = {"types": "type"}.get(name := next(iter(reading)), name).replace("_", "-")
        raise click.UsageError(f"--{name} is for tables, but {rasters[0]!r} contains rasters.")
    for path in map(os.path.expanduser, rasters):
        if os.path.isdir(path):
            _tell_of_tables(path)
    return bool(rasters)


def _tell_of_tables(directory: str) -> None:
    """A directory with rasters may have been named for its tables."""
    from ..datasets.opening import FORMATS

    tables = names_below(directory, tuple(end for ends, _, _ in FORMATS.values() for end in ends))
    if tables:
        warn(
            f"{directory} has rasters, so it is a scene; its tables are not read: {listed(tables, 5)}. "
            "To read these, name them."
        )


def check_exist(paths: Sequence[str]) -> None:
    """Refuse paths of nothing, which are neither of rasters nor of tables."""
    for path in paths:
        is_path = path != STANDARD.name and not is_url(path) and not is_pattern(path)
        if is_path and not os.path.lexists(os.path.expanduser(path)):
            raise click.UsageError(f"{path!r} does not exist.")


@dataclass(frozen=True)
class SceneSource:
    """Rasters as given on the command line, and how to read them."""

    paths: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def _sources(self) -> Any:
        """One scene, or several: patterns of directories are those directories."""
        found: list[str] = []
        for path in map(os.path.expanduser, self.paths):
            matching = sorted(glob.glob(path)) if is_pattern(path) else []
            found += matching if matching and all(map(os.path.isdir, matching)) else [path]
        return found[0] if len(found) == 1 else found

    def open(self, columns: Columns) -> Scene:
        """The pixels that have labels."""
        from ..raster import open_scene

        _check_columns(columns)
        labels, options = self._divided()
        return _labelled(open_scene(self._sources, **options), columns.target, labels)

    def open_for(self, model: Any, columns: Columns) -> Dataset:
        """The same, with the features that the forest was trained on."""
        from ..raster import scene_like

        _check_columns(columns)
        if model.recipe_ is None:
            raise click.UsageError(
                f"{self.paths[0]!r} contains rasters, but the forest was not trained on rasters: it does not "
                "know bands."
            )
        labels, options = self._divided()
        try:
            scene = scene_like(model, self._sources, **options)
        except MissingMaskError as error:
            raise DataError(f"{error} Name it with --mask, or use none with --no-mask.") from error
        data = _labelled(scene, columns.target, labels)
        return columns_for(data, model.n_features_in_, model.feature_names_in_).coded_for(model._levels)

    def _divided(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Options of the labels, and of the scene."""
        options = dict(self.options)
        labels = {name: options.pop(name) for name in (*LABELS, "seed") if name in options}
        if "label_nodata" in labels:
            labels["nodata"] = labels.pop("label_nodata")
        return labels, options


def _labelled(scene: Scene, target: str | None, options: dict[str, Any]) -> Scene:
    if target is None:
        return scene
    _check_labels(target)
    return scene.with_labels(target, **options)


def _check_labels(target: str) -> None:
    if not os.path.exists(os.path.expanduser(target)):
        raise click.UsageError(
            f"{target!r} does not exist: for rasters, --target is a file of polygons or points (and --field "
            "a field of it), or a raster of labels."
        )


def _check_columns(columns: Columns) -> None:
    if columns.features is not None:
        option = "--drop" if isinstance(columns.features, AllBut) else "--features"
        raise click.UsageError(f"{option} is for tables: --bands of `oldgrowth fit` selects bands.")
    if columns.weight is not None:
        raise click.UsageError("--weight is for tables: pixels have no weights.")
