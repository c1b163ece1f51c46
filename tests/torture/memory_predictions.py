"""Predictions against their memory limit, each in a process of its own, over models, sources and outputs.

    python tests/torture/memory_predictions.py            # all
    python tests/torture/memory_predictions.py --few 4    # some

A case is wrong if its peak is above 1.05 times the limit, if it was refused although it takes at most 0.8
times the limit when nothing is refused, or if the limit that a refusal names does not do.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HIGHEST, WRONGLY_REFUSED = 1.05, 0.8

_CHILD = """
import json, sys
asked = json.loads(sys.argv[1])
from oldgrowth.forest import batch_predict
from oldgrowth.system.memory import peak_memory, resident_memory
batch_predict.refuses = not asked["unchecked"]
said = {"start": resident_memory()}
if asked["command"]:
    from oldgrowth.cli.main import run
    import contextlib, io
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        code = run(asked["command"])
    if code:
        said["error"] = told.getvalue()
else:
    import numpy as np, oldgrowth
    model = oldgrowth.load(asked["model"]).set_params(memory_limit=asked["limit"], n_jobs=asked["jobs"])
    if asked["array"]:
        rows = np.load(asked["rows"], mmap_mode="r")
    else:
        rows = oldgrowth.open_dataset(asked["rows"], target="y" if asked["call"] == "score" else None,
                                      features=list(model.feature_names_in_))
    said["start"] = resident_memory()
    try:
        getattr(model, asked["call"])(rows)
    except oldgrowth.OldgrowthError as error:
        said["error"] = str(error)
said["peak"] = peak_memory()
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Model:
    """A forest on noise: `trees` trees of `rows` rows; no classes: a regression."""

    classes: int
    features: int = 20
    trees: int = 8
    rows: int = 20_000
    depth: int | None = None
    buckets: int = 5_000
    text: int = 0  # features that are words, of 255 levels


@dataclass(frozen=True)
class Case:
    model: Model
    call: str  # a method, or "predict", "evaluate" or "proba" of the command line with a suffix
    rows: int = 400_000
    limit: int = 400  # MB
    source: str = "parquet"
    jobs: int = 2


FEW, SOME, MANY = Model(3), Model(200), Model(5_000, depth=12)
VALUES, WIDE = Model(0), Model(9, features=400)
LARGE = Model(9, trees=60, rows=300_000, buckets=60_000)  # some 200 MB of nodes
WORDS = Model(9, trees=24, rows=60_000, text=12)
HUGE = Model(70_000, rows=140_000, trees=2, depth=3, features=4, buckets=200_000)

CASES = [
    *(Case(model, call) for model in (FEW, SOME, VALUES) for call in ("predict", "score")),
    *(Case(model, "predict_proba", rows) for model, rows in ((FEW, 2_000_000), (SOME, 100_000))),
    *(Case(model, call) for model in (SOME, MANY) for call in ("cli predict .parquet", "cli evaluate")),
    *(Case(SOME, f"cli proba {suffix}", 200_000, 500) for suffix in (".parquet", ".csv", ".npy")),
    Case(SOME, "cli predict .csv", 1_000_000, 500, "csv"),
    Case(MANY, "cli proba .parquet", 20_000, 600),
    Case(MANY, "predict", 100_000, 600),
    Case(MANY, "predict", 100_000, 600, "npy"),
    Case(HUGE, "predict", 50_000, 1_000),
    Case(HUGE, "cli evaluate", 50_000, 1_000),
    Case(WIDE, "predict", 100_000, 400),
    Case(WIDE, "cli predict .npy", 100_000, 300),
    Case(LARGE, "predict", 400_000, 300),
    Case(LARGE, "predict", 400_000, 300, jobs=16),
    Case(LARGE, "cli predict .parquet", 400_000, 280),
    Case(LARGE, "apply", 200_000, 400),
    Case(LARGE, "predict", 400_000, 350, "npy"),
    Case(SOME, "predict", 400_000, 330, jobs=32),
    Case(SOME, "predict", 400_000, 150),  # below what the process has
    Case(SOME, "predict", 400_000, 250),
    Case(SOME, "cli predict .parquet", 1_000_000, 500),
    Case(SOME, "cli evaluate", 1_000_000, 500),
    Case(WIDE, "cli predict .parquet", 100_000, 260),
    Case(WIDE, "cli proba .csv", 50_000, 220),
    Case(MANY, "predict", 100_000, 300),
    Case(HUGE, "cli predict .parquet", 20_000, 400),
    Case(MANY, "cli evaluate", 50_000, 200),
    Case(WORDS, "predict", 400_000, 300),
    Case(WORDS, "predict_proba", 400_000, 300, jobs=16),
    Case(WORDS, "score", 400_000, 250, "csv"),
    Case(WORDS, "cli predict .parquet", 1_000_000, 300),
    Case(WORDS, "cli proba .csv", 200_000, 250, "csv"),
]


class Workshop:
    """Makes each model and each file once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.model, self.rows = cache(self._model), cache(self._rows)

    def _values(self, model: Model, rows: int, seed: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 255, (rows, model.features), dtype=np.uint8)
        return x, rng.integers(0, model.classes, rows) if model.classes else rng.normal(size=rows)

    def _model(self, model: Model) -> Path:
        import pandas as pd

        import oldgrowth

        x, y = self._values(model, model.rows, 0)
        if model.classes:
            y[: model.classes] = np.arange(model.classes)
        kind = oldgrowth.RandomForestClassifier if model.classes else oldgrowth.RandomForestRegressor
        given = {"max_depth": model.depth, "bucket_size": model.buckets, "random_state": 0}
        path = self._directory / f"{abs(hash(model))}.og"
        kind(model.trees, **given).fit(pd.DataFrame(self._columns(model, x)), y).save(path)
        return path

    def _columns(self, model: Model, x: Any) -> dict[str, Any]:
        words = np.array([f"{level} is the word for a level" for level in range(256)], dtype=object)
        return {f"f{i}": words[x[:, i]] if i < model.text else x[:, i] for i in range(model.features)}

    def _rows(self, model: Model, rows: int, source: str) -> Path:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq

        x, y = self._values(model, rows, 1)
        path = self._directory / f"{model.features}-{model.text}-{model.classes}-{rows}.{source}"
        if source == "npy":
            np.save(path, x)
            return path
        table = pa.table(self._columns(model, x) | {"y": y})
        (pq.write_table if source == "parquet" else pyarrow.csv.write_csv)(table, path)
        return path


def run(case: Case, workshop: Workshop, limit: float, unchecked: bool = False) -> dict[str, Any]:
    """What a process says that does this under a limit of so many MB."""
    model, rows = workshop.model(case.model), workshop.rows(case.model, case.rows, case.source)
    asked: dict[str, Any] = {"model": str(model), "rows": str(rows), "limit": f"{limit}MB", "jobs": case.jobs}
    asked |= {"call": case.call, "array": case.source == "npy", "command": None, "unchecked": unchecked}
    if case.call.startswith("cli "):
        _, command, *suffix = case.call.split()
        name = "predict" if command == "proba" else command
        asked["command"] = [
            name,
            str(model),
            str(rows),
            "-q",
            "--memory-limit",
            f"{limit}MB",
            "-j",
            str(case.jobs),
        ]
        output = [] if not suffix else ["-o", str(rows.with_name(f"out{suffix[0]}")), "--force"]
        asked["command"] += [*output, *(["--proba"] if command == "proba" else [])]
        asked["command"] += ["--target", "y"] if command == "evaluate" else []
    done = subprocess.run([sys.executable, "-c", _CHILD, json.dumps(asked)], capture_output=True, text=True)
    if done.returncode != 0:
        return {"failed": done.stderr[-2000:] or f"ended by signal {-done.returncode}", "peak": 0}
    return json.loads(done.stdout.splitlines()[-1])


def judge(case: Case, workshop: Workshop) -> tuple[str, str]:
    """What is wrong, if anything, and what was found."""
    found = run(case, workshop, case.limit)
    peak = found["peak"] / 1e6
    told = f"peak {peak:.0f} of {case.limit} MB = {peak / case.limit:.2f}x"
    if "failed" in found:
        return found["failed"], told
    if peak > HIGHEST * max(case.limit, found["start"] / 1e6):  # a process may be larger than the limit is
        return "peak too high", told
    if "error" not in found:
        return "", told
    named = re.search(r"(?:memory_limit=|--memory-limit )'?([\d,]+)MB", found["error"])
    if named is None:
        return f"failed: {found['error']}", told
    least = int(named[1].replace(",", ""))
    again = run(case, workshop, least)
    taken = again["peak"] / 1e6
    told += f", refused, {least} MB named, which take {taken:.0f} = {taken / least:.2f}x"
    if "error" in again or "failed" in again:
        return f"does not do: {again}", told
    if taken > HIGHEST * least:
        return "peak too high at the limit that was named", told
    free = run(case, workshop, case.limit, unchecked=True)
    told += f", {free['peak'] / 1e6 / case.limit:.2f}x if not refused"
    if "error" in free or "failed" in free:
        return f"without the check: {free}", told
    if free["peak"] / 1e6 <= WRONGLY_REFUSED * case.limit:
        return "refused wrongly", told
    return "", told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", type=int, help="every n-th case alone")
    parser.add_argument("--only", help="cases whose description has this in it")
    given = parser.parse_args()
    cases = [case for case in CASES if given.only is None or given.only in str(case)][:: given.few or 1]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="oldgrowth-memory-") as directory:
        workshop = Workshop(Path(directory))
        for case in cases:
            what, told = judge(case, workshop)
            wrong += bool(what)
            print(
                f"{'WRONG' if what else 'ok':6}{case.call:22}{told}"
                + (f"\n      {what}\n      {asdict(case)}" if what else ""),
                flush=True,
            )
    print(f"{len(cases) - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
