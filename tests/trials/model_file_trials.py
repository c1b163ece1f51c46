"""Saving and loading forests, and files that are not forests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from trial import NAMES, Trial, X, Y, classifier, frame, regressor, writes

from oldgrowth import errors, load, open_dataset


def saved():
    classifier().fit(X, Y).save("f.og")


def changed(change):
    def make():
        saved()
        data = Path("f.og").read_bytes()
        Path("f.og").write_bytes(change(data))

    return make


def same(model, x=X):
    def call():
        model.save("g.og")
        return bool((load("g.og").predict(x) == model.predict(x)).all())

    return call


def bit(at):
    def flip(data):
        place = at if at >= 0 else len(data) + at
        return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]

    return flip


def refused(name, call, *words, make=None, error=errors.ModelFileError):
    return Trial(name, call, make, error, words)


def predicts():
    return load("f.og").predict(X)


TRIALS = [
    Trial("a classifier comes back", same(classifier().fit(X, Y)), result=True),
    Trial("a regressor comes back", same(regressor().fit(X, X[:, 0])), result=True),
    Trial("text labels come back", same(classifier().fit(X, np.where(Y, "é", "n"))), result=True),
    Trial("bool labels come back", same(classifier().fit(X, Y > 0)), result=True),
    Trial(
        "names of features come back", same(classifier().fit(frame()[NAMES], Y), frame()[NAMES]), result=True
    ),
    Trial("a path of pathlib", lambda: load(Path("f.og")).classes_.tolist(), saved, result=[0, 1]),
    Trial("not mapped", lambda: load("f.og", mmap=False).classes_.tolist(), saved, result=[0, 1]),
    Trial(
        "a dataset after loading", lambda: load("f.og").predict(open_dataset(X)).shape, saved, result=(40,)
    ),
    refused("an empty file", lambda: load("f.og"), "f.og", make=writes("f.og", b"")),
    refused("text", lambda: load("f.og"), "f.og", "not a forest", make=writes("f.og", "hello " * 999)),
    refused("a CSV file", lambda: load("t.csv"), "t.csv", make=writes("t.csv", "a,b\n1,2\n")),
    refused("a file that is cut", lambda: load("f.og"), "f.og", "truncated", make=changed(lambda d: d[:-1])),
    refused(
        "half of a file", lambda: load("f.og"), "f.og", "truncated", make=changed(lambda d: d[: len(d) // 2])
    ),
    refused("a file with more at its end", lambda: load("f.og"), "f.og", make=changed(lambda d: d + b"x")),
    refused("a flipped bit in the header", lambda: load("f.og"), "f.og", make=changed(bit(30))),
    refused("a flipped bit in the magic", lambda: load("f.og"), "f.og", make=changed(bit(0))),
    refused("a flipped bit in the metadata", lambda: load("f.og"), "f.og", "meta", make=changed(bit(-2))),
    *(
        refused(f"a flipped bit in page {page}", predicts, "f.og", make=changed(bit(4096 * page)))
        for page in (1, 2, 3, 4)
    ),
    *(
        refused(f"load {value!r}", lambda value=value: load(value), "path", error=errors.ParameterError)
        for value in (None, 3, "", b"f.og", [], {}, "a\0b", float("nan"))
    ),
    *(
        refused(
            f"save to {value!r}",
            lambda value=value: classifier().fit(X, Y).save(value),
            "path",
            error=errors.ParameterError,
        )
        for value in (None, 3, "", b"f.og", [], {}, "a\0b", float("nan"))
    ),
    refused(
        "mmap that is no bool",
        lambda: load("f.og", mmap="yes"),
        "mmap",
        make=saved,
        error=errors.ParameterError,
    ),
]
