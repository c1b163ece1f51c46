"""Stage 1, one pass over all rows: draw the top samples, count, and learn how few bytes hold each feature."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from . import _core
from .datasets import ArrayDataset
from .facts import FactFinder, Facts
from .plan import Plan
from .progress import StageProgress


@dataclass(frozen=True)
class Sampled:
    """The numbers of the rows in each top sample, the facts, and the codec for all rows."""

    top_samples: list[npt.NDArray[np.uint32]]
    facts: Facts
    codec: _core.RowCodec


def sample(data: ArrayDataset, plan: Plan, pool: Executor, progress: StageProgress) -> Sampled:
    profile = _core.Profile(data.n_features)
    finder = FactFinder(data.n_features, plan.classification)
    wanted = plan.subsets or plan.needs_top_trees(data.n_rows)
    tops = range(len(plan.trees_of_tops(data.n_rows)) if wanted else 0)
    samples = [_core.TopSample(plan.top_sample, plan.seed, top) for top in tops]
    edges = np.linspace(0, data.n_features, plan.n_jobs + 1).astype(int).tolist()
    columns = [(a, b) for a, b in pairwise(edges) if a < b]
    for chunk in data.chunks(plan.chunk_size):
        work = [pool.submit(profile.add, chunk.x, first, last) for first, last in columns]
        work += [pool.submit(s.add, chunk.first_row, chunk.rows) for s in samples]
        finder.add(chunk.targets, chunk.weights)
        for task in work:
            task.result()
        progress.advance(chunk.rows)
    facts = finder.facts(data.n_classes)
    return Sampled([s.rows() for s in samples], facts, _core.RowCodec(profile))
