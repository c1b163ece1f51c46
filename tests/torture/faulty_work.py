"""What faults.py lets fail: fits, saves, loads and commands that meet every file we write and read."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import os
import shutil
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import oldgrowth
import oldgrowth.fitting.pipeline
import oldgrowth.fitting.sample
import oldgrowth.storage.task_log
from helpers import make_data
from oldgrowth.cli.main import run
from oldgrowth.errors import OldgrowthError
from oldgrowth.messages.log import warn
from oldgrowth.messages.warnings import LeftoverWarning
from on_disk import make_all_tiny

InChild = Callable[[Callable[[], dict[str, Any]]], dict[str, Any]]
X, Y = make_data(90, 3, 3, seed=2)
SIZES: dict[str, Any] = {
    "bucket_size": 40,
    "top_sample": 30,
    "chunk_size": 50,
    "n_estimators": 5,
    "trees_per_top": 2,
}
COMMON: dict[str, Any] = SIZES | {"random_state": 1, "n_jobs": 2, "oob_score": True}


def _tiny() -> None:
    """In a child: blocks of a few rows, two rounds, every step remembered."""
    make_all_tiny(pytest.MonkeyPatch())
    oldgrowth.fitting.sample._SAVE_EVERY_SECONDS = 0.0
    oldgrowth.storage.task_log._SYNC_EVERY_SECONDS = 0.0


def _fit(**params: Any) -> str:
    _tiny()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*seen by every tree")
        model = oldgrowth.RandomForestClassifier(**(COMMON | params)).fit(oldgrowth.open_dataset(X, target=Y))
    return f"{model.forest_.digest()} {model.oob_score_.hex()}"


def _forest(seed: int) -> Any:
    return oldgrowth.RandomForestClassifier(4, random_state=seed, n_jobs=1, bucket_size=60).fit(X, Y)


class Scenario(ABC):
    fits = False  # then what fails in the clean-up must not lose it
    clears_later = False  # files that are not needed any more are removed in a step of its own

    @property
    def name(self) -> str:
        return type(self).__name__

    def prepare(self, folder: Path, in_child: InChild) -> None:  # noqa: B027 - not all need something
        """What is there before; done in a child where it starts threads."""

    @abstractmethod
    def run(self, folder: Path) -> str:
        """In a child: do it, with all files below the folder; a word for what came out."""

    @abstractmethod
    def left(self, folder: Path) -> list[str]:
        """Files that should not be there, whether it failed or not."""

    def expected(self, root: Path, in_child: InChild) -> str:
        found = in_child(lambda: {"outcome": _fit(store="memory")})
        return str(found["outcome"])


class spilled_fit(Scenario):
    fits = True

    def prepare(self, folder: Path, in_child: InChild) -> None:
        (folder / "spill").mkdir()

    def run(self, folder: Path) -> str:
        return _fit(store="disk", spill_dir=folder / "spill")

    def left(self, folder: Path) -> list[str]:
        return [path.name for path in (folder / "spill").iterdir()]


class checkpointed_fit(Scenario):
    fits = True

    def run(self, folder: Path) -> str:
        outcome = _fit(checkpoint_dir=folder / "checkpoint")
        (folder / "done").touch()
        return outcome

    def left(self, folder: Path) -> list[str]:
        """A fit that failed leaves what the next one needs."""
        checkpoint = folder / "checkpoint"
        if not (folder / "done").exists() or not checkpoint.exists():
            return []
        return [path.name for path in checkpoint.iterdir()]


class resumed_fit(checkpointed_fit):
    """Resumes a fit that ended when all trees were grown."""

    def prepare(self, folder: Path, in_child: InChild) -> None:
        kept = folder.parent / "kept"
        if not kept.exists():
            in_child(lambda: self._interrupted(kept))
        shutil.copytree(kept, folder / "checkpoint", symlinks=True)
        (folder / "checkpoint").chmod(0o700)

    @staticmethod
    def _interrupted(kept: Path) -> dict[str, Any]:
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        oldgrowth.fitting.pipeline.assemble = stop  # type: ignore[assignment]
        with contextlib.suppress(KeyboardInterrupt):
            _fit(checkpoint_dir=kept)
        return {"outcome": ""}


class saved_forest(Scenario):
    """Over another one, which stays whole if the new one cannot be written."""

    def prepare(self, folder: Path, in_child: InChild) -> None:
        in_child(lambda: {"outcome": _forest(0).save(folder / "forest.og")})

    def run(self, folder: Path) -> str:
        model, path = _forest(1), folder / "forest.og"
        model.save(path)
        return str(model.forest_.digest())

    def left(self, folder: Path) -> list[str]:
        if not (folder / "forest.og").exists():
            return ["no forest"]
        return [path.name for path in folder.iterdir() if path.name != "forest.og"]

    def expected(self, root: Path, in_child: InChild) -> str:
        return str(in_child(lambda: {"outcome": _forest(1).forest_.digest()})["outcome"])


class loaded_forest(saved_forest):
    mmap = False

    def run(self, folder: Path) -> str:
        model = oldgrowth.load(folder / "forest.og", mmap=self.mmap)
        return hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest()

    def expected(self, root: Path, in_child: InChild) -> str:
        def predicted() -> dict[str, Any]:
            return {"outcome": hashlib.sha256(_forest(0).predict_proba(X).tobytes()).hexdigest()}

        return str(in_child(predicted)["outcome"])


class mapped_forest(loaded_forest):
    mmap = True


class _CommandError(OldgrowthError):
    """What a command says before it ends with code 1."""


def _command(*arguments: object) -> None:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = run([str(argument) for argument in arguments])
    if code:
        raise _CommandError(said.getvalue())
    for line in said.getvalue().splitlines():
        if "could not be removed" in line:
            warn(line.removeprefix("oldgrowth: "), LeftoverWarning)


class fit_command(Scenario):
    """Fits with a checkpoint, saves, and only then removes the checkpoint."""

    clears_later = True

    def prepare(self, folder: Path, in_child: InChild) -> None:
        np.savez(folder.parent / "rows.npz", X=X, y=Y)

    def run(self, folder: Path) -> str:
        _tiny()
        options = ["--target", "y", "-q", "--force", "--checkpoint-dir", folder / "checkpoint", "--trees", 5]
        options += [
            "--bucket-size",
            40,
            "--top-sample",
            30,
            "--trees-per-top",
            2,
            "--chunk-size",
            50,
            "--seed",
            1,
            "--jobs",
            2,
        ]
        _command(
            "fit",
            folder.parent / "rows.npz",
            "-o",
            folder / "forest.og",
            "--task",
            "classification",
            *options,
        )
        return str(oldgrowth.load(folder / "forest.og").forest_.digest())

    def left(self, folder: Path) -> list[str]:
        left = [path.name for path in folder.iterdir() if path.name not in ("forest.og", "checkpoint")]
        checkpoint = folder / "checkpoint"
        if (folder / "forest.og").exists() and checkpoint.exists():
            left += [path.name for path in checkpoint.iterdir()]
        return left

    def expected(self, root: Path, in_child: InChild) -> str:
        def fitted() -> dict[str, Any]:
            params = {key: value for key, value in COMMON.items() if key != "oob_score"}
            return {"outcome": oldgrowth.RandomForestClassifier(**params).fit(X, Y).forest_.digest()}

        return str(in_child(fitted)["outcome"])


class predict_command(Scenario):
    suffix = ".csv"

    def prepare(self, folder: Path, in_child: InChild) -> None:
        if not (folder.parent / "forest.og").exists():
            in_child(lambda: {"outcome": _forest(0).save(folder.parent / "forest.og")})
            np.save(folder.parent / "rows.npy", X)

    def run(self, folder: Path) -> str:
        output = folder / f"out{self.suffix}"
        _command(
            "predict", folder.parent / "forest.og", folder.parent / "rows.npy", "-o", output, "-q", "--force"
        )
        if "FAULTS" in os.environ:
            ctypes.CDLL(None).faults_disarm()  # what follows is the test's own
        return hashlib.sha256(output.read_bytes()).hexdigest()

    def left(self, folder: Path) -> list[str]:
        return [path.name for path in folder.iterdir() if path.name != f"out{self.suffix}"]

    def expected(self, root: Path, in_child: InChild) -> str:
        folder = root / "expected"
        folder.mkdir(exist_ok=True)
        return str(in_child(lambda: {"outcome": self.run(folder)})["outcome"])


class predict_command_parquet(predict_command):
    suffix = ".parquet"


class predict_command_npy(predict_command):
    suffix = ".npy"


SCENARIOS: list[Scenario] = [
    spilled_fit(), checkpointed_fit(), resumed_fit(), saved_forest(), loaded_forest(), mapped_forest(),
    fit_command(), predict_command(), predict_command_parquet(), predict_command_npy(),
]  # fmt: skip
