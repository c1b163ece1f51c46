"""`oldgrowth predict`: predicts a dataset in batches and writes a file, in the order of the rows."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console

from ..datasets.batches import Batch
from ..datasets.labels import kept_apart
from ..forest.model_file import load_for_prediction
from ..messages.text import counted
from ..reporting.tables import print_json, share, table
from .columns import Columns
from .options import MAP_SUFFIXES, STANDARD
from .output import arrow_array, needs_of, prediction_file
from .scenes import check_exist
from .sources import Source, Work, predictor_for, refuse_a_source, shown_batches


class Predictions:
    """Turns predicted batches into columns of the output, and counts the labels."""

    def __init__(self, model: Any, keep: tuple[str, ...], proba: bool) -> None:
        self._keep = keep
        self._proba = proba
        self.rows = 0
        self.classes: npt.NDArray[Any] | None = None
        if hasattr(model, "classes_"):
            # Objects are strings or numbers that numpy did not give a type of its own.
            self.classes = (
                np.asarray(kept_apart(model.classes_.tolist()))
                if model.classes_.dtype == object
                else model.classes_
            )
            self._labels = arrow_array(self.classes)
            self.counts = np.zeros(len(self.classes), dtype=np.int64)
        elif proba:
            raise click.UsageError("--proba needs a classifier, but the forest predicts values.")

    @property
    def row_bytes(self) -> int:
        """Bytes of the output columns of a row."""
        if self.classes is None:
            return 8
        return 8 + self.classes.itemsize + (8 * len(self.classes) if self._proba else 0)

    def names(self) -> list[str]:
        """The names of the columns."""
        names = [*self._keep, "prediction"]
        if self._proba and self.classes is not None:
            names += [f"probability_{label}" for label in self.classes.tolist()]
        return names

    def of(self, batch: Batch, means: npt.NDArray[np.float64]) -> tuple[pa.Table, npt.NDArray[Any]]:
        """The output of a batch: as columns, and as an array of labels or probabilities."""
        self.rows += batch.rows
        kept = [] if batch.carried is None else [batch.carried.column(name) for name in self._keep]
        if self.classes is None:
            return pa.table([*kept, arrow_array(means[:, 0])], names=self.names()), means[:, 0]
        codes = means.argmax(axis=1)
        self.counts += np.bincount(codes, minlength=len(self.classes))
        columns = [*kept, self._labels.take(arrow_array(codes))]
        if not self._proba:
            return pa.table(columns, names=self.names()), self.classes.take(codes)
        columns += [arrow_array(means[:, i]) for i in range(means.shape[1])]
        return pa.table(columns, names=self.names()), means


@dataclass(frozen=True)
class Wanted:
    """What to write and where: kept columns, whether probabilities; and the columns to use as features.

    `maps` are other files of the same pixels, if rasters are predicted.
    """

    output: Path
    keep: tuple[str, ...]
    proba: bool
    features: tuple[str, ...] | None
    maps: dict[str, Any]


def _refuse_maps(wanted: Wanted, source: Source) -> None:
    """Refuse what only rasters can become."""
    is_map = wanted.output.suffix.lower() in MAP_SUFFIXES
    if wanted.maps or is_map:
        check_exist(source.paths)
    if wanted.maps:
        option = next(iter(wanted.maps)).replace("_", "-")
        raise click.UsageError(f"--{option} is for rasters, but {source.paths[0]!r} contains no rasters.")
    if is_map:
        raise click.UsageError(
            f"{str(wanted.output)!r} would be a map, but {source.paths[0]!r} contains no rasters: name a "
            ".parquet, .csv or .npy file."
        )


def run_predict(
    model_path: Path, source: Source, wanted: Wanted, work: Work, as_json: bool, console: Console
) -> None:
    started = time.perf_counter()
    output, keep, features = wanted.output, wanted.keep, wanted.features
    _refuse_maps(wanted, source)
    model = load_for_prediction(model_path)
    predictions = Predictions(model, keep, wanted.proba)
    names = predictions.names()
    for name in keep:
        if names.count(name) > 1:
            raise click.UsageError(f"--keep {name} would make two columns of that name.")
    source = source.carrying(keep, features or tuple(getattr(model, "feature_names_in_", ())))
    data = source.open_for(model, Columns(features=features))
    refuse_a_source(output, data)
    needs = needs_of(output, 8 * model.forest_.n_outputs, predictions.row_bytes, len(names))
    predictor = predictor_for(model, work, data, needs, len(keep))
    with (
        prediction_file(output) as file,
        closing(shown_batches("predict", data, predictor.plan.rows, keep, work)) as batches,
    ):
        for batch, means in predictor.of_batches(batches):
            file.write(*predictions.of(batch, means))
    seconds = time.perf_counter() - started
    counts = None
    if predictions.classes is not None:
        counts = dict(zip(predictions.classes.tolist(), predictions.counts.tolist(), strict=True))
    if as_json:
        result = {"output": str(output), "rows": predictions.rows, "seconds": seconds, "columns": names}
        print_json(result | ({} if counts is None else {"predicted": counts}))
        return
    if counts is not None:
        shown = table("Predicted classes", "class", "rows", "share")
        for label, count in counts.items():
            shown.add_row(str(label), f"{count:,}", share(count / max(1, predictions.rows)))
        console.print(shown)
    where = "written to standard output" if output == STANDARD else f"saved to {output}"
    console.print(
        f"{counted(predictions.rows, 'row')} predicted in {seconds:.1f} s, {where}.", soft_wrap=True
    )
