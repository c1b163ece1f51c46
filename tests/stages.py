"""The pipeline, stage by stage, on small data: fixtures for tests of single stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from helpers import make_data
from oldgrowth import RandomForestClassifier, SubsetForestClassifier
from oldgrowth.estimators.parameters import checked
from oldgrowth.fitting.context import FitContext, Prepared
from oldgrowth.fitting.distribute import Distributing, Part, distribute
from oldgrowth.fitting.engine import Engine
from oldgrowth.fitting.sample import sample
from oldgrowth.fitting.top_trees import TopTree, grow_top_trees
from oldgrowth.plan import Plan
from oldgrowth.planning.execution import choose_execution
from oldgrowth.planning.memory_model import MemoryModel
from oldgrowth.planning.planner import Planner
from oldgrowth.planning.sizes import Sizes, Widths
from oldgrowth.reporting.progress import Observers, StageProgress
from oldgrowth.reporting.report import Recorder
from oldgrowth.rows.array_rows import ArrayRows
from oldgrowth.rows.data_summary import SummaryBuilder
from oldgrowth.storage.fit_workspace import FitWorkspace
from oldgrowth.storage.memory_store import MemoryStore
from oldgrowth.storage.sampled import Sampled
from oldgrowth.system.limits import limits_of
from oldgrowth.system.threads import Workers

PROGRESS = StageProgress("test", 1)


def small_data(n: int = 2000, seed: int = 0, weights: np.ndarray | None = None) -> ArrayRows:
    x, y = make_data(n, 7, 3, seed)
    return ArrayRows(x, y.astype(np.float64), 3, weights)


def small_plan(data: ArrayRows, subsets: bool = False, **params: Any) -> Plan:
    defaults = {"n_estimators": 6, "trees_per_top": 4, "random_state": 0, "n_jobs": 2}
    sizes = {"subset_size": 300} if subsets else {"bucket_size": 200, "top_sample": 500}
    kind = SubsetForestClassifier if subsets else RandomForestClassifier
    given = kind(**(defaults | sizes | params))
    planner = Planner(checked(given._parameters, given.get_params()), False, classification=True)
    finder = SummaryBuilder(data.n_features, classification=True)
    finder.add(data.targets, data.weights)
    return planner.plan(finder.summary(3, 4 * data.n_features), np.arange(3))


def all_values(data: ArrayRows) -> np.ndarray:
    return data.take(np.arange(data.n_rows, dtype=np.uint32)).x


def through_top_trees(data: ArrayRows, plan: Plan, threads: Workers) -> tuple[Sampled, dict[int, TopTree]]:
    """The stages before distribution."""
    sampled = sample(data, plan, context(threads), PROGRESS)
    return sampled, dict(enumerate(grow_top_trees(sampled, plan, threads, PROGRESS)))


def in_memory(sampled: Sampled, tops: dict[int, TopTree], plan: Plan, threads: Workers) -> MemoryStore:
    store = MemoryStore(sampled, {i: top.n_buckets for i, top in tops.items()}, plan)
    distribute(tops, store, Part.whole(sampled), Distributing(plan, threads, PROGRESS))
    for i in tops:
        store.seal(i)
    return store


def context(threads: Engine, workspace: FitWorkspace | None = None) -> FitContext:
    """A fit that tells nobody of its progress and, unless told where, writes no file."""
    return FitContext(workspace or FitWorkspace(), threads, Recorder(Observers(), 0))


def prepared(sampled: Sampled, plan: Plan) -> Prepared:
    """As after the first pass of a fit with plenty of memory."""
    summary = sampled.summary
    sizes = Sizes.of(plan, sampled.rows, summary.n_rows, Widths.of(sampled.codec.widths), summary.weighted)
    model = MemoryModel(
        plan, sizes, limits_of({"memory_limit": "2GB", "spill_dir": None, "checkpoint_dir": None})
    )
    return Prepared(sampled, plan, *choose_execution(model, 0))


def pool() -> Workers:
    return Workers(2)
