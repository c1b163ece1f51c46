"""Forests exported to scikit-learn, treelite and ONNX make the same predictions, or are refused."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence

import oldgrowth
from helpers import make_data
from oldgrowth import RandomForestClassifier, RandomForestRegressor
from oldgrowth.errors import ExportError, MissingExtraError
from oldgrowth.forest.forest import Forest
from oldgrowth.forest.whole_trees import whole_sizes, whole_trees

CLASSIFIERS = ["RandomForestClassifier", "ExtraTreesClassifier", "SubsetForestClassifier"]
REGRESSORS = ["RandomForestRegressor", "ExtraTreesRegressor", "SubsetForestRegressor"]
SETTINGS = [{}, {"min_samples_leaf": 20}, {"min_samples_leaf": 20, "voting": "hard"}]


def fitted(name: str, x: np.ndarray, y: np.ndarray, **settings: Any) -> Any:
    small = {"subset_size": 500} if name.startswith("Subset") else {"bucket_size": 100}
    return getattr(oldgrowth, name)(9, random_state=0, **small, **settings).fit(x, y)


def onnx_run(model: Any, x: np.ndarray) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.asarray(x, dtype=np.float32)})


def treelite_run(model: Any, x: np.ndarray) -> np.ndarray:
    treelite = pytest.importorskip("treelite")
    return treelite.gtil.predict(model, np.asarray(x, dtype=np.float32))[:, 0]


def same_leaves(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether in each tree the rows of one leaf here are the rows of one leaf there."""
    for tree in range(ours.shape[1]):
        pairs = np.unique(np.stack([ours[:, tree], theirs[:, tree]]), axis=1)
        if not len(pairs[0]) == len(set(pairs[0])) == len(set(pairs[1])):
            return False
    return True


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_agree(name: str, n_classes: int, settings: dict[str, Any]) -> None:
    x, y = make_data(2000, 7, n_classes, seed=0)
    model = fitted(name, x[:1500], y[:1500], **settings)
    shares, labels = model.predict_proba(x), model.predict(x)
    rival = model.to_sklearn()
    np.testing.assert_array_equal(rival.predict_proba(x), shares)
    np.testing.assert_array_equal(rival.predict(x), labels)
    assert same_leaves(model.apply(x), rival.apply(x))
    found, probabilities = onnx_run(model.to_onnx(), x)
    np.testing.assert_allclose(probabilities, shares, atol=1e-6)
    np.testing.assert_array_equal(found, labels)
    np.testing.assert_allclose(treelite_run(model.to_treelite(), x), shares, atol=1e-6)


@pytest.mark.parametrize("settings", SETTINGS[:2])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_agree(name: str, settings: dict[str, Any]) -> None:
    x, y = make_data(2000, 7, 0, seed=1)
    model = fitted(name, x[:1500], 1e5 * y[:1500], **settings)
    values = model.predict(x)
    rival = model.to_sklearn()
    np.testing.assert_array_equal(rival.predict(x), values)
    assert same_leaves(model.apply(x), rival.apply(x))
    np.testing.assert_allclose(onnx_run(model.to_onnx(), x)[0], values, rtol=1e-6, atol=0.1)
    np.testing.assert_allclose(treelite_run(model.to_treelite(), x)[:, 0], values, rtol=1e-12)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["birch", "fir", "öak"]),
        np.array(["birch", "fir", "öak"], dtype=object),
        np.array([-7, 0, 2**40]),
        np.array([3, 200, 255], dtype=np.uint8),
        np.array([False, True, True]),
        np.array([1.0, 2.0, 5.0]),
    ],
)
def test_labels_of_any_kind(labels: np.ndarray) -> None:
    x, y = make_data(300, 5, 3, seed=2)
    model = RandomForestClassifier(5, random_state=0).fit(x, labels[y])
    rival = model.to_sklearn()
    np.testing.assert_array_equal(rival.classes_, model.classes_)
    np.testing.assert_array_equal(rival.predict(x), model.predict(x))
    assert onnx_run(model.to_onnx(), x)[0].tolist() == model.predict(x).tolist()


def test_one_class_and_trees_that_are_a_leaf() -> None:
    x, _ = make_data(200, 4, 3, seed=3)
    model = RandomForestClassifier(3, random_state=0).fit(x, np.full(200, "fir"))
    assert set(model.to_sklearn().predict(x)) == {"fir"}
    label, probabilities = onnx_run(model.to_onnx(), x)
    assert set(label) == {"fir"}
    assert (probabilities == 1).all()
    with pytest.raises(ExportError, match="treelite: all labels were the same"):
        model.to_treelite()
    stumps = RandomForestRegressor(3, random_state=0).fit(x, np.full(200, 7.5))
    assert set(stumps.to_sklearn().predict(x)) == {7.5}
    assert set(onnx_run(stumps.to_onnx(), x)[0]) == {7.5}
    assert set(treelite_run(stumps.to_treelite(), x)[:, 0]) == {7.5}


@settings(max_examples=25)
@given(
    st.integers(0, 2**32), st.sampled_from(["RandomForestClassifier", "ExtraTreesClassifier"]), st.booleans()
)
def test_values_that_are_neighbours_as_float32(seed: int, name: str, missing: bool) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 6, (120, 3))
    base = np.float32(10.0 ** rng.integers(-30, 30))
    x = (base.view(np.uint32) + steps.astype(np.uint32)).view(np.float32).astype(np.float64)
    x[:, 2] *= -1
    y = (steps.sum(axis=1) + rng.integers(0, 2, 120)) % 3
    if missing:
        x[rng.random(x.shape) < 0.3] = np.nan
    model = fitted(name, x, y)
    between = x * (1 + rng.uniform(-1e-7, 1e-7, x.shape))  # float64 that float32 has to round
    for rows in (x, between):
        shares = model.predict_proba(rows)
        np.testing.assert_array_equal(model.to_sklearn().predict_proba(rows), shares)
        np.testing.assert_allclose(onnx_run(model.to_onnx(), rows)[1], shares, atol=1e-6)
        np.testing.assert_allclose(treelite_run(model.to_treelite(), rows), shares, atol=1e-6)


def test_only_missing_values_tell_the_classes_apart() -> None:
    x = np.where(np.arange(60) % 3 == 0, np.nan, 1.0)[:, None]
    y = np.isnan(x[:, 0])
    model = RandomForestClassifier(5, random_state=0).fit(x, y)
    assert (model.to_sklearn().predict(x) == y).all()
    assert (onnx_run(model.to_onnx(), x)[0] == y).all()
    assert (treelite_run(model.to_treelite(), x).argmax(axis=1) == y).all()


def test_buckets_may_stand_anywhere_in_a_top_tree() -> None:
    x, y = make_data(800, 5, 3, seed=4)
    model = fitted("RandomForestClassifier", x, y)
    arrays = {name: array.copy() for name, array in model.forest_._arrays.items()}
    first = slice(0, int(arrays["top_start"][1]))
    leaves = np.flatnonzero(arrays["top_nodes"][first] >> np.uint64(63))
    assert len(leaves) > 3
    arrays["top_nodes"][leaves] = arrays["top_nodes"][leaves[::-1]]
    model.forest_ = Forest(model.forest_.n_features, model.forest_.n_classes, arrays)
    np.testing.assert_array_equal(model.to_sklearn().predict_proba(x), model.predict_proba(x))


def test_whole_trees_have_every_node_once_in_depth_first_order() -> None:
    x, y = make_data(1000, 6, 4, seed=5)
    model = fitted("RandomForestClassifier", x, y)
    trees = list(whole_trees(model.forest_))
    assert [len(tree) for tree in trees] == whole_sizes(model.forest_).tolist()
    for tree in trees:
        inner = np.flatnonzero(~tree.is_leaf)
        assert (tree.left[inner] == inner + 1).all()
        children = np.concatenate([tree.left[inner], tree.right[inner]])
        assert sorted(children) == list(range(1, len(tree)))
        assert sorted(np.concatenate(tree.levels())) == list(range(len(tree)))
        np.testing.assert_allclose(tree.value[tree.is_leaf].sum(axis=1), 1, rtol=1e-6)


def test_the_sklearn_forest_is_an_ordinary_one(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = make_data(600, 4, 3, seed=6)
    frame = pandas.DataFrame(x, columns=["red", "green", "blue", "near"])
    model = RandomForestClassifier(
        6, criterion="entropy", bucket_size=100, max_depth=9, random_state=3, n_jobs=2
    ).fit(frame, y)
    model.save(tmp_path / "forest.og")
    rival = oldgrowth.load(tmp_path / "forest.og").to_sklearn()
    assert type(rival) is ensemble.RandomForestClassifier
    assert rival.feature_names_in_.tolist() == ["red", "green", "blue", "near"]
    assert (rival.criterion, rival.max_depth, rival.random_state) == ("entropy", 9, 3)
    assert len(rival) == 6
    assert max(tree.get_depth() for tree in rival.estimators_) <= 9
    copy = pickle.loads(pickle.dumps(rival))
    np.testing.assert_array_equal(copy.predict_proba(frame), model.predict_proba(frame))
    assert rival.decision_path(frame)[0].shape[0] == 600


def test_what_is_not_known_of_nodes_is_not_made_up() -> None:
    x, y = make_data(600, 4, 0, seed=7)
    model = fitted("ExtraTreesRegressor", x, y)
    rival = model.to_sklearn()
    assert type(rival) is ensemble.ExtraTreesRegressor
    for one in rival.estimators_:
        tree = one.tree_
        leaves = tree.children_left == -1
        assert np.isnan(tree.value[~leaves]).all() and np.isnan(tree.impurity).all()
        assert (tree.n_node_samples == 0).all()
        assert (tree.weighted_n_node_samples[leaves] == 1).all()
        assert (tree.weighted_n_node_samples[~leaves] == -np.inf).all()
    assert np.isnan(rival.feature_importances_).all()


def test_partial_dependence_by_counts_is_refused() -> None:
    x, y = make_data(600, 4, 0, seed=7)
    model = fitted("RandomForestRegressor", x, y)
    rival = model.to_sklearn()
    with pytest.raises(ValueError, match="Total weight should be"):
        partial_dependence(rival, x, [0], grid_resolution=4)
    curves = [partial_dependence(m, x, [0], grid_resolution=4, method="brute") for m in (model, rival)]
    np.testing.assert_array_equal(curves[0]["average"], curves[1]["average"])


@pytest.mark.parametrize("name", ["RandomForestClassifier", "RandomForestRegressor"])
def test_shap_explains_against_a_background_and_refuses_without(name: str) -> None:
    shap = pytest.importorskip("shap")
    x, y = make_data(600, 4, 3 if "Classifier" in name else 0, seed=7)
    x = x.astype(np.float32)  # shap does not round the background itself
    model = fitted(name, x, y)
    rival = model.to_sklearn()
    explainer = shap.TreeExplainer(rival, data=x[:50])
    explained = explainer.shap_values(x[:5]).sum(axis=1) + explainer.expected_value
    predicted = model.predict_proba(x[:5]) if "Classifier" in name else model.predict(x[:5])
    np.testing.assert_allclose(explained, predicted, atol=1e-5)
    pathwise = shap.TreeExplainer(rival)
    assert np.isnan(pathwise.expected_value).all()
    for explain in (pathwise, pathwise.shap_values, pathwise.shap_interaction_values):
        with pytest.raises(Exception, match="does not cover all the leaves"):
            explain(x[:5])


def test_onnx_files_are_saved(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    x, y = make_data(300, 4, 3, seed=8)
    model = RandomForestClassifier(4, random_state=0).fit(x, y)
    made = model.to_onnx(tmp_path / "forest.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert onnx.load(tmp_path / "forest.onnx") == made
    assert [path.name for path in tmp_path.iterdir()] == ["forest.onnx"]


@pytest.mark.parametrize("name", ["RandomForestClassifier", "RandomForestRegressor"])
def test_onnx_beyond_two_gigabytes_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = make_data(3000, 5, 3 if "Classifier" in name else 0, seed=9)
    model = fitted(name, x, y, min_samples_leaf=3)
    size = model.to_onnx().ByteSize()
    monkeypatch.setattr("oldgrowth.export.onnx.MOST_BYTES", size - 1)
    with pytest.raises(ExportError, match=r"ONNX: [\d,]+ nodes take up to [\d.]+ .?B"):
        model.to_onnx()
    monkeypatch.setattr("oldgrowth.export.onnx.MOST_BYTES", int(1.15 * size) + 5000)
    model.to_onnx()


def test_treelite_says_nothing_of_what_is_not_known() -> None:
    pytest.importorskip("treelite")
    x, y = make_data(800, 6, 3, seed=14)
    dumped = json.loads(fitted("ExtraTreesClassifier", x, y).to_treelite().dump_as_json())
    keys = {key for tree in dumped["trees"] for node in tree["nodes"] for key in node}
    assert "threshold" in keys
    assert not keys & {"gain", "data_count", "sum_hess"}


def test_values_beyond_float32_are_refused_by_onnx_alone() -> None:
    x, y = make_data(100, 4, 0, seed=10)
    model = RandomForestRegressor(2, random_state=0).fit(x, 1e200 * y)
    np.testing.assert_array_equal(model.to_sklearn().predict(x), model.predict(x))
    with pytest.raises(ExportError, match="too large for float32"):
        model.to_onnx()


def test_a_forest_beyond_memory_or_node_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("treelite")
    x, y = make_data(500, 4, 3, seed=11)
    model = RandomForestClassifier(4, random_state=0).fit(x, y)
    model.set_params(memory_limit="1MB")
    with pytest.raises(ExportError, match="memory_limit leaves 0 B"):
        model.to_sklearn()
    model.set_params(memory_limit="auto")
    monkeypatch.setattr("oldgrowth.export.treelite.MOST_NODES", 10)
    with pytest.raises(ExportError, match="treelite allows 10"):
        model.to_treelite()


@pytest.mark.parametrize("package", ["onnx", "treelite"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]], [0, 1])
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtraError, match=rf"to_{package} requires {package} .*pip install '{package}>="
    ):
        getattr(model, f"to_{package}")()


def test_a_treelite_that_misplaces_missing_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    treelite = pytest.importorskip("treelite")
    model = RandomForestClassifier(2, random_state=0).fit([[0.0], [1.0]], [0, 1])
    monkeypatch.setattr(treelite, "__version__", "4.7.2")
    with pytest.raises(MissingExtraError, match=r"requires treelite 4\.8 or newer"):
        model.to_treelite()


@pytest.mark.parametrize("method", ["to_sklearn", "to_treelite", "to_onnx"])
def test_there_must_be_a_forest(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(RandomForestClassifier(), method)()


@pytest.mark.parametrize("n_classes", [0, 3])
def test_shap_explains_the_sklearn_forest(n_classes: int) -> None:
    shap = pytest.importorskip("shap")
    x, y = make_data(300, 5, n_classes, seed=12)
    x = np.nan_to_num(x).astype(np.float32)
    rival = fitted(f"RandomForest{'Classifier' if n_classes else 'Regressor'}", x, y).to_sklearn()
    predict = rival.predict_proba if n_classes else rival.predict
    explainer = shap.TreeExplainer(rival, data=x[:40], feature_perturbation="interventional")
    shares = np.asarray(explainer.shap_values(x[40:60])).sum(axis=1)
    np.testing.assert_allclose(explainer.expected_value, predict(x[:40]).mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(explainer.expected_value + shares, predict(x[40:60]), atol=1e-5)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_skl2onnx_converts_the_sklearn_forest(n_classes: int) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    x, y = make_data(300, 5, n_classes, seed=13)
    x = np.nan_to_num(x).astype(np.float32)
    model = fitted(f"RandomForest{'Classifier' if n_classes else 'Regressor'}", x, y)
    wanted = model.predict_proba(x) if n_classes else model.predict(x)[:, None]
    options = {"zipmap": False} if n_classes else None
    made = skl2onnx.to_onnx(model.to_sklearn(), x[:1], options=options, target_opset=15)
    np.testing.assert_allclose(onnx_run(made, x)[-1], wanted, atol=1e-5)


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("n_classes", [8, 9, 100])
@pytest.mark.parametrize(("n_trees", "trees_per_top"), [(260, 130), (300, 300)])
def test_votes_of_many_trees_and_classes(
    n_classes: int, n_trees: int, trees_per_top: int, voting: str
) -> None:
    """Votes are counted in bytes: more of them than a byte holds, for more classes than a word holds."""
    rng = np.random.default_rng(n_classes)
    x = rng.normal(size=(450, 3)).astype(np.float32)
    y = rng.permutation(np.arange(450) % n_classes)
    y[:250] = 0
    model = RandomForestClassifier(
        n_trees,
        trees_per_top=trees_per_top,
        bucket_size=200,
        min_samples_leaf=2,
        voting=voting,
        random_state=0,
    ).fit(x, y)
    shares = model.predict_proba(x)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    trees = [tree.predict_proba(x) for tree in model.to_sklearn().estimators_]
    if voting == "hard":
        trees = [np.eye(len(model.classes_))[shares_of.argmax(axis=1)] for shares_of in trees]
    np.testing.assert_allclose(shares, np.mean(trees, axis=0), rtol=0, atol=1e-6)
    in_parts = [model.predict_proba(x[i : i + 70]) for i in range(0, 450, 70)]
    np.testing.assert_array_equal(np.concatenate(in_parts), shares)
