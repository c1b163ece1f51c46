"""Lazy predictions have the partitions, chunks, index and values of their rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cluster_cases import table

import oldgrowth.dask
from oldgrowth.errors import DataError

FEATURES = list("abcde")


@pytest.fixture(params=["RandomForestClassifier", "RandomForestRegressor"])
def forest(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    frame = table()[:500]
    target = "label" if "Classifier" in request.param else "value"
    fitted = getattr(oldgrowth, request.param)(4, random_state=0).fit(frame[FEATURES], frame[target])
    fitted.save(tmp_path / "forest.og")
    on_cluster = getattr(oldgrowth.dask, request.param)()
    vars(on_cluster).update(vars(oldgrowth.load(tmp_path / "forest.og")))
    return on_cluster


def test_a_dask_dataframe_gives_a_lazy_series(forest: Any) -> None:
    frame = table()[:300].set_index(np.arange(1000, 1300))
    lazy = dd.from_pandas(frame, npartitions=4, sort=False)
    lazy = dd.concat([lazy, dd.from_pandas(frame[:0], npartitions=1)])  # an empty partition
    found = forest.predict(lazy)
    assert found.npartitions == lazy.npartitions
    computed = found.compute(scheduler="threads")
    expected = forest.predict(frame[FEATURES])
    np.testing.assert_array_equal(computed.to_numpy(), expected)
    assert computed.index.equals(frame.index) and computed.dtype == found.dtype


def test_a_dask_array_gives_a_lazy_array(forest: Any) -> None:
    del forest.feature_names_in_
    rows = table()[:300][FEATURES].to_numpy()
    lazy = da.from_array(rows, chunks=((100, 1, 199), -1))
    found = forest.predict(lazy)
    assert found.chunks == ((100, 1, 199),)
    np.testing.assert_array_equal(found.compute(scheduler="threads"), forest.predict(rows))
    with pytest.raises(DataError, match=r"2 chunks of columns: .* X\.rechunk"):
        forest.predict(lazy.rechunk({1: (2, 3)}))


def test_probabilities_have_a_column_for_each_class(tmp_path: Path) -> None:
    frame = table()[:500]
    forest = oldgrowth.dask.RandomForestClassifier()
    fitted = oldgrowth.RandomForestClassifier(4, random_state=0).fit(frame[FEATURES], frame["label"])
    fitted.save(tmp_path / "forest.og")
    vars(forest).update(vars(oldgrowth.load(tmp_path / "forest.og")))
    found = forest.predict_proba(dd.from_pandas(frame, npartitions=3)).compute(scheduler="threads")
    assert found.columns.tolist() == ["fir", "oak", "yew"]
    pd.testing.assert_frame_equal(
        found, pd.DataFrame(fitted.predict_proba(frame[FEATURES]), frame.index, found.columns)
    )


def test_the_forest_is_not_in_the_graph(tmp_path: Path) -> None:
    frame = table()
    forest = oldgrowth.dask.RandomForestRegressor()
    fitted = oldgrowth.RandomForestRegressor(4, random_state=0).fit(frame[FEATURES], frame["value"])
    fitted.save(tmp_path / "forest.og")
    vars(forest).update(vars(oldgrowth.load(tmp_path / "forest.og")))
    lazy = forest.predict(dd.from_pandas(frame[:50][FEATURES], npartitions=2))
    assert len(pickle.dumps(lazy.__dask_graph__())) < 50_000 < forest.forest_.nbytes
