"""The pixels of maps while they are made: raw files that only grow, and a state to resume from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .. import _core
from ..system.atomic_file import new_file
from .map_layers import MapLayer

STATE = "map-state.json"


class RawMap:
    """A raw file for each layer in a directory of its own; pixels are appended in the order of the scan."""

    def __init__(self, directory: Path, layers: Mapping[str, MapLayer], identity: Mapping[str, Any]) -> None:
        self._directory, self._layers = directory, layers
        self._identity = dict(identity)
        self.counts: list[int] = []  # rows of each strip that is done
        self._sizes = dict.fromkeys(layers, 0)
        self._crcs = dict.fromkeys(layers, 0)
        self._files: dict[str, BinaryIO] = {}
        self._resume()

    def path(self, name: str) -> Path:
        return self._directory / f"map-{name}.raw"

    def append(self, rows: int, pixels: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add a strip that has so many rows."""
        for name, values in pixels.items():
            data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            self._files[name].write(data.data)
            self._sizes[name] += len(data)
            self._crcs[name] = _core.crc32c(data, self._crcs[name])
        self.counts.append(rows)

    def save(self) -> None:
        """Make what is done last: files first, then the state that tells of them."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        state = {"identity": self._identity, "counts": self.counts, "sizes": self._sizes, "crcs": self._crcs}
        with new_file(self._directory / STATE) as file:
            file.write(json.dumps(state).encode())

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _resume(self) -> None:
        state = self._saved_state()
        if state is not None:
            self.counts, self._sizes, self._crcs = state["counts"], state["sizes"], state["crcs"]
        for name in self._layers:
            file = open(self.path(name), "r+b" if state is not None else "w+b")  # noqa: SIM115 - closed at the end
            file.truncate(self._sizes[name])
            file.seek(0, os.SEEK_END)
            self._files[name] = file

    def _saved_state(self) -> dict[str, Any] | None:
        """The state of an earlier run with the same forest, scene and layers, if its files are whole."""
        try:
            state: dict[str, Any] = json.loads((self._directory / STATE).read_bytes())
            if state["identity"] != self._identity:
                return None
            for name in self._layers:
                if _checksum(self.path(name), state["sizes"][name]) != state["crcs"][name]:
                    return None
        except (OSError, ValueError, KeyError):
            return None
        return state


def _checksum(path: Path, size: int) -> int:
    crc, left = 0, size
    with open(path, "rb") as file:
        while left:
            data = np.frombuffer(file.read(min(left, 1 << 24)), dtype=np.uint8)
            if not len(data):
                return -1
            crc, left = _core.crc32c(data, crc), left - len(data)
    return crc
