"""Pages of a mapped array are evicted after use, and only if nothing can be lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oldgrowth import RandomForestClassifier
from oldgrowth.rows.array_rows import ArrayRows
from oldgrowth.rows.mapped_input import MappedInput
from oldgrowth.rows.training_rows import Place


def resident_pages_of(path: Path) -> int:
    """Bytes of a file that this process has in memory."""
    total, mine = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            mine = line.endswith(str(path))
        elif mine and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.fixture
def path(tmp_path) -> Path:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((200_000, 8), dtype=np.float32))
    return tmp_path / "x.npy"


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is resident")
def test_what_was_read_is_given_back(path) -> None:
    x = np.load(path, mmap_mode="r")
    rows = ArrayRows(np.asarray(x), np.zeros(len(x)), 1)
    most = 0
    for _ in rows.chunks(10_000, Place()):
        most = max(most, resident_pages_of(path))
    rows.take(np.arange(0, len(x), 50, dtype=np.uint32))
    assert max(most, resident_pages_of(path)) < x.nbytes / 4


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is resident")
@pytest.mark.parametrize("layout", ["rows", "every other row"])
def test_single_rows_bring_in_few_pages(tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random((500_000, 20), dtype=np.float32)
    np.save(tmp_path / "x.npy", values)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")[:: 2 if layout == "every other row" else 1]
    rows, most, give_back = ArrayRows(x, np.zeros(len(x)), 1), [0], MappedInput.give_back

    def measured(mapped: MappedInput) -> None:
        most[0] = max(most[0], resident_pages_of(tmp_path / "x.npy"))
        give_back(mapped)

    monkeypatch.setattr(MappedInput, "give_back", measured)
    chosen = np.sort(np.random.default_rng(1).choice(len(x), 10_000, replace=False)).astype(np.uint64)
    assert np.array_equal(rows.take(chosen).x, np.asarray(x)[chosen])
    assert 0 < most[0] < values.nbytes / 4


def test_what_was_written_to_a_private_mapping_stays(path) -> None:
    x = np.load(path, mmap_mode="c")
    x[:] = 7
    MappedInput(x).give_back()
    assert (x == 7).all()
    writable = np.load(path, mmap_mode="r+")
    writable[:10] = 5
    MappedInput(writable[5:]).give_back()
    assert (writable[:10] == 5).all()


def test_a_mapped_array_gives_the_same_forest(path) -> None:
    y = np.random.default_rng(1).integers(0, 2, 200_000)
    model = RandomForestClassifier(2, max_depth=4, random_state=0)
    digests = {model.fit(x, y).forest_.digest() for x in (np.load(path), np.load(path, mmap_mode="r"))}
    assert len(digests) == 1
