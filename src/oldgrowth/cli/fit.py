"""`oldgrowth fit`: opens the data, chooses the kind of forest, trains and saves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ..datasets.base import Dataset
from ..datasets.labels import CodedLabels
from ..errors import DataError, OldgrowthError
from ..messages.log import warn
from ..messages.text import counted, human_bytes
from ..messages.warnings import LeftoverWarning, TaskWarning
from ..reporting.tables import plain, print_json, report_facts, stage_table
from ..storage.checkpoint_dir import clear_checkpoint
from .columns import Columns
from .parameters import check_known, estimator_class
from .sources import AnySource, refuse_a_source

_LOOK_ROWS = 1 << 16


@dataclass(frozen=True)
class Target:
    """The kind of values in the target column, and the task."""

    holds: str  # "text", "bools", "whole numbers" or "numbers"
    task: str


@dataclass(frozen=True)
class Wanted:
    """The requested forest; the task "auto" is chosen by the target."""

    kind: str
    task: str
    parameters: dict[str, Any]
    scheduler: str | None = None  # of a Dask cluster, if it is fitted there

    @contextmanager
    def estimator(self, task: str, parameters: dict[str, Any]) -> Iterator[Any]:
        """The estimator, with these parameters, and its connection to a cluster if it has one."""
        if self.scheduler is None:
            yield estimator_class(self.kind, task)(**parameters)
            return
        from ..dask.connection import connected, on_cluster

        with connected(self.scheduler) as client:
            yield on_cluster(estimator_class(self.kind, task))(**parameters, client=client)


def run_fit(
    source: AnySource,
    columns: Columns,
    output: Path,
    wanted: Wanted,
    as_json: bool,
    console: Console,
) -> None:
    """Train a forest and save it to `output`."""
    data = source.open(columns)
    refuse_a_source(output, data)
    target = look_at_target(data, wanted.task)
    parameters = dict(wanted.parameters)
    check_known(wanted.kind, target.task, parameters)
    if isinstance(parameters.get("class_weight"), dict):
        parameters["class_weight"] = _labelled(parameters["class_weight"], target.holds)
    with wanted.estimator(target.task, parameters) as model:
        _fit(model, data, target, wanted, console if not as_json else None)
    model.set_params(verbose=0).save(output)  # a loaded forest is not verbose
    if model.checkpoint_dir is not None:
        _clear(Path(model.checkpoint_dir).expanduser())
    _show(model, data, target, output, as_json, console)


def _fit(model: Any, data: Dataset, target: Target, wanted: Wanted, console: Console | None) -> None:
    if wanted.task == "auto" and target.holds == "whole numbers":
        warn(_taken_for_classes(data), TaskWarning, stacklevel=2)
    if console is not None:
        chosen = "chosen automatically" if wanted.task == "auto" else "as requested"
        console.print(
            f"The target {data.target} holds {target.holds}: {target.task} ({chosen}).\n"
            f"Training a {type(model).__name__} on {counted(data.n_features, 'feature')}."
        )
    model._keep_checkpoint = True  # until the forest is saved: that may fail
    model.fit(data)


def _clear(checkpoint: Path) -> None:
    """Remove the checkpoint. The forest is saved, so a failure is only a warning."""
    try:
        clear_checkpoint(checkpoint)
    except OldgrowthError as error:
        warn(f"The checkpoint in {checkpoint} could not be removed: {error}", LeftoverWarning)


def look_at_target(data: Dataset, task: str) -> Target:
    """The target and its task: if "auto", regression for numbers that are not whole, else classification."""
    if data.target is None:
        raise DataError("A forest needs a target: name its column with --target.")
    # With a single feature, columnar files are read quickly.
    narrow = data if data.feature_names is None else data.select(data.feature_names[:1])
    narrow = narrow.uncoded()
    holds = ""
    for batch in narrow.batches(_LOOK_ROWS):
        holds = _held(batch.y)
        if holds != "whole floats":
            break
    holds = "whole numbers" if holds == "whole floats" else holds
    if task == "auto":
        task = "regression" if holds == "numbers" else "classification"
    if task == "regression" and holds == "text":
        raise DataError(f"The target {data.target} holds text, but a regression needs numbers.")
    return Target(holds, task)


def _taken_for_classes(data: Dataset) -> str:
    return (
        f"the target {data.target!r} holds whole numbers, and each distinct number is taken as a class "
        "(classification). For counts or amounts use --task regression; for labels, --task classification "
        "avoids this warning."
    )


def _held(y: Any) -> str:
    if isinstance(y, CodedLabels):
        return "text"
    if y.dtype.kind == "f":
        return "whole floats" if np.all(y == np.floor(y)) else "numbers"
    return "bools" if y.dtype.kind == "b" else "whole numbers"


def _labelled(weights: dict[str, float], holds: str) -> dict[Any, float]:
    """The weights, with labels converted to the type of the target."""
    if holds == "text":
        return dict(weights)
    return {_label(text, holds): weight for text, weight in weights.items()}


def _label(text: str, holds: str) -> bool | int | float:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(
            f"--class-weight has a weight for the label {text!r}, but the target holds {holds}."
        ) from error
    return int(value) if value.is_integer() else value


def _show(model: Any, data: Dataset, target: Target, output: Path, as_json: bool, console: Console) -> None:
    report, size = model.fit_report_, output.stat().st_size
    score = getattr(model, "oob_score_", None)
    if as_json:
        print_json(
            {
                "model": str(output),
                "bytes": size,
                "estimator": type(model).__name__,
                "task": target.task,
                "target": data.target,
                "rows": report.rows,
                "features": model.n_features_in_,
                "classes": plain(getattr(model, "classes_", None)),
                "oob_score": score,
                "report": report_facts(report),
            }
        )
        return
    console.print(stage_table(report))
    groups = (
        f"on {counted(report.top_trees, 'top tree')}, {counted(report.buckets, 'bucket')}"
        if report.top_trees
        else "in one bucket"
    )
    trees, nodes = counted(report.trees, "tree"), counted(report.nodes, "node")
    classes = "" if target.task == "regression" else f"{counted(model.n_classes_, 'class', 'classes')}, "
    console.print(f"{classes}{trees} {groups}, {nodes}, depth {report.depth}.")
    if score is not None:
        console.print(f"Out-of-bag {'accuracy' if target.task == 'classification' else 'R2'} {score:.4f}.")
    console.print(f"Peak memory {human_bytes(report.peak_memory)}.")
    console.print(f"Forest saved to {output} ({human_bytes(size)}).", soft_wrap=True)
