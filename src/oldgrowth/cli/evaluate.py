"""`oldgrowth evaluate`: how well a forest predicts rows whose target is known."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..errors import DataError
from ..forest.model_file import load_for_prediction
from ..forest.scoring import Confusion, RegressionErrors, scoring_needs, with_targets
from ..messages.text import counted
from ..reporting.tables import print_json, share, table
from .columns import Columns
from .sources import AnySource, Work, predictor_for, shown_batches

_MOST_COLUMNS, _MOST_NAMED = 12, 10


def run_evaluate(
    model_path: Path,
    source: AnySource,
    columns: Columns,
    work: Work,
    as_json: bool,
    console: Console,
) -> None:
    started = time.perf_counter()
    model = load_for_prediction(model_path)
    data = source.open_for(model, columns)
    predictor = predictor_for(model, work, data, scoring_needs(model.forest_))
    classes = getattr(model, "classes_", None)
    scored: Confusion | RegressionErrors = RegressionErrors() if classes is None else Confusion(classes)
    with closing(shown_batches("evaluate", data, predictor.plan.rows, (), work)) as batches:
        for batch in with_targets(predictor.of_batches(batches), data, classes):
            if isinstance(scored, Confusion):
                scored.add(batch.targets, batch.classes)
            else:
                scored.add(batch.target_values, batch.values)
    if isinstance(scored, Confusion) and scored.unknown_rows == scored.rows > 0:
        raise DataError(
            f"No row has a label that the forest knows: the target {data.target!r} holds "
            f"{_named(scored.unknown)}, the classes are {_named(scored.classes)}."
        )
    scores = scored.scores()
    if as_json:
        print_json({"model": str(model_path), "target": data.target} | scores)
        return
    if isinstance(scored, Confusion):
        if not work.quiet:
            _show_classes(scores, console)
            _show_confusion(scored, console)
        _show_unknown(scored, console)
        console.print(
            f"Accuracy {share(scores['accuracy'])}, balanced accuracy {share(scores['balanced_accuracy'])}"
        )
    else:
        console.print(f"R2 {scores['r2']:.4f}, RMSE {scores['rmse']:.6g}, MAE {scores['mae']:.6g}")
    if not work.quiet:
        console.print(f"{counted(scored.rows, 'row')} in {time.perf_counter() - started:.1f} s.")


def _named(labels: Iterable[Any]) -> str:
    """The first labels, as in a sentence."""
    some = [repr(label) for label in islice(labels, _MOST_NAMED + 1)]
    return ", ".join(some[:_MOST_NAMED]) + (" and others" if len(some) > _MOST_NAMED else "")


def _show_classes(scores: dict[str, Any], console: Console) -> None:
    shown = table("Classes", "class", "precision", "recall", "rows")
    for line in scores["classes"]:
        shown.add_row(
            str(line["class"]), share(line["precision"]), share(line["recall"]), f"{line['support']:,}"
        )
    console.print(shown)


def _show_confusion(confusion: Confusion, console: Console) -> None:
    if confusion.matrix is None or len(confusion.classes) > _MOST_COLUMNS:
        console.print(_confused_pairs(confusion))
        return
    names = [str(label) for label in confusion.classes]
    shown = table("Confusion: labels by predicted class", "label", *names)
    for name, counts in zip(names, confusion.matrix.tolist(), strict=True):
        shown.add_row(name, *(f"{count:,}" for count in counts))
    console.print(shown)


def _confused_pairs(confusion: Confusion) -> Table:
    """The most frequent confusions: a matrix of many classes would be unreadable."""
    has = "the matrix" if confusion.matrix is not None else "more of them"
    shown = table(f"Most frequent confusions (--json has {has})", "label", "taken for", "rows")
    for label, taken_for, rows in confusion.pairs.most_confused(_MOST_COLUMNS):
        shown.add_row(str(confusion.classes[label]), str(confusion.classes[taken_for]), f"{rows:,}")
    return shown


def _show_unknown(confusion: Confusion, console: Console) -> None:
    if not confusion.unknown:
        return
    most = sorted(confusion.unknown.items(), key=lambda item: -item[1])
    named = ", ".join(f"{label!r} ({rows:,})" for label, rows in most[:_MOST_NAMED])
    more = f" and {len(most) - _MOST_NAMED:,} more" if len(most) > _MOST_NAMED else ""
    rows = counted(confusion.unknown_rows, "row has a label", "rows have labels")
    count = "counts" if confusion.unknown_rows == 1 else "count"
    console.print(f"{rows} that the forest does not know, and {count} as wrong: {named}{more}.")
