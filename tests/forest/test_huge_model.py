"""A model file of more than 2^32 nodes and 32 GiB, nearly all of it a hole that takes no disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from helpers import make_data
from oldgrowth import RandomForestClassifier, load
from oldgrowth.forest.forest import ARRAYS
from oldgrowth.forest.model_file import ModelWriter
from oldgrowth.forest.model_meta import describe

HOLE = 2**32 + 5  # nodes


def write_with_hole(path: Path, model: Any) -> None:
    """Write the model with HOLE zero nodes before those of the first bottom tree, which must be unused."""
    forest = model.forest_
    start = forest.node_start.copy()
    start[1:] += HOLE
    with ModelWriter(path) as writer:
        for name in ARRAYS:
            if name != "nodes":
                writer.add(name, start if name == "node_start" else getattr(forest, name))
                continue
            writer.start("nodes")
            writer._file.seek(8 * HOLE, 1)
            writer._length += 8 * HOLE
            writer.append(forest.nodes)
            writer.finish()
        writer.add_meta(describe(model))


def test_nodes_beyond_four_billion_are_found(tmp_path: Path) -> None:
    x, y = make_data(3000, 5, 3, seed=8)
    model = RandomForestClassifier(2, bucket_size=300, trees_per_top=1, random_state=0).fit(x, y)
    path = tmp_path / "huge.og"
    write_with_hole(path, model)
    try:
        assert path.stat().st_size > 2**35
        assert path.stat().st_blocks * 512 < 2**24, "the file system has no holes"
        huge = load(path)
        assert len(huge.forest_.nodes) == HOLE + len(model.forest_.nodes)
        beyond = ~in_first_bucket(model, x)
        assert 0 < beyond.sum() < len(x)
        np.testing.assert_array_equal(huge.predict_proba(x[beyond]), model.predict_proba(x[beyond]))
        before = np.where(np.arange(2) == 0, HOLE, 0)  # leaves of the first tree are numbered behind the hole
        np.testing.assert_array_equal(huge.apply(x[beyond]), model.apply(x[beyond]) + before)
        huge.set_params(memory_limit="500MB")
        np.testing.assert_array_equal(huge.predict(x[beyond]), model.predict(x[beyond]))
    finally:
        path.unlink()


def in_first_bucket(model: Any, x: np.ndarray) -> np.ndarray:
    """Which rows reach the first bottom tree of the first top tree."""
    forest = model.forest_
    leaves: np.ndarray = model.apply(x)[:, 0]
    return leaves < int(forest.node_start[1])
