"""Merged forests with categories: of the same levels, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli_files import done
from oldgrowth import RandomForestClassifier, load, merge
from oldgrowth.errors import MergeError

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


def test_other_levels_are_named() -> None:
    frame, y = table()
    first = fitted(0, frame, y)
    with pytest.raises(MergeError, match=r"levels of column 'many'.* number 1 and number 2"):
        merge([first, fitted(1, frame.assign(many=frame["many"].replace("m7", "other")), y)])
    with pytest.raises(MergeError, match="column 'few' is categorical in number 1 and numeric in number 2"):
        merge([first, fitted(1, frame.assign(few=frame["few"].str[1:].astype(int)), y)])
