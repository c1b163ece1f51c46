"""Nothing is silently lost or mixed up: rows, labels, columns and files of others."""

from __future__ import annotations

import bz2
import os
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from trial import NAMES, Trial, X, Y, classifier, frame, opens, regressor, writes

from oldgrowth import ExtraTreesClassifier, RandomForestRegressor, SubsetForestRegressor, errors, open_dataset


def classes(source, **options):
    """The labels of a forest that was fitted on a dataset."""
    return lambda: classifier().fit(open_dataset(source, target="y", **options)).classes_.tolist()


def labelled(*labels):
    return pd.DataFrame({"a": np.arange(6.0), "y": list(labels) * (6 // len(labels))})


def csv(*labels):
    return "a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(list(labels) * 3))


def rows_of(source):
    return lambda: sum(batch.rows for batch in open_dataset(source, target="y").batches(1000))


def folder(*more):
    def make():
        os.mkdir("d")
        frame().to_csv("d/a.csv", index=False)
        for name, content in more:
            Path("d", name).write_bytes(content)

    return make


def links():
    folder()()
    os.symlink("..", "d/up")
    os.symlink(".", "d/self")


def pipe():
    os.mkdir("d")
    os.mkfifo("d/x.parquet")


def mine():
    os.mkdir("ck")
    for name in ("finished", "sample.npz", "trees.log", "top-1.npz", "lock", "checkpoint.json", "thesis.txt"):
        Path("ck", name).write_text("mine")


def warned(call, *words):
    """Whether a call gives a warning with these words."""

    def tried():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return any(all(word in str(item.message) for word in words) for item in caught)

    return tried


def unknown(kind, name, *words):
    return Trial(
        f"{kind.__name__} {name}",
        lambda: kind(**{name: 1}),
        error=errors.UnknownParameterError,
        words=(name, *words),
    )


PACKED = bz2.compress(frame().to_csv(index=False).encode())
PAIR = [Decimal("1000000000000000000001"), Decimal("1000000000000000000002")]

TRIALS = [
    Trial(
        "labels 007 and 7 stay apart as text",
        classes("t.csv", types={"y": "string"}),
        writes("t.csv", csv("007", "07", "7")),
        result=["007", "07", "7"],
    ),
    Trial(
        "labels 007 and 7 are not one",
        classes("t.csv"),
        writes("t.csv", csv("007", "07", "7")),
        errors.DataError,
        ("007", "t.csv"),
    ),
    Trial(
        "labels beyond int64 are not one",
        classes("t.csv"),
        writes("t.csv", csv(2**70, 2**70 + 1)),
        errors.DataError,
        ("t.csv",),
    ),
    *(
        Trial(
            f"levels {one} and {other} are not one",
            lambda: classifier(categorical_features=["y"]).fit(open_dataset("t.csv", target="a")),
            writes("t.csv", csv(one, other)),
            errors.SameLevelError,
            (str(one), str(other), "'y'", "t.csv", "types"),
        )
        for one, other in (("007", "7"), (2**60, 2**60 + 1))
    ),
    Trial("labels around 2**60", classes(labelled(2**60, 2**60 + 1)), result=[2**60, 2**60 + 1]),
    Trial("labels with a NUL", classes(labelled("a", "a\0")), result=["a", "a\0"]),
    Trial(
        "labels of two batches",
        lambda: len(
            classifier()
            .fit(
                open_dataset(
                    lambda: iter(
                        [
                            (X[:2], np.array([2**60, 2**60 + 1])),
                            (X[:2], np.array([2**60 + 2, 2**60 + 3], np.uint64)),
                        ]
                    )
                )
            )
            .classes_
        ),
        result=4,
    ),
    Trial(
        "decimals that floats round",
        classes(pa.table({"a": [1.0, 2.0], "y": PAIR})),
        error=errors.DataError,
        words=("1000000000000000000001", "'y'"),
    ),
    Trial("text labels with blanks stay apart", classes(labelled("a", "a ")), result=["a", "a "]),
    Trial("bool labels", classes(labelled(True, False)), result=[False, True]),
    Trial("a file of every codec is read", rows_of("d"), folder(("b.csv.bz2", PACKED)), result=80),
    Trial(
        "a file that cannot be read is said",
        rows_of("d"),
        folder(("b.csv.xz", b"\xfd7zXZ")),
        errors.DataError,
        ("b.csv.xz",),
    ),
    Trial("links to a directory are followed once", rows_of("d"), links, result=40),
    Trial("a pipe is no file", rows_of("d"), pipe, errors.DataError, ("x.parquet", "pipe")),
    Trial("a pipe by its name", rows_of("d/x.parquet"), pipe, errors.DataError, ("x.parquet", "pipe")),
    Trial(
        "a checkpoint among other files",
        lambda: classifier(checkpoint_dir="ck").fit(X, Y),
        mine,
        errors.CheckpointError,
        ("ck", "other files"),
    ),
    Trial(
        "other files are what they were",
        lambda: [Path("ck", name).read_text() for name in sorted(os.listdir("ck"))],
        mine,
        result=["mine"] * 7,
    ),
    Trial(
        "a forest saved to a directory",
        lambda: classifier().fit(X, Y).save("d"),
        lambda: os.mkdir("d"),
        errors.ParameterError,
        ("path", "directory"),
    ),
    Trial(
        "a forest saved to a link to nowhere",
        lambda: classifier().fit(X, Y).save("f.og"),
        lambda: os.symlink("gone/f.og", "f.og"),
        errors.UnwritableFileError,
        ("f.og", "gone does not exist"),
    ),
    Trial(
        "a checkpoint that does not fit",
        lambda: classifier(checkpoint_dir="ck", spill_limit="1B").fit(X, Y),
        error=errors.DiskTooSmallError,
        words=("choose a checkpoint_dir", "spill_limit"),
    ),
    Trial(
        "a forest saved to the root",
        lambda: classifier().fit(X, Y).save("/"),
        error=errors.ParameterError,
        words=("path", "directory"),
    ),
    Trial(
        "many columns", lambda: open_dataset(pd.DataFrame(np.zeros((2, 20_000)))).n_features, result=20_000
    ),
    Trial(
        "a dask frame",
        lambda: open_dataset(dask_frame(), target="y"),
        error=errors.UnknownSourceError,
        words=("dask", "to_parquet", "compute()"),
    ),
    Trial(
        "fit a dask frame",
        lambda: classifier().fit(dask_frame()[NAMES], Y),
        error=errors.DataError,
        words=("dask", "to_parquet", "compute()"),
    ),
    Trial(
        "columns in another order draw a warning",
        warned(lambda: classifier().fit(X, Y).predict(open_dataset(frame()[["c", "a", "b"]])), "names"),
        result=True,
    ),
    Trial(
        "columns by name are put in order",
        lambda: (
            (
                classifier().fit(frame()[NAMES], Y).predict(open_dataset(frame()[["c", "a", "b"]]))
                == classifier().fit(X, Y).predict(X)
            )
            .all()
            .item()
        ),
        result=True,
    ),
    Trial(
        "a file twice is read twice",
        opens(["t.csv", "t.csv"], target="y"),
        writes("t.csv", csv(1, 2)),
        result=([0.0], 1, 12),
    ),
    *(
        Trial(
            f"{name} of {kind.__name__}",
            lambda kind=kind, name=name, value=value: kind(**{name: value}).fit(X, Y),
            error=errors.ParameterError,
            words=(name, str(value), way),
        )
        for kind in (ExtraTreesClassifier, RandomForestRegressor, SubsetForestRegressor)
        for name, value, way in (
            ("max_leaf_nodes", 3, "min_samples_leaf"),
            ("ccp_alpha", 0.1, "max_depth"),
            ("monotonic_cst", [1, 0, 0], "HistGradientBoosting"),
        )
    ),
    unknown(RandomForestRegressor, "n_trees", "n_estimators"),
    Trial(
        "set_params of another name",
        lambda: regressor().set_params(min_impurity_split=3),
        error=errors.UnknownParameterError,
        words=("min_impurity_split", "min_impurity_decrease"),
    ),
]


def dask_frame():
    import dask.dataframe

    return dask.dataframe.from_pandas(frame(), npartitions=2)
