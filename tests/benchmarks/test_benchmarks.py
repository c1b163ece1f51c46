"""The benchmarks run end to end on tiny sizes and write their results; no test depends on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare  # noqa: E402
import datasets  # noqa: E402
import goals  # noqa: E402
import rivals  # noqa: E402
import sweep  # noqa: E402

pytestmark = pytest.mark.slow

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_rival_that_cannot_run_is_left_out_and_what_it_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    said: list[str] = []
    assert rivals.installed(["oldgrowth", "h2o", "ranger"], said.append) == ["oldgrowth"]
    assert said == [
        "h2o is left out: java is not installed.",
        "ranger is left out: Rscript is not installed.",
    ]


def test_compare(tmp_path: Path) -> None:
    models = ("oldgrowth", "scikit-learn")
    arguments = ["--rows", "2000", "--repeats", "1", "--output", str(tmp_path), "--models", *models]
    command = [sys.executable, str(BENCHMARKS / "compare.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert "covtype is skipped: it needs --data" in text
    assert "generated: 2,000 x 28, 500 test rows" in text
    result = json.loads((tmp_path / "compare-2000-rows.json").read_text())
    assert [(m["set"], m["model"]) for m in result["measurements"]] == [("generated", m) for m in models]
    for measurement in result["measurements"]:
        assert measurement["fit_seconds"] > 0
        assert len(measurement["predict_seconds"]) == 3
        assert 0.4 < measurement["accuracy"] < 0.8
        assert sys.platform != "linux" or measurement["memory_bytes"] >= 0
    assert result["machine"]["packages"]["oldgrowth"]
    assert (tmp_path / "compare-2000-rows.png").read_bytes().startswith(PNG)


def test_model_file(tmp_path: Path) -> None:
    arguments = ["--rows", "3000", "--size", "2000000", "--repeats", "1", "--output", str(tmp_path)]
    command = [sys.executable, str(BENCHMARKS / "model_file.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bytes a node" in done.stdout and "speed with the limit" in done.stdout
    result = json.loads((tmp_path / "model_file-small.json").read_text())
    assert 8 < result["generated"]["bytes_per_node"] < result["generated"]["rival_bytes_per_node"]
    large = result["large"]
    assert large["bytes"] >= 2_000_000
    assert large["limit"] == 280_000_000  # a quarter would be less than the process has
    assert [len(large[name]) for name in ("cold", "open", "whole", "limited")] == [1] * 4


def test_sweep_and_its_resumption(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--rows",
        "2000",
        "--sets",
        "noise",
        "duplicates",
        "--seeds",
        "1",
        "--quick",
        "--bucket-sizes",
        "300",
        "600",
    ]
    options += ["--output", str(tmp_path), "--plot", str(tmp_path / "images" / "sweep.png")]
    assert sweep.main(options) == 0
    assert "noise: 2,000 x 28" in capsys.readouterr().out
    lines = (tmp_path / "sweep.jsonl").read_text().splitlines()
    runs = [json.loads(line)["run"] | json.loads(line)["results"] for line in lines]
    # The ordinary forest, 2 sizes x 3 balances, 3 balances with all features, one other top sample: twice.
    assert len(runs) == 2 * (1 + 6 + 3 + 1)
    ordinary = [run for run in runs if run["config"] == sweep.ORDINARY]
    assert [run["buckets"] for run in ordinary] == [1, 1]
    assert all(run["buckets"] > 1 for run in runs if run["config"] != sweep.ORDINARY)
    assert (tmp_path / "images" / "sweep.png").read_bytes().startswith(PNG)

    # A finished run is not run again, one that was cut short is.
    (tmp_path / "sweep.jsonl").write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:50])
    assert sweep.main(options) == 0
    again = (tmp_path / "sweep.jsonl").read_text().splitlines()
    assert again[:-1] == lines[:-1]
    assert json.loads(again[-1])["results"]["accuracy"] == runs[-1]["accuracy"]


def test_models_take_turns() -> None:
    jobs = compare.jobs(2, ["covtype", "generated"], ["oldgrowth", "scikit-learn ExtraTrees"])
    one_repeat = [
        ("covtype", "oldgrowth"),
        ("covtype", "scikit-learn ExtraTrees"),
        ("generated", "oldgrowth"),
    ]
    assert jobs == [(repeat, *job) for repeat in range(2) for job in one_repeat]


def test_a_worker_that_fails_is_recorded(tmp_path: Path) -> None:
    measurement = compare.run_worker(tmp_path, 0, "generated", "oldgrowth", timeout=60)
    assert "FileNotFoundError" in measurement["error"]
    summary = goals.summarise([measurement])["generated", "oldgrowth"]
    assert (summary.failures, summary.fit_best) == (1, None)


def test_a_worker_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    datasets.load_set("generated", None, 2000).save(tmp_path / "generated")
    measurement = compare.run_worker(tmp_path, 0, "generated", "oldgrowth", timeout=0.01)
    assert measurement["error"] == "took longer than 0.01 s"


def measurement(model: str, seconds: float, accuracy: float, memory: int | None) -> dict[str, object]:
    return {
        "set": "covtype",
        "model": model,
        "fit_seconds": seconds,
        "predict_seconds": [seconds, seconds / 2],
        "accuracy": accuracy,
        "memory_bytes": memory,
    }


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [
        (goals.Goal("covtype", "fit", 6, "scikit-learn"), 5.0, False),
        (goals.Goal("covtype", "predict", 5, "scikit-learn"), 5.0, True),
        (goals.Goal("covtype", "memory", 2, "scikit-learn"), 3.0, True),
        (goals.Goal("covtype", "accuracy", 0.966), 0.96, False),
        (goals.Goal("covtype", "accuracy", -0.02, "scikit-learn"), -0.01, True),
        (goals.Goal("covtype", "fit", 4, "scikit-learn-intelex"), None, None),
        (goals.Goal("generated", "accuracy", 0, "scikit-learn"), None, None),
    ],
)
def test_goals(goal: goals.Goal, value: float | None, met: bool | None) -> None:
    ours = [measurement("oldgrowth", 2.0, 0.95, 100), measurement("oldgrowth", 1.0, 0.97, 100)]
    verdict = goals.judge(goal, goals.summarise([*ours, measurement("scikit-learn", 5.0, 0.97, 300)]))
    assert verdict.value == (None if value is None else pytest.approx(value))
    assert verdict.met is met
    assert goal.measure in str(verdict)


@pytest.mark.parametrize("name", ["generated", "noise", "skewed", "duplicates"])
def test_generated_sets_are_the_same_every_time(name: str) -> None:
    first, second = (datasets.load_set(name, None, 2000) for _ in range(2))
    for field in ("x_train", "y_train", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))
    assert first.x_train.dtype == np.float32
    assert first.x_train.flags.c_contiguous
    assert len(first.x_train) == 2000


def test_the_recall_of_rare_classes() -> None:
    x = np.zeros((1, 1), dtype=np.float32)
    y_train = np.repeat([0, 1, 2], [100, 5, 2])
    split = datasets.Split(x, y_train, x, np.array([0, 0, 1, 1, 2, 3]))
    scores = sweep.score(split, np.array([0, 0, 1, 0, 2, 0]))
    assert scores["accuracy"] == pytest.approx(4 / 6)
    assert scores["balanced_accuracy"] == pytest.approx((1 + 0.5 + 1 + 0) / 4)
    # Class 3 has no training rows.
    assert (scores["rare_recall"], scores["rare_classes"]) == (pytest.approx(0.75), 2)
