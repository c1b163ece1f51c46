"""Forests that are evicted while they predict, and files that change while they are mapped."""

from __future__ import annotations

import faulthandler
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from helpers import make_data
from oldgrowth import errors
from oldgrowth.forest.depths import forest_depths
from oldgrowth.forest.forest import Forest
from oldgrowth.forest.whole_trees import whole_trees
from oldgrowth.storage.spill_file import SpillFile

KINDS: dict[str, Callable[[Any, Path], Any]] = {
    "in memory": lambda model, _: model,
    "on disk": lambda model, _: model,
    "loaded": lambda model, path: (model.save(path), oldgrowth.load(path))[1],
    "loaded into memory": lambda model, path: (model.save(path), oldgrowth.load(path, mmap=False))[1],
    "pickled": lambda model, _: pickle.loads(pickle.dumps(model)),
}
MODELS = {
    "values": (oldgrowth.RandomForestRegressor, 0, {}),
    "pure leaves": (oldgrowth.RandomForestClassifier, 3, {}),
    "mixed leaves": (oldgrowth.RandomForestClassifier, 3, {"min_samples_leaf": 5}),
    "mixed leaves of many classes": (oldgrowth.ExtraTreesClassifier, 40, {"max_depth": 4}),
}


def fitted(model: str, store: str = "memory") -> tuple[Any, np.ndarray]:
    cls, classes, params = MODELS[model]
    x, y = make_data(4000, 6, classes, seed=3)
    forest = cls(6, bucket_size=500, random_state=0, n_jobs=2, store=store, **params)
    return forest.fit(x, y), x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS)
def test_evictions_change_no_prediction(
    kind: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, x = fitted(model)
    forest = KINDS[kind](fitted(model, "disk" if kind == "on disk" else "memory")[0], tmp_path / "forest.og")
    assert forest.forest_.mapped == (kind in ("on disk", "loaded"))
    expected = plain.predict(x), plain.apply(x)
    predict_sums, apply = Forest.predict_sums, Forest.apply
    monkeypatch.setattr(
        Forest,
        "predict_sums",
        lambda self, x, miss, hard, _, sums: predict_sums(self, x, miss, hard, True, sums),
    )
    monkeypatch.setattr(Forest, "apply", lambda self, x, miss, _, leaves: apply(self, x, miss, True, leaves))
    for rows in (x, x[:7]):
        for _ in range(2):
            np.testing.assert_array_equal(forest.predict(rows), expected[0][: len(rows)])
            np.testing.assert_array_equal(forest.apply(rows), expected[1][: len(rows)])


def use(forest: Any, x: np.ndarray) -> dict[str, Callable[[], object]]:
    """Everything that reads the trees of a forest."""
    return {
        "predict": lambda: forest.predict(x),
        "apply": lambda: forest.apply(x),
        "digest": forest.forest_.digest,
        "check": forest.forest_.check,
        "pickle": lambda: pickle.dumps(forest),
        "export": lambda: list(whole_trees(forest.forest_)),
    }


@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("way", ["cut", "cut to nothing", "other bytes", "another forest"])
def test_a_mapped_file_that_is_damaged_in_place_is_an_error_that_names_it(
    way: str, used_before: bool, tmp_path: Path
) -> None:
    model, x = fitted("mixed leaves of many classes")
    path = tmp_path / "forest.og"
    other = tmp_path / "other.og"
    make_other = oldgrowth.ExtraTreesClassifier(6, bucket_size=500, max_depth=4, random_state=1)
    make_other.fit(x, make_data(4000, 6, 40, seed=3)[1]).save(other)
    for reader in use(model, x):
        model.save(path)
        loaded = oldgrowth.load(path)
        if used_before:
            loaded.predict(x)
        with open(path, "r+b") as file:
            if way.startswith("cut"):
                file.truncate(0 if way == "cut to nothing" else path.stat().st_size // 2)
            elif way == "other bytes":
                file.write(os.urandom(path.stat().st_size))
            else:
                file.write(other.read_bytes())
        if faulthandler.is_enabled():  # takes the signal for itself again
            faulthandler.disable()
            faulthandler.enable()
        for _ in range(2):
            with pytest.raises(errors.ModelFileError, match=r"forest\.og"):
                use(loaded, x)[reader]()
        with pytest.raises(errors.ModelFileError, match=r"forest\.og"):
            loaded.save(tmp_path / "copy.og")
        assert not (tmp_path / "copy.og").exists()


WALKS: dict[str, Callable[[Any], object]] = {
    "depths": lambda model: forest_depths(model.forest_),
    "whole trees": lambda model: [tree.levels() for tree in whole_trees(model.forest_)],
    "scikit-learn": lambda model: model.to_sklearn(),
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("way", ["truncated", "zeros"])
def test_nodes_that_change_after_they_were_checked(
    walk: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros are splits whose right child is the node itself: a walk must not follow them for ever."""
    x, y = make_data(10, 2, 0, seed=3)  # small: without a bound, each level has twice the nodes
    path = tmp_path / "forest.og"
    oldgrowth.RandomForestRegressor(2, bootstrap=False, n_jobs=1).fit(x, y).save(path)
    model = oldgrowth.load(path, mmap=way == "truncated")
    check = Forest.check

    def checked(forest: Forest) -> None:
        check(forest)
        if way == "truncated":
            os.truncate(path, 0)
        else:
            forest.nodes.flags.writeable = True
            forest.nodes[:] = 0

    monkeypatch.setattr(Forest, "check", checked)
    with pytest.raises(errors.ModelFileError, match=r"forest\.og"), model.forest_.checked():
        WALKS[walk](model)
    monkeypatch.setattr(Forest, "check", lambda forest: None)
    if way == "zeros":  # whatever else is found: the walks themselves have a bound
        with pytest.raises(errors.CorruptedModelFileError, match="other nodes than when it was checked"):
            WALKS[walk](model)


def test_what_fails_while_a_file_changes_is_reported_as_the_change(tmp_path: Path) -> None:
    model, _ = fitted("values")
    model.save(tmp_path / "forest.og")
    forest = oldgrowth.load(tmp_path / "forest.og").forest_
    with pytest.raises(errors.TruncatedModelFileError), forest.checked():
        os.truncate(tmp_path / "forest.og", 0)
        raise MemoryError
    with pytest.raises(MemoryError), model.forest_.checked():
        raise MemoryError


def test_a_file_that_was_only_touched_is_still_read(tmp_path: Path) -> None:
    model, x = fitted("mixed leaves")
    model.save(tmp_path / "forest.og")
    loaded = oldgrowth.load(tmp_path / "forest.og")
    expected = loaded.predict(x)
    os.utime(tmp_path / "forest.og", (1, 1))
    np.testing.assert_array_equal(loaded.predict(x), expected)
    (tmp_path / "forest.og").rename(tmp_path / "moved.og")
    np.testing.assert_array_equal(loaded.predict(x), expected)
    (tmp_path / "moved.og").unlink()
    np.testing.assert_array_equal(loaded.predict(x), expected)


REPLACED_MEANWHILE = """
import sys, threading, shutil
import numpy as np
import oldgrowth
one, other, path, rows = sys.argv[1:]
x = np.load(rows)
expected = oldgrowth.load(one).predict_proba(x)
shutil.copyfile(one, path)
stop = threading.Event()
def replace():
    while not stop.is_set():
        shutil.copyfile(other, path)
        shutil.copyfile(one, path)
thread = threading.Thread(target=replace)
thread.start()
for _ in range(60):
    try:
        loaded = oldgrowth.load(path)
        for _ in range(4):
            found = loaded.predict_proba(x)
    except oldgrowth.errors.ModelFileError as error:
        assert path in str(error)
stop.set()
thread.join()
print("alive")
"""


def test_copies_onto_a_file_that_is_read_do_not_end_the_reader(tmp_path: Path) -> None:
    model, x = fitted("mixed leaves of many classes")
    model.save(tmp_path / "one.og")
    fitted("mixed leaves of many classes")[0].set_params(random_state=5).fit(
        x, make_data(4000, 6, 40, seed=3)[1]
    ).save(tmp_path / "other.og")
    np.save(tmp_path / "x.npy", x)
    names = ["one.og", "other.og", "read.og", "x.npy"]
    done = subprocess.run(
        [sys.executable, "-c", REPLACED_MEANWHILE, *(str(tmp_path / name) for name in names)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "alive", done.stderr


@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("array", ["nodes", "table"])
def test_a_changed_temporary_file_of_a_fit_on_disk_is_found(
    array: str, used_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    mapped = SpillFile.mapped

    def keep(self: SpillFile) -> Any:
        with self._descriptor() as descriptor:
            kept.append(os.dup(descriptor))
        return mapped(self)

    monkeypatch.setattr(SpillFile, "mapped", keep)
    for reader in use(fitted("mixed leaves")[0], fitted("mixed leaves")[1]):
        kept.clear()
        model, x = fitted("mixed leaves", "disk")
        if used_before:
            model.predict(x)
        fd = kept[0 if array == "nodes" else 1]
        at = os.fstat(fd).st_size // 2
        byte = os.pread(fd, 1, at)
        os.pwrite(fd, bytes([byte[0] ^ 4]), at)
        with pytest.raises(errors.DamagedForestError, match="temporary file in"):
            use(model, x)[reader]()
        with pytest.raises(errors.DamagedForestError, match="fit again"):
            model.save(tmp_path / "forest.og")
        assert not list(tmp_path.iterdir())
        os.pwrite(fd, byte, at)
        model.save(tmp_path / "forest.og")
        assert oldgrowth.load(tmp_path / "forest.og").forest_.digest() == model.forest_.digest()
        (tmp_path / "forest.og").unlink()
        for descriptor in kept:
            os.close(descriptor)
