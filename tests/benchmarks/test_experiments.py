"""The experiments run end to end on tiny sizes, and finished ones are not repeated; time is not tested."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "experiments")]

import balance  # noqa: E402
import rare_classes  # noqa: E402
import top_settings  # noqa: E402
import top_trees  # noqa: E402
import trees_per_top  # noqa: E402

import datasets  # noqa: E402
import oldgrowth  # noqa: E402

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n"

Runs = list[tuple[dict[str, Any], dict[str, Any]]]  # parameters and results


def run_twice(main: Callable[[list[str]], None], name: str, folder: Path) -> Runs:
    """All runs of an experiment, after making sure that a second call adds none and draws the same table."""
    arguments = ["--size", "tiny", "--output", str(folder)]
    journal, page = folder / "tiny" / f"{name}.jsonl", folder / "tiny" / f"{name}.md"
    main(arguments)
    first = journal.read_text(), page.read_text()
    assert (folder / "tiny" / f"results-{name}.png").read_bytes().startswith(PNG)
    main(arguments)
    assert (journal.read_text(), page.read_text()) == first
    lines = map(json.loads, first[0].splitlines())
    return [(line["run"], line["results"]) for line in lines]


def test_trees_per_top(tmp_path: Path) -> None:
    runs = run_twice(trees_per_top.main, "trees_per_top", tmp_path)
    # The ordinary forest, and 2 kinds of top trees x 2 bucket sizes x 2 shapes: twice.
    assert len(runs) == 2 * (1 + 2 * 2 * 2)
    for run, results in runs:
        assert 0.5 < results["accuracy"] < 0.8
        tops = 1 if run["tops"] is None else 24 // run["trees_per_top"]
        assert results["buckets"] == 1 if run["tops"] is None else results["buckets"] >= 2 * tops
    assert "24 x 1 | 1 x 24" in (tmp_path / "tiny" / "trees_per_top.md").read_text()


def test_balance(tmp_path: Path) -> None:
    runs = run_twice(balance.main, "balance", tmp_path)
    assert [run["forest"] for run, _ in runs] == list(balance.FORESTS)
    for _, results in runs:
        assert 0.45 < results["accuracy"] < 0.8
        assert results["fit_seconds"] > 0


def test_lambda_is_where_it_is_said_to_be() -> None:
    throughout = balance.parameters_of(balance.THROUGHOUT, 0.2, rows=500, bucket_size="auto")
    assert throughout == {"bucket_size": 500, "bottom_balance": 0.2}
    in_top_trees = balance.parameters_of(top_settings.OURS, 0.2, rows=500, bucket_size="auto")
    assert in_top_trees == {"bucket_size": "auto", "balance": 0.2}


@pytest.mark.parametrize(
    ("rows", "sample"), [(50_000, 50_000), (464_809, 100_000), (10**8, 500_000), (4 * 10**6, 200_000)]
)
def test_the_papers_top_sample(rows: int, sample: int) -> None:
    assert top_settings.top_settings(top_settings.PAPERS, rows)["top_sample"] == sample
    assert top_settings.top_settings(top_settings.OURS, rows) == {}


def test_top_trees(tmp_path: Path) -> None:
    runs = run_twice(top_trees.main, "top_trees", tmp_path)
    assert len(runs) == 4
    for run, results in runs:
        sizes = results["quantiles"]
        assert sizes == sorted(sizes)
        assert results["buckets"] >= top_trees.TOPS * results["rows"] / (2 * results["bucket_size"])
        assert 0 <= results["above"] < results["buckets"]
        # Twice the bucket size is the most that is not split again.
        assert sizes[-1] <= 2 * results["bucket_size"]
        if run["lambda"] == 1 and run["tops"] == top_settings.PAPERS:
            assert sizes[-1] < 4 * sizes[0]
    assert (tmp_path / "tiny" / "top_trees.png").read_bytes().startswith(PNG)


def test_a_top_tree_without_its_model_is_grown_again(tmp_path: Path) -> None:
    arguments = ["--size", "tiny", "--output", str(tmp_path)]
    top_trees.main(arguments)
    drawn = (tmp_path / "tiny" / "results-top_trees.png").read_bytes()
    for model in (tmp_path / "tiny").glob("*.og"):
        model.unlink()
    top_trees.main(arguments)
    assert (tmp_path / "tiny" / "results-top_trees.png").read_bytes() == drawn


def test_rare_classes(tmp_path: Path) -> None:
    runs = run_twice(rare_classes.main, "rare_classes", tmp_path)
    forests = rare_classes.forests(1000, 0)
    assert len(runs) == 2 * len(forests)
    assert {run["forest"] for run, _ in runs} == set(forests)
    for _, results in runs:
        assert all(0 <= hit <= n for hit, n in zip(results["hits"], results["tested"], strict=True))
        common = int(np.argmax(results["rows"]))
        assert results["hits"][common] > results["tested"][common] / 2
        assert sum(0 < n <= 30 for n in results["rows"]) >= 2


def test_ours_has_top_trees_where_the_default_has_none() -> None:
    y = np.arange(4000) % 5
    model = rare_classes.forests(len(y), 0)[rare_classes.OURS]().fit(y[:, None] + np.eye(4000, 3), y)
    assert model.fit_report_.top_trees == 12


def test_every_class_of_two_rows_leaves_one_to_learn_from() -> None:
    y = np.repeat(np.arange(30), [2, 3] * 15)
    for seed in range(5):
        folds = rare_classes.deal(y, seed)
        for k in range(30):
            assert len(set(folds[y == k].tolist())) == (y == k).sum()


def test_thinning_leaves_so_many_rows_of_each_class() -> None:
    y = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [500, 40, 8]))
    kept = rare_classes.thin(y, np.array([500, 10, 30]), seed=0)
    assert np.bincount(y[kept]).tolist() == [500, 10, 8]
    assert (np.diff(kept) > 0).all()
    assert not np.array_equal(kept, rare_classes.thin(y, np.array([500, 10, 30]), seed=1))


def test_rare_classes_are_found_and_counted() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [500, 500, 8])
    x = (rng.normal(size=(1008, 3)) + 10 * y[:, None]).astype(np.float32)
    tested = rare_classes.deal(y, 0) == 0
    split = datasets.Split(x[~tested], y[~tested], x[tested], y[tested])
    counted = rare_classes.find(lambda: oldgrowth.RandomForestClassifier(24, random_state=0), split)
    assert counted == {"rows": [375, 375, 6], "tested": [125, 125, 2], "hits": [125, 125, 2]}


def test_bands_of_training_rows() -> None:
    run = {"rows": [0, 3, 4, 5000, 7], "tested": [5, 2, 4, 10, 0], "hits": [0, 1, 4, 9, 0]}
    assert rare_classes.by_band([run, run]) == {1: [(3, 0.5)] * 2, 4: [(4, 1.0)] * 2, 1000: [(5000, 0.9)] * 2}


def test_without_its_data_an_experiment_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for script in (trees_per_top, balance):
        script.main(["--size", "quick", "--output", str(tmp_path)])
        assert "covtype is skipped: it needs --data DIR" in capsys.readouterr().out
