"""The forest: top trees and bottom trees in a few flat arrays, immutable once assembled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import CorruptedModelFileError, DamagedForestError, ModelFileError, TruncatedModelFileError
from ..fitting.top_trees import TopTree
from ..storage.grown_trees import GrownTrees
from ..storage.workspace import Workspace

ARRAYS = (
    "top_nodes",
    "top_start",
    "bucket_start",
    "trees_of_top",
    "bottom_start",
    "nodes",
    "node_start",
    "table_start",
    "table",
    "tree_crc",
)


# Bytes of a mapped array that are copied at a time.
_PART_BYTES = 2**23


def _starts(lengths: list[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)


@dataclass(frozen=True)
class MappedArrays:
    """The files that arrays of bottom trees are mapped from, and the checksum of each of these arrays."""

    files: tuple[_core.MappedFile, ...]
    checksums: dict[str, int]
    place: Path  # of a file without a name: where it was made


class Forest:
    """Flat arrays, described in docs/formats.md, and the core's view of them.

    Nothing in them is trusted: what leads to the bottom trees is checked at once, each bottom tree when it is
    first used. Nodes and table may be mapped from files and larger than memory; `path` is the model file
    that the forest was read from. Mapped arrays are read by `parts` or within `checked`, for their files may
    change at any time.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        arrays: dict[str, npt.NDArray[Any]],
        path: Path | None = None,
        mapped: MappedArrays | None = None,
    ) -> None:
        self.n_features = n_features
        self.n_classes = n_classes
        self.path = path
        self._mapped = mapped
        self._files = () if mapped is None else mapped.files
        self._arrays = arrays
        for array in arrays.values():
            array.flags.writeable = False
        try:
            self._core = _core.Forest(n_features, n_classes, **arrays, files=list(self._files))
        except ValueError as error:  # the core says where and what
            section, _, wrong = str(error).partition(": ")
            raise CorruptedModelFileError(path or "The forest", section, wrong or "not possible") from error

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name in ARRAYS:
            return self._arrays[name]
        raise AttributeError(name)

    @property
    def mapped(self) -> bool:
        """Whether nodes and table are in a file."""
        return bool(self._files)

    @property
    def n_trees(self) -> int:
        return int(self.trees_of_top.sum())

    @property
    def n_nodes(self) -> int:
        return len(self.nodes) + len(self.top_nodes)

    @property
    def n_outputs(self) -> int:
        return self.n_classes or 1

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    def __repr__(self) -> str:
        return f"Forest({self.n_trees} trees, {self.n_nodes:,} nodes, {self.n_features} features)"

    def digest(self) -> str:
        """A hash of every bit of the model."""
        digest = hashlib.sha256(f"{self.n_features} {self.n_classes}".encode())
        for name in ARRAYS:
            digest.update(name.encode())
            for part in self.parts(name):
                digest.update(part.data)
        return digest.hexdigest()

    def check(self) -> None:
        """Check all trees now."""
        with self._found_damage():
            self._core.check()

    def prediction_bytes(self, evict: bool) -> tuple[int, int]:
        """What a thread takes while it predicts: for each row, and beside that."""
        row, thread = self._core.prediction_bytes(evict)
        return row, thread

    def parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """An array, one part after the other; those of a mapped array are copies that may be kept.

        Raises behind the last part of a mapped array unless its checksum is the one that was written.
        """
        array = self._arrays[name]
        if self._mapped is None or name not in self._mapped.checksums:
            yield array
            return
        step, crc = _PART_BYTES // array.itemsize, 0
        for first in range(0, len(array), step):
            mapped = array[first : first + step]
            _core.guard_mappings()
            part = np.array(mapped)
            crc = _core.crc32c(part.view(np.uint8), crc)
            for file in self._files:
                file.evict(mapped)
            yield part
        if crc != self._mapped.checksums[name]:
            self._raise_if_lost()
            raise self._damage(name, "the checksum differs")

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raises at the end if mapped arrays may have changed since the beginning."""
        stamps = [file.stamp for file in self._files]
        _core.guard_mappings()

        def confirm() -> None:
            self._raise_if_lost()
            if [file.stamp for file in self._files] != stamps:
                raise self._damage("nodes", "the file was changed while it was read")

        try:
            yield
        except (LookupError, ValueError):  # numbers from the file may lead anywhere if it changed
            confirm()
            raise
        confirm()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """For all that reads the arrays of trees itself: they are checked, and unchanged at the end."""
        with self.unchanged():
            self.check()
            yield

    def predict_sums(
        self,
        x: npt.NDArray[np.float32],
        may_miss: bool,
        hard: bool,
        evict: bool,
        sums: npt.NDArray[np.float64],
    ) -> None:
        """Sums over the trees; with `evict` memory holds no more of a mapped forest than a few buckets."""
        with self._found_damage():
            self._core.predict_sums(x, may_miss, hard, evict, sums)

    def apply(
        self, x: npt.NDArray[np.float32], may_miss: bool, evict: bool, leaves: npt.NDArray[np.int64]
    ) -> None:
        with self._found_damage():
            self._core.apply(x, may_miss, evict, leaves)

    @contextmanager
    def _found_damage(self) -> Iterator[None]:
        try:
            yield
        except _core.DamagedTreeError as error:
            self._raise_if_lost()
            raise self._damage(self._damaged_section(), str(error)) from error
        except (_core.LostPagesError, _core.ChangingFileError) as error:
            self._raise_if_lost()
            raise self._damage("nodes", str(error)) from error

    def _raise_if_lost(self) -> None:
        """A file that was cut off, or of which a part cannot be read."""
        for file in self._files:
            size = file.stamp[0]
            if self.path is not None and size < file.size:
                raise TruncatedModelFileError(self.path, size, file.size)
            if size < file.size or file.lost:
                raise self._damage("nodes", "a part of the file is gone or cannot be read")

    def _damaged_section(self) -> str:
        try:
            for _ in self.parts("table"):
                pass
        except (ModelFileError, DamagedForestError):
            return "table"
        return "nodes"

    def _damage(self, section: str, what: str) -> Exception:
        if self._mapped is not None and self.path is None:
            return DamagedForestError(self._mapped.place, what)
        return CorruptedModelFileError(self.path or "The forest", section, what)

    def __reduce__(self) -> tuple[Any, ...]:
        self.check()
        arrays = {name: np.concatenate([*self.parts(name)]) for name in self._trees()}
        return _unpickled, (self.n_features, self.n_classes, self._arrays | arrays)

    def _trees(self) -> list[str]:
        """The arrays that are mapped and have contents."""
        mapped = {} if self._mapped is None else self._mapped.checksums
        return [name for name in mapped if len(self._arrays[name])]


def _unpickled(n_features: int, n_classes: int, arrays: dict[str, npt.NDArray[Any]]) -> Forest:
    forest = Forest(n_features, n_classes, arrays)
    forest.check()
    return forest


@dataclass(frozen=True)
class Assembled:
    """The forest, each feature's share in the decrease of impurity, and the depth of the deepest tree."""

    forest: Forest
    importances: npt.NDArray[np.float64]
    depth: int


def assemble(
    n_features: int,
    n_classes: int,
    tops: list[TopTree],
    trees_of_tops: list[int],
    grown: GrownTrees,
    space: Workspace | None = None,
) -> Assembled:
    """Stage 5: all trees in their order, whatever the order they were grown in. Empties `grown`.

    With a workspace the nodes are written to a file and mapped, so that the forest need not fit memory.
    """
    tree_start = _starts([top.n_buckets * n for top, n in zip(tops, trees_of_tops, strict=True)])
    n_trees, depth = int(tree_start[-1]), 0
    node_start, table_start = (np.zeros(n_trees + 1, dtype=np.uint64) for _ in range(2))
    for i, (top, n) in enumerate(zip(tops, trees_of_tops, strict=True)):
        sizes, part = (
            grown.sizes(i, top.n_buckets, n),
            slice(int(tree_start[i]) + 1, int(tree_start[i + 1]) + 1),
        )
        node_start[part] = sizes.nodes
        table_start[part] = sizes.table // max(n_classes, 1)
        depth = max(depth, int(sizes.depth.max()))
    for start in (node_start, table_start):
        np.cumsum(start, out=start)
    room = _InMemory if space is None else partial(_OnDisk, space)
    nodes: _InMemory | _OnDisk = room(int(node_start[-1]), np.dtype(np.uint64))
    table: _InMemory | _OnDisk = room(int(table_start[-1]) * max(n_classes, 1), np.dtype(np.float32))
    crcs = np.empty(n_trees, dtype=np.uint32)
    gains = [[top.importances.copy() for _ in range(n)] for top, n in zip(tops, trees_of_tops, strict=True)]
    at = 0
    for i, (top, n) in enumerate(zip(tops, trees_of_tops, strict=True)):
        for tree in grown.pop_all(i, top.n_buckets, n):
            crcs[at] = _core.crc32c(tree.table.view(np.uint8), _core.crc32c(tree.nodes.view(np.uint8)))
            nodes.append(tree.nodes)
            table.append(tree.table)
            gains[i][(at - int(tree_start[i])) % n] += tree.importances
            at += 1
    buckets = [top.n_buckets for top in tops]
    arrays = {
        "top_nodes": np.concatenate([top.nodes for top in tops]),
        "top_start": _starts([len(top.nodes) for top in tops]),
        "bucket_start": _starts(buckets),
        "trees_of_top": np.array(trees_of_tops, dtype=np.uint64),
        "bottom_start": tree_start,
        "nodes": nodes.array(),
        "node_start": node_start,
        "table_start": table_start,
        "table": table.array(),
        "tree_crc": crcs,
    }
    mapped = None if space is None else _mapped_arrays(space, {"nodes": nodes, "table": table})
    forest = Forest(n_features, n_classes, arrays, mapped=mapped)
    if mapped is None:  # else it is perhaps larger than memory: each tree is checked when it is read
        forest.check()
    return Assembled(forest, _mean_gain(gains), depth)


def _mapped_arrays(space: Workspace, arrays: dict[str, Any]) -> MappedArrays:
    files = tuple(array.mapped for array in arrays.values() if array.mapped.size)
    return MappedArrays(files, {name: array.checksum for name, array in arrays.items()}, space.path)


def _mean_gain(gains: list[list[npt.NDArray[np.float64]]]) -> npt.NDArray[np.float64]:
    """Normalised for each tree, as a mean over those that split at all."""
    trees = [gain / gain.sum() for group in gains for gain in group if gain.sum() > 0]
    return np.mean(trees, axis=0) if trees else np.zeros_like(gains[0][0])


class _InMemory:
    """An array that is filled from its beginning to its end."""

    def __init__(self, size: int, dtype: np.dtype[Any]) -> None:
        self._array = np.empty(size, dtype=dtype)
        self._filled = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        self._array[self._filled : self._filled + len(values)] = values
        self._filled += len(values)

    def array(self) -> npt.NDArray[Any]:
        return self._array


class _OnDisk:
    """The same in a file."""

    def __init__(self, space: Workspace, size: int, dtype: np.dtype[Any]) -> None:
        self._file = space.nameless()
        self._dtype = dtype
        self.mapped: _core.MappedFile | None = None
        self.checksum = 0  # of what was meant to be written

    def append(self, values: npt.NDArray[Any]) -> None:
        data = values.view(np.uint8)
        self._file.append(data)
        self.checksum = _core.crc32c(data, self.checksum)

    def array(self) -> npt.NDArray[Any]:
        self.mapped = self._file.mapped()
        self._file.close()
        return self.mapped.bytes.view(self._dtype)
