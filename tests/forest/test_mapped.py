"""Forests mapped from a file: many readers at once, and no more in memory than the limit allows."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from helpers import make_data
from oldgrowth.estimators import base
from oldgrowth.forest import batch_predict
from oldgrowth.forest.model_file import read_model

READER = """
import hashlib, sys
import numpy as np
import oldgrowth
x = np.load(sys.argv[2])
print(hashlib.sha256(oldgrowth.load(sys.argv[1]).predict_proba(x).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_many_threads_and_processes_read_one_file_at_once(tmp_path: Path) -> None:
    x, y = make_data(20_000, 6, 4, seed=3)
    path, rows = tmp_path / "forest.og", tmp_path / "x.npy"
    model = oldgrowth.RandomForestClassifier(8, bucket_size=700, random_state=0, n_jobs=1).fit(x, y)
    model.save(path)
    np.save(rows, x)
    expected = model.predict_proba(x)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(path), str(rows)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    mapped = oldgrowth.load(path)  # its trees are checked by whichever thread comes first
    with ThreadPoolExecutor(64) as pool:
        for i, found in enumerate(pool.map(lambda i: mapped.predict_proba(x[i * 300 :]), range(64))):
            np.testing.assert_array_equal(found, expected[i * 300 :])
    for reader in readers:
        assert reader.communicate()[0].strip() == hashlib.sha256(expected.tobytes()).hexdigest()


def in_memory_of_files() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssFile:")[1].split()[0]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
@pytest.mark.parametrize(
    "whole",
    [
        oldgrowth.RandomForestRegressor(8),
        oldgrowth.RandomForestClassifier(4, min_samples_leaf=10),  # most of it the table of mixed leaves
    ],
)
def test_a_forest_larger_than_the_limit_is_let_go_bucket_by_bucket(
    whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((150_000, 3), dtype=np.float32)
    path = tmp_path / "forest.og"
    whole.set_params(bucket_size=5000, random_state=0).fit(x, rng.integers(0, 50, len(x)))
    whole.save(path)
    size = read_model(path).forest.nbytes
    monkeypatch.setattr(batch_predict, "_ALWAYS_FITS", size // 4)
    # The process is larger than this limit before it predicts anything.
    monkeypatch.setattr(base, "plan_batches", partial(batch_predict.plan_batches, refuse=False))
    data: Any = oldgrowth.open_dataset(lambda: iter([(x, None)]))
    for limit, largest in ((size, 0.3), ("auto", 2.0)):
        mapped = oldgrowth.load(path).set_params(memory_limit=limit)
        before = in_memory_of_files()
        for use in (lambda m: m.predict(x), lambda m: m.predict(data), lambda m: m.apply(x[:1000])):
            np.testing.assert_array_equal(use(mapped), use(whole))
        taken = in_memory_of_files() - before
        assert taken < largest * size
        if limit == "auto":
            assert taken > 0.5 * size
        del mapped
