"""What a fit will take on disk is said before it is taken."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pytest

import oldgrowth
from oldgrowth.system.memory import size_of


def test_the_disk_is_estimated_before_it_is_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 8)).astype(np.float32), rng.integers(0, 2, 20_000)
    most = 0

    def follow(progress: oldgrowth.FitProgress) -> None:
        nonlocal most
        most = max(most, progress.disk)

    model = oldgrowth.RandomForestClassifier(8, bucket_size=2000, random_state=0, n_jobs=1)
    model.set_params(store="disk", spill_dir=tmp_path, verbose=0)
    with caplog.at_level(logging.INFO, "oldgrowth"):
        model.fit(x, y, callback=follow)
    said = [record.getMessage() for record in caplog.records]
    before, after = (
        next(i for i, text in enumerate(said) if word in text) for word in ("may need", "needs about")
    )
    assert before < after < next(i for i, text in enumerate(said) if text.startswith("distribute"))
    found = re.search(rf"needs about (.*) of disk in {tmp_path}, where (.*) are free", said[after])
    assert found and 0.5 * most < size_of("disk", found[1], 0) < 3 * most


def test_nothing_is_said_of_disk_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "oldgrowth"):
        oldgrowth.RandomForestRegressor(1).fit(np.eye(50), np.arange(50))
    assert not any("of disk" in record.getMessage() for record in caplog.records)
