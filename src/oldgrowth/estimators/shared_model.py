"""Forests for tasks in other threads, processes and machines: a task has the path of a model file.

A process opens a file once and maps it, so that the forest is never sent, and is in memory once.
"""

from __future__ import annotations

import atexit
import hashlib
import socket
import threading
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import MissingModelFileError, ModelFileError, SharedModelError
from ..forest.forest import Forest
from ..forest.model_file import checksums_of, read_model
from ..storage.workspace import spill_workspace

_MOST_OPEN = 4


@dataclass(frozen=True)
class SharedModel:
    """A model file, and a hash of the trees in it."""

    path: str
    trees: str

    def opened(self) -> Forest:
        """The forest, mapped from its file by the first task of this process."""
        with _process.lock:
            opened = _process.opened
            if self not in opened:
                opened[self] = self._open()
            opened.move_to_end(self)
            while len(opened) > _MOST_OPEN:
                opened.popitem(last=False)
            return opened[self]

    def _open(self) -> Forest:
        try:
            forest = read_model(self.path).forest
        except MissingModelFileError as error:
            raise SharedModelError(self.path, f"does not exist on {socket.gethostname()}") from error
        if _hash(forest.checksums()) != self.trees:
            raise SharedModelError(self.path, "was replaced by another forest")
        return forest


@dataclass
class _Process:
    """What this process has opened, and the temporary files it wrote."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    opened: OrderedDict[SharedModel, Forest] = field(default_factory=OrderedDict)
    written: list[SharedModel] = field(default_factory=list)
    directory: Path | None = None

    def temporary(self, estimator: Any, trees: str) -> SharedModel:
        """A file in a directory that is removed when the process ends, or by the next fit if it is killed."""
        with self.lock:
            found = next((m for m in self.written if m.trees == trees and _has(m.path, trees)), None)
            if found is not None:
                return found
            if self.directory is None:
                until_exit = ExitStack()
                self.directory = until_exit.enter_context(spill_workspace(None)).path
                atexit.register(until_exit.close)
            model = SharedModel(str(self.directory / f"shared-{len(self.written)}.og"), trees)
            saved_to = estimator.forest_.saved_to
            estimator.save(model.path)
            estimator.forest_.saved_to = saved_to
            self.written.append(model)
            return model


_process = _Process()


def shared(estimator: Any) -> SharedModel:
    """The model file of an estimator: the one it was loaded from or saved to, otherwise a temporary one."""
    forest: Forest = estimator.forest_
    trees = _hash(forest.checksums())
    for path in (forest.path, forest.saved_to):
        if path is not None and _has(path, trees):
            return SharedModel(str(Path(path).absolute()), trees)
    return _process.temporary(estimator, trees)


def _hash(checksums: dict[str, int]) -> str:
    return hashlib.sha256(repr(sorted(checksums.items())).encode()).hexdigest()


def _has(path: str | Path, trees: str) -> bool:
    try:
        return _hash(checksums_of(path)) == trees
    except ModelFileError:
        return False
