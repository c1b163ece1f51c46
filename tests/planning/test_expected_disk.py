"""The disk space of a fit is reported before it is used."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


def test_disk_space_is_not_reported_for_a_fit_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "oldgrowth"):
        oldgrowth.RandomForestRegressor(1).fit(np.eye(50), np.arange(50))
    assert not any("of disk" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("source", ["array", "frame", "npy", "csv"])
@pytest.mark.parametrize("kind", ["RandomForestClassifier", "ExtraTreesRegressor"])
def test_the_disk_of_a_fit_can_be_asked_for_before_it(kind: str, source: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 8)).astype(np.float32), rng.integers(0, 2, 20_000)
    frame = pd.DataFrame(x, columns=list("abcdefgh")).assign(y=y)
    data: tuple[Any, ...] = (x, y) if source == "array" else (frame[list("abcdefgh")], y)
    if source == "npy":
        np.save(tmp_path / "rows.npy", np.c_[x, y])
        data = (oldgrowth.open_dataset(tmp_path / "rows.npy", target=8),)
    elif source == "csv":
        frame.to_csv(tmp_path / "rows.csv", index=False)
        data = (oldgrowth.open_dataset(tmp_path / "rows.csv", target="y"),)
    spill = tmp_path / "spill"
    spill.mkdir()
    model = getattr(oldgrowth, kind)(8, bucket_size=2000, n_jobs=1, store="disk", spill_dir=spill)
    before = vars(model).copy()
    estimate = model.estimate_disk(*data)
    assert vars(model) == before and not list(spill.iterdir())
    assert estimate.directory == spill and 0 < estimate.free < 2**62
    disk: list[int] = []
    model.fit(*data, callback=lambda progress: disk.append(progress.disk))
    assert 0.9 * max(disk) < estimate.needed < 3 * max(disk)


def test_an_estimate_of_the_disk_follows_parameters_and_refuses_what_fit_refuses() -> None:
    x = np.zeros((200_000, 10), np.float32)
    model = oldgrowth.RandomForestClassifier(8, store="disk", trees_per_top=1)
    sizes = [model.set_params(n_estimators=n).estimate_disk(x).needed for n in (8, 16)]
    assert 1.8 < sizes[1] / sizes[0] < 2.2
    assert model.estimate_disk(x, np.arange(200_000) % 500).needed >= sizes[1]
    assert model.set_params(store="memory").estimate_disk(x).needed == 0
    assert str(model.estimate_disk(x)) == "no disk"
    with pytest.raises(oldgrowth.errors.ParameterError, match="n_estimators"):
        model.set_params(n_estimators=0).estimate_disk(x)
    for wrong in (None, "rows.csv", x[0]):
        with pytest.raises(oldgrowth.errors.DataError, match="X"):
            model.set_params(n_estimators=8).estimate_disk(wrong)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_the_disk_for_classes_of_noise_follows_how_rare_they_are(tmp_path: Path, share: float) -> None:
    """Of few rows of other classes, most lie beside one of the same class, and share its leaf."""
    rng = np.random.default_rng(0)
    x, y = rng.random((40_000, 3), dtype=np.float32), rng.random(40_000) < share
    params = {"trees_per_top": 60, "bucket_size": 4000, "store": "disk", "random_state": 0, "n_jobs": 1}
    model = oldgrowth.RandomForestClassifier(60, **params, spill_dir=tmp_path)
    data = oldgrowth.open_dataset(lambda: iter([(x, y)]))  # of which classes are known after the first pass
    with pytest.raises(oldgrowth.errors.DiskTooSmallError) as refused:
        model.set_params(spill_limit="100kB").fit(data)
    named = re.search(r"spill_limit of at least (\d+)MB", str(refused.value))
    assert named is not None
    disk: list[int] = []
    most = int(named[1]) * 10**6
    model.set_params(spill_limit=most).fit(data, callback=lambda now: disk.append(now.disk))
    assert max(disk) < most < 2.5 * max(disk)
