"""Arrays and data frames given to estimators."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trial import NAMES, Trial, X, Y, classifier, frame, opens, regressor

from oldgrowth import errors, open_dataset, plot

TEXT = frame(b="red", c=["u", "v"] * 20)[NAMES]
DATE = pd.Timestamp("2020-01-01")
HIDDEN = np.ma.masked_array(X, np.arange(X.size).reshape(X.shape) == 7)
HIDDEN_SIDE = np.ma.masked_array(Y, np.arange(len(Y)) == 7)
LABELS = np.where(Y, "wet", "dry")


def fits(name, x, y=Y, model=classifier, **parameters):
    return Trial(f"fit {name}", lambda: model(**parameters).fit(x, y).predict(x).shape, result=(len(y),))


def fit_refused(name, x, *words, y=Y, error=errors.DataError, model=classifier, weight=None, **parameters):
    return Trial(f"fit {name}", lambda: model(**parameters).fit(x, y, weight), error=error, words=words)


def used(name, call, *words, error=errors.DataError):
    """Uses a forest that was fitted on arrays."""
    return Trial(name, lambda: call(classifier().fit(X, Y)), error=error, words=words)


def named(name, x, *words, error=errors.DataError):
    """Predicts with a forest that was fitted on a frame."""
    return Trial(
        f"predict {name}",
        lambda: classifier().fit(frame()[NAMES], Y).predict(x),
        error=error,
        words=words,
    )


def after_text(name, call, *words, result=None):
    """Uses a forest that was fitted on a frame with text."""
    error = None if result else errors.DataError
    return Trial(
        f"predict {name}", lambda: call(classifier().fit(TEXT, Y)), error=error, words=words, result=result
    )


def dataset():
    return open_dataset(np.c_[X, Y], target=3)


TRIALS = [
    fits("float32", X),
    fits("float64", X.astype(float)),
    fits("Fortran order", np.asfortranarray(X)),
    fits("a view with steps", np.repeat(X, 2, axis=1)[:, ::2]),
    fits("bytes", (X * 10).astype(np.int8)),
    fits("bools", X > 0),
    fits("objects that are numbers", X.astype(object)),
    fits("lists", X.tolist()),
    fits("missing values", np.where(X > 1, np.nan, X)),
    fits("a pandas frame", frame()[NAMES]),
    fits("a frame with names that are numbers", pd.DataFrame(X)),
    fits("a frame of categories that are numbers", frame(b=pd.Categorical([1, 2] * 20))[NAMES]),
    fits("a polars frame", pl.DataFrame(X, schema=NAMES)),
    fits("an Arrow table", pa.table({name: X[:, i] for i, name in enumerate(NAMES)})),
    fits("text labels", X, LABELS),
    fits("bool labels", X, Y > 0),
    fits("labels as objects", X, LABELS.astype(object)),
    fits("labels in a series", X, pd.Series(LABELS)),
    fits("labels in a column", X, Y[:, None]),
    fits("a regression", X, X[:, 0], regressor),
    fits("a regression of ints", X, Y, regressor),
    fits("one class", X, np.zeros(40, int)),
    fits("text columns of a frame", TEXT),
    fits("text columns, regression", TEXT, X[:, 0], model=regressor),
    fits("text columns of polars", pl.from_pandas(TEXT)),
    fits("a text column of Arrow", pa.table({"a": X[:, 0], "b": ["x"] * 40})),
    fits("categories that are text", frame(b=pd.Categorical(["u", "v"] * 20))[NAMES]),
    fits("text in an array", np.array([["u", "red"]] * 40)),
    fits("text in an array of objects", np.array([[1, "red"]] * 40, dtype=object)),
    fits("text in a list", [[1.5, "red"], [2, None]] * 20),
    fit_refused(
        "text that is to be numbers",
        TEXT,
        "'b'",
        "categorical_features",
        error=errors.TextColumnsError,
        categorical_features=None,
    ),
    fit_refused(
        "text that is not named",
        TEXT,
        "'b'",
        "not in categorical_features",
        error=errors.TextColumnsError,
        categorical_features=["a"],
    ),
    fit_refused(
        "a category that is no feature",
        TEXT,
        "'z'",
        "'a'",
        error=errors.MissingColumnError,
        categorical_features=["z"],
    ),
    fit_refused(
        "a category beyond the features",
        X,
        "from 0 to 2",
        error=errors.ParameterError,
        categorical_features=[3],
    ),
    fit_refused(
        "a mask of another length", X, "3 bools", error=errors.ParameterError, categorical_features=[True]
    ),
    fit_refused(
        "categories that are a word",
        X,
        "categorical_features",
        error=errors.ParameterError,
        categorical_features=1.5,
    ),
    fit_refused(
        "text and numbers in a column",
        frame(b=[1, "red"] * 20)[NAMES],
        "'b'",
        "numbers and text",
        error=errors.NotNumbersError,
    ),
    fit_refused(
        "a date and text",
        frame(b="red", c=DATE)[NAMES],
        "'c'",
        "pd.to_datetime(X[c]",
        "['c']",
        error=errors.NotNumbersError,
    ),
    fit_refused(
        "two dates and a duration",
        frame(b=DATE, c=DATE, d=DATE - DATE)[[*NAMES, "d"]],
        "['b', 'c']",
        "X[c] / pd.Timedelta(days=1)",
    ),
    fit_refused(
        "a category of infinity",
        frame(b=np.inf)[NAMES],
        "'b'",
        "infinity",
        error=errors.InfiniteLevelError,
        categorical_features=["b"],
    ),
    fit_refused("dicts in a frame", frame(b=[{}] * 40)[NAMES], "'b'", "dict"),
    fit_refused("lists in a frame", frame(b=[[1]] * 40)[NAMES], "'b'"),
    fit_refused("dates", np.zeros((40, 2), "M8[s]"), "datetime64"),
    fit_refused("durations", np.zeros((40, 2), "m8[s]"), "timedelta64"),
    fit_refused("complex numbers", X.astype(complex), "Complex", "complex"),
    fits(
        "whole numbers of 128 bits",
        pl.DataFrame({"a": pl.Series([1] * 40, dtype=pl.Int128), "b": X[:, 0]}),
    ),
    *(
        fit_refused(
            f"{kind} of polars beside numbers",
            pl.DataFrame({"a": X[:, 0], "t": pl.Series([1] * 40).cast(kind)}),
            "'t'",
            str(kind),
            model=model,
        )
        for kind, model in ((pl.Datetime, classifier), (pl.Date, regressor), (pl.Duration, classifier))
    ),
    fit_refused("a struct of polars", pl.DataFrame({"a": X[:, 0], "s": [{"u": 1}] * 40}), "'s'", "Struct"),
    fits("decimals of polars", pl.DataFrame({"a": [Decimal("1.5"), Decimal(2)] * 20})),
    fits("decimals of polars beside numbers", pl.DataFrame({"a": [Decimal("1.5"), None] * 20, "b": X[:, 0]})),
    fits("decimals of Arrow", pa.table({"a": [Decimal("1.5"), None] * 20, "b": X[:, 0]})),
    fits("a column of Arrow without values", pa.table({"a": pa.nulls(40), "b": X[:, 0]})),
    fits(
        "decimals of pandas",
        frame(b=pd.Series([Decimal(1), Decimal(2)] * 20, dtype=pd.ArrowDtype(pa.decimal128(9, 2))))[NAMES],
    ),
    *(
        fit_refused(f"{kind} as {what}", X, "times", kind, y=np.arange(40).astype(kind), model=model)
        for kind in ("datetime64[ns]", "datetime64[D]", "timedelta64[ns]")
        for what, model in (("labels", classifier), ("values", regressor))
    ),
    fit_refused("durations as weights", X, "sample_weight", "times", weight=np.arange(40).astype("m8[ns]")),
    fit_refused("labels that are all missing", X, "row 0", "missing", y=np.array([None] * 40)),
    fit_refused("rows of different lengths", [[1, 2], [3]], "different lengths", y=[0, 1]),
    fit_refused("one dimension", X[:, 0], "1D", "reshape"),
    fit_refused("three dimensions", X[None], "dim 3"),
    fit_refused("infinity", np.where(X > 1, np.inf, X), "row", "infinity"),
    fit_refused("no rows", X[:0], "0 sample", y=Y[:0]),
    fit_refused("no columns", X[:, :0], "0 feature"),
    fit_refused("a frame without columns", pd.DataFrame(index=range(40)), "X"),
    *(
        fit_refused(f"X {value!r}", value, "X must be", "array or a data frame")
        for value in (None, 3, float("nan"), {"a": [1]}, {1}, b"x", True)
    ),
    fit_refused("a path", "train.csv", "open_dataset('train.csv'"),
    fit_refused("a function", lambda: iter([]), "open_dataset(function)"),
    fit_refused("a LazyFrame", pl.DataFrame(X).lazy(), "open_dataset(frame"),
    fit_refused(
        "labels of different kinds",
        X,
        "different kinds",
        "numbers",
        "text",
        y=np.array([1, "a"] * 20, dtype=object),
    ),
    fit_refused("a missing label", X, "row 1", "missing", y=np.array(["a", None] * 20, dtype=object)),
    fit_refused("labels that are not whole", X, "continuous", y=X[:, 0]),
    fit_refused("NaN labels", X, "NaN", y=np.full(40, np.nan)),
    fit_refused("no labels", X, "y", "None", y=None),
    fit_refused("too few labels", X, "X has 40 rows, but y has 5 values", y=Y[:5]),
    fit_refused("too few values", X, "X has 40 rows, but y has 1 value.", y=Y[:1], model=regressor),
    fit_refused("a NaN label", X, "row 3", "label", y=np.where(np.arange(40) == 3, np.nan, Y)),
    fit_refused(
        "an infinite value",
        X,
        "row 3",
        "infinity",
        y=np.where(np.arange(40) == 3, np.inf, Y),
        model=regressor,
    ),
    fit_refused("decimals as labels", X, "Decimal", "row 0", y=[Decimal(1), Decimal(2)] * 20),
    fit_refused("labels beyond 64 bits", X, str(2**70), "row 0", "text", y=[2**70, 2**70 + 1] * 20),
    fit_refused("text as weights", X, "sample_weight", "text", "'a' in row 0", weight=["a"] * 40),
    fit_refused("mixed weights", X, "'x' in row 39", weight=np.array([*[1.0] * 39, "x"], dtype=object)),
    fit_refused("a negative weight", X, "row 2", "-1.0", weight=[1.0, 1.0, -1.0, 1.0] * 10),
    Trial(
        "texts of polars that end in NUL",
        lambda: classifier().fit(X, pl.Series(["a", "a\0", "b", "b\0"] * 10)).classes_.tolist(),
        result=["a", "a\0", "b", "b\0"],
    ),
    Trial(
        "a dataset with texts of polars that end in NUL",
        lambda: classifier().fit(open_dataset(X, target=pl.Series(["a", "a\0"] * 20))).classes_.tolist(),
        result=["a", "a\0"],
    ),
    Trial(
        "labels of 128 bits",
        lambda: classifier().fit(X, pl.Series([1, 2] * 20, dtype=pl.Int128)).classes_.tolist(),
        result=[1, 2],
    ),
    Trial(
        "numbers as objects",
        lambda: classifier().fit(X, np.array([1, 2.0] * 20, dtype=object)).classes_.tolist(),
        result=[1, 2],
    ),
    Trial(
        "text of NumPy's type of any width",
        lambda: classifier().fit(X, np.array(["a", "b"] * 20, dtype=np.dtypes.StringDType())).n_classes_,
        result=2,
    ),
    Trial(
        "a score of labels as objects",
        lambda: (m := classifier().fit(X, Y)).score(X, Y.astype(object)) == m.score(X, Y) > 0.8,
        result=True,
    ),
    used("score fractions", lambda m: m.score(X, Y + 0.5), "not whole", "row 0"),
    used("score a dataset of fractions", lambda m: m.score(open_dataset(X, target=Y + 0.5)), "not whole"),
    used("confusion of fractions", lambda m: plot.confusion(m, X, Y + 0.5), "not whole"),
    used("score times", lambda m: m.score(X, np.arange(40).astype("M8[ns]")), "times"),
    used("score NaN", lambda m: m.score(X, Y * np.nan), "NaN", "row 0"),
    used("score too few labels", lambda m: m.score(X, Y[:5]), "40 rows", "5 values"),
    used("score with too few weights", lambda m: m.score(X, Y, Y[:5]), "sample_weight", "5 values"),
    used("score with a negative weight", lambda m: m.score(X, Y, -np.ones(40)), "sample_weight", "row 0"),
    *(
        Trial(
            f"score a regression, {name}",
            lambda y=y, w=w: regressor().fit(X, Y).score(X, y, w),
            error=errors.DataError,
            words=words,
        )
        for name, y, w, words in (
            ("NaN", Y * np.nan, None, ("NaN", "row 0")),
            ("too few values", Y[:5], None, ("40 rows", "5 values")),
            ("a negative weight", Y, -np.ones(40), ("sample_weight", "row 0")),
        )
    ),
    Trial(
        "score a regression on objects",
        lambda: regressor().fit(X, Y).score(X, Y.astype(object)) > 0.5,
        result=True,
    ),
    Trial(
        "whole numbers as names, in another order",
        lambda: classifier().fit(pd.DataFrame(X), Y).predict(pd.DataFrame(X)[[2, 1, 0]]),
        error=errors.DataError,
        words=("2, 1 and 0", "0, 1 and 2", "order"),
    ),
    Trial("whole numbers as names", lambda: classifier().fit(pd.DataFrame(X), Y).score(pd.DataFrame(X), Y)),
    Trial(
        "a thousand columns that are not there",
        lambda: open_dataset(
            pa.table({f"c{i}": [0.0] for i in range(1000)}), features=[f"q{i}" for i in range(1000)]
        ),
        error=errors.MissingColumnError,
        words=("'q0'", "990 more"),
    ),
    fit_refused("labels of two columns", X, "y has 3 columns", y=X.astype(int)),
    fit_refused("the name of a column as y", X, "y must have", "'label'", "open_dataset", y="label"),
    fit_refused("a dict as y", X, "y must have", "got {}", y={}),
    fit_refused("a number as y", X, "y must have", "got 3", y=3),
    fit_refused("text values, regression", X, "text", "'wet'", y=LABELS, model=regressor),
    fit_refused(
        "mixed values, regression",
        X,
        "'q'",
        "row 1",
        y=np.array([1, "q"] * 20, dtype=object),
        model=regressor,
    ),
    fit_refused("dates as values", X, "datetime", y=np.zeros(40, "M8[s]"), model=regressor),
    *(
        fit_refused(f"weights {kind}", X, "weight", weight=value)
        for kind, value in (
            ("text", ["a"] * 40),
            ("a dict", {}),
            ("a word", "a"),
            ("too few", [1.0]),
            ("of two columns", X),
            ("NaN", np.full(40, np.nan)),
            ("negative", -np.ones(40)),
        )
    ),
    used("predict too few columns", lambda m: m.predict(X[:, :2]), "2 features", "3"),
    used(
        "predict text",
        lambda m: m.predict([["a", "b", "c"]]),
        "'a'",
        "'b'",
        "'c'",
        error=errors.NotNumbersError,
    ),
    used("predict one row without its dimension", lambda m: m.predict(X[0]), "reshape"),
    used("predict nothing", lambda m: m.predict(None), "got None"),
    used("predict a path", lambda m: m.predict("test.csv"), "open_dataset('test.csv'"),
    used("predict_proba text", lambda m: m.predict_proba(TEXT), "'b'", "'c'"),
    used("apply text", lambda m: m.apply(TEXT), "'b'", "'c'"),
    used(
        "predict a dataset of other columns", lambda m: m.predict(open_dataset(X[:, :2])), "2 features", "3"
    ),
    used("score without labels", lambda m: m.score(X), "y"),
    used("score text after numbers", lambda m: m.score(X, LABELS), "text"),
    used("score a dataset and y", lambda m: m.score(dataset(), Y), "y"),
    used("score a dataset and weights", lambda m: m.score(dataset(), None, Y), "sample_weight"),
    used("score a dataset without a target", lambda m: m.score(open_dataset(X)), "target"),
    used(
        "unknown voting",
        lambda m: m.set_params(voting="banana").predict(X),
        "voting must be one of 'soft', 'hard'; got 'banana'",
        error=errors.ParameterError,
    ),
    used(
        "a memory limit that is none",
        lambda m: m.set_params(memory_limit="much").predict(X),
        "memory_limit",
        error=errors.ParameterError,
    ),
    used(
        "jobs that are none",
        lambda m: m.set_params(n_jobs=0).predict(X),
        "n_jobs",
        error=errors.ParameterError,
    ),
    named("columns in another order", frame()[["b", "a", "c"]], "same order"),
    named("a column too many", frame(), "y"),
    named("a text column", frame(b="red")[NAMES], "'b'", "'red'"),
    after_text("words", lambda m: m.predict(TEXT).shape, result=(40,)),
    after_text("other text", lambda m: m.predict(TEXT.assign(b="blue", c=None)).shape, result=(40,)),
    after_text(
        "text as codes", lambda m: m.predict(frame()[NAMES]), "'b'", "levels of this feature are text"
    ),
    after_text("text as an array of numbers", lambda m: m.predict(X), "levels of this feature are text"),
    after_text("text in one column alone", lambda m: m.predict(frame(b="red")[NAMES]), "'c'"),
    after_text(
        "text where numbers were", lambda m: m.predict(TEXT.assign(a="red")), "'a'", "learned numbers"
    ),
    after_text("a date where text was", lambda m: m.predict(TEXT.assign(b=DATE)), "'b'", "pd.to_datetime"),
    after_text("one row without its dimension, after text", lambda m: m.predict(X[0]), "reshape"),
    after_text(
        "a dataset of numbers, after text",
        lambda m: m.predict(open_dataset(frame()[NAMES])),
        "'b'",
        "are text",
    ),
    Trial(
        "score a regression on text",
        lambda: regressor().fit(X, Y).score(X, LABELS),
        error=errors.DataError,
        words=("text",),
    ),
    Trial(
        "score a regression on a dataset of text",
        lambda: regressor().fit(X, Y).score(open_dataset(X, target=LABELS)),
        error=errors.DataError,
        words=("text",),
    ),
    fits("a masked array without masked values", np.ma.masked_array(X, np.inf < X)),
    fits("a masked array with missing values", HIDDEN.astype(float).filled(np.nan)),
    fit_refused("masked values", HIDDEN, "X", "1 masked value", "filled"),
    fit_refused("masked values of a regression", HIDDEN, "X", "masked", model=regressor),
    fit_refused("masked labels", X, "y", "1 masked value", y=HIDDEN_SIDE),
    fit_refused("masked weights", X, "sample_weight", "masked", weight=HIDDEN_SIDE),
    fit_refused("one column of a frame", pd.Series(X[:, 0]), "one dimension", "to_frame"),
    used("predict masked values", lambda forest: forest.predict(HIDDEN), "X", "masked"),
    used("score masked values", lambda forest: forest.score(HIDDEN, Y), "X", "masked"),
    used("score masked labels", lambda forest: forest.score(X, HIDDEN_SIDE), "y", "masked"),
    *(
        Trial(f"open {name}", call, error=errors.DataError, words=(name, "masked"))
        for name, call in {
            "source": lambda: open_dataset(HIDDEN),
            "target": lambda: open_dataset(X, target=HIDDEN_SIDE),
            "weight": lambda: open_dataset(X, weight=HIDDEN_SIDE),
            "X of batch 0": lambda: open_dataset(lambda: iter([HIDDEN])),
            "y of batch 0": lambda: open_dataset(lambda: iter([(X, HIDDEN_SIDE)])),
        }.items()
    ),
    Trial(
        "fit a dataset and y",
        lambda: classifier().fit(dataset(), Y),
        error=errors.DataError,
        words=("y", "dataset"),
    ),
    Trial(
        "fit a dataset without a target",
        lambda: classifier().fit(open_dataset(X)),
        error=errors.DataError,
        words=("target",),
    ),
    Trial(
        "a grid search on a dataset",
        lambda: GridSearchCV(classifier(), {"max_depth": [1]}).fit(dataset()),
        error=errors.DataError,
        words=("GridSearchCV", "arrays"),
    ),
    Trial(
        "cross validation of a dataset",
        lambda: cross_val_score(classifier(), dataset()),
        error=errors.DataError,
        words=("cross_val_score",),
    ),
    Trial(
        "splitting a dataset",
        lambda: train_test_split(dataset()),
        error=errors.DataError,
        words=("train_test_split",),
    ),
    Trial(
        "a pipeline on a dataset",
        lambda: make_pipeline(StandardScaler(), classifier()).fit(dataset()),
        error=errors.DataError,
        words=("pipelines",),
    ),
    Trial(
        "a grid search on arrays",
        lambda: GridSearchCV(classifier(), {"max_depth": [1, 2]}, cv=2).fit(X, Y).best_score_ > 0,
        result=True,
    ),
    Trial(
        "a pipeline on arrays",
        lambda: make_pipeline(StandardScaler(), classifier()).fit(X, Y).score(X, Y) > 0.5,
        result=True,
    ),
    Trial(
        "an array opened with its target",
        opens(np.c_[X, Y], target=3),
        result=(X[0].tolist(), float(Y[0]), 40),
    ),
]
