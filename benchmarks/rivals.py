"""The models of the comparison, each behind the same three steps: prepare, fit, predict.

All grow 24 trees on all cores with their library's default parameters, except that trees are grown fully and
a split tries the square root of the number of features wherever the library allows it; `note` says what it
does not allow. `prepare` converts arrays to the input of a library and is never timed, in favour of libraries
that do not take arrays.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

TREES = 24
ONE_BUCKET = "oldgrowth, one bucket"
AS_YDF = "oldgrowth, splits as ydf"


class Model:
    """A scikit-learn-like estimator; other libraries override the steps that differ."""

    def __init__(self, make: Callable[[int, tuple[int, int]], Any]) -> None:
        self._make = make
        self._estimator: Any = None

    def prepare(self, x: np.ndarray, y: np.ndarray | None) -> Any:
        return x, y

    def fit(self, data: Any, seed: int) -> None:
        x, y = data
        self._estimator = self._make(seed, x.shape)
        self._estimator.fit(x, y)

    def predict(self, data: Any) -> Any:
        return self._estimator.predict(data[0])

    def labels(self, predicted: Any) -> np.ndarray:
        """The labels 0, 1, ... of a prediction; not timed."""
        return np.asarray(predicted)

    def close(self) -> None:
        """Leave nothing running."""


class Ydf(Model):
    """Takes a dict of columns, gives probabilities."""

    def __init__(self) -> None:
        super().__init__(_ydf)

    def prepare(self, x: np.ndarray, y: np.ndarray | None) -> Any:
        columns = {f"x{j}": np.ascontiguousarray(x[:, j]) for j in range(x.shape[1])}
        return columns if y is None else columns | {"y": y}

    def fit(self, data: Any, seed: int) -> None:
        self._estimator = _ydf(seed, (len(data["y"]), len(data) - 1)).train(data)

    def predict(self, data: Any) -> Any:
        try:
            return self._estimator.predict(data)
        except ValueError as error:
            if "too many nodes" not in str(error):
                raise
            return self._estimator.predict(data, use_slow_engine=True)  # its fast ones are for smaller trees

    def labels(self, predicted: Any) -> np.ndarray:
        columns = predicted > 0.5 if predicted.ndim == 1 else predicted.argmax(axis=1)
        return np.asarray(self._estimator.label_classes())[columns.astype(int)].astype(int)


class H2o(Model):
    """Runs in a Java process; its frames are loaded before the clock starts."""

    def __init__(self, max_depth: int = 0) -> None:
        super().__init__(partial(_h2o, max_depth))
        self._h2o = importlib.import_module("h2o")
        self._h2o.init(nthreads=-1, verbose=False, **_java_heap())
        self._h2o.no_progress()

    def prepare(self, x: np.ndarray, y: np.ndarray | None) -> Any:
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])
        if y is not None:
            frame["y"] = y
        frame = self._h2o.H2OFrame(frame)
        if y is not None:
            frame["y"] = frame["y"].asfactor()
        return frame

    def fit(self, data: Any, seed: int) -> None:
        self._estimator = self._make(seed, (data.nrow, data.ncol - 1))
        self._estimator.train(y="y", training_frame=data)

    def predict(self, data: Any) -> Any:
        return self._estimator.predict(data)

    def labels(self, predicted: Any) -> np.ndarray:
        return predicted["predict"].as_data_frame()["predict"].to_numpy().astype(int)

    def close(self) -> None:
        self._h2o.cluster().shutdown()


@dataclass(frozen=True)
class Rival:
    """A model of the comparison; `ours` names the model of ours it is measured against."""

    make: Callable[[], Model]
    module: str
    note: str = ""
    optional: bool = False
    ours: str = "oldgrowth"
    sets: tuple[str, ...] | None = None
    in_process: bool = True
    program: str | None = None

    def takes_part(self, set_name: str) -> bool:
        return self.sets is None or set_name in self.sets

    def missing(self) -> str | None:
        """What must be installed first."""
        if self.program is not None and shutil.which(self.program) is None:
            return self.program
        if self.module == "ranger":
            command = ["Rscript", "-e", "library(ranger)"]
            found = subprocess.run(command, capture_output=True, check=False).returncode == 0
        else:
            found = importlib.util.find_spec(self.module) is not None
        return None if found else self.module


def _estimator(module: str, name: str) -> Callable[[], Model]:
    def make(seed: int, shape: tuple[int, int]) -> Any:
        forest = getattr(importlib.import_module(module), name)
        return forest(n_estimators=TREES, n_jobs=-1, random_state=seed)

    return lambda: Model(make)


def _ours(settings: Callable[[tuple[int, int]], dict[str, Any]]) -> Callable[[], Model]:
    """Our forest with settings that depend on the number of rows and features."""

    def make(seed: int, shape: tuple[int, int]) -> Any:
        forest = importlib.import_module("oldgrowth").RandomForestClassifier
        return forest(n_estimators=TREES, random_state=seed, **settings(shape))

    return lambda: Model(make)


def _one_bucket(shape: tuple[int, int]) -> dict[str, Any]:
    return {"bucket_size": shape[0]}


def _as_ydf(shape: tuple[int, int]) -> dict[str, Any]:
    return {"criterion": "entropy", "max_features": math.ceil(math.sqrt(shape[1]))}


def _subsets(rows: int) -> Callable[[], Model]:
    def make(seed: int, shape: tuple[int, int]) -> Any:
        forest = importlib.import_module("oldgrowth").SubsetForestClassifier
        return forest(n_estimators=TREES, subset_size=rows, random_state=seed)

    return lambda: Model(make)


def _lightgbm(seed: int, shape: tuple[int, int]) -> Any:
    return importlib.import_module("lightgbm").LGBMClassifier(
        boosting_type="rf",
        n_estimators=TREES,
        # 131,072 is the most it allows; it pays for leaves it does not grow, so never more than rows.
        num_leaves=min(131_072, shape[0]),
        min_child_samples=1,
        min_child_weight=0.0,
        subsample=0.632,  # distinct rows in a bootstrap; it samples without replacement
        subsample_freq=1,
        feature_fraction_bynode=1 / math.sqrt(shape[1]),
        histogram_pool_size=1024,  # MB; without a limit it keeps the histograms of all leaves
        n_jobs=os.cpu_count(),
        random_state=seed,
        verbose=-1,
    )


def _xgboost(seed: int, shape: tuple[int, int]) -> Any:
    return importlib.import_module("xgboost").XGBRFClassifier(
        n_estimators=TREES,
        max_depth=0,
        min_child_weight=0.0,
        subsample=0.632,  # distinct rows in a bootstrap; it samples without replacement
        colsample_bynode=1 / math.sqrt(shape[1]),
        n_jobs=-1,
        random_state=seed,
    )


def _ydf(seed: int, shape: tuple[int, int]) -> Any:
    ydf = importlib.import_module("ydf")
    ydf.verbose(0)
    return ydf.RandomForestLearner(
        label="y",
        num_trees=TREES,
        max_depth=-1,
        min_examples=1,
        compute_oob_performances=False,  # on by default, and the others do not compute them
        num_threads=os.cpu_count(),
        random_seed=seed,
    )


def _h2o(max_depth: int, seed: int, shape: tuple[int, int]) -> Any:
    return importlib.import_module("h2o.estimators").H2ORandomForestEstimator(
        ntrees=TREES, max_depth=max_depth, min_rows=1, seed=seed
    )


def _java_heap() -> dict[str, str]:
    """Most of the memory limit of this process, if any; by default Java takes a quarter of the machine."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return {} if limit == resource.RLIM_INFINITY else {"max_mem_size": f"{limit * 17 // 20 >> 20}M"}


def _no_model() -> Model:
    raise NotImplementedError("ranger is measured by ranger.R")


IN_JAVA = "binned, a tree per class, memory as Java takes it"
JAVA = {"optional": True, "in_process": False, "program": "java"}
R = {"optional": True, "in_process": False, "program": "Rscript"}
EXTRA = {"ours": "oldgrowth ExtraTrees", "sets": ("covtype",)}
RIVALS: dict[str, Rival] = {
    "oldgrowth": Rival(_estimator("oldgrowth", "RandomForestClassifier"), "oldgrowth"),
    "scikit-learn": Rival(_estimator("sklearn.ensemble", "RandomForestClassifier"), "sklearn"),
    "scikit-learn-intelex": Rival(
        _estimator("sklearnex.ensemble", "RandomForestClassifier"), "sklearnex", "256 bins a feature"
    ),
    "oldgrowth ExtraTrees": Rival(_estimator("oldgrowth", "ExtraTreesClassifier"), "oldgrowth", **EXTRA),
    "scikit-learn ExtraTrees": Rival(
        _estimator("sklearn.ensemble", "ExtraTreesClassifier"), "sklearn", **EXTRA
    ),
    "ydf": Rival(Ydf, "ydf", optional=True),
    "lightgbm": Rival(
        lambda: Model(_lightgbm),
        "lightgbm",
        "255 bins a feature, at most 131,072 leaves (made for far fewer), a tree per class, no bootstrap",
        optional=True,
    ),
    "xgboost": Rival(
        lambda: Model(_xgboost),
        "xgboost",
        "256 bins a feature, a tree per class, no bootstrap",
        optional=True,
    ),
    "h2o": Rival(H2o, "h2o", IN_JAVA, **JAVA),
    "h2o depth 20": Rival(partial(H2o, 20), "h2o", f"depth as in the paper, {IN_JAVA}", **JAVA),
    ONE_BUCKET: Rival(
        _ours(_one_bucket), "oldgrowth", "an ordinary forest, without top trees", optional=True
    ),
    AS_YDF: Rival(_ours(_as_ydf), "oldgrowth", "entropy, root of the features rounded up", optional=True),
    # The baseline, with the paper's sizes for covtype and for its larger sets.
    "subsets of 50,000": Rival(_subsets(50_000), "oldgrowth", "trees on random subsets", optional=True),
    "subsets of 500,000": Rival(_subsets(500_000), "oldgrowth", "trees on random subsets", optional=True),
    "ranger": Rival(_no_model, "ranger", "float64 features", **R),
}


def installed(wanted: Iterable[str], say: Callable[[str], Any]) -> list[str]:
    """Those models that can run here; `say` is called with what the others lack."""
    found = []
    for name in wanted:
        missing = RIVALS[name].missing()
        if missing is None:
            found.append(name)
        else:
            say(f"{name} is left out: {missing} is not installed.")
    return found
