"""The same rows give the same forest, from any source and in any store."""

from __future__ import annotations

import signal
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import oldgrowth.fitting.pipeline
from dataset_sources import NAMES, SOURCES, Truth, make_truth
from helpers import module_of_stage
from oldgrowth import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    SubsetForestClassifier,
    open_dataset,
)
from oldgrowth.errors import ChangedSourceError, CheckpointError, DataError, MemoryLimitError, ParameterError
from oldgrowth.rows.training_rows import Trail
from oldgrowth.system.memory import memory_limit_of
from on_disk import make_all_tiny

OPTIONS: dict[str, Any] = {"random_state": 2, "n_jobs": 2, "bucket_size": 200, "top_sample": 300}


@cache
def truth() -> Truth:
    return make_truth(800)


@cache
def expected() -> RandomForestClassifier:
    rows = truth()
    return RandomForestClassifier(6, oob_score=True, **OPTIONS).fit(rows.x, rows.y, rows.weights)


def text_labels() -> np.ndarray:
    return np.array(["oak", "pine", "ash", "yew", "elm", "fir", "larch"])[truth().y + 3]


def values() -> np.ndarray:
    return truth().x[:, 0].astype(np.float64) * 2 + truth().y


def check(model: Any, other: Any) -> None:
    assert model.forest_.digest() == other.forest_.digest()
    np.testing.assert_array_equal(model.feature_importances_, other.feature_importances_)
    assert model.oob_score_ == other.oob_score_
    if hasattr(other, "classes_"):
        np.testing.assert_array_equal(model.classes_, other.classes_)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    make_all_tiny(monkeypatch)


pytestmark = pytest.mark.filterwarnings("ignore:.*seen by every tree")


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_forest_of_the_array(tiny, tmp_path, name: str) -> None:
    source = SOURCES[name](truth(), tmp_path)
    for options in ({"store": "memory"}, {"store": "disk", "chunk_size": 61, "spill_dir": tmp_path}):
        data = open_dataset(*source.args, **source.options)
        check(RandomForestClassifier(6, oob_score=True, **(OPTIONS | options)).fit(data), expected())


@pytest.mark.parametrize("name", ["parquet", "csv", "lazy_frame", "arrow_stream", "batch_callable", "pandas"])
def test_a_dataset_can_be_fitted_again(tmp_path, name: str) -> None:
    """Its number of rows is known by then."""
    source = SOURCES[name](truth(), tmp_path)
    data = open_dataset(*source.args, **source.options)
    for _ in range(2):
        check(
            RandomForestClassifier(6, oob_score=True, **OPTIONS).fit(data),
            expected(),
        )


def table() -> pa.Table:
    rows = truth()
    named = {name: rows.x[:, i] for i, name in enumerate(NAMES)}
    return pa.table({**named, "text": text_labels(), "value": values(), "w": rows.weights})


@pytest.mark.parametrize("store", ["memory", "disk"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("kind", "target"),
    [(RandomForestClassifier, "text"), (RandomForestRegressor, "value"), (SubsetForestClassifier, "text")],
)
def test_targets_and_weights(  # noqa: PLR0913 - fixtures
    tiny, tmp_path, kind, target: str, ending: str, weighted: bool, store: str
) -> None:
    path = tmp_path / f"rows.{ending}"
    (pq.write_table if ending == "parquet" else pyarrow.csv.write_csv)(table(), path)
    data = open_dataset(path, target, NAMES, "w" if weighted else None)
    options = {"random_state": 2, "n_jobs": 2, "chunk_size": 100, "oob_score": True}
    if kind is SubsetForestClassifier:
        sizes: dict[str, Any] = {"subset_size": 400}
    else:
        sizes = {"bucket_size": 200, "top_sample": 300, "store": store}
    rows = truth()
    y = text_labels() if target == "text" else values()
    array = kind(6, **options, **sizes).fit(rows.x, y, rows.weights if weighted else None)
    check(kind(6, **options, **sizes).fit(data), array)


def test_zeros_of_both_signs_and_rare_labels(tiny, tmp_path) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-2, 3, size=(900, 3)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = -0.0
    y = np.arange(900) % 3
    y[-1] = -7  # the first label of all comes last
    np.save(tmp_path / "x.npy", x)
    for store in ("memory", "disk"):
        options = {"random_state": 0, "bucket_size": 50, "top_sample": 100, "chunk_size": 33, "store": store}
        streamed = ExtraTreesClassifier(5, **options).fit(open_dataset(tmp_path / "x.npy", target=y))
        array = ExtraTreesClassifier(5, **options).fit(x, y)
        assert streamed.forest_.digest() == array.forest_.digest()
        np.testing.assert_array_equal(streamed.classes_, [-7, 0, 1, 2])


def test_more_than_256_classes(tiny, tmp_path) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(3000, 4)), rng.integers(0, 700, 3000) * 3
    forests = [
        RandomForestClassifier(3, random_state=0, bucket_size=300, store=store, chunk_size=100).fit(x, y)
        for store in ("memory", "disk")
    ]
    assert forests[0].forest_.digest() == forests[1].forest_.digest()


def test_a_bucket_of_equal_rows_becomes_a_leaf(tiny, tmp_path) -> None:
    """However large: it cannot be split."""
    x = np.repeat([[0.0, 0.0], [1.0, 5.0]], [2900, 100], axis=0)
    y = np.arange(3000) % 3
    weights = np.random.default_rng(0).random(3000)
    for given in (None, weights):
        forests = [
            RandomForestClassifier(4, random_state=0, bucket_size=50, top_sample=200, store=store,
                                   oob_score=True, spill_dir=tmp_path, chunk_size=64).fit(x, y, given)
            for store in ("memory", "disk")
        ]  # fmt: skip
        check(forests[1], forests[0])
        assert forests[1].fit_report_.bucket_rows["100%"] == 2900
        assert forests[1].fit_report_.depth <= 1


class Stopped(Exception):
    """Raised in place of a stage."""


@pytest.mark.parametrize("name", SOURCES)
def test_a_fit_of_any_source_is_resumed(tiny, monkeypatch, tmp_path, name: str) -> None:
    """With the same dataset object, and with a newly opened one."""
    (tmp_path / "source").mkdir()
    source = SOURCES[name](truth(), tmp_path / "source")
    data = open_dataset(*source.args, **source.options)
    model = RandomForestClassifier(6, oob_score=True, checkpoint_dir=tmp_path / "checkpoint", **OPTIONS)
    for stage in ("grow_top_trees", "distribute_round", "grow", "assemble"):
        with monkeypatch.context() as patch:
            patch.setattr(module_of_stage(stage), stage, _stop)
            with pytest.raises(Stopped):
                model.set_params(chunk_size=97 + len(stage)).fit(data)
        data = open_dataset(*source.args, **source.options) if stage == "grow" else data
    check(model.fit(data), expected())


def _stop(*args: Any, **options: Any) -> None:
    raise Stopped


def test_a_file_that_was_written_again_is_refused(monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(table(), path)
    model = RandomForestRegressor(6, checkpoint_dir=tmp_path / "checkpoint", **OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(oldgrowth.fitting.pipeline, "grow", _stop)
        with pytest.raises(Stopped):
            model.fit(open_dataset(path, "value", NAMES))
    pq.write_table(table().slice(1), path)
    with pytest.raises(CheckpointError, match=r"data differ: files\[0\] was"):
        model.fit(open_dataset(path, "value", NAMES))


@pytest.mark.parametrize(
    "limit", [{"max_depth": 2}, {"min_impurity_decrease": 0.05}, {"min_samples_leaf": 400}]
)
def test_buckets_that_a_limit_keeps_large(tiny, tmp_path, limit) -> None:
    """Those at the greatest depth are loaded without their features."""
    rows = truth()
    options = {"random_state": 0, "bucket_size": 30, "top_sample": 200, "oob_score": True} | limit
    forests = [
        RandomForestClassifier(4, store=store, spill_dir=tmp_path, **options).fit(
            rows.x, rows.y, rows.weights
        )
        for store in ("memory", "disk")
    ]
    check(forests[1], forests[0])
    assert forests[1].fit_report_.bucket_rows["100%"] > 200


@pytest.mark.parametrize("store", ["memory", "disk"])
def test_labels_that_changed_places_between_the_passes_are_noticed(tmp_path: Path, store: str) -> None:
    """The class counts are the same, so that they do not reveal it."""
    rows, reads = truth(), iter([False] * 9)
    other = 701 + int(np.flatnonzero(rows.y[701:] != rows.y[700])[0])

    def batches() -> Any:
        y = rows.y.copy()
        if next(reads):
            y[[700, other]] = y[[other, 700]]
        yield rows.x[:600], y[:600]
        yield rows.x[600:], y[600:]

    model = RandomForestClassifier(2, store=store, spill_dir=tmp_path, **OPTIONS)
    data = open_dataset(batches)
    reads = iter([False] + [True] * 9)  # it was looked at when it was opened
    with pytest.raises(
        ChangedSourceError, match=r"labels or weights in rows \d+ to \d+ differ from those of the first"
    ):
        model.fit(data)


def test_zero_weights_are_refused(tmp_path: Path) -> None:
    rows = truth()
    data = open_dataset(lambda: iter([(rows.x, rows.y, np.zeros(len(rows.y)))]))
    with pytest.raises(DataError, match="no row to train on: all weights are zero"):
        RandomForestClassifier(2, spill_dir=tmp_path).fit(data)
    with pytest.raises(DataError, match="no row to score: all weights are zero"):
        expected().score(data)


def test_labels_beyond_signed_integers(tmp_path: Path) -> None:
    x, y = np.arange(40.0)[:, None], np.array([3, 2**64 - 1], dtype=np.uint64)[np.arange(40) // 20]
    model = RandomForestClassifier(2, random_state=0).fit(open_dataset(lambda: iter([(x, y), (x, y[::-1])])))
    assert model.classes_.tolist() == [3, 2**64 - 1]


def test_a_delimiter_is_one_character(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a;;y\n1;;0\n")
    with pytest.raises(ParameterError, match="a single ASCII character"):
        open_dataset(tmp_path / "rows.csv", target="y", delimiter=";;")


def test_a_share_as_text_is_a_share() -> None:
    assert memory_limit_of("0.5") == memory_limit_of(0.5) > 10**6


@pytest.mark.parametrize("model", [RandomForestClassifier(2, store="memory"), SubsetForestClassifier(2)])
def test_a_limit_that_memory_cannot_keep_is_refused(tmp_path: Path, model: Any) -> None:
    rows = truth()
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"f{i}": rows.x[:, i] for i in range(rows.x.shape[1])} | {"y": rows.y}), path)
    with pytest.raises(MemoryLimitError, match="is too low"):
        model.set_params(memory_limit="20MB").fit(open_dataset(path, target="y"))


def test_an_infinite_value_is_found_in_its_own_file(tmp_path: Path) -> None:
    for i in range(3):
        values = np.arange(50.0)
        if i == 2:
            values[7] = np.inf
        pq.write_table(pa.table({"a": values, "y": np.arange(50) % 2}), tmp_path / f"{i}.parquet")
    with pytest.raises(DataError, match=r"row 107, column a of .*2\.parquet"):
        RandomForestClassifier(2).fit(open_dataset(tmp_path, target="y"))


def test_an_interrupt_does_not_wait_for_the_source() -> None:
    """The source answers only after a long time, and is not waited for."""
    asked, answers, answered, ended = (threading.Event() for _ in range(4))

    def batches() -> Any:
        yield np.zeros((10, 2)), np.arange(10) % 2
        asked.set()
        answers.wait()
        answered.set()
        yield np.zeros((10, 2)), np.arange(10) % 2

    def interrupt() -> None:
        asked.wait()
        while not ended.is_set():  # Python swallows an interrupt that comes while it collects garbage
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
            ended.wait(5)

    # A process that was started in the background ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupter = threading.Thread(target=interrupt, daemon=True)
    interrupter.start()
    data = open_dataset(batches)
    try:
        with pytest.raises(KeyboardInterrupt):
            RandomForestClassifier(2).fit(data)
    finally:
        ended.set()
        interrupter.join()
        signal.signal(signal.SIGINT, before)
    assert not answered.is_set()
    answers.set()


@pytest.mark.parametrize("change", ["values", "labels", "rows"])
def test_subsets_notice_a_source_that_changes_before_the_rows_outside_are_read(change: str) -> None:
    """Out-of-bag scores of subsets take a second pass, over all rows."""
    rows, reads = truth(), iter([False, False] + [True] * 9)  # looked at, read once, then again

    def batches() -> Any:
        x, y = rows.x.copy(), rows.y.copy()
        if next(reads):
            if change == "values":
                x[700, 0] = x[x[:, 0] != x[700, 0], 0][0]
            elif change == "labels":
                y[700] = y[y != y[700]][0]
            else:
                x, y = x[:-1], y[:-1]
        yield x[:600], y[:600]
        yield x[600:], y[600:]

    model = SubsetForestClassifier(3, subset_size=200, oob_score=True, random_state=0, chunk_size=50)
    said = {"values": "the values in rows 700 to 749", "labels": "labels or weights in rows 700 to 749"}
    with pytest.raises(ChangedSourceError, match=said.get(change, "rows")):
        model.fit(open_dataset(batches))


def test_a_change_behind_the_last_place_remembered_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trail, "MOST", 2)
    rows, reads = make_truth(1500), iter([False, False] + [True] * 9)
    fifth = len(rows.x) // 5  # of five places the first and the fourth are kept: windows have 1024 rows
    assert fifth == 300

    def batches() -> Any:
        x = rows.x.copy()
        if next(reads):
            x[-1, 0] = x[x[:, 0] != x[-1, 0], 0][0]
        yield x[:fifth], rows.y[:fifth]
        yield x[fifth:], rows.y[fifth:]

    model = SubsetForestClassifier(3, subset_size=200, oob_score=True, random_state=0, chunk_size=fifth)
    changed = f"the values in rows {4 * fifth} to {len(rows.x) - 1} differ"
    with pytest.raises(ChangedSourceError, match=changed):
        model.fit(open_dataset(batches))


def test_a_row_is_named_with_its_own_file(tmp_path: Path) -> None:
    """A chunk may have rows of several files."""
    for name, odd in (("a.csv", "2.0"), ("b.csv", "0.5")):
        lines = [f"{i % 7},{i % 3}" for i in range(50)]
        lines[7] = f"1,{odd}"
        (tmp_path / name).write_text("\n".join(["x,y", *lines]))
    with pytest.raises(DataError, match=r"0\.5 in row 57 of .*b\.csv"):
        RandomForestClassifier(2).fit(open_dataset(tmp_path, target="y"))
