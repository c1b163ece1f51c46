"""Stage 5: all trees in their order, in the flat arrays of a forest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from ..forest.forest import TYPES, Forest, MappedArrays
from ..storage.grown_trees import GrownTrees
from ..storage.workspace import Workspace
from .top_trees import TopTree

# Arrays by name, each with its length and its parts in order.
Filled: TypeAlias = Iterable[tuple[str, int, Iterable[npt.NDArray[Any]]]]


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
    workspace: Workspace | None = None,
) -> Assembled:
    """All trees in their order, whatever the order they were grown in. Empties `grown`.

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
    room = _InMemory if workspace is None else partial(_OnDisk, workspace)
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
    mapped = None if workspace is None else _mapped_arrays(workspace, {"nodes": nodes, "table": table})
    forest = Forest(n_features, n_classes, arrays, mapped=mapped)
    if mapped is None:  # else it is perhaps larger than memory: each tree is checked when it is read
        forest.check()
    return Assembled(forest, _mean_gain(gains), depth)


def arrays_in_memory(filled: Filled) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a forest from their parts."""
    arrays = {}
    for name, length, parts in filled:
        array: _InMemory | None = None
        for part in parts:
            array = array or _InMemory(length, part.dtype)
            array.append(part)
        arrays[name] = np.zeros(0, dtype=TYPES[name]) if array is None else array.array()
    return arrays


def arrays_on_disk(filled: Filled, workspace: Workspace) -> tuple[dict[str, npt.NDArray[Any]], MappedArrays]:
    """The same, with nodes and table in files that are mapped."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    files: dict[str, _OnDisk] = {}
    for name, length, parts in filled:
        if name not in ("nodes", "table"):
            arrays |= arrays_in_memory([(name, length, parts)])
            continue
        files[name] = _OnDisk(workspace, length, TYPES[name])
        for part in parts:
            files[name].append(part)
        arrays[name] = files[name].array()
    return arrays, _mapped_arrays(workspace, files)


def _starts(lengths: list[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)


def _mapped_arrays(workspace: Workspace, arrays: dict[str, Any]) -> MappedArrays:
    files = tuple(array.mapped for array in arrays.values() if array.mapped.size)
    return MappedArrays(files, {name: array.checksum for name, array in arrays.items()}, workspace.path)


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

    def __init__(self, workspace: Workspace, size: int, dtype: np.dtype[Any]) -> None:
        self._file = workspace.unnamed()
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
