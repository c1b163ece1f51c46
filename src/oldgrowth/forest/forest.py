"""The forest: top trees and bottom trees in a few flat arrays, immutable once assembled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import CorruptedModelFileError, DamagedForestError, ModelFileError, TruncatedModelFileError
from ..messages.text import counted

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
# Those that only a forest with categorical features has.
CATEGORY_ARRAYS = ("levels", "top_sets", "top_set_start", "sets", "set_start")
# Those of bottom trees, which may be mapped from files: a tree is checked when it is first used.
MAPPED = ("nodes", "table", "sets")
# Of their items.
TYPES: dict[str, np.dtype[Any]] = {name: np.dtype("<u8") for name in (*ARRAYS, *CATEGORY_ARRAYS)} | {
    "table": np.dtype("<f4"),
    "tree_crc": np.dtype("<u4"),
    "levels": np.dtype("<u4"),
    "top_sets": np.dtype("<u2"),
    "sets": np.dtype("<u2"),
}

# Bytes of a mapped array that are copied at a time.
_PART_BYTES = 2**23


@dataclass(frozen=True)
class MappedArrays:
    """The files from which the arrays of bottom trees are mapped, and the checksums of these arrays."""

    files: tuple[_core.MappedFile, ...]
    checksums: dict[str, int]
    place: Path  # where a file without a name was made


class Forest:
    """Flat arrays, described in docs/formats.md, and the core's view of them.

    The arrays are not trusted: top trees and indices are checked at once, each bottom tree when it is first
    used. Nodes and table may be mapped from files and larger than memory; `path` is the model file of the
    forest, if any. Mapped arrays must be read by `parts` or within `checked`, as their files may change at
    any time.
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
        self.saved_to: Path | None = None  # where it was written last
        self._mapped = mapped
        self._files = () if mapped is None else mapped.files
        self._arrays = arrays
        for array in arrays.values():
            array.flags.writeable = False
        try:
            own = {name: arrays[name] for name in ARRAYS}
            categories = None
            if "levels" in arrays:
                categories = _core.CategoryArrays(**{name: arrays[name] for name in CATEGORY_ARRAYS})
            self._core = _core.Forest(
                n_features, n_classes, **own, files=list(self._files), categories=categories
            )
        except ValueError as error:  # as "section: what is wrong"
            section, _, wrong = str(error).partition(": ")
            raise CorruptedModelFileError(path or "The forest", section, wrong or "not possible") from error

    def __getattr__(self, name: str) -> npt.NDArray[Any]:
        if name in ARRAYS or (name in CATEGORY_ARRAYS and name in self._arrays):
            return self._arrays[name]
        raise AttributeError(name)

    @property
    def array_names(self) -> tuple[str, ...]:
        """The names of the arrays, in the order of a model file."""
        return ARRAYS + CATEGORY_ARRAYS if self.levels else ARRAYS

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each feature, 0 if it is not categorical; empty if none is."""
        return tuple(self._arrays["levels"].tolist()) if "levels" in self._arrays else ()

    @property
    def mapped(self) -> bool:
        """Whether nodes and table are mapped from files."""
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
        nouns = {"tree": self.n_trees, "node": self.n_nodes, "feature": self.n_features}
        return f"Forest({', '.join(counted(n, noun) for noun, n in nouns.items())})"

    def digest(self) -> str:
        """A hash of every bit of the model."""
        digest = hashlib.sha256(f"{self.n_features} {self.n_classes}".encode())
        for name in self.array_names:
            digest.update(name.encode())
            for part in self.parts(name):
                digest.update(part.data)
        return digest.hexdigest()

    def checksums(self) -> dict[str, int]:
        """The CRC-32C of each array, as a model file has them; those of mapped arrays are not read again."""
        known = {} if self._mapped is None else self._mapped.checksums
        return {
            name: known[name] if name in known else int(_core.crc32c(array.view(np.uint8)))
            for name, array in self._arrays.items()
        }

    def check(self) -> None:
        """Check all trees now."""
        with self._found_damage():
            self._core.check()

    def prediction_bytes(self, evict: bool) -> tuple[int, int]:
        """Memory of a thread that predicts, in bytes: for each row, and besides."""
        row, thread = self._core.prediction_bytes(evict)
        return row, thread

    def length(self, name: str) -> int:
        """The number of items of an array."""
        return len(self._arrays[name])

    def parts(self, name: str) -> Iterator[npt.NDArray[Any]]:
        """The parts of an array, in order; parts of a mapped array are copies.

        After the last part of a mapped array its checksum is compared, and an error raised if it differs.
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
            raise self.damage(name, "the checksum differs")

    @contextmanager
    def unchanged(self) -> Iterator[Callable[[], None]]:
        """A block that raises at its end if mapped arrays may have changed meanwhile.

        The function that it is given raises the same error before: for what is handed out earlier.
        """
        stamps = [file.stamp for file in self._files]
        _core.guard_mappings()

        def confirm() -> None:
            self._raise_if_lost()
            if [file.stamp for file in self._files] != stamps:
                raise self.damage("nodes", "the file was changed while it was read")

        try:
            yield confirm
        except Exception:  # may be a result of the change
            confirm()
            raise
        confirm()

    @contextmanager
    def checked(self) -> Iterator[Callable[[], None]]:
        """A block that may read the arrays of trees: they are checked before it and unchanged at its end."""
        with self.unchanged() as confirm:
            self.check()
            yield confirm

    def predict_sums(
        self,
        x: npt.NDArray[np.float32],
        may_miss: bool,
        hard: bool,
        evict: bool,
        sums: npt.NDArray[np.float64],
    ) -> None:
        """Sums over the trees; with `evict` only a few buckets of a mapped forest are in memory at a time."""
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
            raise self.damage(self._damaged_section(), str(error)) from error
        except (_core.LostPagesError, _core.ChangingFileError) as error:
            self._raise_if_lost()
            raise self.damage("nodes", str(error)) from error

    def _raise_if_lost(self) -> None:
        """Raise an error if a file was truncated, or a part of it cannot be read."""
        for file in self._files:
            size = file.stamp[0]
            if self.path is not None and size < file.size:
                raise TruncatedModelFileError(self.path, size, file.size)
            if size < file.size or file.lost:
                raise self.damage("nodes", "a part of the file is missing or cannot be read")

    def _damaged_section(self) -> str:
        for name in ("table", "sets"):
            try:
                for _ in self.parts(name) if name in self._arrays else ():
                    pass
            except (ModelFileError, DamagedForestError):
                return name
        return "nodes"

    def damage(self, section: str, what: str) -> Exception:
        """An error that names the file of the forest."""
        if self._mapped is not None and self.path is None:
            return DamagedForestError(self._mapped.place, what)
        return CorruptedModelFileError(self.path or "The forest", section, what)

    def __reduce__(self) -> tuple[Any, ...]:
        self.check()
        arrays = {name: np.concatenate([*self.parts(name)]) for name in self._trees()}
        return _unpickled, (self.n_features, self.n_classes, self._arrays | arrays)

    def _trees(self) -> list[str]:
        """The names of mapped arrays that are not empty."""
        mapped = {} if self._mapped is None else self._mapped.checksums
        return [name for name in mapped if len(self._arrays[name])]


def _unpickled(n_features: int, n_classes: int, arrays: dict[str, npt.NDArray[Any]]) -> Forest:
    forest = Forest(n_features, n_classes, arrays)
    forest.check()
    return forest
