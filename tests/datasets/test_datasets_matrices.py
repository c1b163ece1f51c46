"""Arrays, .npy, .npz and HDF5: how X, labels and weights are found."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from dataset_sources import plain
from oldgrowth import open_dataset
from oldgrowth.errors import (
    DataError,
    DuplicateColumnError,
    MissingColumnError,
    NamelessColumnsError,
    NoDataError,
    ParameterError,
    UnknownSourceError,
)

X = np.arange(12.0).reshape(4, 3)
Y = np.array(["u", "v", "u", "w"])


def whole(data):
    (batch,) = data.batches(100)
    return batch


def test_columns_by_number():
    batch = whole(open_dataset(X, target=0, weight=-1))
    assert batch.x.tolist() == X[:, 1:2].tolist()
    assert batch.y.tolist() == X[:, 0].tolist() and batch.weights.tolist() == X[:, 2].tolist()
    assert whole(open_dataset(X, features=[2, 0])).x.tolist() == X[:, [2, 0]].tolist()


def test_names_for_columns():
    data = open_dataset(X, target=1, features=["a", "c"])
    (batch,) = data.select(["c"]).batches(10, carry=["a"])
    assert batch.x.tolist() == X[:, 2:].tolist() and batch.carried["a"].to_pylist() == X[:, 0].tolist()
    assert batch.y.tolist() == X[:, 1].tolist()
    with pytest.raises(NamelessColumnsError, match=r"'a': .*array"):
        open_dataset(X).select(["a"])


@pytest.mark.parametrize(
    ("roles", "error", "match"),
    [({"target": 3}, ParameterError, "0 to 2; got 3"), ({"target": -4}, ParameterError, "0 to 2; got -1"),
     ({"features": [0, 3]}, ParameterError, "column numbers below 3"),
     ({"features": ["a"]}, ParameterError, "3 names"), ({"features": "a"}, ParameterError, "a list"),
     ({"features": ["a", "a", "b"]}, DuplicateColumnError, "'a' .*named twice"),
     ({"features": []}, (NoDataError, ParameterError), "features|feature"),
     ({"target": np.zeros(3)}, DataError, r"shape \(3,\), but X has 4 rows"),
     ({"target": "label"}, ParameterError, "a column number, an array or the path"),
     ({"weight": np.zeros((4, 2))}, DataError, "one value for each row"),
     ({"target": "nothing.npy"}, NoDataError, "no file matches"),
     ({"format": "npy"}, ParameterError, "format")],
)  # fmt: skip
def test_impossible_roles(roles, error, match):
    with pytest.raises(error, match=match):
        open_dataset(X, **roles)


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((3, 2, 1)), np.array(3.0)])
def test_other_dimensions(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    for source in (x, tmp_path / "x.npy"):
        with pytest.raises(DataError, match="must be 2-D"):
            open_dataset(source)


def test_labels_as_a_column_matrix(tmp_path):
    np.save(tmp_path / "y.npy", np.arange(4).reshape(4, 1))
    assert whole(open_dataset(X, target=tmp_path / "y.npy")).y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [">f8", "<f4", ">i2", "u1", "?"])
def test_byte_orders(dtype, tmp_path):
    np.save(tmp_path / "x.npy", X.astype(dtype))
    np.testing.assert_array_equal(whole(open_dataset(tmp_path / "x.npy")).x, X.astype(dtype))


def test_members(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y, w=np.ones(4), bands=-X)
    path = tmp_path / "a.npz"
    assert plain(whole(open_dataset(path)).y).tolist() == Y.tolist()
    assert whole(open_dataset(path, features="bands", target="w")).x.tolist() == (-X).tolist()
    assert open_dataset(path, features=["a", "b", "c"]).feature_names == ("a", "b", "c")
    for roles in ({"features": "x"}, {"target": "yy"}, {"weight": "weights"}):
        with pytest.raises(MissingColumnError, match=r"a.npz has no member"):
            open_dataset(path, **roles)
    np.savez(tmp_path / "b.npz", X=X)
    with pytest.raises(UnknownSourceError, match="a single file"):
        open_dataset(f"{tmp_path}/*.npz")


def test_hdf5(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["X"], file["y"], file["g/a"], file["g/b"] = X, Y.astype(object), X[:, 0], X[:3, 0]
        file["name"] = Y.astype("S1")
    batch = whole(open_dataset(path))
    assert batch.x.tolist() == X.tolist() and plain(batch.y).tolist() == Y.tolist()
    batch = whole(open_dataset(path, features=["g/a"], target="name"))
    assert batch.x.tolist() == X[:, :1].tolist() and plain(batch.y).tolist() == Y.tolist()
    with pytest.raises(DataError, match="g/a has 4 rows, g/b has 3"):
        open_dataset(path, features=["g/a", "g/b"])
    for roles in ({"features": "Z"}, {"target": "z"}, {"features": ["g/a", "g/c"]}):
        with pytest.raises(
            (MissingColumnError, ParameterError), match=r"a.h5 has no dataset|features must be"
        ):
            open_dataset(path, **roles)


def test_hdf5_without_x(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"], file["b"], file["label"] = X[:, 0], X[:, 1], Y.astype(object)
    data = open_dataset(tmp_path / "a.h5", target="label")
    assert data.feature_names == ("a", "b") and whole(data).x.tolist() == X[:, :2].tolist()
    with h5py.File(tmp_path / "b.h5", "w"):
        pass
    with pytest.raises(NoDataError, match="no datasets"):
        open_dataset(tmp_path / "b.h5")
