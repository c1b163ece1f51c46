"""Files, directories and other sources given to open_dataset."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from trial import NAMES, Trial, X, Y, classifier, frame, opens, regressor, writes

from oldgrowth import errors, open_dataset

FIRST = (X[0].tolist(), int(Y[0]), 40)


def parquet(name="t.parquet", **columns):
    return lambda: frame(**columns).to_parquet(name, index=False)


def arrays(**members):
    return lambda: np.savez("t.npz", **members)


def hdf5(**datasets):
    def make():
        with h5py.File("t.h5", "w") as file:
            for name, values in datasets.items():
                file[name] = values

    return make


def archive(name, member):
    def make():
        with zipfile.ZipFile(name, "w") as file:
            file.writestr(member, "a,y\n1,2\n")

    return make


def denied():
    """Reads a file without permission, as another user if run by root."""
    root, path = os.geteuid() == 0, Path("/tmp") / f"oldgrowth-trial-{os.getpid()}.csv"
    path.write_text("a,y\n1,2\n")
    path.chmod(0)
    try:
        if root:
            os.seteuid(65534)
        open_dataset(path, target="y")
    finally:
        if root:
            os.seteuid(0)
        path.unlink()


def several(**names):
    def make():
        for name, columns in names.items():
            pd.DataFrame(columns).to_parquet(f"{name}.parquet")

    return make


def refused(name, source, error, *words, make=None, **options):
    return Trial(name, opens(source, **options), make, error, words)


def works(name, source, result=FIRST, make=None, **options):
    return Trial(name, opens(source, **{"target": "y", **options}), make, result=result)


COLUMNS = {**{name: X[:, i] for i, name in enumerate(NAMES)}, "y": Y}
BAD = {"u": pd.Timedelta(days=1), "v": pd.Timestamp("2020-01-01")}
BIG = [2**60, 2**60 + 1] * 20

TRIALS = [
    works("parquet", "t.parquet", make=parquet()),
    works("a path", Path("t.parquet"), make=parquet()),
    works("a glob", "*.parquet", make=parquet()),
    works("a directory", ".", make=parquet()),
    works("a list", ["t.parquet"], make=parquet()),
    works("feather", "t.feather", make=lambda: frame().to_feather("t.feather")),
    works("parquet without its ending", "rows", make=parquet("rows")),
    works("features in their order", "t.parquet", None, parquet(), features=["c", "a"]),
    Trial(
        "features of a generator",
        lambda: open_dataset("t.parquet", target="y", features=(n for n in "ba")).feature_names,
        parquet(),
        result=("b", "a"),
    ),
    works("npz", "t.npz", make=arrays(X=X, y=Y)),
    works("npz, another member", "t.npz", make=arrays(rows=X, y=Y), features="rows"),
    works("npz, another member in a list", "t.npz", make=arrays(rows=X, y=Y), features=["rows"]),
    works("npy and npy", "x.npy", make=lambda: (np.save("x.npy", X), np.save("y.npy", Y)), target="y.npy"),
    works("hdf5", "t.h5", make=hdf5(X=X, y=Y)),
    works("hdf5 of columns", "t.h5", make=hdf5(**COLUMNS)),
    works("hdf5, X by a link", "t.h5", make=hdf5(rows=X, X=h5py.SoftLink("/rows"), y=Y)),
    works(
        "hdf5, a column with two names",
        "t.h5",
        ([*X[0].tolist(), float(X[0, 0])], int(Y[0]), 40),
        hdf5(**COLUMNS, d=h5py.SoftLink("/a")),
    ),
    works(
        "hdf5, X in another file",
        "t.h5",
        make=lambda: (
            hdf5(s=h5py.SoftLink("/r"), r=X)(),
            os.rename("t.h5", "o.h5"),
            hdf5(X=h5py.ExternalLink("o.h5", "s"), y=Y)(),
        ),
        external_files=True,
    ),
    works(
        "hdf5, columns in a group of another file",
        "t.h5",
        make=lambda: (
            hdf5(**{f"g/{name}": COLUMNS[name] for name in NAMES})(),
            os.rename("t.h5", "o.h5"),
            hdf5(h=h5py.ExternalLink("o.h5", "/g"), y=Y)(),
        ),
        external_files=True,
    ),
    works(
        "hdf5, a broken link that is not asked for",
        "t.h5",
        make=hdf5(**COLUMNS, d=h5py.SoftLink("/nope")),
        features=NAMES,
    ),
    refused(
        "hdf5, X in another file without leave",
        "t.h5",
        errors.OtherFilesError,
        "t.h5 (X)",
        "o.h5",
        "external_files",
        make=hdf5(X=h5py.ExternalLink("o.h5", "X"), y=Y),
    ),
    refused(
        "hdf5, X in a file that is gone",
        "t.h5",
        errors.BrokenLinkError,
        "t.h5 (X)",
        "gone.h5",
        make=hdf5(X=h5py.ExternalLink("gone.h5", "X"), y=Y),
        external_files=True,
    ),
    refused(
        "hdf5, a column in another file by way of a group",
        "t.h5",
        errors.OtherFilesError,
        "(d)",
        make=hdf5(**COLUMNS, e=h5py.ExternalLink("o.h5", "/"), d=h5py.SoftLink("/e/a")),
    ),
    refused(
        "hdf5, a broken link",
        "t.h5",
        errors.BrokenLinkError,
        "(d)",
        "/nope",
        make=hdf5(**COLUMNS, d=h5py.SoftLink("/nope")),
        target="y",
    ),
    refused(
        "hdf5, links in a circle",
        "t.h5",
        errors.BrokenLinkError,
        "(d)",
        make=hdf5(**COLUMNS, d=h5py.SoftLink("/e"), e=h5py.SoftLink("/d")),
        target="y",
    ),
    refused(
        "hdf5, a broken link as target",
        "t.h5",
        errors.BrokenLinkError,
        "(t)",
        make=hdf5(X=X, t=h5py.SoftLink("/nope")),
        target="t",
    ),
    refused(
        "hdf5, a matrix that is not asked for",
        "t.h5",
        errors.NoMemberError,
        "'g/X'",
        "features",
        make=hdf5(**{"g/X": X, "g/y": Y}),
    ),
    refused(
        "hdf5, several columns that are not there",
        "t.h5",
        errors.MissingColumnError,
        "'zz' and 'ww'",
        make=hdf5(**COLUMNS),
        features=["zz", "ww"],
    ),
    works("a pandas frame", frame()),
    works("a polars frame", pl.from_pandas(frame())),
    works("a LazyFrame", pl.from_pandas(frame()).lazy()),
    works("an Arrow table", pa.table(COLUMNS)),
    works("a frame with numbers as names", pd.DataFrame(np.c_[X, Y]), None, target=3),
    works(
        "a frame with numbers as names, features", pd.DataFrame(np.c_[X, Y]), None, target=3, features=[0, 2]
    ),
    works("a function", lambda: iter([(X, Y)]), target=None),
    works(
        "whole numbers of 128 bits",
        pl.DataFrame({"a": pl.Series([7] * 40, dtype=pl.Int128), "y": Y}),
        ([7.0], int(Y[0]), 40),
    ),
    works(
        "a dictionary of decimals",
        pa.table({"a": pa.array([1, 2] * 20, pa.decimal128(5, 1)).dictionary_encode(), "y": Y}),
        ([1.0], int(Y[0]), 40),
    ),
    works(
        "a directory key=value",
        "d",
        None,
        lambda: (os.makedirs("d/k=1"), frame().to_parquet("d/k=1/t.parquet")),
    ),
    refused("no file", "nothing.parquet", errors.NoDataError, "nothing.parquet"),
    refused("an empty list", [], errors.NoDataError, "list of files"),
    refused("an empty directory", "d", errors.NoDataError, "d", make=lambda: os.mkdir("d")),
    refused("an empty path", "", errors.ParameterError, "source"),
    refused("NUL in a path", "a\0b", errors.ParameterError, "NUL"),
    refused("NUL in a list", ["a\0b"], errors.ParameterError, "NUL"),
    refused("nothing", None, errors.UnknownSourceError, "NoneType", "path"),
    *(
        refused(f"source {value!r}", value, errors.UnknownSourceError, type(value).__name__)
        for value in (3, 0.5, True, {}, {1}, b"t.csv", 1j, range(3))
    ),
    refused("a list of numbers", [1, 2], errors.UnknownSourceError, "paths", "numpy.array"),
    refused("a list of lists", [["t.csv"]], errors.UnknownSourceError, "paths"),
    refused("an iterator", iter([X]), errors.OnceOnlyError, "iterator"),
    refused("a generator", (x for x in [X]), errors.OnceOnlyError, "generator"),
    refused("an array of one dimension", X[:, 0], errors.DataError, "shape (40,)"),
    refused("an array of text", np.array([["a"]]), errors.TextColumnsError, "Column 0"),
    refused("an option that arrays do not have", X, errors.ParameterError, "delimiter", delimiter=";"),
    refused(
        "Excel",
        "t.xlsx",
        errors.UnknownSourceError,
        "t.xlsx",
        "Excel",
        "CSV",
        make=writes("t.xlsx", b"PK\x03\x04"),
    ),
    refused(
        "Excel without its ending",
        "book",
        errors.UnknownSourceError,
        "Excel",
        make=archive("book", "xl/workbook.xml"),
    ),
    refused(
        "csv.zip", "t.csv.zip", errors.UnknownSourceError, "zip", "unpack", make=archive("t.csv.zip", "t.csv")
    ),
    refused(
        "zip without its ending", "t", errors.UnknownSourceError, "zip", "t.csv", make=archive("t", "t.csv")
    ),
    refused(
        "npz that is another archive",
        "t.npz",
        errors.UnknownSourceError,
        "zip",
        make=archive("t.npz", "t.csv"),
    ),
    refused("json", "t.json", errors.UnknownSourceError, "JSON", "Parquet", make=writes("t.json", "[]")),
    refused("a pickle", "t.pkl", errors.UnknownSourceError, "pickle", make=writes("t.pkl", b"x")),
    refused("a forest", "t.og", errors.UnknownSourceError, "forest", make=writes("t.og", b"OLDGROW")),
    refused(
        "an unknown ending", "t.xyz", errors.UnknownSourceError, "format=", make=writes("t.xyz", "a,y\n1,2\n")
    ),
    refused(
        "two formats",
        ["t.parquet", "t.csv"],
        errors.UnknownSourceError,
        "t.csv",
        make=lambda: (parquet()(), writes("t.csv", "a,y\n1,2\n")()),
    ),
    refused(
        "not parquet",
        "t.parquet",
        errors.DamagedFileError,
        "t.parquet",
        make=writes("t.parquet", "hello " * 9),
    ),
    refused("empty parquet", "t.parquet", errors.DataError, "t.parquet", make=writes("t.parquet", b"")),
    refused("not npy", "t.npy", errors.DamagedFileError, "t.npy", make=writes("t.npy", b"hello " * 9)),
    refused(
        "npy of objects",
        "t.npy",
        errors.PythonObjectsError,
        "t.npy",
        "astype(float)",
        make=lambda: np.save("t.npy", np.array([[{}]]), allow_pickle=True),
    ),
    *(
        refused(
            f"npz with objects as {name}",
            "t.npz",
            errors.PythonObjectsError,
            f"t.npz ({name})",
            "astype(str)",
            make=arrays(**{"X": X, "y": Y, name: np.array([1, "a"] * 20, dtype=object)}),
        )
        for name in ("X", "y")
    ),
    works(
        "npz with other objects", "t.npz", make=arrays(X=X, y=Y, about=np.array({"by": "me"}, dtype=object))
    ),
    refused(
        "a target of objects",
        X,
        errors.PythonObjectsError,
        "y.npy",
        make=lambda: np.save("y.npy", np.array([1, "a"] * 20, dtype=object), allow_pickle=True),
        target="y.npy",
    ),
    refused(
        "a list as the target of a frame",
        frame(),
        errors.ParameterError,
        "got <list of 40 values>",
        "as a column",
        target=Y.tolist(),
    ),
    refused(
        "a target of polars' objects",
        pl.DataFrame({"a": X[:, 0], "y": pl.Series([1, "a"] * 20, dtype=pl.Object)}),
        errors.ColumnTypeError,
        "'y'",
        "Object of polars",
        target="y",
    ),
    *(
        refused(
            f"{role} by a number that is no name",
            pd.DataFrame(X),
            errors.MissingColumnError,
            f"no column{'s' if role == 'features' else ''} 9",
            "Its columns are 0, 1 and 2.",
            **{role: [9, 10] if role == "features" else 9},
        )
        for role in ("target", "features", "weight")
    ),
    refused(
        "a list of lists of features", X, errors.ParameterError, "which ['a']", "[['a']]", features=[["a"]]
    ),
    refused("not hdf5", "t.h5", errors.DamagedFileError, "t.h5", make=writes("t.h5", b"hello " * 9)),
    refused(
        "not feather",
        "t.feather",
        errors.DamagedFileError,
        "t.feather",
        make=writes("t.feather", b"hello " * 9),
    ),
    Trial("a file without permission", denied, error=errors.DataError, words=("cannot be read", "ermission")),
    refused(
        "bad columns of parquet",
        "t.parquet",
        errors.ColumnTypeError,
        "'u'",
        "duration",
        "'v'",
        "timestamp",
        "pl.scan_parquet('t.parquet')",
        make=parquet(**BAD),
        target="y",
    ),
    refused(
        "bad columns of feather",
        "t.feather",
        errors.ColumnTypeError,
        "'u'",
        "'v'",
        make=lambda: frame(**BAD).to_feather("t.feather"),
        target="y",
    ),
    refused("bad columns of a pandas frame", frame(**BAD), errors.ColumnTypeError, "'u'", "'v'", target="y"),
    refused(
        "bad columns of a polars frame",
        pl.from_pandas(frame(**BAD)),
        errors.ColumnTypeError,
        "'u'",
        "'v'",
        target="y",
    ),
    refused(
        "bad columns of a LazyFrame",
        pl.from_pandas(frame(**BAD)).lazy(),
        errors.ColumnTypeError,
        "'u'",
        "'v'",
        target="y",
    ),
    refused(
        "bad columns of hdf5",
        "t.h5",
        errors.TextColumnsError,
        "'u'",
        "'v'",
        make=hdf5(**COLUMNS, u=["x"] * 40, v=["y"] * 40),
        target="y",
    ),
    refused(
        "bad columns of a table",
        pa.table({"a": [1.0], "u": [[1]], "v": [b"y"]}),
        errors.ColumnTypeError,
        "'u'",
        "'v'",
    ),
    refused(
        "thirty bad columns",
        frame(**{f"t{i}": BAD["v"] for i in range(30)}),
        errors.ColumnTypeError,
        "30 columns",
        "'t0'",
        "10 more",
        target="y",
    ),
    refused(
        "objects of several kinds",
        frame(b=[1, "x"] * 20),
        errors.ColumnTypeError,
        "'b'",
        "int and str",
        "feature",
        target="y",
    ),
    refused(
        "a target of several kinds",
        frame(y=[1, "x"] * 20),
        errors.ColumnTypeError,
        "'y'",
        "cannot be a target",
        target="y",
    ),
    refused(
        "a weight that is text", frame(w="x"), errors.ColumnTypeError, "'w'", "weight", target="y", weight="w"
    ),
    refused(
        "two missing columns",
        "t.parquet",
        errors.MissingColumnError,
        "'x1'",
        "'x2'",
        make=parquet(),
        features=["x1", "x2"],
    ),
    refused(
        "a name that is close",
        "t.parquet",
        errors.MissingColumnError,
        "'lable'",
        "'label'",
        make=parquet(label=Y),
        target="lable",
    ),
    refused("a number for a name", frame(), errors.MissingColumnError, "no column 0", "'a'", target=0),
    refused(
        "a number for a feature",
        "t.parquet",
        errors.MissingColumnError,
        "no column 0",
        make=parquet(),
        features=[0],
    ),
    refused(
        "a number that is text in the frame",
        pd.DataFrame({"0": [1.0], "y": [0]}),
        errors.MissingColumnError,
        "'0'",
        "text",
        features=[0],
    ),
    refused(
        "the target as an array", frame(), errors.ParameterError, "target", "shape (40,)", "column", target=Y
    ),
    refused("the target as a series", frame(), errors.ParameterError, "target", "column", target=frame().y),
    refused(
        "the target as a list", "t.parquet", errors.ParameterError, "target", make=parquet(), target=[1, 2]
    ),
    refused("an empty target", "t.parquet", errors.ParameterError, "got ''", make=parquet(), target=""),
    *(
        refused(
            f"target {value!r}", "t.parquet", errors.ParameterError, "target", make=parquet(), target=value
        )
        for value in (0.5, float("nan"), True, b"y", {}, {"y"}, 1j)
    ),
    *(
        refused(
            f"weight {value!r}", "t.parquet", errors.ParameterError, "weight", make=parquet(), weight=value
        )
        for value in ("", 3, float("nan"), b"w", {}, [1])
    ),
    *(
        refused(
            f"features {value!r}",
            "t.parquet",
            errors.ParameterError,
            "features",
            make=parquet(),
            features=value,
        )
        for value in ([["a"]], "a", "", 3, b"a", {"a": 1}, {"a"}, [None], [0.5], [True])
    ),
    refused(
        "features that are none", "t.parquet", errors.NoDataError, "feature", make=parquet(), features=[]
    ),
    refused(
        "a feature twice",
        "t.parquet",
        errors.DuplicateColumnError,
        "'a'",
        make=parquet(),
        features=["a", "a"],
    ),
    refused("a column of an array twice", X, errors.ParameterError, "features", features=[0, 0]),
    refused(
        "weight is the target", frame(), errors.DataError, "'y'", "target", "weight", target="y", weight="y"
    ),
    refused("a feature is the target", frame(), errors.DataError, "'y'", target="y", features=["a", "y"]),
    refused(
        "npz without X",
        "t.npz",
        errors.NoMemberError,
        "t.npz",
        "'rows'",
        "features='rows'",
        make=arrays(rows=X, y=Y),
    ),
    refused(
        "a member that is not there",
        "t.npz",
        errors.MissingColumnError,
        "member 'z'",
        "'y'",
        make=arrays(X=X, y=Y),
        target="z",
    ),
    refused(
        "a dataset that is not there",
        "t.h5",
        errors.MissingColumnError,
        "dataset 'z'",
        make=hdf5(X=X, y=Y),
        target="z",
    ),
    refused("labels of another length", X, errors.DataError, "(3,)", "40 rows", target=Y[:3]),
    refused("a column of X that is not there", X, errors.ParameterError, "target must be", "got 7", target=7),
    refused(
        "files with other columns",
        ".",
        errors.DifferentFilesError,
        "'b'",
        "2.parquet",
        make=several(**{"1": {"a": [1], "b": [1]}, "2": {"a": [1]}}),
    ),
    refused(
        "no rows", pd.DataFrame({"a": [], "y": []}, dtype=float), errors.NoDataError, "no rows", target="y"
    ),
    refused("a function that fails", lambda: 1 / 0, errors.FailedBatchError, "ZeroDivisionError"),
    refused("a function of no batch", lambda: iter([]), errors.NoDataError, "no batch"),
    refused(
        "a function of text",
        lambda: iter([np.array([["a"]])]),
        errors.TextColumnsError,
        "Column 0 of the callable",
    ),
    refused("a class", dict, errors.UnknownSourceError, "type"),
    Trial(
        "labels that differ beyond 2**53",
        lambda: len(classifier().fit(open_dataset(frame(y=BIG), target="y")).classes_),
        result=2,
    ),
    Trial(
        "text targets of a regression",
        lambda: regressor().fit(open_dataset(frame(y="x"), target="y")),
        error=errors.DataError,
        words=("text",),
    ),
]
