"""Nothing goes wrong silently: special files, unintended tasks and ids, invented numbers."""

from __future__ import annotations

import os
import socket
import warnings
from pathlib import Path

import numpy as np
from command_line_trials import FIT, fit, table
from sklearn.inspection import partial_dependence
from trial import NAMES, Trial, X, Y, classifier, frame, regressor

from oldgrowth import ExtraTreesClassifier, RandomForestClassifier, errors, open_dataset
from oldgrowth.messages.warnings import IdColumnWarning


def made(kind, name):
    """A directory `d` with rows, and a special file or a broken link."""

    def make():
        os.mkdir("d")
        frame().to_csv("d/a.csv", index=False)
        frame().to_csv("elsewhere.csv", index=False)
        if kind == "pipe":
            os.mkfifo(f"d/{name}")
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(f"d/{name}")
        else:
            os.symlink(kind, f"d/{name}")

    return make


def rows_of(source):
    return lambda: sum(batch.rows for batch in open_dataset(source, target="y").batches(1000))


def no_file(word, kind, name):
    """It is refused however it is named, and nothing blocks."""
    return [
        Trial(
            f"{word}: {name} by {way}",
            rows_of(source),
            made(kind, name),
            errors.UnknownSourceError,
            (name, word),
        )
        for way, source in (
            ("itself", f"d/{name}"),
            ("its directory", "d"),
            ("a glob", "d/*"),
            ("a list", ["d/a.csv", f"d/{name}"]),
        )
    ]


def links(name, source, rows, *pairs):
    """Cyclic links, or links to the same rows by another name: each row is read once."""

    def make():
        os.makedirs("d/deep")
        frame().to_csv("d/a.csv", index=False)
        frame().to_csv("d/deep/b.csv", index=False)
        for target, link in pairs:
            os.symlink(target, link)

    return Trial(name, rows_of(source), make, result=rows)


def hive(*values):
    """A directory for each label."""

    def make():
        for value in values:
            Path(f"d/y={value}").mkdir(parents=True)
            frame()[NAMES].to_parquet(f"d/y={value}/a.parquet")

    return make


def labels_of_hive(*values, result):
    def call():
        return sorted(classifier().fit(open_dataset("d", target="y")).classes_.tolist())

    return Trial(f"labels {', '.join(values)} as directories", call, hive(*values), result=result)


def said(call):
    """The names in a warning about ids."""

    def tried():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [
            name
            for item in caught
            if isinstance(item.message, IdColumnWarning)
            for name in item.message.columns
        ]

    return tried


def refuses(call):
    """Whether another library raises an error instead of returning invented numbers."""

    def tried():
        try:
            call()
        except Exception:  # noqa: BLE001 - of whichever class the other library has
            return True
        return False

    return tried


def counts_of_rows():
    """Row counts of nodes, which oldgrowth does not store: none may look plausible."""
    trees = [
        one.tree_ for one in RandomForestClassifier(3, random_state=0).fit(X, Y).to_sklearn().estimators_
    ]
    inner = [tree.weighted_n_node_samples[tree.children_left >= 0] for tree in trees]
    return any(np.isfinite(weights).any() for weights in inner)


AUTO = (*FIT, "--task", "auto")
COUNTS = np.arange(40) % 10
IDS = np.arange(40) + 1000

TRIALS = [
    *no_file("named pipe", "pipe", "x.csv"),
    *no_file("named pipe", "pipe", "x.parquet")[1:2],
    *no_file("socket", "socket", "x.npy"),
    *no_file("device", "/dev/zero", "x.csv"),
    *no_file("device", "/dev/null", "x.h5")[:2],
    *no_file("broken symbolic link", "gone.csv", "x.csv"),
    links("a link to the parent", "d", 80, ("..", "d/up")),
    links("two links to the parent", "d", 80, ("..", "d/up"), ("..", "d/deep/up")),
    links("a link to itself", "d", 80, (".", "d/self")),
    links("two links to the parent by a glob", "d/**/*.csv", 80, ("..", "d/up"), ("..", "d/deep/up")),
    links("a file by two names", "d", 80, ("a.csv", "d/c.csv")),
    links("a directory by two names", "d", 80, ("deep", "d/also")),
    links("a link to a directory", "e", 80, ("d", "e")),
    labels_of_hive("-0", "0", result=["-0", "0"]),
    labels_of_hive("007", "7", result=["007", "7"]),
    labels_of_hive("1", "1.0", result=["1", "1.0"]),
    labels_of_hive("-1", "0", result=[-1, 0]),
    fit(
        "whole numbers are classes, with a word",
        "u.csv",
        *AUTO,
        words=("'y'", "classification", "--task regression", "--task classification"),
        u_csv=table(y=COUNTS),
    ),
    fit("whole numbers as asked for", "u.csv", *FIT, "--task", "regression", u_csv=table(y=COUNTS)),
    fit("an id", "u.csv", *FIT, words=("'customer'", "--drop 'customer'"), u_csv=table(customer=IDS)),
    fit(
        "pandas' index",
        "u.csv",
        *FIT,
        words=("'Unnamed: 0'", "index", "--drop"),
        u_csv=frame().to_csv(index_label="Unnamed: 0"),
    ),
    Trial("an id of a frame", said(lambda: classifier().fit(frame(n=IDS)[[*NAMES, "n"]], Y)), result=["n"]),
    Trial("an id of an array", said(lambda: regressor().fit(np.c_[X, IDS], Y)), result=[3]),
    Trial(
        "an id of a dataset",
        said(lambda: classifier().fit(open_dataset(frame(n=IDS), target="y"))),
        result=["n"],
    ),
    Trial(
        "pandas' index in CSV",
        said(lambda: classifier().fit(open_dataset("t.csv", target="y"))),
        lambda: frame().to_csv("t.csv"),
        result=[""],
    ),
    Trial("measurements are no ids", said(lambda: classifier().fit(X, Y)), result=[]),
    Trial("numbers of rows that nobody knows", counts_of_rows, result=False),
    *(
        Trial(
            f"partial dependence by recursion, {kind.__name__}",
            refuses(
                lambda kind=kind: partial_dependence(
                    kind(3, random_state=0).fit(X, Y).to_sklearn(), X, [0], method="recursion"
                )
            ),
            result=True,
        )
        for kind in (RandomForestClassifier, ExtraTreesClassifier)
    ),
    Trial(
        "shap without a background",
        refuses(lambda: shap_values(RandomForestClassifier(3, random_state=0).fit(X, Y).to_sklearn())),
        result=True,
    ),
]


def shap_values(model):
    import shap

    return shap.TreeExplainer(model, feature_perturbation="tree_path_dependent").shap_values(X[:3])
