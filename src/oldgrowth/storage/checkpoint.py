"""The state of a fit in its checkpoint directory, from which an interrupted fit resumes.

Each part of the state is one file, replaced as a whole: arrays and a few values, without pickle. A fit
without a checkpoint directory saves nothing.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import CheckpointError, DamagedCheckpointError, OldgrowthError
from .workspace import Workspace

_FORMAT = 6
_CRC_BYTES = 4  # behind the arrays, of all of them
IDENTITY = "checkpoint.json"
# What Python raises for contents of another shape or type than expected.
_WRONG = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, EOFError,
    NotImplementedError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip


class Checkpoint:
    def __init__(self, workspace: Workspace | None) -> None:
        self._workspace = workspace
        self.resumed = False  # whether an earlier fit began it
        self._first_pass: int | None = None

    def build_on(self, first_pass: int) -> None:
        """Set the checksum of the first pass that all parts saved from now on belong to."""
        self._first_pass = first_pass

    @property
    def active(self) -> bool:
        return self._workspace is not None

    def begin(self, identity: dict[str, Any]) -> dict[str, Any]:
        """Resume the fit in the directory if it has the same identity, else refuse; returns the identity it
        began with."""
        if self._workspace is None:
            return identity
        identity = json.loads(json.dumps({"format": _FORMAT} | identity))
        if not self._workspace.has(IDENTITY):
            if set(self._workspace.names()) - {f"{IDENTITY}.new"}:
                raise self.damaged(IDENTITY, "it is missing")
            checked = identity | {"checksum": _checksum(identity)}
            self._workspace.replace(IDENTITY, json.dumps(checked, indent=1).encode())
            return identity
        found = identity_in(self._workspace.read(IDENTITY))
        if found is None:
            raise self.damaged(IDENTITY, "its checksum does not match")
        _compare(self._workspace, found, identity)
        self.resumed = True
        return found

    def save(self, name: str, arrays: dict[str, npt.NDArray[Any]], values: dict[str, Any]) -> None:
        if self._workspace is None:
            return
        out = io.BytesIO()
        values = values | {"first_pass": self._first_pass}
        text = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
        np.savez(out, **(arrays | {"values": text}))  # type: ignore[arg-type]
        data = out.getvalue()
        self._workspace.replace(f"{name}.npz", data + _crc(data))

    def saved(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]] | None:
        """A saved part of the state, or None. A damaged file is removed with a warning."""
        if self._workspace is None or not self._workspace.has(f"{name}.npz"):
            return None
        data = self._workspace.read(f"{name}.npz")
        if data[-_CRC_BYTES:] != _crc(data[:-_CRC_BYTES]):
            self._workspace.lost(self._workspace.path / f"{name}.npz", "its checksum does not match")
            self.discard(name)
            return None
        with self.validating(name):
            arrays = _arrays(data[:-_CRC_BYTES])
            values = json.loads(arrays.pop("values").tobytes())
            if values["first_pass"] != self._first_pass:
                raise ValueError("of another first pass than the one in sample.npz")
            return arrays, values

    @contextmanager
    def validating(self, name: str) -> Iterator[None]:
        """Turns errors about the contents of a saved part into one that names its file."""
        try:
            yield
        except OldgrowthError:
            raise
        except _WRONG as error:
            what = f"its contents are not those that a fit saves ({type(error).__name__}: {str(error)[:80]})"
            raise self.damaged(f"{name}.npz", what) from error

    def damaged(self, file: str, what: str) -> CheckpointError:
        assert self._workspace is not None
        return DamagedCheckpointError(self._workspace.path / file, what, self._workspace.path)

    def discard(self, name: str) -> None:
        """Remove a saved part that is no longer valid."""
        if self._workspace is not None:
            self._workspace.remove(f"{name}.npz")


def identity_in(data: bytes) -> dict[str, Any] | None:
    """The identity that a fit wrote; None if these bytes are something else."""
    found: Any = None
    with suppress(ValueError, RecursionError):
        found = json.loads(data)
    if not isinstance(found, dict) or found.pop("checksum", None) != _checksum(found):
        return None
    return found


def _arrays(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an npz file. They take no more memory than the file has bytes."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > len(data):
                raise ValueError(f"{entry.filename} is compressed")
            with archive.open(entry) as member:
                content = io.BytesIO(member.read())
            if np.lib.format.read_magic(content) != (1, 0):
                raise ValueError(f"{entry.filename} has another format")
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(content)
            values = content.getbuffer()[content.tell() :]
            if by_columns or dtype.hasobject or math.prod(shape) * dtype.itemsize != len(values):
                raise ValueError(f"{entry.filename} has another size")
            found[entry.filename.removesuffix(".npy")] = np.frombuffer(values, dtype).reshape(shape).copy()
    return found


def _crc(data: bytes) -> bytes:
    return _core.crc32c(np.frombuffer(data, dtype=np.uint8)).to_bytes(_CRC_BYTES, "little")


def _checksum(identity: dict[str, Any]) -> str:
    return _crc(json.dumps(identity, sort_keys=True).encode()).hex()


def _compare(workspace: Workspace, found: dict[str, Any], identity: dict[str, Any]) -> None:
    """A seed that nobody chose is taken from the fit that began."""
    for part in sorted(found.keys() | identity.keys()):
        was, now = found.get(part), identity.get(part)
        unchosen = part == "seed" and identity["parameters"]["random_state"] is None
        if unchosen or was == now:
            continue
        if isinstance(was, dict) and isinstance(now, dict):
            for key in sorted(was.keys() | now.keys()):
                if was.get(key) != now.get(key):
                    raise CheckpointError(
                        workspace.named, f"{part} differ: {_change(key, was.get(key), now.get(key))}"
                    )
        raise CheckpointError(workspace.named, _change(part, was, now))


def _change(name: str, was: Any, now: Any) -> str:
    """What differs; of two long lists, the first difference."""
    if isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            return f"{name} were {len(was)} and are {len(now)}"
        i = next(i for i, (a, b) in enumerate(zip(was, now, strict=True)) if a != b)
        return _change(f"{name}[{i}]", was[i], now[i])
    return f"{name} was {was!r} and is {now!r}"
