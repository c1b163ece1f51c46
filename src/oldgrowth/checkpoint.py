"""What a fit remembers in its checkpoint directory, so that an interrupted one can go on.

Each memory is one file, replaced as a whole: arrays and a few values, without pickle. A fit without a
checkpoint directory remembers nothing.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import CheckpointError
from .workspace import Workspace

_FORMAT = 4
_CRC_BYTES = 4  # behind the arrays, of all of them
_IDENTITY = "checkpoint.json"


class Checkpoint:
    def __init__(self, space: Workspace | None) -> None:
        self._space = space if space is not None and space.lasting else None
        self.taken_up = False  # whether it goes on with what an earlier fit began

    @property
    def active(self) -> bool:
        return self._space is not None

    def begin(self, identity: dict[str, Any]) -> dict[str, Any]:
        """Take up the directory's fit if it is this one, else refuse; returns the identity it began with."""
        if self._space is None:
            return identity
        identity = json.loads(json.dumps({"format": _FORMAT} | identity))
        path = self._space.path / _IDENTITY
        if not path.exists():
            others = [entry.name for entry in self._space.path.iterdir() if entry.name != "lock"]
            if others and others != [f"{_IDENTITY}.new"]:
                raise CheckpointError(
                    self._space.path, f"it holds other files, such as {sorted(others)[0]!r}"
                )
            checked = identity | {"checksum": _checksum(identity)}
            self._space.replace(_IDENTITY, json.dumps(checked, indent=1).encode())
            return identity
        try:
            found = json.loads(self._space.read(_IDENTITY))
        except ValueError as error:
            raise CheckpointError(self._space.path, f"{_IDENTITY} is damaged") from error
        if not isinstance(found, dict) or found.pop("checksum", None) != _checksum(found):
            raise CheckpointError(self._space.path, f"{_IDENTITY} is damaged")
        _compare(self._space, found, identity)
        self.taken_up = True
        return found

    def save(self, name: str, arrays: dict[str, npt.NDArray[Any]], values: dict[str, Any]) -> None:
        if self._space is None:
            return
        out = io.BytesIO()
        text = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
        np.savez(out, **(arrays | {"values": text}))  # type: ignore[arg-type]
        data = out.getvalue()
        self._space.replace(f"{name}.npz", data + _crc(data))

    def saved(self, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]] | None:
        if self._space is None or not self._space.has(f"{name}.npz"):
            return None
        data = self._space.read(f"{name}.npz")
        if data[-_CRC_BYTES:] != _crc(data[:-_CRC_BYTES]):
            raise CheckpointError(self._space.path, f"{name}.npz is damaged")
        with np.load(io.BytesIO(data[:-_CRC_BYTES]), allow_pickle=False) as found:
            arrays = {key: found[key] for key in found.files}
        return arrays, json.loads(arrays.pop("values").tobytes())


def _crc(data: bytes) -> bytes:
    return _core.crc32c(np.frombuffer(data, dtype=np.uint8)).to_bytes(_CRC_BYTES, "little")


def _checksum(identity: dict[str, Any]) -> str:
    return _crc(json.dumps(identity, sort_keys=True).encode()).hex()


def _compare(space: Workspace, found: dict[str, Any], identity: dict[str, Any]) -> None:
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
                        space.path, f"{part} differ: {_change(key, was.get(key), now.get(key))}"
                    )
        raise CheckpointError(space.path, _change(part, was, now))


def _change(name: str, was: Any, now: Any) -> str:
    """What is not as it was; of two long lists, where they differ first."""
    if isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            return f"{name} were {len(was)} and are {len(now)}"
        i = next(i for i, (a, b) in enumerate(zip(was, now, strict=True)) if a != b)
        return _change(f"{name}[{i}]", was[i], now[i])
    return f"{name} was {was!r} and is {now!r}"
