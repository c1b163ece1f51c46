"""The data sets of the benchmarks: a name and a folder in, training and test arrays out.

All models get the same arrays: float32 features in C order, labels 0, 1, ... as int64. Every data set is the
same in every run. `rows` reduces a set to that many training rows, for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

FloatArray = npt.NDArray[np.float32]
LabelArray = npt.NDArray[np.int64]

# The paper's split of covtype; the generated set takes as many test rows.
COVTYPE_TRAIN, COVTYPE_TEST = 464_809, 116_203
GENERATED_TRAIN, GENERATED_TEST = 1_000_000, COVTYPE_TEST
SWEEP_TRAIN, SWEEP_TEST = 300_000, 100_000
LANDSAT_BLOCK = 64


class MissingDataError(Exception):
    """A data set needs a file that is missing."""


@dataclass(frozen=True)
class Split:
    """One data set, split for training and testing."""

    x_train: FloatArray
    y_train: LabelArray
    x_test: FloatArray
    y_test: LabelArray

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("x_train", "y_train", "x_test", "y_test"):
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> Split:
        return cls(*(np.load(folder / f"{name}.npy") for name in ("x_train", "y_train", "x_test", "y_test")))


def load_set(name: str, data: Path | None, rows: int | None = None) -> Split:
    return SETS[name](data, rows)


def load_or_say(name: str, data: Path | None, rows: int | None, console: Console) -> Split | None:
    """The data set, or None with a message that says why it is skipped."""
    try:
        return load_set(name, data, rows)
    except MissingDataError as error:
        console.print(str(error), highlight=False, soft_wrap=True)
        return None


def covtype(data: Path | None, rows: int | None = None) -> Split:
    """Forest CoverType, 54 features, 7 classes."""
    x, y = _read_parquet(_file("covtype", data, "covtype.parquet"), "Cover_Type")
    order = np.random.default_rng(0).permutation(len(x))
    n, n_test = _sizes(COVTYPE_TRAIN, COVTYPE_TEST, rows)
    return _take(x, y, order[:n], order[COVTYPE_TRAIN : COVTYPE_TRAIN + n_test])


def generated(data: Path | None, rows: int | None = None) -> Split:
    """Continuous, noisy, two classes: the worst case for methods that benefit from few distinct values."""
    return _noisy(*_sizes(GENERATED_TRAIN, GENERATED_TEST, rows))


def noise(data: Path | None, rows: int | None = None) -> Split:
    """The generated set at the size of the sweep."""
    return _noisy(*_sizes(SWEEP_TRAIN, SWEEP_TEST, rows))


def landsat(data: Path | None, rows: int | None = None) -> Split:
    """3x3 windows of 6 bands; split by blocks of pixels, as neighbours are nearly copies of each other."""
    with np.load(_file("landsat", data, "gewata_landsat7.npz")) as scene:
        bands, labels = scene["bands"], scene["lulc"]
    windows = np.lib.stride_tricks.sliding_window_view(bands, (3, 3), axis=(1, 2))
    line, column = np.nonzero(labels[1:-1, 1:-1])
    x = windows[:, line, column].transpose(1, 0, 2, 3).reshape(len(line), -1)
    y = np.unique(labels[1:-1, 1:-1][line, column], return_inverse=True)[1]
    blocks_across = -(-labels.shape[1] // LANDSAT_BLOCK)
    block = (line + 1) // LANDSAT_BLOCK * blocks_across + (column + 1) // LANDSAT_BLOCK
    rng = np.random.default_rng(0)
    is_test = (rng.random(int(block.max()) + 1) < 0.25)[block]
    train, test = rng.permutation(np.nonzero(~is_test)[0]), np.nonzero(is_test)[0]
    n, n_test = _sizes(len(train), len(test), rows)
    return _take(x, y, train[:n], test[:: max(1, len(test) // n_test)])


def kdd99(data: Path | None, rows: int | None = None) -> Split:
    """KDD Cup 1999, 10 %: 23 classes, the rarest of them with two rows."""
    x, y = _read_parquet(_file("kdd99", data, "kdd99_10pct_train.parquet"), "label")
    order = np.random.default_rng(0).permutation(len(x))
    all_train = len(x) * 4 // 5
    n, n_test = _sizes(all_train, len(x) - all_train, rows)
    return _take(x, y, order[:n], order[all_train : all_train + n_test])


def skewed(data: Path | None, rows: int | None = None) -> Split:
    """Long-tailed features and classes of 98, 1.9 and 0.1 %."""
    n, n_test = _sizes(SWEEP_TRAIN, SWEEP_TEST, rows)
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n + n_test, 10))
    score = z[:, 0] + 0.7 * z[:, 1] * z[:, 2] - 0.5 * z[:, 3] + 0.5 * rng.standard_normal(len(z))
    y = np.digitize(score, np.quantile(score, (0.98, 0.999)))
    return _cut(np.exp(1.5 * z), y, n)


def duplicates(data: Path | None, rows: int | None = None) -> Split:
    """Rows drawn from 3,000 distinct ones of small whole numbers; a quarter of the labels is random."""
    n, n_test = _sizes(SWEEP_TRAIN, SWEEP_TEST, rows)
    rng = np.random.default_rng(0)
    distinct = rng.permutation(np.unique(rng.integers(0, 8, (6000, 10)), axis=0))[:3000]
    own_class = (distinct[:, 0] + distinct[:, 1] * (distinct[:, 2] > 3) + distinct[:, 3] // 2) % 3
    drawn = rng.integers(0, len(distinct), n + n_test)
    y = np.where(rng.random(len(drawn)) < 0.25, rng.integers(0, 3, len(drawn)), own_class[drawn])
    return _cut(distinct[drawn], y, n)


SETS: dict[str, Callable[[Path | None, int | None], Split]] = {
    "covtype": covtype,
    "generated": generated,
    "landsat": landsat,
    "kdd99": kdd99,
    "noise": noise,
    "skewed": skewed,
    "duplicates": duplicates,
}


def _sizes(n: int, n_test: int, rows: int | None) -> tuple[int, int]:
    if rows is None or rows >= n:
        return n, n_test
    return rows, min(n_test, max(100, rows // 4))


def _noisy(n: int, n_test: int) -> Split:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n + n_test, 28), dtype=np.float32)
    x[:, :7] = np.abs(x[:, :7])
    score = x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3] + 0.7 * np.sin(2 * x[:, 8])
    score += 0.5 * x[:, 9] * x[:, 10] + 0.3 * x[:, 11] - 0.2 * x[:, 12]
    score -= np.median(score)
    y = rng.random(len(x)) < 1 / (1 + np.exp(-0.7 * score))
    return _cut(x, y, n)


def _cut(x: npt.NDArray, y: npt.NDArray, n: int) -> Split:
    return _take(x, y, np.arange(n), np.arange(n, len(x)))


def _take(x: npt.NDArray, y: npt.NDArray, train: npt.NDArray, test: npt.NDArray) -> Split:
    parts = (x[train], y[train], x[test], y[test])
    types = (np.float32, np.int64, np.float32, np.int64)
    return Split(*(np.ascontiguousarray(part, dtype=t) for part, t in zip(parts, types, strict=True)))


def _file(set_name: str, data: Path | None, name: str) -> Path:
    if data is None:
        raise MissingDataError(f"{set_name} is skipped: it needs --data DIR with {name} in it.")
    if not (data / name).is_file():
        raise MissingDataError(f"{set_name} is skipped: there is no {name} in {data}.")
    return data / name


def _read_parquet(path: Path, target: str) -> tuple[FloatArray, LabelArray]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingDataError(f"{path.name} is skipped: reading it needs pyarrow.") from error
    table = parquet.read_table(path)
    names = [name for name in table.column_names if name != target]
    x = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for j, name in enumerate(names):
        x[:, j] = table[name].to_numpy()
    return x, np.unique(table[target].to_numpy(), return_inverse=True)[1]
