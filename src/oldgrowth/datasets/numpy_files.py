"""Opens arrays, .npy and .npz files."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingColumnError, NoMemberError, ParameterError, UnknownSourceError
from ..messages.surface import in_words_of
from .columns import AllBut
from .files import SourceFile, find_files
from .labels import kept_apart
from .matrix import Beside, MatrixDataset
from .rows import MemoryRows, NpyRows, Rows, npz_members
from .sniffing import refuse_foreign_zip

NPY = (".npy",)
NPZ = (".npz",)


def open_array(source: Any, target: Any, features: Any, weight: Any) -> MatrixDataset:
    """Open a 2-D array or memory map."""
    kind = "memory map" if isinstance(source, np.memmap) else "array"
    rows = MemoryRows(source, f"the {kind}")
    width = rows.shape[-1] if rows.shape else 0
    return MatrixDataset(
        kind, rows, beside(target, "target", width), beside(weight, "weight", width), _listed(features)
    )


def open_npy(files: list[SourceFile], target: Any, features: Any, weight: Any) -> MatrixDataset:
    """Open a .npy file."""
    rows = NpyRows(single(files))
    width = rows.shape[-1] if rows.shape else 0
    return MatrixDataset(
        ".npy file", rows, beside(target, "target", width), beside(weight, "weight", width), _listed(features)
    )


def open_npz(files: list[SourceFile], target: Any, features: Any, weight: Any) -> MatrixDataset:
    """Open a .npz file; `features` is the member with X or, as a list, the columns of member X."""
    file = single(files)
    refuse_foreign_zip(file)
    members = npz_members(file)
    features = member_of(features, members)
    if not isinstance(features, str) and "X" not in members:
        raise NoMemberError(file.path, "member", members)
    name = features if isinstance(features, str) else "X"
    if name not in members:
        raise MissingColumnError(name, file.path, members, "member")
    x = members[name]
    width = x.shape[-1] if x.shape else 0
    if target is None and "y" in members:
        target = "y"

    def found(value: Any, role: str) -> Beside | None:
        if isinstance(value, str) and value in members:
            return Beside(value, members[value])
        if isinstance(value, str) and not value.endswith(NPY):
            raise MissingColumnError(value, file.path, members, "member")
        return beside(value, role, width)

    y, w = found(target, "target"), found(weight, "weight")
    names = None if isinstance(features, str) else features
    carried: dict[str, Rows] = {
        name: rows for name, rows in members.items() if rows.shape == x.shape[:1] and not rows.dtype.hasobject
    }
    return MatrixDataset(".npz file", x, y, w, names, carried)


def member_of(features: Any, members: Collection[str]) -> Any:
    """The name of the member that is X; the command line passes it as a list of one name."""
    if isinstance(features, list | tuple) and not isinstance(features, AllBut) and len(features) == 1:
        (name,) = features
        if isinstance(name, str) and name in members:
            return name
    return features


def beside(value: Any, role: str, width: int) -> Beside | None:
    """Labels or weights of a matrix of `width` columns: a column number, a .npy file or an array."""
    if value is None:
        return None
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        column = int(value) + width if value < 0 else int(value)
        return Beside(f"column {column}", column=column)
    if isinstance(value, (str, Path)):
        if not str(value).endswith(NPY):
            raise ParameterError(
                role,
                value,
                lambda say: in_words_of(
                    say,
                    "a column number, an array or the path of a .npy file",
                    "a column number or the path of a .npy file",
                ),
            )
        file = single(find_files(value, NPY))
        return Beside(os.path.basename(file.path), NpyRows(file))
    values = np.asarray(kept_apart(value) if role == "target" else value)
    return Beside(role, MemoryRows(values, f"the {role} array"))


def single(files: list[SourceFile]) -> SourceFile:
    if len(files) != 1:
        raise UnknownSourceError(
            f"{files[0].path} and {len(files) - 1} more",
            "arrays are read from a single file; use Parquet for several files",
        )
    return files[0]


def _listed(features: Any) -> Any:
    if isinstance(features, str):
        raise ParameterError(
            "features", features, "a list of column numbers, or a list with a name for each column"
        )
    return features
