"""Features that look like an id or an index cause a warning that names them; others do not."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oldgrowth
from cli_files import done
from oldgrowth.messages.warnings import FeatureNamesWarning, IdColumnWarning
from oldgrowth.rows.id_columns import IdFinder

N = 2000
RNG = np.random.default_rng(0)


def named(columns: dict[str, Any], chunk: int = 700) -> list[str | int]:
    """The columns in the warning, next to one that is no id."""
    frame = pd.DataFrame(columns | {"other": RNG.normal(size=len(next(iter(columns.values()))))})
    x = frame.to_numpy(dtype=np.float32)
    finder = IdFinder(x.shape[1], list(frame.columns))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdColumnWarning)
        for first in range(0, len(x), chunk):
            finder.add(x[first : first + chunk])
        finder.finish()
        finder.finish()
    assert len(caught) <= 1
    return [name for w in caught if isinstance(w.message, IdColumnWarning) for name in w.message.columns]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(N)),
        ("from_the_end", -np.arange(N)),
        ("shuffled", RNG.permutation(N)),
        ("one_in_ten", RNG.permutation(10 * N)[:N]),
        ("Unnamed: 0", np.zeros(N)),
        ("__index_level_0__", RNG.normal(size=N)),
        ("", np.arange(N)),
        ("id", RNG.permutation(10**7)[:N]),
        ("customerId", 2**60 + np.arange(N)),
        ("customer_id", 10**12 + RNG.permutation(N)),
        ("many", np.arange(70_000)),
    ],
)
@pytest.mark.parametrize("chunk", [50, 700, 10**6])
def test_what_looks_like_an_id_is_named(name: str, values: Any, chunk: int) -> None:
    assert named({name: values}, chunk) == [name]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("continuous", RNG.normal(size=N)),
        ("sorted", np.sort(RNG.normal(size=N))),
        ("large", RNG.uniform(1e8, 1e9, size=N)),
        ("amounts_in_cents", RNG.permutation(10**7)[:N]),
        ("counts", RNG.poisson(3, N)),
        ("group_id", np.arange(N) // 4),
        ("wide_valid", RNG.integers(0, 60_000, N)),
        ("few_rows", np.arange(20)),
        ("days", np.sort(RNG.integers(20_200_101, 20_201_231, N))),
        ("missing", np.where(np.arange(N) == 3, np.nan, np.arange(N))),
        ("one_twice", np.minimum(np.arange(N), N - 2)),
    ],
)
def test_other_features_are_not(name: str, values: Any) -> None:
    assert named({name: values}) == []


def test_a_single_feature_is_meant() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdColumnWarning)
        oldgrowth.RandomForestRegressor(1).fit(np.arange(500)[:, None], np.arange(500))


def test_arrays_frames_and_datasets_warn_alike() -> None:
    frame = pd.DataFrame({"a": RNG.normal(size=500), "row": np.arange(500)})
    y = (frame["a"] > 0).to_numpy()
    model = oldgrowth.RandomForestClassifier(1)
    for x, target, name in (
        (frame, y, "'row'"),
        (frame.to_numpy(), y, "column 1"),
        (oldgrowth.open_dataset(frame.assign(y=y), target="y"), None, "'row'"),
    ):
        with pytest.warns(IdColumnWarning, match=f"{name} .a different whole number in every row"):
            model.fit(x, target)


def test_an_index_without_a_name_is_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"a": RNG.normal(size=500), "y": RNG.normal(size=500), "id": np.arange(500)})
    frame.to_csv(tmp_path / "t.csv")
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "f.og", "--trees", "1", "--force"]
    done(*fit, "-q")
    assert "exclude them with --drop ',id'." in capsys.readouterr().err
    for drop in (["--drop", ",id"], ["--drop", "id", "--drop", ""]):
        done(*fit, "-q", *drop)
        assert capsys.readouterr() == ("", "")
        assert oldgrowth.load(tmp_path / "f.og").feature_names_in_.tolist() == ["a"]


def test_the_command_line_names_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"a": RNG.normal(size=500), "y": RNG.integers(0, 3, 500)})
    frame.rename_axis("Unnamed: 0").to_csv(tmp_path / "t.csv")
    fit = ["fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "f.og", "--trees", "1", "--force"]
    done(*fit, "-q")
    out, err = capsys.readouterr()
    assert not out and "'Unnamed: 0' (by its name" in err and "--drop 'Unnamed: 0'" in err
    assert "whole numbers" in err and "--task regression" in err, "counts may not be classes"
    for task in ("classification", "regression"):
        done(*fit, "-q", "--drop", "Unnamed: 0", "--task", task)
        assert capsys.readouterr() == ("", "")


def test_a_forest_without_names_and_a_dataset_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["a", "b"])
    y = (frame["a"] > 0).to_numpy()
    nameless = oldgrowth.RandomForestClassifier(2, random_state=0).fit(frame.to_numpy(), y)
    with_names = oldgrowth.RandomForestClassifier(2, random_state=0).fit(frame, y)
    data, bare = oldgrowth.open_dataset(frame[["b", "a"]]), oldgrowth.open_dataset(frame.to_numpy())
    for use in (nameless.predict, nameless.predict_proba, nameless.apply):
        with pytest.warns(FeatureNamesWarning, match=r"has feature names \(b, a\).*fitted without"):
            use(data)
    with pytest.warns(FeatureNamesWarning, match="has no feature names.*fitted with them"):
        with_names.predict(bare)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nameless.predict(bare)
        with_names.predict(data)
    nameless.save(tmp_path / "nameless.og")
    with_names.save(tmp_path / "named.og")
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.save(tmp_path / "t.npy", frame.to_numpy())
    predict = ["-o", "-", "-q"]
    for forest, source, options, said in (
        ("nameless", "t.csv", [], True),
        ("nameless", "t.csv", ["--features", "a,b"], False),
        ("named", "t.csv", [], False),
        ("named", "t.npy", [], True),
        ("nameless", "t.npy", [], False),
    ):
        done("predict", tmp_path / f"{forest}.og", tmp_path / source, *options, *predict)
        err = capsys.readouterr().err
        assert ("--features names them in the order of training" in err) == said, (forest, source)


def test_whole_numbers_as_names_in_another_order_after_a_fit_on_an_array() -> None:
    x = np.random.default_rng(0).normal(size=(60, 3))
    forest = oldgrowth.RandomForestClassifier(2, random_state=0, n_jobs=1).fit(x, x[:, 0] > 0)
    with pytest.warns(FeatureNamesWarning, match="2, 1 and 0.*in order"):
        forest.predict(pd.DataFrame(x)[[2, 1, 0]])
    forest.fit(pd.DataFrame(x), x[:, 0] > 0)
    with pytest.warns(FeatureNamesWarning, match="3, 4 and 5.*in fit they were 0, 1 and 2"):
        forest.predict(pd.DataFrame(x, columns=[3, 4, 5]))
