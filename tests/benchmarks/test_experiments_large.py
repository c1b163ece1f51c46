"""The large experiments run end to end on tiny sizes, give plausible results, and repeat no finished run."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "experiments")]

import big_data  # noqa: E402
import billion  # noqa: E402
import runner as experiments_runner  # noqa: E402
import small_data  # noqa: E402

import physics  # noqa: E402
import trials  # noqa: E402

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n"


def tiny(path: Path) -> list[str]:
    return ["--size", "tiny", "--output", str(path)]


def runs_of(path: Path, name: str) -> list[dict[str, Any]]:
    lines = (path / "tiny" / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line)["run"] | json.loads(line)["results"] for line in lines]


def test_small_data(tmp_path: Path) -> None:
    assert small_data.main(tiny(tmp_path)) == 0
    runs = runs_of(tmp_path, "small_data")
    ours = ["oldgrowth", "oldgrowth, one bucket", "oldgrowth, splits as ydf"]
    models = [*ours, "subsets of 500,000", "scikit-learn"]
    assert [run["model"] for run in runs] == models
    for run in runs:
        assert 0.6 < run["accuracy"] < 0.9
        assert run["fit_seconds"] > 0
    page = (tmp_path / "tiny" / "small_data.md").read_text()
    assert "susy (stand-in), 18 features" in page
    assert (tmp_path / "tiny" / "results-small_data-susy.png").read_bytes().startswith(PNG)
    assert small_data.main(tiny(tmp_path)) == 0
    assert runs_of(tmp_path, "small_data") == runs


@pytest.mark.parametrize(
    ("seconds", "memory", "words"), [(0.01, 10**10, "over 0.01 s"), (60, 10**8, "out of memory (100 MB)")]
)
def test_a_model_beyond_a_limit_is_not_tried_with_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, memory: int, words: str
) -> None:
    # The command line sets it for its own process. With it, scikit-learn gets as far as its own threads, for
    # which it then waits without end.
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    limits = trials.Limits(seconds, 600, 4_000, memory=memory)
    options = experiments_runner.parse("", tiny(tmp_path))
    runner = experiments_runner.Runner("small_data", options)
    study = small_data.studies(options)[0]
    study = replace(study, sizes=(2_000, 4_000), load=lambda: physics.SUSY.load(None, 4_000, 100))
    with small_data.arrays_on_disk(study, options.output) as arrays:
        results = small_data.measure(runner, study, ["scikit-learn"], range(2), limits, arrays)
    assert results == {(2_000, "scikit-learn"): [{"failed": words}], (4_000, "scikit-learn"): []}
    small_data.show(runner, study, ["scikit-learn"], results)
    small_data.draw(study, ["scikit-learn"], results)
    page = (tmp_path / "tiny" / "small_data.md").read_text()
    assert words in page and "not tried" in page


def test_seeds_and_sizes_that_would_take_too_long_are_left_out() -> None:
    tried = []

    def fit(rows: int, model: str, seed: int) -> dict[str, Any]:
        tried.append((rows, model, seed))
        return {"fit_seconds": rows * {"slow": 3.0, "fast": 0.1}[model]}

    limits = trials.Limits(seconds=50, repeated_seconds=25, repeated_rows=10)
    results = trials.take_turns((5, 10, 20, 40), ("slow", "fast"), range(2), limits, fit)
    small = [(5, "slow", 0), (5, "fast", 0), (5, "slow", 1), (5, "fast", 1)]
    large = [(10, "slow", 0), (10, "fast", 0), (10, "fast", 1), (20, "fast", 0), (40, "fast", 0)]
    assert tried == small + large
    assert results[20, "slow"] == [{"failed": "would take over 50 s"}]
    assert results[40, "slow"] == []


def test_the_yardstick_is_repeated_however_long_it_takes() -> None:
    limits = trials.Limits(seconds=50, repeated_seconds=1, repeated_rows=1, yardstick="ordinary")
    results = trials.take_turns(
        (5,), ("ordinary", "other"), range(3), limits, lambda *_: {"fit_seconds": 9.0}
    )
    assert [len(results[5, model]) for model in ("ordinary", "other")] == [3, 1]


def test_stand_ins_have_the_shape_of_the_sets() -> None:
    for collisions, features in ((physics.SUSY, 18), (physics.HIGGS, 28)):
        less, more = (collisions.load(None, rows, 500) for rows in (1_000, 2_000))
        assert more.x_train.shape == (2_000, features)
        np.testing.assert_array_equal(less.x_train, more.x_train[:1_000])
        assert np.isfinite(more.x_train).all()
        assert 0.35 < more.y_train.mean() < 0.65


def test_the_real_files_are_used_where_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    small = replace(physics.SUSY, rows=40, test_rows=10)
    values = np.column_stack([rng.integers(0, 2, 40), rng.standard_normal((40, 18))])
    with gzip.open(tmp_path / "SUSY.csv.gz", "wt") as file:
        np.savetxt(file, values, delimiter=",", fmt="%.18e")
    assert (small.source(tmp_path), small.source(None)) == ("UCI", "stand-in")
    split = small.load(tmp_path, 100, 10)
    np.testing.assert_array_equal(split.x_train, values[:30, 1:].astype(np.float32))
    np.testing.assert_array_equal(split.y_test, values[30:, 0])
    with pytest.raises(ValueError, match="not the file of UCI"):
        replace(small, rows=50).load(tmp_path, 10, 10)


def test_big_data(tmp_path: Path) -> None:
    assert big_data.main(tiny(tmp_path)) == 0
    runs = runs_of(tmp_path, "big_data")
    assert [run["model"] for run in runs] == [*big_data.MODELS, big_data.ONE_BUCKET]
    for run in runs:
        assert run["train_rows"] == 20_000
        assert 0.5 < run["accuracy"] < 1
        assert 0.05 < run["mean_recall"] < run["accuracy"]
        assert run["peak"] > 0
    assert {run["test_rows"] for run in runs} == {runs[0]["test_rows"]}
    for run, top_trees in zip(runs, (3, 12), strict=False):
        report = run["report"]
        assert (report["store"], report["top_trees"]) == ("disk", top_trees)
        assert report["bucket_rows"]["100%"] <= report["bucket_size"]
    assert (tmp_path / "tiny" / "results-big_data.png").read_bytes().startswith(PNG)
    assert not (tmp_path / "tiny" / "big_data").exists()
    assert big_data.main(tiny(tmp_path)) == 0
    assert runs_of(tmp_path, "big_data") == runs


def test_files_of_a_scene_thin_it_out(tmp_path: Path) -> None:
    train, test = big_data.write_imagery(tmp_path, 1_000, 3, 2)
    assert [Path(path).name for path in train] == ["train-000.parquet", "train-001.parquet"]
    assert len(test) == 3


def test_billion(tmp_path: Path) -> None:
    assert billion.main(tiny(tmp_path)) == 0
    generated, *fits = runs = runs_of(tmp_path, "billion")
    assert generated["rows"] == 40_000
    assert generated["seconds"] > 0
    assert [fit["report"]["rows"] for fit in fits] == [20_000, 40_000]
    for fit in fits:
        assert set(fit["stage_seconds"]) == set(billion.STAGES)
        assert (fit["attempts"], fit["report"]["top_trees"]) == (1, 1)
        assert fit["report"]["bucket_rows"]["100%"] <= fit["report"]["bucket_size"]
        assert 0.4 < fit["accuracy"] < 1
        assert fit["peak"] < billion.MEMORY_LIMIT
    assert (tmp_path / "tiny" / "results-billion.png").read_bytes().startswith(PNG)
    assert billion.main(tiny(tmp_path)) == 0
    assert runs_of(tmp_path, "billion") == runs


def test_a_size_without_room_on_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(billion.NoRoomError, match="B of disk"):
        billion.with_room(10**15, tmp_path, dict)


def test_seconds_of_interrupted_attempts_count(tmp_path: Path) -> None:
    first = billion.Attempts(tmp_path)
    first.heard("oldgrowth: sample: 1,000 rows, 10 rows/s\n")
    first.heard("oldgrowth: store: disk (as asked for)\n")
    second = billion.Attempts(tmp_path)
    assert [list(attempt["seconds"]) for attempt in second.earlier] == [["sample"]]
    second.heard("oldgrowth: grow: 1,000 rows in 0.10 s\n")
    total = second.in_all([{"name": "sample", "seconds": 1.0}, {"name": "grow", "seconds": 2.0}])
    assert total["attempts"] == 2
    assert total["stage_seconds"]["sample"] > 1.0
    assert total["stage_seconds"]["grow"] == 2.0
