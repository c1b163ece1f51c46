"""The command line: messages mention options, never arguments of Python."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
from trial import NAMES, Command, X, Y, classifier, frame

ROWS = 40
FIT = ("--target", "y", "-o", "f.og", "--trees", "2", "--task", "classification", "--seed", "0", "-q")


def table(**columns):
    return frame(**columns).to_csv(index=False)


def files(**more):
    """A CSV file, a forest that was trained on such rows, and other files by name."""

    def make():
        from pathlib import Path

        contents = {"t_csv": table(), **more}
        for name, content in contents.items():
            path = Path(name.replace("__", "/").replace("_", "."))
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        classifier().fit(frame()[NAMES], Y).save("m.og")

    return make


def fit(name, *arguments, code=0, words=(), **more):
    leaves = () if code else ("f.og",)
    return Command(name, ("fit", *arguments), files(**more), code, words, leaves)


def predict(name, *arguments, code=0, words=(), out="p.csv", **more):
    leaves = () if code else (out,)
    return Command(name, ("predict", "m.og", *arguments, "-o", out, "-q"), files(**more), code, words, leaves)


def evaluate(name, *arguments, code=0, words=(), **more):
    return Command(name, ("evaluate", "m.og", *arguments, "-q"), files(**more), code, words)


COMMAS = table().replace(",", ";").replace(".", ",")
NAMELESS = table().split("\n", 1)[1]
LATIN = table(y=np.where(Y, "né", "non")).encode("latin-1")
TEXT = table(u="red", v="2020-01-01")
WORDS = table(u="red", v="blue")

TRIALS = [
    fit("fit", "t.csv", *FIT),
    fit("fit, features", "t.csv", *FIT, "--features", "a,b"),
    fit("fit, drop", "t.csv", *FIT, "--drop", "a"),
    fit("fit, decimal commas", "u.csv", *FIT, "--delimiter", ";", "--decimal", ",", u_csv=COMMAS),
    fit("fit, no header", "u.csv", *FIT, "--target", "3", "--no-header", u_csv=NAMELESS),
    fit("fit, Latin-1", "u.csv", *FIT, "--encoding", "latin-1", u_csv=LATIN),
    fit("fit, UTF-16", "u.csv", *FIT, "--encoding", "utf-16", u_csv=table().encode("utf-16")),
    fit("fit, gzip without its ending", "u.csv", *FIT, u_csv=gzip.compress(table().encode())),
    fit("fit, a type", "t.csv", *FIT, "--type", "y=string"),
    fit("fit, missing", "u.csv", *FIT, "--missing", "-9", u_csv=table(a="-9")),
    fit("fit, header", "t.csv", *FIT, "--header"),
    predict("predict", "t.csv"),
    predict("predict, decimal commas", "u.csv", "--delimiter", ";", "--decimal", ",", u_csv=COMMAS),
    predict("predict, keep", "t.csv", "--keep", "y"),
    predict("predict, probabilities", "t.csv", "--proba", out="p.parquet"),
    predict("predict, UTF-16", "u.csv", "--encoding", "utf-16", u_csv=table().encode("utf-16")),
    evaluate("evaluate", "t.csv", "--target", "y", words=("Accuracy",)),
    evaluate(
        "evaluate, decimal commas",
        "u.csv",
        "--target",
        "y",
        "--delimiter",
        ";",
        "--decimal",
        ",",
        u_csv=COMMAS,
    ),
    Command("inspect", ("inspect", "m.og"), files(), words=("RandomForestClassifier",)),
    *(
        Command(
            f"{name} --help",
            (name, "--help"),
            words=("--encoding", "--no-header", "--decimal", "--type", "--delimiter", "--missing"),
        )
        for name in ("fit", "predict", "evaluate")
    ),
    fit("fit, semicolons not told", "u.csv", *FIT, code=1, words=("u.csv", "--delimiter ';'"), u_csv=COMMAS),
    fit(
        "fit, decimal commas not told",
        "u.csv",
        *FIT,
        "--delimiter",
        ";",
        code=1,
        words=("u.csv", "--decimal ','"),
        u_csv=COMMAS,
    ),
    fit("fit, no header not told", "u.csv", *FIT, code=1, words=("u.csv", "--no-header"), u_csv=NAMELESS),
    fit("fit, Latin-1 not told", "u.csv", *FIT, code=1, words=("u.csv", "--encoding 'latin-1'"), u_csv=LATIN),
    fit(
        "fit, UTF-16 not told",
        "u.csv",
        *FIT,
        code=1,
        words=("u.csv", "--encoding 'utf-16'"),
        u_csv=table().encode("utf-16"),
    ),
    predict(
        "predict, UTF-16 not told",
        "u.csv",
        code=1,
        words=("u.csv", "--encoding 'utf-16'"),
        u_csv=table().encode("utf-16"),
    ),
    evaluate(
        "evaluate, semicolons not told",
        "u.csv",
        "--target",
        "y",
        code=1,
        words=("u.csv", "--delimiter ';'"),
        u_csv=COMMAS,
    ),
    fit("fit, text and dates", "u.csv", *FIT, code=1, words=("u.csv", "'v'", "--features"), u_csv=TEXT),
    fit("fit, text columns", "u.csv", *FIT, u_csv=WORDS),
    fit("fit, text columns by name", "u.csv", *FIT, "--categorical", "u,v", u_csv=WORDS),
    fit(
        "fit, text columns left out",
        "u.csv",
        *FIT,
        "--categorical",
        "none",
        code=1,
        words=("'u'", "'v'", "--categorical"),
        u_csv=WORDS,
    ),
    fit(
        "fit, text among numbers",
        "u.csv",
        *FIT,
        code=1,
        words=("u.csv", "line 4", "--missing", "--type"),
        u_csv="a,y\n1,0\n2,1\nred,1\n",
    ),
    fit(
        "fit, a column that is not there",
        "t.csv",
        *FIT,
        "--target",
        "yy",
        code=1,
        words=("t.csv", "'yy'", "'y'"),
    ),
    fit("fit, features that are not there", "t.csv", *FIT, "--features", "u,v", code=1, words=("'u'", "'v'")),
    fit("fit, drop an unnamed column that is not there", "t.csv", *FIT, "--drop", "", code=1, words=("''",)),
    fit("fit, features without a name", "t.csv", *FIT, "--features", "", code=1, words=("''",)),
    predict("predict, keep without a name", "t.csv", "--keep", "", code=1, words=("''",)),
    fit("fit, drop what is not there", "t.csv", *FIT, "--drop", "u,v", code=1, words=("'u'", "'v'")),
    fit(
        "fit, features and drop",
        "t.csv",
        *FIT,
        "--features",
        "a",
        "--drop",
        "b",
        code=2,
        words=("--features", "--drop"),
    ),
    fit("fit, no file", "none.csv", *FIT, code=1, words=("none.csv",)),
    fit("fit, Excel", "u.xlsx", *FIT, code=1, words=("Excel", "CSV"), u_xlsx=b"PK\x03\x04"),
    fit("fit, zip", "u.zip", *FIT, code=1, words=("zip", "unpack"), u_zip=b"PK\x03\x04"),
    fit("fit, an unknown ending", "u.xyz", *FIT, code=1, words=("--format",), u_xyz="a,y\n1,2\n"),
    fit("fit, an unknown format", "t.csv", *FIT, "--format", "klingon", code=2, words=("--format",)),
    fit(
        "fit, an unknown encoding",
        "t.csv",
        *FIT,
        "--encoding",
        "klingon",
        code=2,
        words=("--encoding",),
    ),
    fit("fit, a delimiter too long", "t.csv", *FIT, "--delimiter", ";;", code=2, words=("--delimiter",)),
    fit("fit, a decimal mark that is none", "t.csv", *FIT, "--decimal", "x", code=2, words=("--decimal",)),
    fit("fit, an unknown type", "t.csv", *FIT, "--type", "y=klingon", code=2, words=("--type",)),
    fit(
        "fit, a type without a name", "t.csv", *FIT, "--type", "string", code=2, words=("--type", "NAME=TYPE")
    ),
    fit("fit, a type for no column", "t.csv", *FIT, "--type", "z=string", code=1, words=("'z'",)),
    *(
        fit(f"fit {option} {value}", "t.csv", *FIT, option, value, *more, code=code, words=(option, *words))
        for option, value, more, code, words in (
            ("--class-weight", "a", (), 2, ("'a'", "label=weight,...", "'balanced'", "none")),
            ("--class-weight", "0=a,1=2", (), 2, ("label=weight",)),
            ("--class-weight", "a=1,b=2", (), 1, ("'a'", "whole numbers")),
            ("--class-weight", "5=1,1=2", (), 2, ("'5=1,1=2'", "0 and 1")),
            ("--class-weight", "0=-1,1=2", (), 2, ("'0=-1,1=2'", "at least 0")),
            ("--max-features", "a", (), 2, ("'sqrt'", "none")),
            ("--max-samples", "3", ("--no-bootstrap",), 2, ("--no-bootstrap",)),
            ("--max-samples", "0", (), 2, ("none", "rows")),
            ("--seed", "-1", (), 2, ("none", "whole number")),
            ("--jobs", "0", (), 2, ("none",)),
            ("--delimiter", "\n", (), 2, ("a line ending",)),
            ("--store", "memory", ("--checkpoint-dir", "ck"), 2, ("--checkpoint-dir",)),
        )
    ),
    fit(
        "fit, votes without a bootstrap",
        "t.csv",
        *FIT,
        "--oob-score",
        "--no-bootstrap",
        code=2,
        words=("--no-bootstrap",),
    ),
    fit(
        "fit, a line behind blank ones",
        "u.csv",
        *FIT,
        code=1,
        words=("line 5", "column a"),
        u_csv="a,y\n\n1,0\n\nred,1\n",
    ),
    fit("fit, xz", "u.csv", *FIT, code=1, words=("compression by xz",), u_csv=lzma.compress(b"a,y\n1,2\n")),
    fit("fit, no trees", "t.csv", *FIT, "--trees", "0", code=2, words=("--trees",)),
    fit("fit, a depth below 1", "t.csv", *FIT, "--max-depth", "0", code=2, words=("--max-depth",)),
    fit(
        "fit, an output that is there",
        "t.csv",
        "--target",
        "y",
        "-o",
        "t.csv",
        code=2,
        words=("t.csv", "--force"),
    ),
    fit("fit, no target", "t.csv", "-o", "f.og", code=2, words=("--target",)),
    fit("fit, an empty target", "t.csv", *FIT, "--target", "", code=2, words=("--target",)),
    predict(
        "predict, a column is missing", "u.csv", code=1, words=("u.csv", "'b'", "'c'"), u_csv="a,z\n1,2\n"
    ),
    predict("predict, a text column", "u.csv", code=1, words=("'b'",), u_csv=table(b="red")),
    predict("predict, keep what is not there", "t.csv", "--keep", "zz", code=1, words=("'zz'",)),
    evaluate("evaluate, no such target", "t.csv", "--target", "zz", code=1, words=("'zz'",)),
    evaluate("evaluate, text labels", "u.csv", "--target", "y", code=1, words=("'y'",), u_csv=table(y="wet")),
    Command(
        "predict with a table",
        ("predict", "t.csv", "t.csv", "-o", "p.csv"),
        files(),
        1,
        ("t.csv", "not a forest"),
    ),
    Command("inspect a table", ("inspect", "t.csv"), files(), 1, ("t.csv", "not a forest")),
    Command("inspect nothing", ("inspect", "none.og"), None, 2, ("none.og",)),
    Command("no such command", ("grow",), None, 2, ("grow",)),
    Command(
        "a column of X by number",
        ("fit", "x.npy", "--target", "3", "-o", "f.og", "--trees", "2", "--task", "classification", "-q"),
        lambda: np.save("x.npy", np.c_[X, Y]),
        leaves=("f.og",),
    ),
    Command(
        "a member of npz",
        (
            "fit",
            "x.npz",
            "--target",
            "y",
            "--features",
            "rows",
            "-o",
            "f.og",
            "--trees",
            "2",
            "--task",
            "classification",
            "-q",
        ),
        lambda: np.savez("x.npz", rows=X, y=Y),
        leaves=("f.og",),
    ),
    Command(
        "the target of an array by a name",
        ("fit", "x.npy", "--target", "y", "-o", "f.og", "--trees", "2", "-q"),
        lambda: np.save("x.npy", np.c_[X, Y]),
        2,
        ("--target must be", "got 'y'", "a column number or the path"),
    ),
    Command(
        "npz without X",
        ("fit", "x.npz", "--target", "y", "-o", "f.og", "--trees", "2", "-q"),
        lambda: np.savez("x.npz", rows=X, y=Y),
        1,
        ("x.npz", "'rows'", "--features 'rows'"),
    ),
]
