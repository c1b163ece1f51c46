"""The goals of maps and fits of scenes: lines that show each goal beside its figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from journal import Run

MAP, SHALLOW_MAP = "map", "map, trees as deep as OTB's"
PREDICT, LOOP, DASK, OTB = "predict", "rasterio + scikit-learn", "dask + scikit-learn", "OTB ImageClassifier"
# How much slower than `predict` a map may be, and how many times faster than each rival it has to be.
OVER_PREDICT, RIVALS = 1.25, {LOOP: (MAP, 8.0), DASK: (MAP, 8.0), OTB: (SHALLOW_MAP, 5.0)}
MORE_MEMORY = 1.05  # of a map with four times the lines
SCENE_OVER_PARQUET = GATHER_OVER_DISK = 1.0
GATHERED_BYTES = 7.0  # a row and top tree
STORES = ("disk", "memory")

Runs = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Verdict:
    """A figure that should be at most, or at least, so much; None if it was not measured."""

    what: str
    value: float | None
    goal: float
    unit: str = "x"
    is_most: bool = True

    @property
    def holds(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.goal if self.is_most else self.value >= self.goal

    def __str__(self) -> str:
        goal = f"goal: {'at most' if self.is_most else 'at least'} {self.goal:g}{self.unit}"
        if self.value is None:
            return f"{self.what}: not measured ({goal})"
        return (
            f"{self.what}: {self.value:.3f}{self.unit} ({goal}; {'holds' if self.holds else 'does not hold'})"
        )


def fit_name(source: str, store: str) -> str:
    return f"{source}, {store}"


def best_seconds(runs: Runs, what: str) -> float | None:
    return min((run["seconds"] for run in runs.get(what, ())), default=None)


def speed(runs: Runs, what: str) -> float | None:
    """Pixels a second, of the best run."""
    return max((run["pixels"] / run["seconds"] for run in runs.get(what, ())), default=None)


def of_maps(runs: Runs, small: Run, limit: int) -> Iterator[Verdict]:
    """The goals of maps; `small` is the map of a quarter of the lines, `limit` that on memory in bytes."""
    yield Verdict("seconds of the map over those of predict", _ratio(runs, PREDICT, MAP), OVER_PREDICT)
    for rival, (ours, times) in RIVALS.items():
        yield Verdict(f"speed of the {ours} over {rival}", _ratio(runs, ours, rival), times, is_most=False)
    peak = max((run["peak"] for run in runs.get(MAP, ())), default=None)
    held = None if peak is None else peak / 10**6
    yield Verdict("peak memory of the map", held, limit / 10**6, " MB")
    more = None if peak is None else peak / small["peak"]
    yield Verdict("peak memory with four times the lines", more, MORE_MEMORY)


def _ratio(runs: Runs, fast: str, slow: str) -> float | None:
    one, other = speed(runs, fast), speed(runs, slow)
    return None if one is None or other is None else one / other


def of_fits(runs: Runs) -> Iterator[Verdict]:
    """The goals of fits, by the best run of each."""
    for store in STORES:
        scene, table = (best_seconds(runs, fit_name(source, store)) for source in ("scene", "Parquet"))
        what = f"seconds of the fit from the scene over those from Parquet, store={store!r}"
        yield Verdict(what, _over(scene, table), SCENE_OVER_PARQUET)
    gather, disk = (best_seconds(runs, fit_name("scene", store)) for store in ("gather", "disk"))
    yield Verdict(
        "seconds of the fit with the gather store over the disk store", _over(gather, disk), GATHER_OVER_DISK
    )
    gathered = runs.get(fit_name("scene", "gather"), ())
    most = max(map(bytes_per_row, gathered), default=None)
    yield Verdict("gather store, of a row and top tree", most, GATHERED_BYTES, " bytes")


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def bytes_per_row(run: Run) -> float:
    """Bytes on disk of a row in the buckets of one top tree."""
    stage = stages_of(run)["distribute"]
    written: int = stage["bytes_written"]
    return written / run["report"]["rows"] / run["report"]["top_trees"]


def stages_of(run: Run) -> dict[str, Run]:
    return {stage["name"]: stage for stage in run["report"]["stages"]}
