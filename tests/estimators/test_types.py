"""Types of the estimators: mypy checks a snippet of user code."""

from pathlib import Path

import pytest

SNIPPET = """
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import oldgrowth
from oldgrowth.reporting.report import FitReport

x, y = np.zeros((9, 2)), np.arange(9)
classifier = oldgrowth.RandomForestClassifier(4, max_depth=3).fit(x, y)
assert_type(classifier, oldgrowth.RandomForestClassifier)
assert_type(classifier.predict_proba(x), npt.NDArray[np.float64])
assert_type(classifier.classes_, npt.NDArray[Any])
assert_type(classifier.set_params(n_jobs=1), oldgrowth.RandomForestClassifier)
regressor = oldgrowth.SubsetForestRegressor().fit(x, y, sample_weight=y)
assert_type(regressor.predict(x), npt.NDArray[np.float64])
assert_type(oldgrowth.ExtraTreesRegressor().fit(x, y).fit_report_, FitReport)
model = oldgrowth.load("forest.og")
assert_type(model.predict(x), npt.NDArray[Any] | npt.NDArray[np.float64])
assert_type(model.score(x, y), float)
assert_type(model.fit_report_, FitReport)
assert_type(model.save("other.og"), None)
if isinstance(model, oldgrowth.RandomForestClassifier):
    assert_type(model.predict_proba(x), npt.NDArray[np.float64])
oldgrowth.RandomForestClassifier(max_leaf_nodes=3)  # an error that mypy finds
"""


@pytest.mark.slow
def test_mypy_knows_what_fit_and_load_return(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    config = Path(__file__).parents[2] / "pyproject.toml"
    found, problems, _ = mypy.run(["--config-file", str(config), str(tmp_path / "snippet.py")])
    errors = [line for line in found.splitlines() if ": error: " in line]
    assert not problems
    assert len(errors) == 1 and '"max_leaf_nodes"' in errors[0], found
