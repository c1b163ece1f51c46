"""Stage 5: all trees in their order, in the flat arrays of a forest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from ..forest.forest import MAPPED, TYPES, Forest, MappedArrays
from ..plan import Plan
from ..storage.grown_trees import BottomTree, GrownTrees
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
    plan: Plan,
    tops: list[TopTree],
    trees_of_tops: list[int],
    grown: GrownTrees,
    workspace: Workspace | None = None,
) -> Assembled:
    """All trees in their order, whatever the order they were grown in. Empties `grown`.

    With a workspace the nodes are written to a file and mapped, so that the forest need not fit memory.
    """
    counts = [(top.n_buckets, n) for top, n in zip(tops, trees_of_tops, strict=True)]
    tree_start = _starts([buckets * n for buckets, n in counts])
    starts, depth = _places(grown, counts, plan)
    room = _InMemory if workspace is None else partial(_OnDisk, workspace)
    nodes: _InMemory | _OnDisk = room(int(starts["nodes"][-1]), np.dtype(np.uint64))
    table_floats = int(starts["table"][-1]) * max(plan.n_classes, 1)
    table: _InMemory | _OnDisk = room(table_floats, np.dtype(np.float32))
    set_words = int(starts["sets"][-1]) if plan.levels else 0
    sets: _InMemory | _OnDisk = room(set_words, np.dtype(np.uint16))
    crcs = np.empty(int(tree_start[-1]), dtype=np.uint32)
    gains = [[top.importances.copy() for _ in range(n)] for top, n in zip(tops, trees_of_tops, strict=True)]
    at = 0
    for i, (buckets, n) in enumerate(counts):
        for tree in grown.pop_all(i, buckets, n):
            crcs[at] = _checksum(tree)
            nodes.append(tree.nodes)
            table.append(tree.table)
            sets.append(tree.sets)
            gains[i][(at - int(tree_start[i])) % n] += tree.importances
            at += 1
    arrays = {
        "top_nodes": np.concatenate([top.nodes for top in tops]),
        "top_start": _starts([len(top.nodes) for top in tops]),
        "bucket_start": _starts([top.n_buckets for top in tops]),
        "trees_of_top": np.array(trees_of_tops, dtype=np.uint64),
        "bottom_start": tree_start,
        "nodes": nodes.array(),
        "node_start": starts["nodes"],
        "table_start": starts["table"],
        "table": table.array(),
        "tree_crc": crcs,
    }
    filled = {"nodes": nodes, "table": table}
    if plan.levels:
        filled["sets"] = sets
        arrays |= _category_arrays(plan.levels, tops)
        arrays |= {"sets": sets.array(), "set_start": starts["sets"]}
    mapped = None if workspace is None else _mapped_arrays(workspace, filled)
    forest = Forest(n_features, plan.n_classes, arrays, mapped=mapped)
    if mapped is None:  # else it is perhaps larger than memory: each tree is checked when it is read
        forest.check()
    return Assembled(forest, _mean_gain(gains), depth)


def _places(
    grown: GrownTrees, counts: list[tuple[int, int]], plan: Plan
) -> tuple[dict[str, npt.NDArray[np.uint64]], int]:
    """Where the nodes, table rows and, with categories, sets of each tree begin, and the depth of the deepest
    tree; `counts` are the buckets of each top tree and the trees of each bucket.

    There may be millions of trees: nothing else is kept of them.
    """
    n_trees = sum(buckets * n for buckets, n in counts)
    fields = ("nodes", "table", "sets") if plan.levels else ("nodes", "table")
    starts = {field: np.zeros(n_trees + 1, dtype=np.uint64) for field in fields}
    depth, first = 0, 1
    for i, (buckets, n) in enumerate(counts):
        sizes = grown.sizes(i, buckets, n)
        for field, start in starts.items():
            start[first : first + buckets * n] = getattr(sizes, field)
        depth, first = max(depth, int(sizes.depth.max())), first + buckets * n
    starts["table"] //= np.uint64(max(plan.n_classes, 1))
    for start in starts.values():
        np.cumsum(start, out=start)
    return starts, depth


def _checksum(tree: BottomTree) -> int:
    crc = 0
    for array in (tree.nodes, tree.table, tree.sets):
        crc = _core.crc32c(array.view(np.uint8), crc)
    return crc


def _category_arrays(levels: tuple[int, ...], tops: list[TopTree]) -> dict[str, npt.NDArray[Any]]:
    return {
        "levels": np.array(levels, dtype=np.uint32),
        "top_sets": np.concatenate([top.sets for top in tops]),
        "top_set_start": _starts([len(top.sets) for top in tops]),
    }


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
    """The same, with the arrays of trees in files that are mapped."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    files: dict[str, _OnDisk] = {}
    for name, length, parts in filled:
        if name not in MAPPED:
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
