"""Checks where the values of an HDF5 dataset are stored: in other files only if allowed, and completely.

HDF5 itself reads any file that an HDF5 file names, and returns zeros for missing values.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MissingValuesError, OtherFilesError
from ..messages.log import warn
from ..messages.warnings import UnwrittenValuesWarning
from .files import SourceFile, seen_now

DEEPEST = 8  # maximum nesting of virtual datasets


def is_elsewhere(plist: Any) -> bool:
    """Whether a dataset with these properties is virtual or has external storage."""
    import h5py

    return plist.get_layout() == h5py.h5d.VIRTUAL or plist.get_external_count() > 0


class StorageCheck:
    """Refuses datasets with values in other files, unless `allowed`, and datasets with missing values.

    `files` maps the paths of the other files to their sizes and times.
    """

    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed
        self.files: dict[str, SourceFile] = {}

    def check(self, file: SourceFile, h5: Any, data: Any, depth: int = 0) -> None:
        import h5py

        plist = data.id.get_create_plist()
        where = f"{file.path} ({data.name.strip('/')})"
        if plist.get_external_count():
            if not self._allowed or file.system is not None:
                raise OtherFilesError(where, os.fsdecode(plist.get_external(0)[0]))
            for path in _check_external(where, plist, data):
                self._found(path)
        elif plist.get_layout() == h5py.h5d.VIRTUAL:
            if depth == DEEPEST:
                raise MissingValuesError(where, f"is a virtual dataset with more than {DEEPEST} levels")
            _check_mapped(where, plist, data.shape)
            for source in _sources(plist):
                self._check_source(file, h5, where, source, depth)

    def _found(self, path: str) -> SourceFile:
        if path not in self.files:
            self.files[path] = seen_now(path)
        return self.files[path]

    def _check_source(
        self, file: SourceFile, h5: Any, where: str, source: tuple[str, str, Any], depth: int
    ) -> None:
        """Check a source of a virtual dataset: it must exist, and other files must be allowed."""
        import h5py

        name, path, part = source
        if name == ".":
            self.check(file, h5, _part(file, h5, where, path, part), depth + 1)
            return
        if not self._allowed or file.system is not None:
            raise OtherFilesError(where, name)
        found = next((path for path in _places(file.place, name) if os.path.isfile(path)), None)
        if found is None:
            raise MissingValuesError(where, f"takes values from {name}, which does not exist")
        other_file = self._found(found)
        try:
            with h5py.File(found, "r") as other:
                self.check(other_file, other, _part(other_file, other, where, path, part), depth + 1)
        except OSError as error:
            raise MissingValuesError(
                where, f"takes values from {found}, which cannot be read ({error})"
            ) from error


def check_written(where: str, data: Any) -> None:
    """Warn of parts without values: an interrupted writer leaves them, and writers that omit a fill value."""
    parts = 1 if data.chunks is None else math.prod(map(_ceiling, data.shape, data.chunks))
    written = int(data.id.get_storage_size() > 0) if data.chunks is None else data.id.get_num_chunks()
    if data.size and written < parts:
        warn(UnwrittenValuesWarning(where, parts - written, parts, data.fillvalue))


def _ceiling(size: int, chunk: int) -> int:
    return -(-size // chunk)


def _check_external(where: str, plist: Any, data: Any) -> Iterator[str]:
    """Check that external files have the required length; yield their paths."""
    import h5py

    parts = [plist.get_external(i) for i in range(plist.get_external_count())]
    left = data.size * data.dtype.itemsize
    for name, offset, size in parts:
        wanted = left if size == h5py.h5f.UNLIMITED else min(left, size)
        path = os.path.join(os.environ.get("HDF5_EXTFILE_PREFIX", ""), os.fsdecode(name))
        there = os.path.getsize(path) - offset if os.path.isfile(path) else 0
        if there < wanted:
            raise MissingValuesError(where, f"needs {wanted:,} bytes of {path}, which has {max(0, there):,}")
        left -= wanted
        if wanted:
            yield path


def _check_mapped(where: str, plist: Any, shape: tuple[int, ...]) -> None:
    """Check that each value has a source: sources must be blocks that cover the dataset without overlap."""
    starts, stops = [], []
    for i in range(plist.get_virtual_count()):
        space = plist.get_virtual_vspace(i)
        if not space.is_regular_hyperslab() and space.get_select_npoints() != math.prod(shape):
            raise MissingValuesError(where, "is a virtual dataset whose sources are not blocks of it")
        first, last = (np.array(corner, dtype=np.int64) for corner in space.get_select_bounds())
        if int(np.prod(last - first + 1)) != space.get_select_npoints():
            raise MissingValuesError(where, "is a virtual dataset whose sources are not blocks of it")
        starts.append(first)
        stops.append(last + 1)
    mapped = sum(int(np.prod(stop - start)) for start, stop in zip(starts, stops, strict=True))
    if mapped < math.prod(shape) or _overlap(np.array(starts), np.array(stops)):
        raise MissingValuesError(
            where, f"is a virtual dataset with sources for {mapped:,} of {math.prod(shape):,} values"
        )


def _overlap(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> bool:
    return any(
        bool(np.any(np.all((starts[i] < stops[i + 1 :]) & (starts[i + 1 :] < stops[i]), axis=1)))
        for i in range(len(starts) - 1)
    )


def _sources(plist: Any) -> Iterator[tuple[str, str, Any]]:
    for i in range(plist.get_virtual_count()):
        space = plist.get_virtual_srcspace(i)
        count = plist.get_virtual_vspace(i).get_select_npoints()
        yield plist.get_virtual_filename(i), plist.get_virtual_dsetname(i), (space, count)


def _part(file: SourceFile, h5: Any, where: str, path: str, part: tuple[Any, int]) -> Any:
    """The dataset that is the source of a part of a virtual dataset."""
    import h5py

    data = h5.get(path)
    if not isinstance(data, h5py.Dataset):
        raise MissingValuesError(where, f"takes values from {path} of {file.path}, which does not exist")
    chosen, count = part
    if chosen.get_select_type() == h5py.h5s.SEL_ALL:
        beyond = data.size < count
    else:
        last = chosen.get_select_bounds()[1]
        beyond = len(last) != data.ndim or any(np.array(last) >= data.shape)
    if beyond:
        raise MissingValuesError(where, f"takes values beyond the end of {path} of {file.path}")
    return data


def _places(path: str, name: str) -> Iterator[str]:
    """The paths at which HDF5 searches for the file of a source."""
    if prefix := os.environ.get("HDF5_VDS_PREFIX"):
        yield os.path.join(prefix, name)
    yield os.path.join(os.path.dirname(path), name)
    yield name
    yield os.path.join(os.path.dirname(path), os.path.basename(name))
