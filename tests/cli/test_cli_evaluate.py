"""`oldgrowth evaluate`: scores computed batch by batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import oldgrowth
from cli_files import FEATURES, as_json, done, failed, frame, model_and_rows, write, write_forests
from oldgrowth.forest.scoring import Confusion


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_forests(tmp_path_factory.mktemp("forests"))


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
    done("evaluate", tmp_path / "f.og", path, "--target", "many")
    out = capsys.readouterr().out
    assert "taken for" in out and max(map(len, out.splitlines())) < 120


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["label.og", "test.parquet"], 2, "Missing option '--target'"),
        (["label.og", "bare.parquet", "--target", "label"], 1, "has no column 'label'"),
        (["value.og", "test.parquet", "--target", "label"], 1, "text as their target 'label', such as '"),
        (["label.og", "test.parquet", "--target", "a"], 1, "is a feature, and also target"),
        (
            ["label.og", "test.parquet", "--target", "id"],
            1,
            "but the forest was trained on text, such as 'wood': convert",
        ),
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
    monkeypatch.setattr("oldgrowth.forest.scoring._MOST_UNKNOWN", 5)
    confusion = Confusion(np.array([1, 2]))
    for first in (0, 100, 200):
        confusion.add(np.arange(first, first + 100) + 10.0, np.zeros(100, dtype=np.intp))
    assert len(confusion.unknown) == 6 and confusion.unknown_rows == confusion.rows == 300


def test_names_with_brackets_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = frame(300).rename(columns={"a": "speed [m/s]", "b": "b [/bold]"})[
        ["speed [m/s]", "b [/bold]", "label"]
    ]
    rows["label"] += " [red]"
    source, forest = write(rows, tmp_path / "rows.csv"), tmp_path / "forest.og"
    done("fit", source, "--target", "label", "-o", forest, "--trees", 4)
    capsys.readouterr()
    done("inspect", forest)
    done("evaluate", forest, source, "--target", "label")
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("speed [m/s]", "b [/bold]", "grass [red]"))
