"""Data frames with columns of different types are copied once, as float32 or narrower."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from helpers import make_data
from oldgrowth import OldgrowthError, RandomForestClassifier
from oldgrowth.estimators.narrow_frame import narrow_frame

ROWS, FEATURES = 4000, 6
NAMES = [f"c{j}" for j in range(FEATURES)]
MIXED = {"c0": np.int64, "c1": np.float64, "c2": np.float32, "c3": np.uint8, "c4": bool, "c5": np.int16}


def values() -> np.ndarray:
    x = np.random.default_rng(3).integers(0, 100, (ROWS, FEATURES)).astype(np.float64)
    x[:, 4] = x[:, 4] > 50
    return x


def with_missing() -> np.ndarray:
    x = values()
    x[::7, 0] = np.nan
    return x


def pandas_mixed() -> pd.DataFrame:
    return pd.DataFrame(values(), columns=NAMES).astype(MIXED)


def pandas_of_many_blocks() -> pd.DataFrame:
    frame = pd.DataFrame({"c0": values()[:, 0]})
    for j in range(1, FEATURES):
        frame[NAMES[j]] = values()[:, j]
    return frame


def pandas_small() -> pd.DataFrame:
    return pd.DataFrame(values(), columns=NAMES).astype(np.int8).astype({"c0": np.uint8})


def pandas_nullable() -> pd.DataFrame:
    return pd.DataFrame(with_missing(), columns=NAMES).astype(
        {"c0": "Int64", "c1": "Float64", "c4": "boolean"}
    )


def pandas_arrow() -> pd.DataFrame:
    return pd.DataFrame(with_missing(), columns=NAMES).convert_dtypes(dtype_backend="pyarrow")


def polars_mixed() -> pl.DataFrame:
    return pl.from_pandas(pandas_mixed())


def polars_missing() -> pl.DataFrame:
    return pl.DataFrame(with_missing(), schema=NAMES, nan_to_null=True).cast({"c0": pl.Int64, "c3": pl.Int8})


FRAMES: list[tuple[Callable[[], Any], int, bool]] = [
    (pandas_mixed, 4, False),
    (pandas_of_many_blocks, 4, False),
    (pandas_small, 2, False),
    (pandas_nullable, 4, True),
    (pandas_arrow, 4, True),
    (polars_mixed, 4, False),
    (polars_missing, 4, True),
]
forms = pytest.mark.parametrize(("make", "width", "missing"), FRAMES, ids=[f[0].__name__ for f in FRAMES])


@forms
def test_the_values_are_the_frames(make: Callable[[], Any], width: int, missing: bool) -> None:
    frame = make()
    tracemalloc.start()
    narrow = narrow_frame(frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert narrow is not None
    assert narrow.dtype.itemsize == width
    # A column at a time is converted beside the array.
    assert peak < (width * FEATURES + 16) * ROWS + 50_000
    np.testing.assert_array_equal(narrow, with_missing() if missing else values())


@forms
def test_the_forest_is_that_of_the_array(make: Callable[[], Any], width: int, missing: bool) -> None:
    x = with_missing() if missing else values()
    y = (np.nan_to_num(x[:, 0]) + x[:, 1] > 90).astype(int)
    forest = RandomForestClassifier(3, random_state=0).fit(make(), y)
    of_array = RandomForestClassifier(3, random_state=0).fit(x, y)
    assert forest.forest_.digest() == of_array.forest_.digest()
    np.testing.assert_array_equal(forest.predict_proba(make()), of_array.predict_proba(x))
    assert list(forest.feature_names_in_) == NAMES


def test_what_needs_no_copy_gets_none() -> None:
    x = np.asfortranarray(values())
    for untouched in (x, x.tolist(), pd.DataFrame(x), pd.DataFrame(x.astype(np.int8)), pd.DataFrame()):
        assert narrow_frame(untouched) is None
    assert narrow_frame(pl.DataFrame(x[:, :1], schema=["c0"])) is None


def test_frames_with_other_things_than_numbers_are_left_to_scikit_learn() -> None:
    frame = pandas_mixed()
    others = (
        frame.assign(c1="text"),
        frame.assign(c1=pd.Categorical([1, 2] * (ROWS // 2))),
        frame.assign(c1=pd.arrays.SparseArray([0.0] * ROWS)),
        frame.assign(c1=pd.Timestamp(0)),
        frame.assign(c1=1j),
        polars_mixed().with_columns(c1=pl.lit("text")),
        frame.iloc[:0],
    )
    for other in others:
        assert narrow_frame(other) is None


def test_bad_frames_are_refused_as_ever() -> None:
    frame, y = pandas_mixed(), make_data(ROWS, 2, 2, seed=1)[1]
    forest = RandomForestClassifier(2, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        forest.predict(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        forest.predict(frame[NAMES[1:]])
    with pytest.raises(ValueError, match="but y has 3,999 values"):
        RandomForestClassifier(2).fit(frame, y[1:])
    huge = frame.assign(c1=np.where(np.arange(ROWS) == 17, 1e300, 1.0))
    with pytest.raises(OldgrowthError, match="row 17, column c1"):
        RandomForestClassifier(2).fit(huge, y)
    with pytest.raises(OldgrowthError, match="row 17, column c1"):
        forest.predict(huge)
