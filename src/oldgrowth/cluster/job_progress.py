"""The progress of a stage: rows of jobs that are done, and those that running jobs tell of."""

from __future__ import annotations

from ..messages.text import counted, human_bytes
from ..reporting.progress import StageProgress
from .fleet import Fleet


class JobProgress:
    """Counts the rows of jobs whose names begin with `kind`, once for each job."""

    def __init__(self, stage: StageProgress, fleet: Fleet, kind: str) -> None:
        self._stage, self._fleet, self._kind = stage, fleet, f"{kind}-"
        self._counted: dict[str, int] = {}
        self._finished: set[str] = set()

    def look(self) -> None:
        """Count what running jobs tell."""
        fleet = self._fleet
        moved, again = sum(fleet.counted.received.values()), len(fleet.redone)
        words = [counted(len(fleet.workers()), "worker")]
        words += [f"{human_bytes(moved)} moved"] if moved else []
        words += [f"{counted(again, 'job')} done again"] if again else []
        self._stage.note = ", ".join(words)
        for name, rows in list(fleet.progress().items()):
            if name.startswith(self._kind) and name not in self._finished:
                self._count(name, max(rows, self._counted.get(name, 0)))

    def finished(self, name: str, rows: int) -> None:
        """A job is done, which had so many rows."""
        if name not in self._finished:
            self._finished.add(name)
            self._count(name, rows)

    def skip(self, rows: int) -> None:
        """Count rows that an interrupted fit had finished."""
        self._stage.skip(rows)

    def _count(self, name: str, rows: int) -> None:
        more, self._counted[name] = rows - self._counted.get(name, 0), rows
        self._stage.advance(more)
