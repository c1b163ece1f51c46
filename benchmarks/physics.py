"""The paper's two sets of particle collisions, susy and higgs: real if their files exist, else stand-ins.

The real ones are SUSY.csv.gz and HIGGS.csv.gz as UCI ships them: no header, the label first, as many rows as
here, of which the last are for testing. A stand-in has the shape of its set and what makes it hard: momenta
with long tails, angles that tell nothing alone, quantities derived from them that tell more, and two classes
that overlap so much that no model can be more accurate than about 79 (susy) and 76 % (higgs). It is not
physics, and its accuracies say nothing about the real set.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from datasets import FloatArray, LabelArray, Split

_CHUNK = 250_000


@dataclass(frozen=True)
class Collisions:
    """A set: rows of the real file, rows for testing, low-level and derived features; and of its stand-in the
    score at which the classes are even, and how certain a score makes the label."""

    name: str
    rows: int
    test_rows: int
    low: int
    derived: int
    even: float
    certainty: float

    @property
    def features(self) -> int:
        return self.low + self.derived

    def file(self, data: Path | None) -> Path | None:
        """The real file, if it is there."""
        path = None if data is None else data / f"{self.name.upper()}.csv.gz"
        return path if path is not None and path.is_file() else None

    def source(self, data: Path | None) -> str:
        return "stand-in" if self.file(data) is None else "UCI"

    def load(self, data: Path | None, rows: int, test_rows: int) -> Split:
        """Load the requested number of training and test rows, or all; float32, labels 0 and 1."""
        path = self.file(data)
        if path is None:
            x, y = self._made(rows + test_rows)
            return Split(x[:rows], y[:rows], x[rows:], y[rows:])
        x, y = self._read(path)
        rows = min(rows, self.rows - self.test_rows)
        return Split(x[:rows].copy(), y[:rows].copy(), x[-test_rows:].copy(), y[-test_rows:].copy())

    def _read(self, path: Path) -> tuple[FloatArray, LabelArray]:
        x = np.empty((self.rows, self.features), dtype=np.float32)
        y = np.empty(self.rows, dtype=np.int64)
        at = 0
        names = [f"f{i}" for i in range(self.features + 1)]
        types = csv.ConvertOptions(column_types={name: pa.float32() for name in names})
        with csv.open_csv(path, csv.ReadOptions(column_names=names), convert_options=types) as batches:
            for batch in batches:
                part = slice(at, at + batch.num_rows)
                y[part] = batch.column(0).to_numpy()
                for feature in range(self.features):
                    x[part, feature] = batch.column(feature + 1).to_numpy()
                at = part.stop
        if at != self.rows:
            raise ValueError(f"{path} has {at:,} rows, not {self.rows:,}: it is not the file of UCI.")
        return x, y

    def _made(self, rows: int) -> tuple[FloatArray, LabelArray]:
        """Generate rows in chunks with separate generators: fewer rows are a prefix of more."""
        x = np.empty((rows, self.features), dtype=np.float32)
        y = np.empty(rows, dtype=np.int64)
        for number, first in enumerate(range(0, rows, _CHUNK)):
            part = slice(first, min(first + _CHUNK, rows))
            made_x, made_y = self._chunk(np.random.default_rng([len(self.name), self.features, number]))
            x[part], y[part] = made_x[: part.stop - first], made_y[: part.stop - first]
        return x, y

    def _chunk(self, rng: np.random.Generator) -> tuple[FloatArray, LabelArray]:
        z = rng.standard_normal((_CHUNK, self.low), dtype=np.float32)
        # Momentum, height and angle in turn, as detectors give them.
        momentum, height = np.exp(0.6 * z[:, 0::3]), z[:, 1::3]
        angle = np.float32(np.pi) * np.tanh(z[:, 2::3])
        low = np.empty_like(z)
        low[:, 0::3], low[:, 1::3], low[:, 2::3] = momentum, height, angle
        mass = np.empty((_CHUNK, self.derived), dtype=np.float32)
        for k in range(self.derived):
            a, b = k % momentum.shape[1], (k + 1 + k // momentum.shape[1]) % momentum.shape[1]
            opening = np.cosh(np.clip(height[:, k % height.shape[1]], -3, 3))
            turn = np.cos(angle[:, a % angle.shape[1]] - angle[:, b % angle.shape[1]])
            mass[:, k] = np.sqrt(momentum[:, a] * momentum[:, b] * (opening - turn).clip(0))
        score = self._score(mass, low)
        noise = rng.logistic(size=_CHUNK).astype(np.float32)
        y = self.certainty * (score - self.even) + noise > 0
        smeared = mass * (1 + np.float32(0.05) * rng.standard_normal(mass.shape, dtype=np.float32))
        return np.concatenate([low, smeared], axis=1), y.astype(np.int64)

    def _score(self, mass: FloatArray, low: FloatArray) -> FloatArray:
        """Peaks and slopes of the derived quantities, and a little of the angles."""
        score = np.zeros(len(mass), dtype=np.float32)
        for k in range(self.derived):
            value = np.log(mass[:, k] + np.float32(0.1))
            peak = np.exp(-((value - np.float32(0.1 * (k % 4))) ** 2) / np.float32(0.3))
            score += np.float32(1 if k % 2 else -1) * peak + np.float32(0.2 if k % 3 else -0.2) * value
        return score + np.float32(0.5) * np.sin(low[:, 1] + low[:, 2])


SUSY = Collisions("susy", 5_000_000, 500_000, 8, 10, 0.16, 2.0)
HIGGS = Collisions("higgs", 11_000_000, 1_000_000, 21, 7, -0.48, 1.8)
