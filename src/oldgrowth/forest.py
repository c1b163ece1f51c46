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

from . import _core
from .errors import CorruptedModelFileError
from .grown_trees import GrownTrees
from .top_tree import TopTree
from .workspace import Workspace

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


_HASHED_AT_ONCE = 2**20


def _starts(lengths: list[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)


class Forest:
    """Flat arrays, described in docs/formats.md, and the core's view of them.

    Nothing in them is believed, unless they are `trusted` because they were made just now: what leads to the
    bottom trees is checked at once, each bottom tree when it is first used. Arrays may be mapped from a file
    (`path`, if it has a name) and larger than memory.
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        arrays: dict[str, npt.NDArray[Any]],
        trusted: bool = False,
        path: Path | None = None,
        mapped: bool = False,
    ) -> None:
        self.n_features = n_features
        self.n_classes = n_classes
        self.path = path
        self.mapped = mapped
        self._arrays = arrays
        for array in arrays.values():
            array.flags.writeable = False
        try:
            self._core = _core.Forest(n_features, n_classes, **arrays, trusted=trusted)
        except ValueError as error:  # the core says where and what
            section, _, wrong = str(error).partition(": ")
            raise CorruptedModelFileError(path or "The forest", section, wrong or "not possible") from error

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name in ARRAYS:
            return self._arrays[name]
        raise AttributeError(name)

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
            for first in range(0, len(self._arrays[name]), _HASHED_AT_ONCE):
                digest.update(self._arrays[name][first : first + _HASHED_AT_ONCE].tobytes())
        return digest.hexdigest()

    def check(self) -> None:
        """Check all trees now, before something other than prediction reads them."""
        with self._found_damage():
            self._core.check()

    def prediction_bytes(self, evict: bool) -> tuple[int, int]:
        """What a thread takes while it predicts: for each row, and beside that."""
        row, thread = self._core.prediction_bytes(evict)
        return row, thread

    def predict_sums(
        self,
        x: npt.NDArray[np.float32],
        may_miss: bool,
        hard: bool,
        let_go: bool,
        sums: npt.NDArray[np.float64],
    ) -> None:
        """Sums over the trees; with `let_go` memory holds no more of a mapped forest than a few buckets."""
        with self._found_damage():
            self._core.predict_sums(x, may_miss, hard, let_go and self.mapped, sums)

    def apply(
        self, x: npt.NDArray[np.float32], may_miss: bool, let_go: bool, leaves: npt.NDArray[np.int64]
    ) -> None:
        with self._found_damage():
            self._core.apply(x, may_miss, let_go and self.mapped, leaves)

    @contextmanager
    def _found_damage(self) -> Iterator[None]:
        try:
            yield
        except _core.DamagedTreeError as error:
            from .model_file import damaged_trees  # which imports this module

            section = "nodes" if self.path is None else damaged_trees(self.path)
            raise CorruptedModelFileError(self.path or "The forest", section, str(error)) from error

    def __reduce__(self) -> tuple[Any, ...]:
        self.check()
        arrays = {k: _portable(v) for k, v in self._arrays.items()}
        return _unpickled, (self.n_features, self.n_classes, arrays)


def _unpickled(n_features: int, n_classes: int, arrays: dict[str, npt.NDArray[Any]]) -> Forest:
    forest = Forest(n_features, n_classes, arrays)
    forest.check()
    return forest


def _portable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Without the file it is mapped from, which has no name by which another process could find it."""
    return np.array(array) if isinstance(array, np.memmap) else array


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
    order = [
        (i, bucket, tree)
        for i, (top, trees) in enumerate(zip(tops, trees_of_tops, strict=True))
        for bucket in range(top.n_buckets)
        for tree in range(trees)
    ]
    sizes = [grown.size(key) for key in order]
    node_start = _starts([size.nodes for size in sizes])
    table_start = _starts([size.table // max(n_classes, 1) for size in sizes])
    room = _InMemory if space is None else partial(_OnDisk, space)
    nodes = room(int(node_start[-1]), np.dtype(np.uint64))
    table = room(int(table_start[-1]) * max(n_classes, 1), np.dtype(np.float32))
    crcs = np.empty(len(order), dtype=np.uint32)
    gains = [[top.importances.copy() for _ in range(n)] for top, n in zip(tops, trees_of_tops, strict=True)]
    for i, key in enumerate(order):
        tree = grown.pop(key)
        crcs[i] = _core.crc32c(tree.table.view(np.uint8), _core.crc32c(tree.nodes.view(np.uint8)))
        nodes.append(tree.nodes)
        table.append(tree.table)
        gains[key[0]][key[2]] += tree.importances
    buckets = [top.n_buckets for top in tops]
    arrays = {
        "top_nodes": np.concatenate([top.nodes for top in tops]),
        "top_start": _starts([len(top.nodes) for top in tops]),
        "bucket_start": _starts(buckets),
        "trees_of_top": np.array(trees_of_tops, dtype=np.uint64),
        "bottom_start": _starts([b * t for b, t in zip(buckets, trees_of_tops, strict=True)]),
        "nodes": nodes.array(),
        "node_start": node_start,
        "table_start": table_start,
        "table": table.array(),
        "tree_crc": crcs,
    }
    on_disk = space is not None  # and perhaps larger than memory: it is not read again
    forest = Forest(n_features, n_classes, arrays, trusted=on_disk, mapped=on_disk)
    forest.check()
    return Assembled(forest, _mean_gain(gains), max(size.depth for size in sizes))


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

    def append(self, values: npt.NDArray[Any]) -> None:
        self._file.append(values.view(np.uint8))

    def array(self) -> npt.NDArray[Any]:
        mapped = self._file.mapped(self._dtype)
        self._file.close()
        return mapped
