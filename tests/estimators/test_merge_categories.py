"""Merged forests with categories: of any levels, in any order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli_files import done
from oldgrowth import RandomForestClassifier, RandomForestRegressor, load, merge
from oldgrowth.datasets import level_counts
from oldgrowth.errors import MergeError
from oldgrowth.estimators import joining
from oldgrowth.messages.warnings import SameForestWarning

N = 3000


def table(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A column of few levels, whose sets are in the nodes, and one of many, whose sets are beside them."""
    rng = np.random.default_rng(seed)
    few, many = rng.integers(5, size=N), rng.integers(90, size=N)
    many[:90] = np.arange(90)
    few[:5] = np.arange(5)
    frame = pd.DataFrame(
        {"few": [f"f{k}" for k in few], "x": rng.normal(size=N), "many": [f"m{k}" for k in many]}
    )
    return frame, (few % 2 + many % 3 + (frame["x"] > 0)).to_numpy()


def fitted(seed: int, frame: pd.DataFrame, y: np.ndarray, **more: Any) -> RandomForestClassifier:
    return RandomForestClassifier(4, trees_per_top=2, bucket_size=700, random_state=seed, **more).fit(
        frame, y
    )


def shares(forest: RandomForestClassifier, frame: pd.DataFrame) -> np.ndarray:
    """Probabilities of the classes 0 to 4."""
    found = np.zeros((len(frame), 5))
    found[:, forest.classes_] = forest.predict_proba(frame)
    return found


@pytest.mark.parametrize("without", [None, 3])
@pytest.mark.parametrize("stores", [("memory", "memory"), ("memory", "disk"), ("disk", "disk")])
def test_the_mean_of_both(tmp_path: Path, without: int | None, stores: tuple[str, str]) -> None:
    frame, y = table()
    rows = (y != without) | (np.arange(N) < 90)  # the levels appear in the same order
    y_of_first = np.where(rows & (y == without), 0, y)
    a = fitted(1, frame[rows], y_of_first[rows], store=stores[0])
    b = fitted(2, frame, y, store=stores[1])
    merged = merge([a, b])
    merged.forest_.check()
    expected = (shares(a, frame) + shares(b, frame)) / 2
    np.testing.assert_allclose(shares(merged, frame), expected, atol=1e-6)
    assert merged.levels_ == a.levels_
    for name, forest in (("a", a), ("b", b)):
        forest.save(tmp_path / f"{name}.og")
    done("merge", tmp_path / "a.og", tmp_path / "b.og", "-o", tmp_path / "c.og")
    loaded = load(tmp_path / "c.og")
    loaded.forest_.check()
    assert loaded.forest_.digest() == merged.forest_.digest()
    np.testing.assert_array_equal(shares(loaded, frame), shares(merged, frame))


def relabelled(frame: pd.DataFrame, seed: int, levels: int, wide: bool) -> pd.DataFrame:
    """Rows in another order, some levels of `many` unknown, some new: so many, or as many as fit a node."""
    frame = frame.sample(frac=1, random_state=seed)
    numbers = frame["many"].str[1:].astype(int) % levels
    return frame.assign(many=[f"{'n' if wide and k % 3 == seed % 3 else 'm'}{k}" for k in numbers])


@pytest.mark.parametrize("stores", [("memory", "memory"), ("disk", "disk")])
@pytest.mark.parametrize(("first", "second"), [(90, 90), (20, 90), (90, 20), (20, 20), (16, 10)])
@pytest.mark.parametrize("criterion", ["classes", "values"])
def test_forests_of_other_levels(
    tmp_path: Path, criterion: str, first: int, second: int, stores: tuple[str, str]
) -> None:
    frame, y = table()
    frames = [relabelled(frame, 1, first, True), relabelled(frame, 2, second, True)]
    frames[1].loc[frames[1].index[:300], "many"] = None
    cls = RandomForestClassifier if criterion == "classes" else RandomForestRegressor
    forests = [
        cls(4, trees_per_top=2, bucket_size=700, random_state=seed, max_depth=9, store=store).fit(
            part, y[part.index]
        )
        for seed, (part, store) in enumerate(zip(frames, stores, strict=True))
    ]
    forests[0].save(tmp_path / "a.og")
    forests[1].save(tmp_path / "b.og")
    everything = pd.concat([*frames, frame.assign(many="never"), frame.assign(few=None)])

    def predicted(forest: Any) -> np.ndarray:
        return forest.predict_proba(everything) if criterion == "classes" else forest.predict(everything)

    expected = (predicted(forests[0]) + predicted(forests[1])) / 2
    for order, files in ((forests, "ab"), (forests[::-1], "ba")):
        merged = merge(order)
        merged.forest_.check()
        np.testing.assert_allclose(predicted(merged), expected, rtol=1e-12)
        known = set(forests[0].levels_["many"]) | set(forests[1].levels_["many"])
        assert set(merged.levels_["many"]) == known and merged.levels_["few"] == order[0].levels_["few"]
        done("merge", *(tmp_path / f"{name}.og" for name in files), "-o", tmp_path / f"{files}.og")
        loaded = load(tmp_path / f"{files}.og")
        loaded.forest_.check()
        assert loaded.forest_.digest() == merged.forest_.digest()
        again = merge([loaded, forests[0]])
        np.testing.assert_allclose(predicted(again), (2 * expected + predicted(forests[0])) / 3, rtol=1e-12)


def test_a_column_without_levels_in_one_forest() -> None:
    frame, y = table()
    empty = frame.assign(many=pd.Series([None] * N, dtype="string"))
    for parts in ([frame, empty], [empty, frame]):
        forests = [fitted(seed, part, y) for seed, part in enumerate(parts)]
        merged = merge(forests)
        merged.forest_.check()
        expected = (shares(forests[0], frame) + shares(forests[1], frame)) / 2
        np.testing.assert_allclose(shares(merged, frame), expected, atol=1e-12)


@pytest.mark.parametrize("pooled", [(True, False), (True, True)])
def test_pooled_levels(monkeypatch: pytest.MonkeyPatch, pooled: tuple[bool, bool]) -> None:
    frame, y = table()
    few = frame.assign(many=[f"m{int(k[1:]) % 30}" for k in frame["many"]])
    forests = []
    for seed, (part, pool) in enumerate(zip([frame, few], pooled, strict=True)):
        monkeypatch.setattr(level_counts, "MOST_LEVELS", 25 if pool else 65_534)
        forests.append(fitted(seed, part, y))
    assert [forest._levels[2].pooled for forest in forests] == list(pooled)
    for order in (forests, forests[::-1]):
        merged = merge(order)
        for rows in (frame, few, frame.assign(many="never")):
            expected = (shares(forests[0], rows) + shares(forests[1], rows)) / 2
            np.testing.assert_allclose(shares(merged, rows), expected, atol=1e-12)


def test_what_cannot_be_merged_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y = table()
    first = fitted(0, frame, y)
    with pytest.raises(MergeError, match="column 'few' is categorical in number 1 and numeric in number 2"):
        merge([first, fitted(1, frame.assign(few=frame["few"].str[1:].astype(int)), y)])
    numbers = frame.assign(few=frame["few"].str[1:].astype(int))
    other = fitted(1, numbers, y, categorical_features=["few", "many"])
    with pytest.raises(
        MergeError, match="levels of column 'few' are text in number 1 and numbers in number 2"
    ):
        merge([first, other])
    monkeypatch.setattr(joining, "MOST_LEVELS", 100)
    with pytest.raises(MergeError, match="column 'many' has 180 levels in all of them together"):
        merge([first, fitted(1, frame.assign(many="n" + frame["many"]), y)])


def test_the_same_trees_of_other_levels_are_no_reason_to_warn(recwarn: pytest.WarningsRecorder) -> None:
    frame, y = table()
    merge([fitted(0, frame, y), fitted(0, frame.assign(few="other " + frame["few"]), y)])
    assert not [warning for warning in recwarn if warning.category is SameForestWarning]
    with pytest.warns(SameForestWarning):
        merge([fitted(0, frame, y), fitted(0, frame, y)])
