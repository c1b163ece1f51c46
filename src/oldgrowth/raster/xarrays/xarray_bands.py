"""The bands of xarray's DataArrays and Datasets: their names, nodata values, scales, and where pixels are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from affine import Affine

from ...datasets.files import SourceFile
from ...errors import BandError, DataError
from ..reading.grid import Grid
from ..reading.raster_files import Band, identifier, possible

NO_GRID = Grid(0, 0, Affine.identity(), None)  # arrays have the one of the data


@dataclass(frozen=True)
class ArrayBand:
    """A band, the names by which it may be known, and the variable that has its pixels.

    `place` is its number in a variable with several bands; the dimensions of the variable are then bands,
    lines and pixels, and otherwise lines and pixels.
    """

    names: tuple[str, ...]
    variable: Any
    place: int | None
    dtype: np.dtype[Any]
    nodata: float | None
    scale: float
    offset: float
    replaced: float | None = None  # a value that was replaced by NaN when the data was read

    def named(self, name: str, where: str, nodata: float | None = None) -> Band:
        """As a band of a scene, with this nodata value or its own."""
        if self.dtype.kind not in "biuf":
            raise DataError(f"{where} has values of type {self.dtype} in band {name!r}, not numbers.")
        value = possible(self.nodata if nodata is None else nodata, self.dtype)
        return Band(name, SourceFile(where), 1, self.dtype, NO_GRID, value, self.scale, self.offset)


@dataclass(frozen=True)
class ArrayBands:
    """The bands of a DataArray or Dataset, the dimensions of its lines and pixels, and their order."""

    where: str
    bands: tuple[ArrayBand, ...]
    y: str
    x: str
    order: tuple[str, ...]

    def find(self, name: str) -> ArrayBand:
        """The band of this name: what a band is called first counts before its other names."""
        for which in range(max(len(band.names) for band in self.bands)):
            found = [band for band in self.bands if name in band.names[which : which + 1]]
            if len(found) > 1:
                raise DataError(f"{self.where} has {len(found)} bands named {name!r}: give them other names.")
            if found:
                return found[0]
        raise BandError(self.where, [name], self.names)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(band.names[0] for band in self.bands)


def bands_of(data: Any) -> ArrayBands:
    """The bands of a DataArray with a dimension of bands, or of a Dataset with a variable a band."""
    import xarray

    if isinstance(data, xarray.Dataset):
        return _of_dataset(data)
    if isinstance(data, xarray.DataArray):
        return _of_array(data)
    raise DataError(f"data must be a DataArray or Dataset of xarray; got a {type(data).__name__}.")


def _of_array(data: Any) -> ArrayBands:
    where = "The DataArray" if data.name is None else f"The DataArray {str(data.name)!r}"
    y, x = _spatial(data, where)
    others = [dim for dim in data.dims if dim not in (y, x)]
    if not others:
        one = _single(data, str(data.name or "B1"), data.variable.transpose(y, x))
        return ArrayBands(where, (one,), y, x, tuple(data.dims))
    if len(others) > 1:
        _refuse_dimensions(where, others, data)
    (dim,) = others
    variable = data.variable.transpose(dim, y, x)
    numbers = data[dim].values if dim in data.coords else np.arange(1, data.sizes[dim] + 1)
    known = data.attrs.get("long_name")
    known = known if isinstance(known, Sequence) and not isinstance(known, str) else ()
    known = [text if text and list(known).count(text) == 1 else None for text in known]
    bands = []
    for place, number in enumerate(numbers.tolist()):
        names, at = [str(number)], place
        if isinstance(number, int):  # rioxarray counts the bands of a file from 1
            at = number - 1
            names = [str(known[at])] if 0 <= at < len(known) and known[at] else []
            names.append(f"B{number}")
        scale, offset = (_of_band(data.attrs, *pair, at) for pair in _SCALING)
        nodata, replaced = _nodata(data)
        bands.append(ArrayBand(_spelt(names), variable, place, data.dtype, nodata, scale, offset, replaced))
    return ArrayBands(where, tuple(bands), y, x, tuple(dim for dim in data.dims if dim != others[0]))


def _of_dataset(data: Any) -> ArrayBands:
    where = "The Dataset"
    y, x = _spatial(data, where)
    bands, order = [], (y, x)
    for name, variable in data.data_vars.items():
        others = [dim for dim in variable.dims if dim not in (y, x)]
        if {y, x} <= set(variable.dims) and all(data.sizes[dim] == 1 for dim in others):
            plain = variable.variable.squeeze(others).transpose(y, x)
            bands.append(_single(variable, str(name), plain))
            order = tuple(dim for dim in variable.dims if dim in (y, x))
    if not bands:
        for name, variable in data.data_vars.items():
            if {y, x} <= set(variable.dims):
                others = [dim for dim in variable.dims if dim not in (y, x)]
                _refuse_dimensions(f"The variable {str(name)!r} of the Dataset", others, variable)
        raise DataError(f"{where} has no variable with the dimensions {y} and {x}.")
    return ArrayBands(where, tuple(bands), y, x, order)


def _single(data: Any, name: str, variable: Any) -> ArrayBand:
    """A variable that is one band; rioxarray calls those of a file band_1, band_2 and so on."""
    said = data.attrs.get("long_name")
    counted = re.fullmatch(r"band_(\d+)", name)
    names = [name, *([said] if isinstance(said, str) else []), *([f"B{counted[1]}"] if counted else [])]
    scale, offset = (_of_band(data.attrs, *pair, 0) for pair in _SCALING)
    nodata, replaced = _nodata(data)
    return ArrayBand(_spelt(names), variable, None, data.dtype, nodata, scale, offset, replaced)


def _spelt(names: Sequence[str]) -> tuple[str, ...]:
    """Each name as it is, and as it is spelt in expressions."""
    return tuple(dict.fromkeys([*names, *(identifier(name) for name in names)]))


# Attributes in which rioxarray keeps the scale and the offset: of all bands, or of each one.
_SCALING = (("scale_factor", "scales", 1.0), ("add_offset", "offsets", 0.0))


def _of_band(attributes: Mapping[str, Any], one: str, each: str, default: float, place: int) -> float:
    values = attributes.get(each)
    if values is not None and 0 <= place < np.size(values):
        return float(np.ravel(values)[place])
    return float(attributes.get(one, default))


def _nodata(data: Any) -> tuple[float | None, float | None]:
    """The nodata value, and the one that rioxarray has replaced by it."""
    values = (data.rio.nodata, data.rio.encoded_nodata)
    nodata, replaced = (None if value is None else float(value) for value in values)
    return nodata, replaced


def _spatial(data: Any, where: str) -> tuple[str, str]:
    from rioxarray.exceptions import RioXarrayError

    try:
        return data.rio.y_dim, data.rio.x_dim
    except RioXarrayError as error:
        dims = ", ".join(map(str, data.dims))
        raise DataError(
            f"{where} has no dimensions known as lines and pixels; its dimensions are {dims or 'none'}. Name "
            "them y and x, or use data.rio.set_spatial_dims."
        ) from error


def _refuse_dimensions(where: str, others: Sequence[Any], data: Any) -> None:
    sizes = ", ".join(f"{dim} ({data.sizes[dim]})" for dim in others)
    raise DataError(
        f"{where} has more dimensions than bands, lines and pixels: {sizes}. Predict one part after the "
        "other, selected with data.isel."
    )
