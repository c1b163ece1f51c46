"""What the subcommands read: rows to train on, and rows with the features of a saved forest."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..checks import hard_votes
from ..datasets import open_dataset
from ..datasets.base import Dataset
from ..datasets.batches import Batch
from ..datasets.csv import EXTENSIONS as CSV_ENDINGS
from ..datasets.matrix import MatrixDataset
from ..datasets.sniffing import CODECS, LONGEST, MAGIC, ZIP
from ..errors import DataError, NoDataError, OldgrowthError
from ..forest.batch_predict import BatchPredictor, Needs, plan_batches, warn_of_names
from ..forest.predict import predict_means
from ..messages.text import counted
from ..planning.planner import jobs_of
from ..reporting.progress import Machine, Observers, Progress
from ..rows.read_ahead import read_ahead
from ..storage.workspace import spill_workspace
from ..system.resource_limits import check_address_space
from .columns import Columns
from .options import STANDARD
from .scenes import SceneSource, are_scenes


@dataclass(frozen=True)
class Source:
    """Files as given on the command line, and how to read them."""

    paths: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def open(self, columns: Columns) -> Dataset:
        paths = self.paths[0] if len(self.paths) == 1 else list(self.paths)
        target, weight = self._column(columns.target), self._column(columns.weight)
        return open_dataset(paths, target, columns.features, weight, **self.options)

    def carrying(self, names: tuple[str, ...], features: tuple[str, ...]) -> Source:
        """The same files, with columns that are only copied read as text from CSV.

        As numbers they would be floats, and a long id would lose its last digits.
        """
        texts = {name: "string" for name in names if name not in features}
        if not texts or not self._is_csv:
            return self
        return Source(self.paths, self.options | {"types": texts | self.options.get("types", {})})

    @property
    def _is_csv(self) -> bool:
        return self.options.get("format") == "csv" or self.paths[0].lower().endswith(CSV_ENDINGS)

    def _column(self, name: str | None) -> str | int | None:
        """The name of a column; the columns of an array have numbers."""
        array = self.options.get("format") == "npy" or self.paths[0].lower().endswith(".npy")
        if name is not None and array and re.fullmatch(r"-?\d+", name):
            return int(name)
        return name

    def open_for(self, model: Any, columns: Columns) -> Dataset:
        """The features that the forest was trained on, by name where it has names."""
        asked, known = columns.features is not None, getattr(model, "feature_names_in_", None)
        data = self.open(columns if asked or known is None else replace(columns, features=tuple(known)))
        if data.n_features != model.n_features_in_:
            found = counted(data.n_features, "feature")
            raise DataError(
                f"{', '.join(self.paths)} has {found}, but the forest was trained on "
                f"{model.n_features_in_:,}: name the columns with --features."
            )
        if not asked and (known is None or isinstance(data, MatrixDataset)):
            nameless = None if isinstance(data, MatrixDataset) else data.feature_names
            warn_of_names(nameless, known, "--features names them in the order of training.")
        return data.coded_for(model._levels)


AnySource = Source | SceneSource


@contextmanager
def source_of(
    paths: tuple[str, ...], options: dict[str, Any], scene: dict[str, Any], spill_dir: str | None = None
) -> Iterator[AnySource]:
    """The given files; standard input is first copied to a file, as data is read more than once.

    `options` are of tables, `scene` of rasters.
    """
    if are_scenes(paths, scene, options):
        yield SceneSource(paths, scene)
        return
    if STANDARD.name not in paths:
        yield Source(paths, options)
        return
    if len(paths) > 1:
        raise click.UsageError("- is standard input, which cannot be combined with other sources.")
    if sys.stdin.isatty():
        raise click.UsageError("- is standard input, which is a terminal here: use a pipe, or < file.")
    with spill_workspace(None if spill_dir is None else Path(spill_dir).expanduser()) as workspace:
        path = str(_kept_input(workspace.path, options.get("format")))
        try:
            yield Source((path,), options)
        except OldgrowthError as error:
            error.replace(path, "standard input")
            raise


def _kept_input(directory: Path, kind: str | None) -> Path:
    """A copy of standard input, named by its format: CSV unless its first bytes say otherwise."""
    begin = sys.stdin.buffer.read(LONGEST)
    if not begin:
        raise NoDataError("Standard input", "it is empty")
    known = next((f".{name}" for magic, name in (*MAGIC, (ZIP, "npz")) if begin.startswith(magic)), "")
    end = known.replace("hdf5", "h5")
    if kind in (None, "csv") and not known:
        end = ".csv" + next((ending for magic, ending, _ in CODECS if begin.startswith(magic)), "")
    path = directory / f"standard-input{end}"
    with open(path, "wb") as file:
        file.write(begin)
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return path


def refuse_a_source(output: Path, data: Dataset) -> None:
    """Refuse an output that is one of the input files, even with --force."""
    if output == STANDARD or not output.exists():
        return
    identity = data.fingerprint()
    labels = identity.get("labels") or {}  # of scenes
    for file in (*identity.get("files", []), *labels.get("files", [])):
        if os.path.exists(file["path"]) and output.samefile(file["path"]):
            raise click.UsageError(f"{str(output)!r} is one of the files to read: choose another output.")


@dataclass(frozen=True)
class Work:
    """How rows are predicted, as given on the command line."""

    batch_rows: int | None
    memory_limit: int
    jobs: int | None
    quiet: bool


def shown_batches(
    name: str, data: Dataset, rows: int, carry: tuple[str, ...], work: Work
) -> Generator[Batch, None, None]:
    """The batches of a dataset, read ahead, with progress shown."""
    progress = Progress(Observers(not work.quiet), Machine(work.memory_limit))
    with (
        progress.stage(name, data.n_rows, data.nbytes) as stage,
        closing(read_ahead(data.batches(rows, carry=carry), depth=1)) as batches,  # type: ignore[type-var]
    ):
        for batch in batches:
            yield batch
            stage.advance(batch.rows)


def predictor_for(model: Any, work: Work, data: Dataset, needs: Needs, n_carried: int = 0) -> BatchPredictor:
    """Predicts class probabilities or values within the memory limit."""
    forest = model.forest_
    jobs = jobs_of(model.n_jobs if work.jobs is None else work.jobs)
    check_address_space()
    needs = needs.with_reading(data, n_carried)
    plan = plan_batches(forest, work.memory_limit, jobs, needs, work.batch_rows)
    return BatchPredictor(partial(predict_means, forest, hard_votes(model)), plan)
