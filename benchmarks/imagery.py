"""Generated 8-bit imagery of any size: nine bands, or 3x3 patches (81 features), nine unequal classes.

Every pixel is a function of its position and the seed, so any lines can be generated independently. Regions
contain parcels with irregular edges, each with a spectrum near that of its class, and small objects of rarer
classes; light and growth vary smoothly, in all bands together and in each of them; pixels along edges are
mixed; there is noise. Labels have errors like those of a map: whole parcels that have changed since, and
single pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

N_BANDS, N_CLASSES, WINDOW = 9, 9, 3
N_FEATURES = N_BANDS * WINDOW * WINDOW
WIDTH = 4000  # pixels of a line
FEATURES = [f"b{band}_{dy}{dx}" for band in range(N_BANDS) for dy in range(WINDOW) for dx in range(WINDOW)]
# How much of the ground each class covers; the last is one pixel in two thousand.
SHARES = np.array([0.62, 0.14, 0.09, 0.06, 0.04, 0.03, 0.015, 0.0045, 0.0005])
N_OBJECT_CLASSES = 3  # the rarest: small objects, not parcels
PARCEL, REGION, OBJECT = 24, 12, 6  # pixels, parcels and pixels across
_BEND = 14  # pixels by which the edges of parcels wander
_REGIONAL = 0.4  # of the parcels, how many have the class of their region
_WRONG_PARCELS, _WRONG_PIXELS = 0.1, 0.05  # given a label as a random one; it may be the right one
_SPECTRA_FROM, _SPECTRA_TO = 95.0, 125.0
# How far parcels differ from their class, in all bands alike and in each; how far light, growth and each
# band vary over the ground; and the noise.
_BRIGHTER, _OTHER, _LIGHT, _GROWTH, _OWN, _NOISE = 26.0, 15.0, 18.0, 12.0, 8.0, 6.0
_LOWEST, _HIGHEST = 1, 255  # 255 values: as many as a byte of a record holds
_BYTES = N_BANDS + 2  # random ones of a pixel: the noise of each band, and 16 bits for its label

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int64]
# What a random number is for. Tables that belong to bands take as many numbers as there are bands.
_BEND_Y, _BEND_X, _CLASS, _WHOSE_CLASS, _REGION_CLASS, _OBJECTS, _WRONG, _BRIGHTNESS, _TEST = range(9)
_LIGHT_FIELD, _GROWTH_FIELD, _OWN_FIELDS, _SPECTRA, _LOADINGS = 16, 17, 32, 48, 64


def _uniform(seed: int, what: int, y: Whole, x: Whole) -> Floats:
    """A number in [0, 1) for each line y and column x: a hash of them."""
    key = ((seed << 8 | what) * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64
    mixed = y.astype(np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(key)
    mixed = mixed ^ x.astype(np.uint64)[None, :] * np.uint64(0xC2B2AE3D27D4EB4F)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    return (mixed >> np.uint64(40)).astype(np.float32) / np.float32(2**24)


def _smooth(seed: int, what: int, y: Whole, width: int, cell: int) -> Floats:
    """A field in [0, 1) that varies over `cell` pixels, for consecutive lines y."""
    first = int(y[0]) // cell
    corners = _uniform(seed, what, np.arange(first, int(y[-1]) // cell + 2), np.arange(width // cell + 2))
    above = y // cell - first
    down = (np.arange(cell, dtype=np.float32) / np.float32(cell))[y % cell][:, None]
    of_lines = corners[above] * (1 - down) + corners[above + 1] * down
    across = ((np.arange(width) % cell) / cell).astype(np.float32)
    field: Floats = np.repeat(np.diff(of_lines, axis=1), cell, axis=1)[:, :width] * across
    field += np.repeat(of_lines, cell, axis=1)[:, :width]
    return field


@dataclass(frozen=True)
class _Ground:
    """What lies at each pixel: a number of `spectra`, which has the bands of all parcels and objects here,
    with the class and the label of each."""

    what: npt.NDArray[np.intp]  # of shape (lines, width)
    spectra: Floats  # of shape (bands, parcels and objects)
    classes: Bytes
    labels: Bytes


def _ground(seed: int, y: Whole, width: int) -> _Ground:
    bends = [(_smooth(seed, part, y, width, 16) * _BEND).astype(np.int32) for part in (_BEND_Y, _BEND_X)]
    rows = np.arange(int(y[0]) // PARCEL, (int(y[-1]) + _BEND) // PARCEL + 1)
    columns = np.arange((width + _BEND) // PARCEL + 1)
    down = (y.astype(np.int32)[:, None] + bends[0]) // np.int32(PARCEL) - np.int32(rows[0])
    across = (np.arange(width, dtype=np.int32) + bends[1]) // np.int32(PARCEL)
    what = down * np.int32(len(columns)) + across
    classes = _parcel_classes(seed, rows, columns)
    labels = _drawn(
        _uniform(seed, _WRONG, rows, columns) / _WRONG_PARCELS, SHARES[:-N_OBJECT_CLASSES], otherwise=classes
    )
    n_parcels = classes.size
    lies, object_classes = _objects(seed, y, width)
    what = np.where(lies >= 0, lies + np.int32(n_parcels), what).astype(np.intp)  # or each take converts it
    own = np.concatenate([classes.ravel(), object_classes.ravel()])
    spectra = _class_spectra(seed)[:, own]
    brightness = _uniform(seed, _BRIGHTNESS, rows, columns).ravel() - np.float32(0.5)
    for band in range(N_BANDS):
        colour = _uniform(seed, _SPECTRA + band, rows, columns).ravel() - np.float32(0.5)
        spectra[band, :n_parcels] += np.float32(2 * _BRIGHTER) * brightness + np.float32(2 * _OTHER) * colour
    return _Ground(what, spectra, own, np.concatenate([labels.ravel(), object_classes.ravel()]))


def _parcel_classes(seed: int, rows: Whole, columns: Whole) -> Bytes:
    """A class for each parcel, its own or that of its region."""
    regions_down = np.arange(int(rows[0]) // REGION, int(rows[-1]) // REGION + 1)
    of_region = _uniform(seed, _REGION_CLASS, regions_down, np.arange(int(columns[-1]) // REGION + 1))
    of_region = of_region[rows // REGION - regions_down[0]][:, columns // REGION]
    regional = _uniform(seed, _WHOSE_CLASS, rows, columns) < _REGIONAL
    lot = np.where(regional, of_region, _uniform(seed, _CLASS, rows, columns))
    return _drawn(lot, SHARES[:-N_OBJECT_CLASSES])


def _objects(seed: int, y: Whole, width: int) -> tuple[npt.NDArray[np.int32], Bytes]:
    """For each pixel the object on it, or -1, and the objects' classes."""
    rows = np.arange(int(y[0]) // OBJECT, int(y[-1]) // OBJECT + 1)
    lot = _uniform(seed, _OBJECTS, rows, np.arange(width // OBJECT + 1))
    classes = np.arange(N_CLASSES - N_OBJECT_CLASSES, N_CLASSES, dtype=np.uint8)
    shares = np.cumsum(SHARES[-N_OBJECT_CLASSES:][::-1])  # the rarest has the lowest lots
    found = np.where(lot < shares[-1], N_OBJECT_CLASSES - 1 - np.searchsorted(shares, lot, "right"), -1)
    lies = found.astype(np.int32)[y // OBJECT - rows[0]].take(np.arange(width) // OBJECT, axis=1)
    return lies, classes


def _drawn(lot: Floats, shares: npt.NDArray[np.float64], otherwise: Bytes | None = None) -> Bytes:
    """The class for a number in [0, 1); larger numbers keep the existing class."""
    drawn = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], lot, side="right").astype(np.uint8)
    return drawn if otherwise is None else np.where(lot < 1, drawn, otherwise)


def _class_spectra(seed: int) -> Floats:
    """A brightness for each class in each band."""
    rng = np.random.default_rng(seed)
    return rng.uniform(_SPECTRA_FROM, _SPECTRA_TO, (N_BANDS, N_CLASSES)).astype(np.float32)


def _random_bytes(seed: int, y: Whole, width: int) -> Bytes:
    """Random bytes of shape (bytes of a pixel, lines, width); lines are independent of each other."""
    out = np.empty((_BYTES, len(y), width), dtype=np.uint8)
    words = -(-_BYTES * width // 8)
    for i, line in enumerate(y.tolist()):
        counter = np.array([0, line % 2**64, 0, 0], dtype=np.uint64)
        raw = np.random.Philox(counter=counter, key=np.array([seed, N_BANDS], dtype=np.uint64))
        out[:, i] = raw.random_raw(words).view(np.uint8)[: _BYTES * width].reshape(_BYTES, width)
    return out


def _normal_table() -> Floats:
    """The noise for each byte: 256 equally likely values of a normal distribution."""
    from statistics import NormalDist

    return np.array([NormalDist(0, _NOISE).inv_cdf((byte + 0.5) / 256) for byte in range(256)], np.float32)


_NORMAL = _normal_table()


def _blurred(values: Floats) -> Floats:
    """A sensor's pixel sees some of its neighbours; one line less above and below."""
    down = values[1:-1] * np.float32(0.5)
    down += (values[:-2] + values[2:]) * np.float32(0.25)
    out = down * np.float32(0.5)
    out[:, 1:] += down[:, :-1] * np.float32(0.25)
    out[:, :-1] += down[:, 1:] * np.float32(0.25)
    out[:, 0] += down[:, 0] * np.float32(0.25)
    out[:, -1] += down[:, -1] * np.float32(0.25)
    return out


def _image(first: int, n: int, seed: int, width: int) -> tuple[Bytes, Bytes]:
    """The bands of `n` lines, of shape (bands, n, width), and their labels."""
    y = np.arange(first - 1, first + n + 1)
    ground, inner = _ground(seed, y, width), y[1:-1]
    random = _random_bytes(seed, inner, width)
    light = _smooth(seed, _LIGHT_FIELD, inner, width, 160) - np.float32(0.5)
    growth = _smooth(seed, _GROWTH_FIELD, inner, width, 40) - np.float32(0.5)
    loadings = np.random.default_rng([seed, _LOADINGS]).uniform(0.5, 1.5, (2, N_BANDS)).astype(np.float32)
    bands = np.empty((N_BANDS, n, width), dtype=np.uint8)
    for band in range(N_BANDS):
        value = _blurred(ground.spectra[band].take(ground.what))
        value += light * (np.float32(2 * _LIGHT) * loadings[0, band])
        value += growth * (np.float32(2 * _GROWTH) * (loadings[1, band] - 1))
        own = _smooth(seed, _OWN_FIELDS + band, inner, width, 16)
        value += own * np.float32(2 * _OWN) - np.float32(_OWN)
        value += _NORMAL.take(random[band])
        np.clip(value, _LOWEST, _HIGHEST, out=value)
        bands[band] = value.astype(np.uint8)
    labels = ground.labels.take(ground.what[1:-1])
    lot = random[N_BANDS].astype(np.uint16) << np.uint16(8) | random[N_BANDS + 1]
    wrong = np.nonzero(lot < _WRONG_PIXELS * 2**16)
    labels[wrong] = _drawn(lot[wrong] / np.float32(_WRONG_PIXELS * 2**16), SHARES)
    return bands, labels


def truth(first: int, n: int, seed: int = 0, width: int = WIDTH) -> Bytes:
    """The true class of each pixel of `n` lines."""
    ground = _ground(seed, np.arange(first, first + n), width)
    return ground.classes.take(ground.what).reshape(-1)


def pixels(first: int, n: int, seed: int = 0, width: int = WIDTH) -> tuple[Bytes, Bytes]:
    """The pixels of `n` lines as rows of 9 bands, and their labels."""
    bands, labels = _image(first, n, seed, width)
    return np.ascontiguousarray(bands.reshape(N_BANDS, -1).T), labels.reshape(-1)


def lines(first: int, n: int, seed: int = 0, width: int = WIDTH) -> tuple[Bytes, Bytes]:
    """The pixels of `n` lines as rows of 81 features, their 3x3 patches, and their labels."""
    bands, labels = _image(first - 1, n + 2, seed, width)
    bands = np.pad(bands, ((0, 0), (0, 0), (1, 1)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(bands, (WINDOW, WINDOW), axis=(1, 2))
    rows = np.ascontiguousarray(windows.transpose(1, 2, 0, 3, 4)).reshape(n * width, N_FEATURES)
    return rows, labels[1:-1].reshape(-1)


def for_testing(first: int, n: int, share: float, seed: int = 0, width: int = WIDTH) -> npt.NDArray[np.bool_]:
    """Which pixels of `n` lines are kept for testing, drawn at random."""
    lot = _uniform(seed, _TEST, np.arange(first, first + n), np.arange(width))
    return lot.reshape(-1) < share


def write_parquet(directory: Path, n_rows: int, seed: int = 0, lines_per_file: int = 250) -> None:
    """Write Parquet files of a million rows each, unless they exist."""
    directory.mkdir(parents=True, exist_ok=True)
    n_lines = -(-n_rows // WIDTH)
    for first in range(0, n_lines, lines_per_file):
        path = directory / f"lines-{first:06d}.parquet"
        if not path.exists():
            write_rows(path, *lines(first, min(lines_per_file, n_lines - first), seed))


def write_rows(path: Path, x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> None:
    """Write one Parquet file, which gets its name when it is complete."""
    columns = [pa.array(np.ascontiguousarray(column)) for column in x.T] + [pa.array(y)]
    names = FEATURES if x.shape[1] == N_FEATURES else [f"x{i}" for i in range(x.shape[1])]
    temporary = path.with_suffix(".new")
    pq.write_table(pa.table(columns, names=[*names, "label"]), temporary, row_group_size=200_000)
    temporary.rename(path)
