"""Docstrings of the estimators, made of the table of parameters."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent
from typing import TypeVar

from .parameters import parameters_of

_Estimator = TypeVar("_Estimator", bound=type)

_ATTRIBUTES = {
    "classification": """\
classes_ : array
    The labels, sorted.
""",
    "": """\
feature_importances_ : array of shape (n_features,)
    Share of each feature in the decrease of impurity.
oob_score_, {oob}
    Out-of-bag score and predictions, if `oob_score` is set.
n_features_in_, feature_names_in_
    Number and, for data frames, names of the features.
forest_ : Forest
    The trees; `forest_.digest()` is a hash of every bit of them.
fit_report_ : FitReport
    Rows and seconds of each stage, bucket sizes, nodes, peak memory.
recipe_ : dict or None
    How the features were made of the bands of a scene, if they were.""",
}


def described(kind: str, task: str) -> Callable[[_Estimator], _Estimator]:
    """A class with the parameters of this kind of forest, and their texts in its docstring."""
    parameters = parameters_of(kind, task)

    def decorate(cls: _Estimator) -> _Estimator:
        oob = "oob_decision_function_" if task == "classification" else "oob_prediction_"
        attributes = _ATTRIBUTES.get(task, "") + _ATTRIBUTES[""].format(oob=oob)
        entries = "\n".join(parameter.documented for parameter in parameters.values())
        summary, _, examples = dedent(f"    {cls.__doc__}").strip().partition("\n\n")
        sections = (("Parameters", entries), ("Attributes", attributes))
        body = "\n\n".join(f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections)
        cls.__doc__ = indent(f"{summary}\n\n{body}\n\n{examples}\n", "    ").strip() + "\n    "
        cls._parameters = parameters  # type: ignore[attr-defined]
        return cls

    return decorate
