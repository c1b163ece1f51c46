"""The workspace of a fit, made when it is first needed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from .. import _core
from .checkpoint import Checkpoint
from .checkpoint_dir import lasting_space
from .workspace import Workspace, spill_space


class Space:
    """A directory for temporary files, or the checkpoint directory, which is there from the start."""

    def __init__(
        self, spill_dir: Path | None = None, checkpoint_dir: Path | None = None, keep: bool = False
    ) -> None:
        self._spill_dir = spill_dir
        self._checkpoint_dir = checkpoint_dir
        self._keep = keep
        self._open = ExitStack()
        self._space: Workspace | None = None
        self.stop = _core.Stop()
        self.limit: int | None = None  # on what is written

    def __enter__(self) -> Space:
        if self._checkpoint_dir is not None:
            self._space = self._open.enter_context(lasting_space(self._checkpoint_dir, self._keep))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def get(self) -> Workspace:
        if self._space is None:
            self._space = self._open.enter_context(spill_space(self._spill_dir))
        self._space.stop = self.stop
        self._space.limit = self.limit
        return self._space

    @property
    def opened(self) -> Workspace | None:
        return self._space

    @property
    def lasting(self) -> bool:
        return self._checkpoint_dir is not None

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self._space if self.lasting else None)
