"""Forged model files: words of a valid file are changed, and all checksums are valid.

    python tests/torture/fuzz_model.py --mutations 20000

Each must be refused with a clear error, or be a forest: without a crash, within a second, with little memory.
The trees themselves are mutated in C++, under sanitizers: cpp/fuzz/fuzz_forest.cpp.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import oldgrowth
from oldgrowth import _core
from oldgrowth.forest.model_file import PAGE, read_model
from oldgrowth.messages.text import human_bytes
from oldgrowth.system.memory import peak_memory

_ENTRY, _FIRST_ENTRY, _NUMBER_OF_SECTIONS = 48, 24, 12
_WORDS = (0, 1, 2, 7, 255, 4095, 4096, 4097, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63, 2**64 - 1)
_VALUES: tuple[Any, ...] = (None, -1, 0, 1, 3, 2**70, 1e308, "", "x", [], {}, [[]], True, {"float": "nan"})


def example(path: Path, categories: bool) -> tuple[bytes, Any]:
    """The bytes of a model file and rows that it predicts."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, (400, 4)).astype(np.float32), rng.integers(0, 3, 400)
    if categories:  # of as many levels as fit a node, and of more
        x[:, 0] = rng.integers(0, 120, 400)
    model = oldgrowth.RandomForestClassifier(
        3, bucket_size=100, random_state=0, categorical_features=[0, 1] if categories else None
    )
    model.fit(x, y).save(path)
    return path.read_bytes(), x


def _entries(data: bytes | bytearray) -> range:
    """Where the sections of a valid file are described."""
    (n_sections,) = struct.unpack_from("<I", data, _NUMBER_OF_SECTIONS)
    return range(_FIRST_ENTRY, _FIRST_ENTRY + _ENTRY * n_sections, _ENTRY)


def mutate(whole: bytes, rng: random.Random) -> bytes:
    """Another file; sections keep their places unless the table of sections is what changes."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 3)):
        entry = rng.choice(_entries(whole))
        offset, length = struct.unpack_from("<QQ", whole, entry + 24)
        kind = rng.randrange(8)
        if kind == 0:
            struct.pack_into("<Q", data, entry + 24 + 8 * rng.randrange(2), rng.choice(_WORDS))
        elif kind == 1:
            struct.pack_into("<Q", data, rng.choice((8, 16)), rng.choice(_WORDS))
        elif kind == 2:
            data = data[: rng.randrange(PAGE, len(data))] if rng.random() < 0.5 else data + bytes(PAGE)
        elif kind == 3 and length and len(data) >= offset + length:
            data = _with_meta(whole, data, rng)
        elif length >= 8 and len(data) >= offset + length:
            struct.pack_into("<Q", data, offset + 4 * rng.randrange(length // 4 - 1), rng.choice(_WORDS))
    return _sealed(data, _entries(whole))


def _with_meta(whole: bytes, data: bytearray, rng: random.Random) -> bytearray:
    """One value of the description exchanged, filled up with spaces to its length."""
    for entry in _entries(whole):
        if whole[entry : entry + 4] == b"meta":
            offset, length = struct.unpack_from("<QQ", whole, entry + 24)
            meta = json.loads(whole[offset : offset + length])
            place = meta
            while True:
                key = rng.choice(list(place))
                if isinstance(place[key], dict) and place[key] and rng.random() < 0.7:
                    place = place[key]
                    continue
                place[key] = rng.choice(_VALUES)
                break
            text = json.dumps(meta).encode()
            if len(text) <= length:
                data[offset : offset + length] = text.ljust(length)
    return data


def _sealed(data: bytearray, entries: range) -> bytes:
    """With checksums for all sections that lie in the file, and for the header."""
    for entry in entries:
        offset, length = struct.unpack_from("<QQ", data, entry + 24)
        if offset + length <= len(data):
            part = np.frombuffer(bytes(data[offset : offset + length]), dtype=np.uint8)
            struct.pack_into("<I", data, entry + 40, _core.crc32c(part))
    page = np.frombuffer(bytes(data[: PAGE - 4]), dtype=np.uint8)
    struct.pack_into("<I", data, PAGE - 4, _core.crc32c(page))
    return bytes(data)


def run(mutations: int, seed: int = 0, categories: bool = False) -> tuple[int, float]:
    """How many of the files were still forests, and the longest time that one took."""
    rng = random.Random(seed)
    passed, longest = 0, 0.0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "forest.og"
        whole, x = example(path, categories)
        assert len(read_model(path).sections) == len(_entries(whole)) == (16 if categories else 11)
        for i in range(mutations):
            path.write_bytes(mutate(whole, rng))
            started = time.perf_counter()
            try:
                oldgrowth.load(path, mmap=i % 2 == 0).predict(x)
                passed += 1
            except oldgrowth.OldgrowthError:
                pass
            longest = max(longest, time.perf_counter() - started)
    return passed, longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for categories in (False, True):
        passed, longest = run(options.mutations // 2, options.seed, categories)
        print(
            f"{options.mutations // 2} mutations{' with categories' if categories else ''}: {passed} still "
            f"forests, the others refused; longest {longest:.3f} s, peak memory {human_bytes(peak_memory())}"
        )


if __name__ == "__main__":
    main()
