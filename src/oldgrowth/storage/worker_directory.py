"""The directory in which a worker of a cluster keeps its part of a fit.

A process that is killed leaves it behind. The one that takes its place knows it by the name of the fit, and
takes it up with all that is whole in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..system.signals import uninterrupted
from .checkpoint import IDENTITY, Checkpoint, identity_in
from .workspace import Workspace, left_behind, new_workspace, reclaim


@contextmanager
def worker_workspace(spill_dir: Path | None, fit: str) -> Iterator[Workspace]:
    """The directory that a killed worker of this fit left in `spill_dir`, or a new one."""
    parent = Path(tempfile.gettempdir()) if spill_dir is None else spill_dir
    workspace = None
    try:
        with uninterrupted():
            workspace = _taken_up(parent, fit) or new_workspace(parent, spared=lambda path: _is_of(path, fit))
            Checkpoint(workspace).begin({"fit": fit})
        yield workspace
    finally:
        if workspace is not None:
            workspace.close(finished=True)
            with suppress(OSError):
                reclaim(parent)  # what others left, which nobody took up


def _taken_up(parent: Path, fit: str) -> Workspace | None:
    if not parent.is_dir():
        return None
    found = next(left_behind(parent, lambda path: _is_of(path, fit)), None)
    return None if found is None else Workspace(*found, persistent=False)


def _is_of(path: Path, fit: str) -> bool:
    """Whether a directory has files of this fit."""
    with suppress(OSError):
        return (identity_in((path / IDENTITY).read_bytes()) or {}).get("fit") == fit
    return False
