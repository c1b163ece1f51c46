"""Values of type uint8 stay bytes from the source to the buckets; the forest is the same as with floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oldgrowth import RandomForestClassifier, open_dataset
from oldgrowth.datasets.base import Dataset
from oldgrowth.rows.streamed_rows import StreamedRows
from oldgrowth.rows.training_rows import Pass, Place, Trail

ROWS, FEATURES = 3000, 11
NAMES = [f"b{j}" for j in range(FEATURES)]


def scene(missing: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Bytes as float32, with a missing value in these rows, and labels."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (ROWS, FEATURES)).astype(np.float32)
    y = (x[:, 0] + x[:, 3] > 250).astype(int) + (x[:, 7] > 240)
    x[list(missing), 2] = np.nan
    return x, y


def parquet(path: Path, missing: tuple[int, ...] = ()) -> Dataset:
    x, y = scene(missing)
    columns = {
        name: pa.array(np.nan_to_num(x[:, j]).astype(np.uint8), mask=np.isnan(x[:, j]))
        for j, name in enumerate(NAMES)
    }
    pq.write_table(pa.table(columns | {"y": y}), path, row_group_size=500)
    return open_dataset(path, target="y")


def forest(**params: object) -> RandomForestClassifier:
    given = {"n_estimators": 4, "trees_per_top": 2, "bucket_size": 400, "random_state": 0} | params
    return RandomForestClassifier(**given)


@pytest.mark.parametrize("missing", [(), (1700,), (0, 1, 2999)], ids=["whole", "one", "ends"])
@pytest.mark.parametrize("chunk_size", [7, 640, ROWS])
@pytest.mark.parametrize("store", ["memory", "disk"])
def test_the_forest_of_bytes_is_that_of_floats(
    tmp_path: Path, missing: tuple[int, ...], chunk_size: int, store: str
) -> None:
    x, y = scene(missing)
    wanted = forest().fit(x, y)
    found = forest(chunk_size=chunk_size, store=store).fit(parquet(tmp_path / "x.parquet", missing))
    assert found.forest_.digest() == wanted.forest_.digest()


def test_arrays_of_bytes_in_any_layout_give_the_forest_of_floats() -> None:
    x, y = scene()
    wanted = forest(oob_score=True, n_estimators=30).fit(x, y)
    as_bytes = x.astype(np.uint8)
    wide = np.zeros((ROWS, 2 * FEATURES), dtype=np.uint8)
    wide[:, ::2] = as_bytes
    for given in (as_bytes, np.asfortranarray(as_bytes), wide[:, ::2]):
        found = forest(oob_score=True, n_estimators=30).fit(given, y)
        assert found.forest_.digest() == wanted.forest_.digest()
        assert found.oob_score_ == wanted.oob_score_
    weights = np.where(np.arange(ROWS) % 5 == 0, 0.0, 2.0)
    by_weight = [forest().fit(given, y, weights).forest_.digest() for given in (x, as_bytes)]
    assert by_weight[0] == by_weight[1]


def test_batches_are_bytes_where_all_values_are(tmp_path: Path) -> None:
    """The second of two files has a missing value: a batch of both has floats."""
    parquet(tmp_path / "a.parquet")
    parquet(tmp_path / "b.parquet", (1700,))
    data = open_dataset(tmp_path, target="y")
    kept = list(data.batches(2000, keep_bytes=True))
    assert [batch.x.dtype for batch in kept] == [np.uint8, np.float32, np.float32]
    both = np.concatenate([scene()[0], scene((1700,))[0]])
    np.testing.assert_array_equal(np.concatenate([batch.x for batch in kept]), both)
    assert all(batch.x.dtype == np.float32 for batch in data.batches(2000))


def test_the_checksum_of_a_pass_does_not_depend_on_what_is_missing_nearby(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    parquet(tmp_path / "b.parquet", (1700,))
    data = open_dataset(tmp_path, target="y")

    def checksum(chunk_size: int) -> int:
        reading = Pass(StreamedRows(data, True), Place(), Trail())
        for _ in reading.chunks(chunk_size):
            pass
        return reading.place.crc

    assert len({checksum(size) for size in (1, 13, 2000, 2 * ROWS)}) == 1
