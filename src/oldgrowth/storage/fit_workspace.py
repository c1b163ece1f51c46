"""The workspace of a fit, made when it is first needed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from .. import _core
from .checkpoint import Checkpoint
from .checkpoint_dir import persistent_workspace
from .worker_directory import worker_workspace
from .workspace import Workspace, spill_workspace


class FitWorkspace:
    """A directory for temporary files, or the checkpoint directory, which is there from the start.

    That of a worker of a cluster is known by the name of its `fit`.
    """

    def __init__(
        self,
        spill_dir: Path | None = None,
        checkpoint_dir: Path | None = None,
        keep: bool = False,
        fit: str | None = None,
    ) -> None:
        self._spill_dir = spill_dir
        self._checkpoint_dir = checkpoint_dir
        self._keep = keep
        self._fit = fit
        self._open = ExitStack()
        self._workspace: Workspace | None = None
        self.stop = _core.Stop()
        self.limit: int | None = None  # on what is written

    def __enter__(self) -> FitWorkspace:
        if self._checkpoint_dir is not None:
            self._workspace = self._open.enter_context(persistent_workspace(self._checkpoint_dir, self._keep))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def get(self) -> Workspace:
        if self._workspace is None:
            directory = (
                spill_workspace(self._spill_dir)
                if self._fit is None
                else worker_workspace(self._spill_dir, self._fit)
            )
            self._workspace = self._open.enter_context(directory)
        self._workspace.stop = self.stop
        self._workspace.limit = self.limit
        return self._workspace

    @property
    def opened(self) -> Workspace | None:
        return self._workspace

    @property
    def persistent(self) -> bool:
        return self._checkpoint_dir is not None

    def checkpoint(self) -> Checkpoint:
        """What the fit remembers; what a worker does is known to the process that takes its place."""
        if self._fit is not None:
            return Checkpoint(self.get())
        return Checkpoint(self._workspace if self.persistent else None)
