"""The models of the comparison on tables: each is given a frame with text columns, and returns probabilities.

"as ydf" has YDF's criterion, entropy, and as many features in each split as YDF searches: the root of all,
rounded up, plus one (its loop over the candidates ends when the number left is below 0).
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

TREES = 50
AS_YDF = "oldgrowth, as ydf"


class Forest:
    """Our forest with categories."""

    def __init__(self, as_ydf: bool = False, **settings: Any) -> None:
        self._as_ydf, self._settings = as_ydf, settings

    def made(self, seed: int, width: int) -> Any:
        settings = dict(self._settings)
        if self._as_ydf:
            settings |= {"criterion": "entropy", "max_features": math.ceil(math.sqrt(width)) + 1}
        kind = importlib.import_module("oldgrowth").RandomForestClassifier
        return kind(n_estimators=TREES, random_state=seed, **settings)

    def encode(self, train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
        """What the library takes; not timed."""
        return train, test

    def fit(self, x: Any, y: np.ndarray, seed: int) -> None:
        self._model = self.made(seed, x.shape[1])
        self._model.fit(x, y)

    def predict(self, x: Any) -> np.ndarray:
        return self._model.predict_proba(x)


class Ordinal(Forest):
    """The same columns as numbers: text has the codes of its alphabetical order."""

    def encode(self, train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
        preprocessing = importlib.import_module("sklearn.preprocessing")
        text = text_columns(train)
        encoder = preprocessing.OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
        ).fit(train[text])
        return self._coded(encoder, text, train), self._coded(encoder, text, test)

    @staticmethod
    def _coded(encoder: Any, text: list[str], frame: pd.DataFrame) -> np.ndarray:
        frame = frame.copy()
        frame[text] = encoder.transform(frame[text])
        return np.ascontiguousarray(frame.to_numpy(dtype=np.float32))


class SklearnOrdinal(Ordinal):
    def made(self, seed: int, width: int) -> Any:
        forest = importlib.import_module("sklearn.ensemble").RandomForestClassifier
        return forest(n_estimators=TREES, n_jobs=-1, random_state=seed)


class SklearnOneHot(SklearnOrdinal):
    def encode(self, train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
        compose = importlib.import_module("sklearn.compose")
        preprocessing = importlib.import_module("sklearn.preprocessing")
        one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
        encoder = compose.ColumnTransformer(
            [("text", one_hot, text_columns(train))], remainder="passthrough", sparse_threshold=1.0
        ).fit(train)
        return tuple(encoder.transform(frame).tocsr().astype(np.float32) for frame in (train, test))


class Ydf(Forest):
    def __init__(self, algorithm: str) -> None:
        super().__init__()
        self._algorithm = algorithm

    def encode(self, train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
        text = text_columns(train)
        return tuple(frame.assign(**{c: frame[c].fillna("") for c in text}) for frame in (train, test))

    def fit(self, x: Any, y: np.ndarray, seed: int) -> None:
        ydf = importlib.import_module("ydf")
        ydf.verbose(0)
        self._model = ydf.RandomForestLearner(
            label="label",
            num_trees=TREES,
            max_depth=-1,
            min_examples=1,
            categorical_algorithm=self._algorithm,
            winner_take_all=False,  # shares of classes, as the others
            compute_oob_performances=False,
            max_vocab_count=-1,
            min_vocab_frequency=1,
            num_threads=os.cpu_count(),
            random_seed=seed,
        ).train(x.assign(label=y))

    def predict(self, x: Any) -> np.ndarray:
        try:
            found = self._model.predict(x)
        except ValueError as error:
            if "too many nodes" not in str(error):
                raise
            found = self._model.predict(x, use_slow_engine=True)  # its fast ones are for smaller trees
        if found.ndim == 1:
            return np.stack([1 - found, found], axis=1)
        return found[:, np.argsort(np.array(self._model.label_classes()).astype(int))]


@dataclass(frozen=True)
class TableModel:
    """A model; its times are shown as multiples of those of `against`."""

    make: Callable[[], Forest]
    against: str
    module: str = "oldgrowth"


MODELS = {
    "oldgrowth": TableModel(Forest, "oldgrowth"),
    "oldgrowth, ordinal": TableModel(Ordinal, "oldgrowth"),
    AS_YDF: TableModel(lambda: Forest(as_ydf=True), AS_YDF),
    f"{AS_YDF}, ordinal": TableModel(lambda: Ordinal(as_ydf=True), AS_YDF),
    "ydf, in order of the target": TableModel(lambda: Ydf("CART"), AS_YDF, "ydf"),
    "ydf, random sets": TableModel(lambda: Ydf("RANDOM"), AS_YDF, "ydf"),
    "scikit-learn, ordinal": TableModel(SklearnOrdinal, "oldgrowth", "sklearn"),
    "scikit-learn, one-hot": TableModel(SklearnOneHot, "oldgrowth", "sklearn"),
}


def text_columns(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]


def left_out(name: str, say: Callable[[str], Any]) -> bool:
    """Whether a model cannot run here, for lack of its library."""
    module = MODELS[name].module
    missing = importlib.util.find_spec(module) is None
    if missing:
        say(f"{name} is left out: {module} is not installed.")
    return missing
