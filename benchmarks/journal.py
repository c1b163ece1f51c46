"""Finished runs as lines of JSON: runs in the file are not repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe_machine

Run = dict[str, Any]


class Journal:
    """The runs of one benchmark. A run is identified by its parameters; `fresh` deletes all."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        self._done = {_key(run["run"]): run for run in self._read()}

    def run(self, parameters: Run, measure: Callable[[], Run]) -> Run:
        """The results of a run, from the file or from `measure`."""
        key = _key(parameters)
        if key not in self._done:
            line = {"run": parameters, "results": measure(), "machine": describe_machine()}
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self._done[key] = line
        return self._done[key]["results"]

    def _read(self) -> list[Run]:
        """Read the runs; a last line that was truncated by an interruption is ignored."""
        if not self._path.exists():
            return []
        text = self._path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self._path.write_text(whole)
        return [json.loads(line) for line in whole.splitlines()]


def _key(parameters: Run) -> str:
    return json.dumps(parameters, sort_keys=True)
