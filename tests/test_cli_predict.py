"""`oldgrowth predict` and `evaluate`: what a forest says, in files and in scores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn import metrics

import oldgrowth
from cli_files import FEATURES, as_json, done, failed, frame, write
from oldgrowth.cli import run
from oldgrowth.commands import sources
from oldgrowth.commands.scores import Confusion, Errors


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forests for three targets, and rows to test them on."""
    place = tmp_path_factory.mktemp("forests")
    rows = frame()
    for target, cls in (
        ("label", oldgrowth.RandomForestClassifier),
        ("number", oldgrowth.ExtraTreesClassifier),
        ("wet", oldgrowth.RandomForestClassifier),
        ("value", oldgrowth.RandomForestRegressor),
    ):
        cls(8, random_state=0).fit(rows[FEATURES], rows[target].to_numpy()).save(place / f"{target}.og")
    test = frame(701, seed=1)
    write(test, place / "test.parquet")
    write(test, place / "test.csv")
    # Other columns around the features, which are in another order.
    write(test[["name", *FEATURES[::-1]]], place / "bare.parquet")
    return place


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def model_and_rows(here: Path, target: str) -> tuple[Any, pd.DataFrame]:
    return oldgrowth.load(here / f"{target}.og"), frame(701, seed=1)


@pytest.mark.parametrize("target", ["label", "number", "wet", "value"])
@pytest.mark.parametrize("source", ["test.parquet", "test.csv", "bare.parquet"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_predictions_in_columns(target: str, source: str, suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    done(
        "predict",
        here / f"{target}.og",
        here / source,
        "-o",
        out,
        "--keep",
        "name",
        "--batch-rows",
        100,
        "-q",
    )
    model, rows = model_and_rows(here, target)
    result = read(out)
    assert result.columns.tolist() == ["name", "prediction"]
    assert result["name"].tolist() == rows["name"].tolist(), "in the order of the rows"
    expected = model.predict(rows[FEATURES])
    if target == "value":
        np.testing.assert_allclose(result["prediction"], expected, rtol=1e-6)
    else:
        assert result["prediction"].tolist() == expected.tolist()
    assert [path.name for path in tmp_path.iterdir()] == [out.name], "nothing temporary is left"


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_probabilities_have_columns_of_their_own(suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    done("predict", here / "label.og", here / "test.parquet", "-o", out, "--proba", "-q", "--batch-rows", 300)
    model, rows = model_and_rows(here, "label")
    result = read(out)
    names = ["probability_grass", "probability_water", "probability_wood"]
    assert result.columns.tolist() == ["prediction", *names]
    np.testing.assert_allclose(result[names], model.predict_proba(rows[FEATURES]), rtol=1e-12)


@pytest.mark.parametrize("target", ["label", "number", "wet", "value"])
@pytest.mark.parametrize("source", ["test.parquet", "test.csv"])
def test_predictions_in_an_array(target: str, source: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    done("predict", here / f"{target}.og", here / source, "-o", out, "--batch-rows", 64, "-q")
    model, rows = model_and_rows(here, target)
    result, expected = np.load(out), model.predict(rows[FEATURES])
    assert result.dtype == ("<U5" if target == "label" else expected.dtype) and result.shape == (701,)
    np.testing.assert_allclose(result, expected) if target == "value" else np.testing.assert_array_equal(
        result, expected
    )


def test_probabilities_in_an_array(here: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    done("predict", here / "number.og", here / "test.parquet", "-o", out, "--proba", "-q", "-j", 1)
    model, rows = model_and_rows(here, "number")
    np.testing.assert_array_equal(np.load(out), model.predict_proba(rows[FEATURES]))


@pytest.mark.parametrize("source", ["test.parquet", "test.csv"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_ids_come_through_whole(source: str, suffix: str, here: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{suffix}"
    done("predict", here / "label.og", here / source, "-o", out, "--keep", "id,name", "--keep", "a", "-q")
    result = read(out)
    assert [int(i) for i in result["id"]] == (2**60 + np.arange(701)).tolist()
    np.testing.assert_allclose(result["a"], frame(701, seed=1)["a"], rtol=1e-6)
    if source.endswith(suffix) and suffix == ".parquet":
        assert pq.read_schema(out).field("id").type == "int64"


def test_arrays_without_names(tmp_path: Path) -> None:
    rows = frame()
    x, y = rows[FEATURES].to_numpy(), rows["number"].to_numpy()
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "both.npy", np.column_stack([x, y]))
    base = ["--trees", 4, "--seed", 0, "-q"]
    done(
        "fit",
        tmp_path / "both.npy",
        "--target",
        -1,
        "--task",
        "classification",
        "-o",
        tmp_path / "f.og",
        *base,
    )
    done("predict", tmp_path / "f.og", tmp_path / "x.npy", "-o", tmp_path / "out.npy", "-q")
    model = oldgrowth.RandomForestClassifier(4, random_state=0).fit(x, y)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.predict(x))


def test_json_counts_the_classes(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, "predict", here / "label.og", here / "test.csv", "-o", tmp_path / "out.csv")
    model, rows = model_and_rows(here, "label")
    counts = pd.Series(model.predict(rows[FEATURES])).value_counts().to_dict()
    assert result["rows"] == 701 and result["predicted"] == counts
    assert result["columns"] == ["prediction"] and result["seconds"] > 0


def test_progress_is_shown_unless_quiet(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", str(here / "label.og"), str(here / "test.csv"), "-o", str(tmp_path / "out.csv")]
    assert run(command) == 0
    out, err = capsys.readouterr()
    assert err.startswith("oldgrowth: predict: 701 rows in ") and "701 rows predicted" in out
    assert run([*command, "--quiet", "--force"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["label.og", "none.parquet", "-o", "out.csv"], 1, "none.parquet"),
        (["none.og", "test.parquet", "-o", "out.csv"], 2, "does not exist"),
        (["test.csv", "test.parquet", "-o", "out.csv"], 1, "is not a forest"),
        (["label.og", "test.parquet", "-o", "out.txt"], 2, "must end in .parquet, .csv or .npy"),
        (["label.og", "test.parquet", "-o", "test.csv"], 2, "exists: --force replaces it"),
        (["label.og", "test.parquet"], 2, "Missing option '--output'"),
        (
            ["label.og", "test.parquet", "-o", "out.npy", "--keep", "id"],
            2,
            "--keep needs an output with columns",
        ),
        (["label.og", "test.parquet", "-o", "out.csv", "--keep", "idd"], 1, "has no column 'idd'"),
        (["label.og", "test.parquet", "-o", "out.csv", "--keep", "id,id"], 2, "two columns of that name"),
        (["value.og", "test.parquet", "-o", "out.csv", "--proba"], 2, "predicts values, not classes"),
        (["label.og", "test.parquet", "-o", "out.csv", "--features", "a,b"], 1, "trained on 6"),
        (["label.og", "test.parquet", "-o", "out.csv", "-j", "0"], 1, "n_jobs=0"),
        (["label.og", "cut.parquet", "-o", "out.csv"], 1, "cut.parquet"),
        (["label.og", "few.csv", "-o", "out.csv"], 1, "has no column 'c'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: list[str],
    code: int,
    words: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(here)
    Path("cut.parquet").write_bytes(Path("test.parquet").read_bytes()[:-500])
    Path("few.csv").write_text("a,b\n1,2\n")
    before = sorted(here.iterdir())
    err = failed(capsys, code, "predict", "--quiet", *arguments)
    assert words in " ".join(err.split())
    assert len(err.splitlines()) == (1 if code == 1 else 4)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npy"])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (RuntimeError("broken"), 1)])
def test_what_fails_on_the_way_leaves_the_old_file(
    suffix: str,
    error: BaseException,
    code: int,
    here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    means, calls = sources.Predictor.means, []

    def fail_late(self: Any, x: Any) -> Any:
        calls.append(len(x))
        if len(calls) == 3:
            raise error
        return means(self, x)

    monkeypatch.setattr(sources.Predictor, "means", fail_late)
    out = tmp_path / f"out{suffix}"
    out.write_bytes(b"something old")
    arguments = [
        "predict",
        here / "label.og",
        here / "test.csv",
        "-o",
        out,
        "--force",
        "--batch-rows",
        100,
        "-q",
    ]
    assert run([str(a) for a in arguments]) == code
    assert calls == [100, 100, 100]
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.read_bytes() == b"something old"
    assert len(capfd.readouterr().err.strip().splitlines()) == 1, "nothing is said by what was left open"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupt_of_a_running_predict(here: Path, tmp_path: Path) -> None:
    write(pd.concat([frame(5000)] * 20), tmp_path / "long.csv")
    script = "from oldgrowth.cli import main; print('ready', flush=True); main()"
    arguments = [
        here / "label.og",
        tmp_path / "long.csv",
        "-o",
        tmp_path / "out.parquet",
        "--batch-rows",
        "1",
    ]
    command = [sys.executable, "-c", script, "predict", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for _ in range(200):  # until it writes
        if any(path.suffix == ".part" for path in tmp_path.iterdir()):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.endswith("oldgrowth: interrupted.\n") and "Traceback" not in err and "ignored" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["long.csv"]


@pytest.mark.parametrize("target", ["label", "number", "wet"])
@pytest.mark.parametrize("source", ["test.parquet", "test.csv"])
def test_scores_are_those_of_scikit_learn(
    target: str, source: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", here / f"{target}.og", here / source, "--target", target, "--batch-rows", 100]
    result = as_json(capsys, *command)
    model, rows = model_and_rows(here, target)
    truth, guess = rows[target], model.predict(rows[FEATURES])
    assert result["rows"] == 701 and not result["unknown_labels"]
    assert result["accuracy"] == pytest.approx(metrics.accuracy_score(truth, guess))
    assert result["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(truth, guess))
    assert result["confusion"]["counts"] == metrics.confusion_matrix(truth, guess).tolist()
    assert result["confusion"]["labels"] == model.classes_.tolist()
    precision, recall, _, support = metrics.precision_recall_fscore_support(truth, guess)
    for i, line in enumerate(result["classes"]):
        assert line["class"] == model.classes_[i]
        assert line["precision"] == pytest.approx(precision[i]) and line["recall"] == pytest.approx(recall[i])
        assert line["support"] == support[i]


def test_scores_of_a_regression(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", here / "value.og", here / "test.parquet", "--target", "value", "--batch-rows", 100]
    result = as_json(capsys, *command)
    model, rows = model_and_rows(here, "value")
    truth, guess = rows["value"], model.predict(rows[FEATURES])
    assert result["r2"] == pytest.approx(metrics.r2_score(truth, guess))
    assert result["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, guess))
    assert result["mae"] == pytest.approx(metrics.mean_absolute_error(truth, guess))
    done(*command, "-q")
    assert f"R2 {result['r2']:.4f}, RMSE {result['rmse']:.6g}" in capsys.readouterr().out


def test_labels_that_the_forest_does_not_know(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = frame(701, seed=1)
    rows.loc[5:44, "label"] = "ice"
    rows.loc[650:, "label"] = "sand"
    other = write(rows, tmp_path / "other.parquet")
    command = ["evaluate", here / "label.og", other, "--target", "label", "--batch-rows", 100, "-q"]
    result = as_json(capsys, *command)
    model = oldgrowth.load(here / "label.og")
    guess = model.predict(rows[FEATURES])
    assert {u["label"]: u["rows"] for u in result["unknown_labels"]} == {"ice": 40, "sand": 51}
    assert result["accuracy"] == pytest.approx((rows["label"] == guess).mean())
    assert result["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(rows["label"], guess))
    precision = metrics.precision_score(rows["label"], guess, labels=model.classes_, average=None)
    assert [line["precision"] for line in result["classes"]] == pytest.approx(precision.tolist())
    done(*command)
    out = " ".join(capsys.readouterr().out.split())
    assert "91 rows have labels that the forest does not know" in out and "'sand' (51), 'ice' (40)" in out


def test_evaluate_prints_tables(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done("evaluate", here / "label.og", here / "test.csv", "--target", "label")
    out, err = capsys.readouterr()
    for word in ("precision", "recall", "Confusion", "grass", "Accuracy", "balanced accuracy", "701 rows"):
        assert word in out
    assert err.startswith("oldgrowth: evaluate: 701 rows in ")


def test_many_classes_are_shown_by_their_confusions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = frame()
    rows["many"] = np.digitize(rows["value"], np.linspace(-2, 2, 30))
    path = write(rows[[*FEATURES, "many"]], tmp_path / "many.parquet")
    oldgrowth.RandomForestClassifier(3, max_depth=3).fit(rows[FEATURES], rows["many"]).save(tmp_path / "f.og")
    done("evaluate", tmp_path / "f.og", path, "--target", "many", "-q")
    out = capsys.readouterr().out
    assert "taken for" in out and max(map(len, out.splitlines())) < 120


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["label.og", "test.parquet"], 2, "Missing option '--target'"),
        (["label.og", "bare.parquet", "--target", "label"], 1, "has no column 'label'"),
        (["value.og", "test.parquet", "--target", "label"], 1, "holds text, but the forest predicts numbers"),
        (["label.og", "test.parquet", "--target", "a"], 1, "both a feature and target"),
    ],
)
def test_evaluate_says_what_is_wrong(
    arguments: list[str],
    code: int,
    words: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(here)
    assert words in failed(capsys, code, "evaluate", "--quiet", *arguments)


def test_a_confusion_does_not_remember_every_unknown_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldgrowth.commands.scores._MOST_UNKNOWN", 5)
    confusion = Confusion(np.array([1, 2]))
    for first in (0, 100, 200):
        confusion.add(np.arange(first, first + 100) + 0.5, np.zeros(100, dtype=np.intp))
    assert len(confusion.unknown) == 6 and confusion.unknown_rows == confusion.rows == 300


def test_errors_of_large_values_do_not_cancel() -> None:
    y = 1e9 + np.arange(1000.0)
    guess = y + np.tile([0.5, -0.5], 500)
    errors = Errors()
    for part in range(0, 1000, 90):
        errors.add(y[part : part + 90], guess[part : part + 90])
    assert errors.scores()["r2"] == pytest.approx(metrics.r2_score(y, guess), rel=1e-12)
