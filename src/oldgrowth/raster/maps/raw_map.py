"""The pixels of maps while they are made: raw files that only grow, and a state to resume from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...messages.log import tell
from ...storage.workspace import Workspace
from .map_layers import MapLayer

STATE = "map-state.json"
# Of what is computed of the forest's results at a time, and the most pixels for which it is.
_SEGMENT_BYTES, _SEGMENT_PIXELS = 4 << 20, 1 << 16
_READ_BYTES = 1 << 24


class RawMap:
    """A raw file for each layer in a workspace; pixels are appended in the order of the scan.

    What a state tells of ends with a line: after a resume, the pixels of the next line are the first ones.
    """

    def __init__(
        self, workspace: Workspace, layers: Mapping[str, MapLayer], size: tuple[int, int], identity: str
    ) -> None:
        self._workspace, self._layers, self._identity = workspace, layers, identity
        self._width, self._height = size
        self._segment = segment_pixels(layers)
        self.pixels = 0  # done
        self._crcs = dict.fromkeys(layers, 0)  # of all pixels that are done
        self._line_crcs = dict.fromkeys(layers, 0)  # of those in whole lines
        self._files: dict[str, int] = {}

    def path(self, name: str) -> Path:
        return self._workspace.path / f"map-{name}.raw"

    @property
    def lines(self) -> int:
        """Whole lines that are done."""
        return self.pixels // self._width

    @property
    def is_complete(self) -> bool:
        return self.lines == self._height

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Files that are written to, beginning with what an earlier run has done."""
        self._resume()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            for name, layer in self._layers.items():
                file = self._files[name] = os.open(self.path(name), flags, 0o600)
                os.ftruncate(file, self.pixels * layer.pixel_bytes)
                os.lseek(file, 0, os.SEEK_END)
            yield
        finally:
            for file in self._files.values():
                os.close(file)
            self._files = {}

    def put(self, places: npt.NDArray[np.int64], means: npt.NDArray[np.float64]) -> None:
        """Append the results of pixels, given by their numbers; pixels between them have no data."""
        self._put(int(places[-1]) + 1 if len(places) else self.pixels, places, means)

    def finish(self) -> None:
        """Append what is left, which has no data."""
        nothing = np.empty((0, 1))
        self._put(self._width * self._height, np.empty(0, dtype=np.int64), nothing)
        self.save()

    def _put(self, stop: int, places: npt.NDArray[np.int64], means: npt.NDArray[np.float64]) -> None:
        first = 0
        while self.pixels < stop:
            end = min(stop, self.pixels + self._segment)
            last = int(np.searchsorted(places, end))
            self._append(end, places[first:last] - self.pixels, means[first:last])
            first = last

    def _append(self, end: int, places: npt.NDArray[np.int64], means: npt.NDArray[np.float64]) -> None:
        count = end - self.pixels
        in_lines = end // self._width * self._width - self.pixels  # up to the end of the last whole line
        for name, layer in self._layers.items():
            if len(places) == count:
                out = np.ascontiguousarray(layer.pixels(means))
            else:
                out = np.full((count, len(layer.bands)), layer.nodata, dtype=layer.dtype)
                if len(places):
                    out[places] = layer.pixels(means)
            data = out.reshape(-1).view(np.uint8)
            _write(self._files[name], data)
            cut = max(0, in_lines) * layer.pixel_bytes
            crc = _core.crc32c(data[:cut], self._crcs[name])
            if cut:
                self._line_crcs[name] = crc
            self._crcs[name] = _core.crc32c(data[cut:], crc)
        self.pixels = end

    def save(self) -> None:
        """Make sure that what is done survives: first files, then the state that tells of them."""
        for file in self._files.values():
            os.fsync(file)
        state = {"identity": self._identity, "lines": self.lines, "crcs": self._line_crcs}
        self._workspace.replace(STATE, json.dumps(state).encode())

    def _resume(self) -> None:
        names = self._workspace.names()
        if not names:
            return
        state = self._saved_state()
        if state is not None:
            self.pixels = state["lines"] * self._width
            self._crcs, self._line_crcs = dict(state["crcs"]), dict(state["crcs"])
            done = f"{self.lines:,} of {self._height:,} lines are done"
            tell(f"Resuming the map in {self._workspace.named}: {done}")
            return
        tell(
            f"Not resumed: the unfinished map in {self._workspace.named} is of another forest, scene or kind"
        )
        for name in names:
            self._workspace.remove(name)

    def _saved_state(self) -> dict[str, Any] | None:
        """The state of an earlier run with the same forest, scene and layers, if its files are whole."""
        try:
            state: dict[str, Any] = json.loads(self._workspace.read(STATE))
            if state["identity"] != self._identity or not 0 <= state["lines"] <= self._height:
                return None
            for name, layer in self._layers.items():
                size = state["lines"] * self._width * layer.pixel_bytes
                if _checksum(self.path(name), size) != state["crcs"][name]:
                    return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return state


def segment_pixels(layers: Mapping[str, MapLayer]) -> int:
    """Pixels that are made at a time."""
    made = sum(layer.pixel_bytes + layer.made_bytes for layer in layers.values())
    return max(1, min(_SEGMENT_PIXELS, _SEGMENT_BYTES // made))


def segment_bytes(layers: Mapping[str, MapLayer]) -> int:
    """Memory of pixels while they are made."""
    return segment_pixels(layers) * sum(2 * layer.pixel_bytes + layer.made_bytes for layer in layers.values())


def _write(file: int, data: npt.NDArray[np.uint8]) -> None:
    done = 0
    while done < len(data):
        done += os.write(file, data[done:].data)


def _checksum(path: Path, size: int) -> int:
    crc, left = 0, size
    with open(path, "rb", buffering=0) as file:
        while left:
            data = np.frombuffer(file.read(min(left, _READ_BYTES)), dtype=np.uint8)
            if not len(data):
                return -1
            crc, left = _core.crc32c(data, crc), left - len(data)
    return crc
