"""Saving and exporting fitted estimators: to a file, or to a forest of another library."""

from __future__ import annotations

from os import PathLike
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..checks import file_path_of
from ..export.onnx import onnx_model
from ..export.treelite import treelite_model
from ..forest.forest import Forest
from ..forest.model_file import write_model
from ..forest.model_meta import describe


class Exportable:
    """The methods `save` and `to_...` of the estimators."""

    forest_: Forest

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted forest to a file that `oldgrowth.load` reads, here or elsewhere.

        An existing file is replaced only once the new one is complete. The file holds no code and is checked
        when it is read. It does not hold the out-of-bag predictions of single rows, a metric given as
        `oob_score`, or a `random_state` that is a generator.

        Parameters
        ----------
        path : str or path
            Where to write; an existing file is replaced.

        Examples
        --------
        >>> import oldgrowth, tempfile
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = oldgrowth.RandomForestClassifier(n_estimators=8, random_state=0).fit(X, y)
        >>> path = tempfile.mkdtemp() + "/forest.og"
        >>> model.save(path)
        >>> oldgrowth.load(path).classes_
        array([0, 1, 2])
        """
        check_is_fitted(self, "forest_")
        meta = describe(self)  # raises before anything is written
        write_model(file_path_of("path", path), self.forest_, meta)

    def to_sklearn(self) -> Any:
        """Convert the forest to a fitted scikit-learn estimator, for tools that need one.

        `predict`, `predict_proba` and the leaves that rows reach are the same, also for missing values. A
        subset forest becomes a random forest; with `voting="hard"` each leaf holds its majority class only.
        The result takes at least 9 times the memory; beyond `memory_limit` the conversion is refused.

        Our nodes do not store their number of rows, nor values of inner nodes. What needs these fails or is
        NaN: `feature_importances_` of the result (use those of this forest), impurities, contributions by
        treeinterpreter, `partial_dependence(method="recursion")` (use "brute"), and shap without a background
        set. `shap.TreeExplainer(model, data=background)` is correct: it counts the rows of the background,
        which should be float32. Refused for a forest with categorical features: scikit-learn's trees have
        thresholds only.

        Returns
        -------
        RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier or ExtraTreesRegressor
            Of `sklearn.ensemble`.

        Examples
        --------
        >>> from oldgrowth import RandomForestClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = RandomForestClassifier(n_estimators=8, random_state=0).fit(X, y)
        >>> bool((model.to_sklearn().predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        from ..export.sklearn import sklearn_forest  # which imports scikit-learn's forests

        check_is_fitted(self, "forest_")
        return sklearn_forest(self)

    def to_treelite(self) -> Any:
        """Convert the forest to a `treelite.Model`; needs treelite (`pip install treelite`).

        The model predicts values, or probabilities in the order of `classes_`, which it does not store. A
        category is given by its place in `levels_`, and by -1 or NaN if it is missing or unknown. Rows
        should be float32: treelite does not round others, so that a value close to a threshold may go the
        other way. Refused for a single class, for more than 2**31 - 1 nodes in a tree, and beyond
        `memory_limit`.

        Returns
        -------
        treelite.Model
        """
        check_is_fitted(self, "forest_")
        return treelite_model(self)

    def to_onnx(self, path: str | PathLike[str] | None = None) -> Any:
        """Convert the forest to an ONNX model; needs onnx (`pip install onnx`).

        The input `X` is float32, with NaN for missing values; a category is given by its place in `levels_`,
        and by -1 or NaN if it is missing or unknown. A classifier has the outputs `label` and
        `probabilities`, a regressor `prediction`, in float32: if two classes are equal in float32, the label
        may be the other one. Refused if the model would be larger than 2 GB, the limit of an ONNX file.

        Parameters
        ----------
        path : str or path, optional
            Where to save the model as well; an existing file is replaced.

        Returns
        -------
        onnx.ModelProto
        """
        check_is_fitted(self, "forest_")
        return onnx_model(self, None if path is None else file_path_of("path", path))
