"""What a fitted estimator can be turned into: a file, or a forest of another library."""

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
    """Saves and exports the forest of the estimator that it is part of."""

    forest_: Forest

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted forest to a file that `oldgrowth.load` reads, here or elsewhere.

        The file appears whole or not at all. It holds no code and is checked when it is read. The out-of-bag
        predictions of single rows are not in it, nor a metric given as `oob_score`, nor a `random_state` that
        is a generator.

        Parameters
        ----------
        path : str or path
            Where to write; what is there is replaced.

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
        """The same forest as a fitted scikit-learn estimator, for the tools that want one.

        `predict`, `predict_proba` and the leaves that rows reach are the same, missing values included. A
        subset forest becomes a random forest; with `voting="hard"` each leaf has its majority alone. It takes
        9 or more times the memory, and is refused if that is beyond `memory_limit`.

        Our nodes do not keep how many rows they had, nor the values of inner nodes. What needs them is
        refused or NaN, never made up: `feature_importances_` of the other forest (take those of this one),
        impurities, contributions by treeinterpreter, `partial_dependence(method="recursion")` (take "brute"),
        and shap without a background set. `shap.TreeExplainer(model, data=background)` is right: it counts
        the rows of the background, which should be float32.

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
        """The same forest as a `treelite.Model`; needs treelite (`pip install treelite`).

        It predicts values, or probabilities in the order of `classes_`, which it does not know. Give it rows
        as float32: treelite does not round others, so that a value close to a threshold may go another way.
        Refused with a single class, and beyond treelite's 2**31 - 1 nodes in a tree or `memory_limit`.

        Returns
        -------
        treelite.Model
        """
        check_is_fitted(self, "forest_")
        return treelite_model(self)

    def to_onnx(self, path: str | PathLike[str] | None = None) -> Any:
        """The same forest as an ONNX model; needs onnx (`pip install onnx`).

        The input `X` is float32, NaN where a value is missing. A classifier has the outputs `label` and
        `probabilities`, a regressor `prediction`, in float32: where two classes are closer than that can
        tell, the label may be the other one. Refused beyond the 2 GB of an ONNX file.

        Parameters
        ----------
        path : str or path, optional
            Where to save it, too; what is there is replaced.

        Returns
        -------
        onnx.ModelProto
        """
        check_is_fitted(self, "forest_")
        return onnx_model(self, None if path is None else file_path_of("path", path))
