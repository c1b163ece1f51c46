"""predict_xarray: DataArrays and Datasets, in memory or in dask's chunks, to maps of the same kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...checks import hard_votes, one_of
from ...errors import DataError, MissingExtraError, NotCategoricalError, ParameterError
from ...estimators.shared_model import SharedModel, shared
from ...messages.text import counted
from ...planning.planner import jobs_of
from ..maps.map_layers import (
    CONFIDENCES,
    MapLayer,
    ProbabilityLayer,
    class_layer,
    confidence_layer,
    probability_layer,
    value_layer,
)
from ..reading.expression import parse_expression
from ..reading.layers import Layers, Mask
from ..reading.masks import MaskRule, parse_mask
from ..reading.raster_files import Band
from ..reading.recipe import check_recipe
from ..scenes.left_out import warn_of_no_mask, warn_of_nodata
from .array_scene import Halo, Prediction
from .xarray_bands import NO_GRID, ArrayBand, ArrayBands, bands_of

_OUTPUTS = ("classes", "probabilities", *CONFIDENCES)


def predict_xarray(
    forest: Any,
    data: Any,
    *,
    output: str | None = None,
    nodata: float | None = None,
    mask: str | tuple[str, str] | bool | None = None,
) -> Any:
    """Predict the pixels of a DataArray or Dataset of xarray.

    Bands are matched by name with those that the forest was trained on, and its patches and expressions are
    made of them as in `open_scene`. A pixel is predicted if it is valid in all these bands: not nodata, not
    NaN, not masked. Neighbours that are not valid, or outside, are missing values. The result is the same as
    that of `write_map`, whatever the chunks.

    With dask's chunks, the result is lazy. Tasks have the path of the model file, not the forest: each
    process maps the file once. It is the file that the forest was loaded from or saved to, otherwise a
    temporary one that is removed when this process ends. Workers on other machines need a path that they
    can read. Each task uses one thread.

    Parameters
    ----------
    forest : estimator or path
        Fitted or loaded, or the path of a saved forest.
    data : DataArray or Dataset
        A DataArray with a dimension of bands, or a Dataset with a variable for each band; with the
        coordinates, nodata, scale and offset that rioxarray reads. Bands of a DataArray are known by the
        coordinate of that dimension, if it has names; otherwise by what the file calls them, or as B1, B2
        and so on.
    output : str, optional
        "classes" (default); "probabilities", with a dimension "class"; or the confidence: "margin", "entropy"
        or "share". Regressions only have their values.
    nodata : float, optional
        Value of pixels that are not valid, instead of that of the data. If the data has none, it is the value
        that the scene of the training was opened with, if any; if it has another one, there is a
        `LeftOutWarning`.
    mask : str, (str, str) or False, optional
        The band that masks pixels, by the rule that the forest was trained with, or a band and a rule as in
        `open_scene`, such as ("QA_PIXEL", "bits 1,3,4"). By default there is no mask, with a
        `LeftOutWarning` if the forest was trained with one; with False, there is no warning.

    Returns
    -------
    DataArray
        Lines and pixels with the coordinates and the CRS of the data. Classes are whole numbers as in maps
        of `write_map`, named by the attributes `flag_values`, `flag_meanings` and `class_names`; other
        results are float32. Pixels that are not valid have the value `result.rio.nodata`.

    Examples
    --------
    >>> import rioxarray                                                        # doctest: +SKIP
    >>> scene = rioxarray.open_rasterio("scene.tif", chunks={"x": 2048, "y": 2048})
    >>> raster.predict_xarray("forest.og", scene).rio.to_raster("map.tif")
    """
    _check_installed()
    forest = _estimator(forest)
    layer = _layer(forest, output)
    found = bands_of(data)
    if mask is None:
        warn_of_no_mask(forest.recipe_, found.where, stacklevel=2)
    bands, prediction = _matched(forest, found, layer, nodata, mask)
    if nodata is None:
        warn_of_nodata(forest.recipe_, found.where, _as_read(bands, prediction.layers), stacklevel=2)
    sources = _sources(bands, flipped=_is_flipped(forest, data, found))
    if any(_is_lazy(array) for array in sources.arrays):
        pixels = _lazy(sources, prediction, shared(forest))
    else:
        by_name = sources.by_name(sources.arrays)
        pixels = prediction.of_block(forest.forest_, by_name, Halo(), jobs_of(forest.n_jobs))
    if sources.flipped:
        pixels = pixels[:, ::-1]
    return _result(pixels, layer, forest, data, found)


def _check_installed() -> None:
    packages = ("xarray>=2024.1", "rioxarray>=0.17")
    for package in packages:
        if find_spec(package.partition(">=")[0]) is None:
            raise MissingExtraError(package, "predict_xarray", packages)
    import rioxarray  # noqa: F401 - adds .rio


def _estimator(forest: Any) -> Any:
    """A fitted forest, loaded if it is a path."""
    from sklearn.utils.validation import check_is_fitted  # which takes long to import

    from ...estimators.base import ForestBase
    from ...estimators.saved import load

    if isinstance(forest, str | Path):
        forest = load(forest)
    if not isinstance(forest, ForestBase):
        raise ParameterError("forest", type(forest).__name__, "a forest of oldgrowth or the path of one")
    check_is_fitted(forest, "forest_")
    forest._check_use()
    return forest


def _layer(forest: Any, output: str | None) -> MapLayer:
    classes = getattr(forest, "classes_", None)
    if classes is None:
        if output is not None:
            raise ParameterError("output", output, "omitted: a regression has values only")
        return value_layer("value")
    output = one_of("output", output or "classes", _OUTPUTS)
    if output == "classes":
        return class_layer(classes, None)
    if output == "probabilities":
        return probability_layer(classes, "float32")
    return confidence_layer(output)


def _matched(
    forest: Any, found: ArrayBands, layer: MapLayer, nodata: float | None, mask: Any
) -> tuple[dict[str, ArrayBand], Prediction]:
    """The bands that the forest needs, by their names, and how to predict them."""
    names = forest._names()
    features = None if names is None else tuple(map(str, names))
    if forest._levels is not None:
        raise NotCategoricalError("scene")
    recipe = forest.recipe_ or {"bands": _unmade(forest, found, features), "extra": {}, "patch": 1}
    wanted = list(recipe["bands"])
    extra = []
    for name, text in recipe["extra"].items():
        known = {*wanted, *(name for band in found.bands for name in band.names)}
        extra.append(parse_expression(name, text, sorted(known)))
    used = list(dict.fromkeys(name for one in extra for name in one.names if name not in wanted))
    bands = {name: found.find(name) for name in (*wanted, *used)}
    made = {}
    for name, band in bands.items():
        value = nodata if nodata is not None or band.nodata is not None else recipe.get("nodata")
        made[name] = band.named(name, found.where, value)
    masked = None
    if mask is not None and mask is not False:
        name, rule = _mask(mask, recipe.get("mask"))
        bands[f"mask {name}"] = band = found.find(name)
        rule.check_type(band.dtype, found.where)
        masked = Mask(replace(band.named(f"mask {name}", found.where), scale=1.0, offset=0.0), rule, name)
    chosen = tuple(made[name] for name in wanted)
    layers = Layers(found.where, NO_GRID, chosen, tuple(made[name] for name in used), tuple(extra), masked)
    # Integers are values as they were measured, for which scale and offset matter; floats may be scaled.
    integers = replace(
        layers, bands=tuple(band for band in made.values() if band.dtype.kind in "iu"), used=()
    )
    check_recipe(integers, recipe["patch"], forest.recipe_)
    return bands, Prediction(
        layers, recipe["patch"], features, layer, hard_votes(forest), forest.memory_limit
    )


def _as_read(found: Mapping[str, ArrayBand], layers: Layers) -> list[Band]:
    """The bands with the nodata values that their files had, where these were replaced by NaN."""
    bands = ((band, found[band.name].replaced) for band in (*layers.bands, *layers.used))
    return [band if value is None else replace(band, nodata=value) for band, value in bands]


def _unmade(forest: Any, found: ArrayBands, features: Sequence[str] | None) -> Sequence[str]:
    """The bands of a forest whose features were not made of bands: by name, or in order if it has none."""
    if features is not None:
        return features
    if len(found.bands) != forest.n_features_in_:
        raise DataError(
            f"{found.where} has {counted(len(found.bands), 'band')}, but the forest was trained on "
            f"{counted(forest.n_features_in_, 'feature')} without names."
        )
    return found.names


def _mask(mask: Any, trained: Sequence[str] | None) -> tuple[str, MaskRule]:
    if isinstance(mask, str):
        if trained is None:
            wanted = (
                f"a band and a rule, such as ({mask!r}, 'bits 1,3,4'): the forest was trained without one"
            )
            raise ParameterError("mask", mask, wanted)
        mask = (mask, trained[1])
    return parse_mask(mask)


def _is_flipped(forest: Any, data: Any, found: ArrayBands) -> bool:
    """Whether lines run from south to north, but not in the scene of the training; or the other way."""
    lines = data[found.y].values if found.y in data.coords else np.empty(0)
    if len(lines) < 2 or forest.recipe_ is None:
        return False
    return bool(lines[-1] > lines[0]) != bool(forest.recipe_.get("south_up", False))


@dataclass(frozen=True)
class _Sources:
    """Arrays by line and pixel, some with bands before these, and where each band is."""

    arrays: tuple[Any, ...]
    places: Mapping[str, tuple[int, int | None]]
    flipped: bool

    def by_name(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """Each band of these arrays, which have the order of the sources."""
        places = self.places.items()
        return {name: arrays[i] if place is None else arrays[i][place] for name, (i, place) in places}


def _sources(bands: Mapping[str, ArrayBand], flipped: bool) -> _Sources:
    """The variables of bands, each once; of dask's chunks, only those of bands that are used."""
    variables = list({id(band.variable): band.variable for band in bands.values()}.values())
    chosen: list[list[int] | None] = []
    for variable in variables:
        used = [band.place for band in bands.values() if band.variable is variable and band.place is not None]
        chosen.append(sorted(set(used)) if used and _is_lazy(variable) else None)
    places = {}
    for name, band in bands.items():
        at = next(i for i, variable in enumerate(variables) if variable is band.variable)
        numbers = chosen[at]
        places[name] = (
            at,
            band.place if numbers is None or band.place is None else numbers.index(band.place),
        )
    arrays = [
        variable if numbers is None else variable[numbers]
        for variable, numbers in zip(variables, chosen, strict=True)
    ]
    return _Sources(tuple(array[..., ::-1, :] if flipped else array for array in arrays), places, flipped)


def _is_lazy(array: Any) -> bool:
    return array.chunks is not None


def _lazy(sources: _Sources, prediction: Prediction, model: SharedModel) -> Any:
    """The pixels of all blocks as a dask array, by band, line and pixel."""
    import dask.array as da
    from dask.array.overlap import ensure_minimum_chunksize, overlap

    given = next(array.chunks[-2:] for array in sources.arrays if _is_lazy(array))
    half = prediction.patch // 2
    depths, chunks = [], []
    for sizes in given:
        is_whole = len(sizes) == 1 or sum(sizes) <= half
        depths.append(0 if is_whole else half)
        chunks.append((sum(sizes),) if is_whole else ensure_minimum_chunksize(max(1, half), sizes))
    arrays = []
    for array in sources.arrays:
        whole = [-1] * (array.ndim - 2)
        pixels = da.asarray(array.data).rechunk((*whole, *chunks))
        depth = dict(enumerate([0] * (array.ndim - 2) + depths))
        arrays.append(overlap(pixels, depth, boundary="none") if any(depths) else pixels)
    bands = len(prediction.layer.bands)
    made = da.map_blocks(
        _predicted_block,
        *arrays,
        prediction=prediction,
        sources=replace(sources, arrays=()),
        model=model,
        depths=tuple(depths),
        dtype=prediction.layer.dtype,
        meta=np.empty((0, 0, 0), dtype=prediction.layer.dtype),
        chunks=((bands,), *chunks),
        new_axis=None if any(array.ndim == 3 for array in arrays) else [0],
        name=None,
    )
    return made.rechunk((-1, *given)) if tuple(chunks) != tuple(given) else made


def _predicted_block(
    *arrays: npt.NDArray[Any],
    prediction: Prediction,
    sources: _Sources,
    model: SharedModel,
    depths: tuple[int, int],
    block_info: Any = None,
) -> npt.NDArray[Any]:
    """The task of a block: its arrays reach as far over its borders as a patch does."""
    place = block_info[None]["chunk-location"][-2:]
    blocks = block_info[None]["num-chunks"][-2:]
    before = [depth if at > 0 else 0 for at, depth in zip(place, depths, strict=True)]
    behind = [depth if at < n - 1 else 0 for at, n, depth in zip(place, blocks, depths, strict=True)]
    halo = Halo(before[0], behind[0], before[1], behind[1])
    return prediction.of_block(model.opened(), sources.by_name(arrays), halo, 1)


def _result(pixels: Any, layer: MapLayer, forest: Any, data: Any, found: ArrayBands) -> Any:
    """The pixels as a DataArray with the coordinates of the data."""
    import xarray

    by_class = isinstance(layer, ProbabilityLayer)
    coords = {name: value for name, value in data.coords.items() if set(value.dims) <= set(found.order)}
    dims: tuple[str, ...] = (found.y, found.x)
    attributes: dict[str, Any] = {}
    if by_class:
        dims = ("class", *dims)
        coords["class"] = ("class", forest.classes_)
    else:
        pixels = pixels[0]
    if layer.names:
        attributes = {
            "flag_values": np.array([value for value, _ in layer.names], dtype=layer.dtype),
            "flag_meanings": " ".join("_".join(name.split()) for _, name in layer.names),
            "class_names": [name for _, name in layer.names],
        }
    name = "probability" if by_class else layer.bands[0]
    result = xarray.DataArray(pixels, dims=dims, coords=coords, name=name, attrs=attributes)
    result = result.transpose(*(dim for dim in dims if dim not in found.order), *found.order)
    result = result.rio.write_nodata(layer.nodata)
    crs, mapping = data.rio.crs, data.rio.grid_mapping
    if crs is not None:
        if mapping in result.coords:
            result.encoding["grid_mapping"] = mapping
        if result.rio.crs != crs:
            result = result.rio.write_crs(crs, grid_mapping_name=mapping)
    return result
