"""Vector files: their layers and fields, and the geometries in an area, read in batches."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from rasterio.crs import CRS
from shapely.errors import ShapelyError

from ...datasets.files import SourceFile, find_files, is_url, seen_now
from ...datasets.labels import type_class
from ...datasets.map_files import VECTORS
from ...errors import (
    ColumnTypeError,
    DamagedFileError,
    GeometryTypeError,
    MissingColumnError,
    MissingCRSError,
    MissingLabelError,
    NoDataError,
    NoLabelsError,
    ParameterError,
    RemoteRasterError,
)
from ...messages.surface import listed
from ..installed import ogr
from ..reading.boxes import Box

EXTENSIONS = VECTORS
KIND = "a vector file"
_FEATURES = 1 << 13  # read at a time
_SHAPEFILE = (".dbf", ".shx", ".prj", ".cpg")  # files beside a shapefile


@dataclass(frozen=True)
class Features:
    """Features of a file that have a label and a geometry; `numbers` are those that the file gives them."""

    numbers: npt.NDArray[np.int64]
    geometries: npt.NDArray[Any]
    labels: pa.Array


@dataclass(frozen=True)
class VectorFile:
    """A layer of a vector file, and the field of it that has labels."""

    files: tuple[SourceFile, ...]  # the first has the geometries
    layer: str
    field: str
    crs: CRS
    n_features: int
    box: Box | None  # around all geometries, if it is known
    encoding: str
    in_order: bool  # whether an index of places gives features in the order of the file

    @property
    def path(self) -> str:
        return self.files[0].path

    def features(self, box: Box | None) -> Iterator[Features]:
        """The features that may touch a box, some at a time."""
        with (
            watched(self.files),
            ogr().raw.open_arrow(
                self.path,
                layer=self.layer,
                columns=[self.field],
                bbox=None if box is None else box.corners,
                return_fids=True,
                use_pyarrow=True,
                batch_size=_FEATURES,
            ) as (meta, batches),
        ):
            for batch in batches:
                numbers = batch.column(meta["fid_column"] or "OGC_FID")
                geometries = batch.column(meta["geometry_name"] or "wkb_geometry")
                yield self._labelled(numbers, geometries, batch.column(self.field))

    def _labelled(self, numbers: pa.Array, wkb: pa.Array, labels: pa.Array) -> Features:
        if pa.types.is_dictionary(labels.type):
            labels = labels.dictionary_decode()
        if type_class(labels.type) == "other":
            raise ColumnTypeError(self.field, self.path, labels.type, "target")
        present = _present(labels)
        try:
            with np.errstate(invalid="ignore"):  # of coordinates that are not numbers
                geometries = shapely.from_wkb(wkb.to_numpy(zero_copy_only=False)[present])
        except NotImplementedError as error:
            raise GeometryTypeError(self.path, ["curve"]) from error
        except ShapelyError as error:
            if "Unknown WKB type" in str(error):
                raise GeometryTypeError(self.path, [str(error).rpartition(":")[2].strip()]) from error
            raise DamagedFileError(self.path, KIND, error) from error
        placed = ~shapely.is_missing(geometries)
        kept = pa.array(np.flatnonzero(present)[placed])
        found = Features(numbers.take(kept).to_numpy(), geometries[placed], labels.take(kept))
        if (
            type_class(labels.type) == "float"
            and not (finite := pc.is_finite(found.labels).to_numpy(False)).all()
        ):
            number = int(found.numbers[np.argmin(finite)])
            raise MissingLabelError(number, self.field, self.path, "is infinite")
        return found

    def described(self) -> dict[str, Any]:
        """For a fingerprint."""
        return {
            "files": [file.described() for file in self.files],
            "layer": self.layer,
            "field": self.field,
        }


def _present(labels: pa.Array) -> npt.NDArray[np.bool_]:
    """Which labels are not missing; empty text and NaN are."""
    present = labels.is_valid()
    kind = type_class(labels.type)
    if kind == "float":
        present = pc.and_(present, pc.invert(pc.is_nan(labels).fill_null(True)))
    elif kind == "text":
        present = pc.and_(present, pc.greater(pc.binary_length(labels), 0).fill_null(False))
    return np.asarray(present.to_numpy(zero_copy_only=False))


def open_vectors(path: Any, layer: str | None, field: str | None) -> VectorFile:
    """Find the layer and the field of a vector file."""
    files = files_of(path)
    with watched(files):
        layer = layer_of(files[0].path, layer)
        info = ogr().read_info(files[0].path, layer=layer, force_feature_count=True, force_total_bounds=True)
    if info["features"] == 0:
        raise NoDataError(files[0].path, "it has no geometries")
    if info["crs"] is None:
        raise MissingCRSError(files[0].path, "so that its geometries cannot be placed", "ogr2ogr -a_srs")
    field = _field(files[0].path, info["fields"].tolist(), field)
    bounds = info["total_bounds"]
    return VectorFile(
        files,
        layer,
        field,
        CRS.from_user_input(info["crs"]),
        int(info["features"]),
        None if bounds is None or not np.isfinite(bounds).all() else Box(*map(float, bounds)),
        info["encoding"] or "utf-8",
        info["driver"] != "GPKG",
    )


def files_of(path: Any) -> tuple[SourceFile, ...]:
    """A vector file, and those beside it that belong to it."""
    if is_url(str(path)) and not str(path).startswith("file://"):
        raise RemoteRasterError(str(path))
    found = find_files(path, EXTENSIONS)
    if len(found) > 1:
        raise ParameterError("labels", str(path), f"one file; {found[0].path} and {found[1].path} match")
    file = found[0]
    stem, extension = os.path.splitext(file.path)
    beside = [stem + other for other in _SHAPEFILE] if extension.lower() == ".shp" else [f"{file.path}-wal"]
    upper = [name for name in (stem + other.upper() for other in _SHAPEFILE) if extension == ".SHP"]
    files = (file, *(seen_now(name) for name in (*beside, *upper) if os.path.isfile(name)))
    if extension.lower() == ".shp":
        _check_whole(files)
    return files


def _check_whole(files: tuple[SourceFile, ...]) -> None:
    """Refuse a truncated shapefile, whose last geometries and labels GDAL would take for missing."""
    for file in files:
        extension = os.path.splitext(file.path)[1].lower()
        if extension not in (".shp", ".shx", ".dbf"):
            continue
        with file.watched(KIND), file.open() as stream:
            header = stream.read(100)
        if len(header) < 32:
            raise DamagedFileError(file.path, KIND, f"it has only {file.size} bytes")
        if extension == ".dbf":
            records, begin, each = struct.unpack("<4xIHH", header[:12])
            size = begin + records * each
        else:
            size = 2 * struct.unpack(">24xi", header[:28])[0]  # in words of 16 bits
        if file.size < size:
            raise DamagedFileError(file.path, KIND, f"it should have {size:,} bytes and has {file.size:,}")


@contextmanager
def watched(files: tuple[SourceFile, ...]) -> Iterator[None]:
    """Raise an error if a file changes or fails inside the context."""
    for file in files[1:]:
        file.check_unchanged()
    with files[0].watched(KIND):
        files[0].open().close()  # errors of the operating system
        try:
            yield
        except ogr().errors.DataSourceError as error:
            files[0].check_unchanged()
            raise DamagedFileError(files[0].path, KIND, str(error).partition(".; It might")[0]) from error
    for file in files[1:]:
        file.check_unchanged()


def layer_of(path: str, layer: str | None) -> str:
    """The layer of this name, or the only one that has geometries."""
    layers = ogr().list_layers(path).tolist()
    names = [name for name, kind in layers if kind is not None]
    if not names:
        raise NoLabelsError(path, "it has no layer with geometries")
    if layer is None and len(names) > 1:
        raise ParameterError("layer", None, f"one of the layers of {path}: {listed(names)}")
    if layer is not None and layer not in names:
        raise MissingColumnError([layer], path, names, "layer")
    return names[0] if layer is None else layer


def _field(path: str, fields: list[str], field: str | None) -> str:
    """The field of this name, or the only one."""
    if not fields:
        raise NoLabelsError(path, "its geometries have no field, and so no labels")
    if field is None and len(fields) > 1:
        raise ParameterError("field", None, f"one of the fields of {path}: {listed(fields)}")
    if field is not None and field not in fields:
        raise MissingColumnError([field], path, fields, "field")
    return fields[0] if field is None else field
