"""What the first pass learns of partitions merges into what it learns of the whole, however that is cut."""

from __future__ import annotations

import multiprocessing
import pickle
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import oldgrowth
from oldgrowth.datasets import Batch, Dataset, Partition, open_dataset
from oldgrowth.errors import SameNumberError, TooManyLabelsError
from oldgrowth.estimators.parameters import checked
from oldgrowth.fitting import pipeline
from oldgrowth.fitting.context import FitContext
from oldgrowth.fitting.learned import Learned
from oldgrowth.fitting.sample import learn, sample
from oldgrowth.plan import Plan
from oldgrowth.planning.planner import Planner
from oldgrowth.rows.class_codes import LabelCoder, LabelLimit
from oldgrowth.rows.id_columns import IdFinder
from oldgrowth.rows.streamed_rows import StreamedRows
from oldgrowth.rows.training_rows import Place, Trail, TrainingRows
from oldgrowth.storage.candidate_rows import CandidateRows
from oldgrowth.storage.sampled import Sampled
from stages import PROGRESS, context, pool

LABELS: dict[str, list[Any]] = {
    "texts": ["fig", "pear", "Fig", "ä b", "Z", "fig tree"],
    "whole": [-7, 0, 3, 4, 2**40, -1],
    "bools": [True, False],
    "mixed": [0, 3, 200, 250, 99],  # of another type in each file
    "floats": [2.0, -1.0, 5.0, 1e6],
    "values": [],
}
TYPES = (pa.uint8(), pa.int16(), pa.uint64(), pa.int64())
FEATURES = ("bytes", "few", "many", "gaps", "ids")
SOURCES = ("table", "array", "parquet", "feather", "csv")


@dataclass(frozen=True)
class Case:
    """Rows, where they come from, and where they are cut: an edge that occurs twice makes an empty part."""

    seed: int
    n: int
    features: tuple[str, ...]
    labels: str
    weights: str
    source: str
    edges: tuple[int, ...]
    chunk_size: int
    in_memory: bool  # whether candidates stay there
    counted: bool  # whether the number of all rows is known before
    order: int  # in which neighbours merge

    @property
    def classification(self) -> bool:
        return self.labels != "values"

    def table(self) -> pa.Table:
        rng = np.random.default_rng(self.seed)
        columns: dict[str, Any] = {}
        for i, kind in enumerate(self.features):
            columns[f"f{i}"] = {
                "bytes": lambda: rng.integers(0, 200, self.n).astype(np.uint8),
                "few": lambda: np.round(rng.normal(size=self.n), 1).astype(np.float32),
                "many": lambda: rng.normal(size=self.n).astype(np.float32),
                "gaps": lambda: np.where(rng.random(self.n) < 0.4, np.nan, rng.integers(0, 9, self.n)),
                "ids": lambda: np.arange(self.n) + 11,
            }[kind]()
        if self.classification:
            # Each label begins to occur at another row, so that parts meet labels in different orders.
            known = np.minimum(1 + np.arange(self.n) * len(LABELS[self.labels]) // self.n, 99)
            codes = (rng.random(self.n) * known).astype(int)
            shuffled = rng.permutation(len(LABELS[self.labels]))
            columns["y"] = pa.array([LABELS[self.labels][shuffled[code]] for code in codes])
        else:
            columns["y"] = rng.normal(size=self.n)
        if self.weights != "none":
            weights = np.exp2(rng.normal(size=self.n) * 20)
            weights[rng.random(self.n) < (0.5 if self.weights == "zeros" else 0)] = 0
            weights[rng.integers(self.n)] = 1.0
            columns["w"] = weights
        return pa.table(columns)

    def dataset(self, folder: Path) -> Dataset:
        table, weight = self.table(), None if self.weights == "none" else "w"
        names = table.column_names[: len(self.features)]
        if self.source == "table":
            return open_dataset(table, target="y", weight=weight)
        if self.source == "array":
            x = np.column_stack([table[name].to_numpy() for name in names])
            y = np.array(table["y"].to_pylist())
            return open_dataset(x, y, names, None if weight is None else table["w"].to_numpy())
        options = {}
        for i, (first, last) in enumerate(pairwise(self.edges)):
            part, path = table.slice(first, last - first), folder / f"{i:03d}.{self.source}"
            if self.labels == "mixed" and self.source != "csv":
                place = table.column_names.index("y")
                part = part.set_column(place, "y", part["y"].cast(TYPES[i % len(TYPES)]))
            if self.source == "parquet":
                pq.write_table(part, path, row_group_size=5)
            elif self.source == "feather":
                pyarrow.feather.write_feather(part, path, chunksize=5)
            else:
                pyarrow.csv.write_csv(part, path)
                options["types"] = {field.name: field.type for field in table.schema}
        return open_dataset(folder, target="y", weight=weight, **options)

    def partitions(self, dataset: Dataset) -> list[Partition]:
        if self.source in ("table", "array"):
            parts = [dataset._part(a, b) for a, b in pairwise(self.edges)]
            return [Partition(part, part.first_row, part.n_rows) for part in parts]
        return dataset.partitions(len(self.edges) + self.order % 7)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 100))
    inner = draw(st.lists(st.integers(0, n), max_size=6))
    return Case(
        draw(st.integers(0, 2**32)),
        n,
        tuple(draw(st.lists(st.sampled_from(FEATURES), min_size=1, max_size=4))),
        draw(st.sampled_from(list(LABELS))),
        draw(st.sampled_from(["none", "real", "zeros"])),
        draw(st.sampled_from(SOURCES)),
        (0, *sorted(inner), n),
        draw(st.sampled_from([1, 7, 1000])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(0, 2**16)),
    )


def starts_of(partitions: list[Partition]) -> tuple[list[Place], int]:
    """Where each partition begins, and how many rows with a weight there are in all."""
    used = list(accumulate((part.open().count_used_rows() for part in partitions), initial=0))
    firsts = [part.first_row or 0 for part in partitions]
    return [Place(row, first) for row, first in zip(used, firsts, strict=False)], used[-1]


def learned_of(
    partition: Partition, classification: bool, plan: Plan, start: Place, of: int | None
) -> Learned:
    return learn(StreamedRows(partition.open(), classification), plan, start, of)


def merged(parts: list[Learned], order: int) -> Learned:
    """Neighbours merge in an order by chance."""
    rng = np.random.default_rng(order)
    while len(parts) > 1:
        i = int(rng.integers(len(parts) - 1))
        parts[i].merge(pickle.loads(pickle.dumps(parts.pop(i + 1))))
    return parts[0]


def learned_in_parts(case: Case, dataset: Dataset, plan: Plan, whole: Learned) -> Learned:
    """`whole` knows nothing yet."""
    partitions = pickle.loads(pickle.dumps(case.partitions(dataset)))
    starts, n = starts_of(partitions)
    event(f"{case.source}, {len(partitions)} partitions")
    of = n if case.counted else None
    parts = [
        learned_of(partition, case.classification, plan, start, of)
        for partition, start in zip(partitions, starts, strict=True)
    ]
    return merged([whole, *parts], case.order)


@contextmanager
def recorded() -> Iterator[list[str]]:
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(warning.message) for warning in caught]


def check_same(found: Sampled, expected: Sampled, plan: Plan) -> None:
    for name, value in vars(expected.summary).items():
        np.testing.assert_array_equal(getattr(found.summary, name), value, err_msg=name)
    assert found.end == expected.end
    assert found.codec.widths == expected.codec.widths
    if expected.rows.classes is not None:
        assert found.rows.classes is not None and found.rows.classes.dtype == expected.rows.classes.dtype
        np.testing.assert_array_equal(found.rows.classes, expected.rows.classes)
    plan = replace(plan, top_sample=min(plan.top_sample, expected.summary.n_rows))
    if not plan.needs_top_trees(expected.summary.n_rows):
        return
    for top in range(len(plan.trees_of_tops(expected.summary.n_rows))):
        rows = expected.top_sample(plan, top)
        np.testing.assert_array_equal(found.top_sample(plan, top), rows)
        for name in ("x", "targets", "weights"):
            some, others = (
                [getattr(taken, name) for taken in sampled.take(rows)] for sampled in (found, expected)
            )
            if others[0] is None:
                assert some[0] is None
            else:
                np.testing.assert_array_equal(np.concatenate(some), np.concatenate(others))


def check_trail(found: Sampled, expected: Sampled, chunk_size: int) -> None:
    """With chunks of single rows all passes come by the same places."""
    if chunk_size == 1:
        assert found.trail.state() == expected.trail.state()
    for values in found.trail.state():
        other = expected.trail.at(values[1])
        assert other is None or values == list(vars(other).values())


class CutSample:
    """Stands for `sample` in a fit: learns from partitions, and compares with a pass over the whole."""

    def __init__(self, case: Case, dataset: Dataset) -> None:
        self._case, self._dataset = case, dataset

    def __call__(
        self, rows: TrainingRows, plan: Plan, fit: FitContext, progress: Any, *others: Any
    ) -> Sampled:
        case = self._case
        candidate_bytes, _ = others
        plan = replace(plan, chunk_size=case.chunk_size)
        uncut = StreamedRows(self._dataset, case.classification)
        with recorded() as said, mock.patch.object(Trail, "MOST", 8):
            expected = sample(uncut, plan, context(fit.engine), PROGRESS)
        most = candidate_bytes if case.in_memory else 0
        candidates = CandidateRows(rows.n_features, fit.workspace, most)
        with recorded() as said_too, mock.patch.object(Trail, "MOST", 8):
            learned = learned_in_parts(case, self._dataset, plan, Learned(rows, Place(), candidates))
            found = learned.finish(rows)
        assert said_too == said
        check_same(found, expected, plan)
        check_trail(found, expected, case.chunk_size)
        return found


def model_of(case: Case) -> Any:
    kind = oldgrowth.RandomForestClassifier if case.classification else oldgrowth.RandomForestRegressor
    return kind(4, trees_per_top=2, bucket_size=20, top_sample=30, random_state=case.seed % 1000, n_jobs=2)


@settings(max_examples=40)
@given(cases())
def test_no_cut_changes_anything(case: Case) -> None:
    """Neither what is learned, nor what is warned of, nor the forest."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = case.dataset(Path(folder))
        with recorded():
            expected = model_of(case).fit(dataset).forest_.digest()
        with mock.patch.object(pipeline, "sample", CutSample(case, dataset)):
            assert model_of(case).fit(dataset).forest_.digest() == expected


LARGE = Case(
    5, 3000, ("few", "gaps", "many"), "texts", "zeros", "csv", (0, 1000, 1000, 2999, 3000), 77, True, True, 3
)


def test_partitions_are_learned_from_in_another_process(tmp_path: Path) -> None:
    case = LARGE
    dataset = case.dataset(tmp_path)
    partitions = dataset.partitions(9)
    starts, n = starts_of(partitions)
    rows, uncut = (StreamedRows(dataset, case.classification) for _ in range(2))
    plan = plan_of(case, rows)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as elsewhere:
        tasks = [
            elsewhere.submit(learned_of, partition, True, plan, start, n)
            for partition, start in zip(partitions, starts, strict=True)
        ]
        whole = Learned(rows, Place(), CandidateRows(rows.n_features))
        found = merged([whole, *(task.result() for task in tasks)], case.order).finish(rows)
    with pool() as threads:
        expected = sample(uncut, plan, context(threads), PROGRESS)
    assert len(partitions) == 4 and expected.summary.n_rows < 2000
    check_same(found, expected, plan)


def plan_of(case: Case, rows: StreamedRows) -> Plan:
    given = model_of(case)
    planner = Planner(checked(given._parameters, given.get_params()), False, case.classification)
    plan = planner.expect(rows.n_rows, rows.n_features, 0)
    return replace(plan, chunk_size=case.chunk_size, top_sample=30, seed=7)


def test_rows_that_do_not_follow_do_not_merge() -> None:
    rows = StreamedRows(open_dataset(np.zeros((9, 2)), np.zeros(9)), True)
    whole, later = (Learned(rows, place, None) for place in (Place(), Place(3, 3)))
    with pytest.raises(ValueError, match="do not follow"):
        whole.merge(later)


@pytest.mark.parametrize("parts", [["7", "007"], ["007", "7"], ["007", "07"], ["1", "007", "2", "7"]])
def test_labels_that_are_one_number_are_refused_in_any_partition(parts: list[str], tmp_path: Path) -> None:
    for i, label in enumerate(parts):
        (tmp_path / f"{i}.csv").write_text(f"v,y\n1,{label}\n2,{label}\n")
    dataset = open_dataset(tmp_path, target="y")
    partitions = dataset.partitions(9)
    rows = StreamedRows(dataset, True)
    plan = plan_of(LARGE, rows)
    learned = [
        learned_of(partition, True, plan, start, None)
        for partition, start in zip(partitions, starts_of(partitions)[0], strict=True)
    ]
    with pytest.raises(SameNumberError, match="are the same number") as caught:
        merged(learned, 0)
    odd = next(i for i, label in enumerate(parts) if label == "007" or label == "07" != parts[0])
    assert f"row {2 * (1 if parts[1] == '07' else odd)} of {tmp_path}" in str(caught.value)


def test_labels_that_merge_have_a_limit_together() -> None:
    parts = [LabelCoder(), LabelCoder()]
    for i, coder in enumerate(parts):
        y = np.array([f"label {i} {j}" for j in range(100)])
        coder.code(Batch(0, np.zeros((100, 1), np.float32), y, None, ((0, "x"),)))
    parts[0].limit = LabelLimit(30_000, lambda *_: 10**6)
    with pytest.raises(TooManyLabelsError, match="has 200 "):
        parts[0].merge(pickle.loads(pickle.dumps(parts[1])), 500)


@pytest.mark.parametrize(
    "edges", [[0, 70_000], [0, 40, 70_000], [0, 30_000, 30_000, 65_536, 70_000], [0, 65_530, 70_000]]
)
def test_ids_are_looked_for_in_the_first_rows_of_all(edges: list[int]) -> None:
    """The first feature is an id in the rows that are looked at, the second is not quite."""
    n = edges[-1]
    x = np.column_stack([np.arange(n), np.arange(n), np.arange(n) % 7]).astype(np.float32)
    x[66_000:, 0] = 5
    x[65_535, 1] = 3
    whole = IdFinder(3, ["a", "b", "c"])
    for first, last in pairwise(edges):
        part = IdFinder(3, ["a", "b", "c"], first)
        for row in range(first, last, 9973):
            part.add(x[row : min(row + 9973, last)])
        whole.merge(pickle.loads(pickle.dumps(part)))
    with recorded() as said:
        whole.finish()
    assert len(said) == 1 and "'a' (a different whole number in each of the first 65,536 rows)" in said[0]
    assert "'b'" not in said[0] and "'c'" not in said[0]
