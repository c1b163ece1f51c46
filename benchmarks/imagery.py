"""Made-up 8-bit imagery of any size: nine bands as 3x3 patches (81 features), nine very unequal classes.

Every pixel is a function of its place and the seed, so any lines can be made without the rest. Parcels with
edges lie in smooth regions, classes have their own spectrum, pixels vary, and some labels are wrong.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

N_BANDS, N_CLASSES, WINDOW = 9, 9, 3
N_FEATURES = N_BANDS * WINDOW * WINDOW
WIDTH = 4000  # pixels of a line
FEATURES = [f"b{band}_{dy}{dx}" for band in range(N_BANDS) for dy in range(WINDOW) for dx in range(WINDOW)]
# How much of the ground each class covers; the last is one pixel in some thousands.
SHARES = np.array([0.62, 0.14, 0.09, 0.06, 0.04, 0.03, 0.015, 0.0045, 0.0005])
_WRONG_LABELS = 0.02
_NOISE = 12.0


def _hashed(seed: int, *parts: npt.NDArray[np.int64] | int) -> npt.NDArray[np.float32]:
    """A uniform number in [0, 1) for each combination of whole numbers."""
    mixed = np.uint64(seed * 2 + 1)
    for part in parts:
        mixed = (mixed ^ np.asarray(part).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return ((mixed >> np.uint64(40)).astype(np.float32)) / np.float32(2**24)


def _smooth(seed: int, y: npt.NDArray[np.int64], width: int, cell: int) -> npt.NDArray[np.float32]:
    """A field that varies over `cell` pixels, for the lines y."""
    x = np.arange(width)
    iy, ix = y // cell, x // cell
    fy = ((y % cell) / cell).astype(np.float32)[:, None]
    fx = ((x % cell) / cell).astype(np.float32)[None, :]
    corner = [[_hashed(seed, (iy + a)[:, None], (ix + b)[None, :]) for b in (0, 1)] for a in (0, 1)]
    top = corner[0][0] * (1 - fx) + corner[0][1] * fx
    bottom = corner[1][0] * (1 - fx) + corner[1][1] * fx
    return top * (1 - fy) + bottom * fy


def _classes(seed: int, y: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """Parcels whose class follows the region, with crooked edges."""
    bend_y = (_smooth(seed + 1, y, width, 9) * 14).astype(np.int64)
    bend_x = (_smooth(seed + 2, y, width, 9) * 14).astype(np.int64)
    parcel_y, parcel_x = (y[:, None] + bend_y) // 24, (np.arange(width)[None, :] + bend_x) // 24
    lot = 0.55 * _hashed(seed + 3, parcel_y, parcel_x) + 0.45 * _smooth(seed + 4, y, width, 400)
    order = np.clip((lot - 0.08) / 0.9, 0, 1)  # roughly uniform after the sum of the two
    return np.searchsorted(np.cumsum(SHARES)[:-1], order, side="right").astype(np.uint8)


def lines(
    first: int, n: int, seed: int = 0, width: int = WIDTH
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The pixels of `n` lines as rows of 81 features, and their labels."""
    y = np.arange(first - 1, first + n + 1) + 10
    truth = _classes(seed, y, width)
    spectra = np.random.default_rng(seed).uniform(80, 140, (N_BANDS, N_CLASSES)).astype(np.float32)
    bands = np.empty((N_BANDS, n + 2, width + 2), dtype=np.uint8)
    light = 30 * (_smooth(seed + 5, y, width, 150) - 0.5)
    for band in range(N_BANDS):
        local = 24 * (_smooth(seed + 6 + band, y, width, 12) - 0.5)
        noise = _NOISE * 3.4 * (_hashed(seed + 40 + band, y[:, None], np.arange(width)[None, :]) - 0.5)
        value = np.clip(spectra[band][truth] + light + local + noise, 0, 255).astype(np.uint8)
        bands[band] = np.pad(value, ((0, 0), (1, 1)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(bands, (WINDOW, WINDOW), axis=(1, 2))
    rows = np.ascontiguousarray(windows.transpose(1, 2, 0, 3, 4)).reshape(n * width, N_FEATURES)
    labels = truth[1:-1].reshape(-1).copy()
    wrong = _hashed(seed + 60, y[1:-1, None], np.arange(width)[None, :]).reshape(-1) < _WRONG_LABELS
    drawn = _hashed(seed + 61, np.flatnonzero(wrong), first)
    labels[wrong] = np.searchsorted(np.cumsum(SHARES)[:-1], drawn, side="right")
    return rows, labels


def write_parquet(directory: Path, n_rows: int, seed: int = 0, lines_per_file: int = 250) -> None:
    """Parquet files of a million rows each, unless they are there already."""
    directory.mkdir(parents=True, exist_ok=True)
    n_lines = -(-n_rows // WIDTH)
    for first in range(0, n_lines, lines_per_file):
        path = directory / f"lines-{first:06d}.parquet"
        if path.exists():
            continue
        x, y = lines(first, min(lines_per_file, n_lines - first), seed)
        columns = [pa.array(np.ascontiguousarray(x[:, f])) for f in range(N_FEATURES)] + [pa.array(y)]
        table = pa.table(columns, names=[*FEATURES, "label"])
        temporary = path.with_suffix(".new")
        pq.write_table(table, temporary, row_group_size=200_000)
        temporary.rename(path)
