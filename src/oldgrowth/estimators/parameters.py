"""The parameters of the estimators: one table for docstrings, validation, the command line and the identity
of a fit.

The signatures of the estimators are written out in forests.py; a test compares them with the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from textwrap import fill, indent
from typing import Any

import numpy as np

from .. import _core
from ..checks import flag, is_real, is_whole, one_of, path_of, real, verbosity, whole
from ..errors import ParameterError
from ..messages.surface import in_words_of
from ..planning.planner import HIGHEST_BOOTSTRAP_MEAN, check_jobs, weights_that_are
from ..storage.store_names import STORE_NAMES
from ..system.memory import size_of

FROM_DTYPE = "from_dtype"  # of `categorical_features`
TASKS = ("classification", "regression")
KINDS = ("random-forest", "extra-trees", "subsets")
_WITH_TOP_TREES = ("random-forest", "extra-trees")

# Takes a name and a value, returns the value in a plain type, or raises a ParameterError.
Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the estimators of some kinds and tasks; `types` is for people to read."""

    name: str
    types: str
    default: Any
    text: str
    check: Check
    kinds: tuple[str, ...] = KINDS
    tasks: tuple[str, ...] = TASKS
    changes_model: bool = True

    @property
    def documented(self) -> str:
        """As an entry of a docstring."""
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        text = indent(fill(self.text, 106), "    ")
        return f"{self.name} : {self.types}, default {default}\n{text}"


def _whole(low: int) -> Check:
    return lambda name, value: whole(name, value, low)


def _real(low: float, high: float = math.inf) -> Check:
    return lambda name, value: real(name, value, low, high)


def _one_of(*choices: str) -> Check:
    return lambda name, value: one_of(name, value, choices)


def _or_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _or_auto(check: Check) -> Check:
    return lambda name, value: value if isinstance(value, str) and value == "auto" else check(name, value)


def _whole_or_auto(low: int) -> Check:
    def check(name: str, value: Any) -> Any:
        if isinstance(value, str) and value != "auto":
            raise ParameterError(name, value, f"a whole number of at least {low}, or 'auto'")
        return value if isinstance(value, str) else whole(name, value, low)

    return check


def _rows_or_share(low: int) -> Check:
    """A number of rows: whole, or a share of all of them as a float."""

    def check(name: str, value: Any) -> Any:
        if is_real(value) and not isinstance(value, Integral) and 0 < value <= 1:
            return float(value)
        if is_whole(value) and value >= low:
            return min(int(value), 2**62)
        raise ParameterError(name, value, f"a whole number of at least {low} or a share in (0, 1]")

    return check


def _leaf_rows(name: str, value: Any) -> Any:
    if isinstance(value, float) and value == 1:  # likely meant as one row
        raise ParameterError(name, value, "a whole number or a share below 1")
    return _rows_or_share(1)(name, value)


def _features(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, str) and value in ("sqrt", "log2")):
        return value
    if is_whole(value) and value >= 1:
        return int(value)
    if is_real(value) and 0 < value <= 1:
        return float(value)
    wanted = "'sqrt', 'log2', None, a whole number of at least 1 or a share in (0, 1]"
    raise ParameterError(name, value, wanted)


def _max_samples(name: str, value: Any) -> Any:
    most = HIGHEST_BOOTSTRAP_MEAN
    if is_real(value) and not isinstance(value, Integral) and 0 < value <= most:
        return float(value)
    if is_whole(value) and value >= 1:
        return int(value)
    wanted = f"None, or a number or share of rows, at most {most} times all rows"
    raise ParameterError(name, value, wanted)


def _score(name: str, value: Any) -> Any:
    if callable(value):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ParameterError(name, value, "True, False or a metric (a function)")


def _class_weight(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, str) and value in ("balanced", "balanced_subsample")):
        return value
    if not isinstance(value, dict):
        raise ParameterError(
            name,
            value,
            lambda say: (
                f"{in_words_of(say, 'a dict', 'label=weight,...')}, 'balanced', 'balanced_subsample' or "
                f"{in_words_of(say, 'None')}"
            ),
        )
    if not all(is_real(w) and np.isfinite(w) and w >= 0 for w in value.values()):
        raise ParameterError(name, value, weights_that_are("finite and at least 0"))
    return value


def _jobs(name: str, value: Any) -> Any:
    check_jobs(value)
    return value


def checked_categorical(name: str, value: Any) -> Any:
    """`categorical_features` in plain types."""
    if value is None or (isinstance(value, str) and value == FROM_DTYPE):
        return value
    given = [value] if isinstance(value, str) else value
    if isinstance(given, np.ndarray):
        given = given.tolist()
    plain = isinstance(given, list | tuple)
    bools = plain and all(isinstance(one, bool | np.bool_) for one in given)
    if not plain or not (bools or all(isinstance(one, str) or is_whole(one) for one in given)):
        raise ParameterError(name, value, "'from_dtype', None, or a list of names, of numbers or of bools")
    return [one if isinstance(one, str) else bool(one) if bools else int(one) for one in given]


def _size(name: str, value: Any) -> Any:
    size_of(name, value, 1)
    return value


def _path(name: str, value: Any) -> Any:
    return path_of(name, value)


def _any(name: str, value: Any) -> Any:
    return value


def _verbosity(name: str, value: Any) -> int:
    return verbosity(value)


def _listed(words: list[str]) -> str:
    """Words that can be given, such as "a", "b" or "c"."""
    quoted = [f'"{word}"' for word in words]
    return " or ".join([*filter(None, [", ".join(quoted[:-1])]), quoted[-1]])


CLASS_CRITERIA, VALUE_CRITERIA = (_core.criteria(classification=kind) for kind in (True, False))

# In the order of the signatures.
PARAMETERS = (
    Parameter("n_estimators", "int", 100, "Number of trees.", _whole(1)),
    Parameter(
        "criterion", "str", "gini", f'{_listed(CLASS_CRITERIA)} ("log_loss" is the same as "entropy").',
        _one_of(*CLASS_CRITERIA), tasks=("classification",),
    ),
    Parameter(
        "criterion", "str", "squared_error", f"{_listed(VALUE_CRITERIA)}.", _one_of(*VALUE_CRITERIA), tasks=("regression",)
    ),
    Parameter(
        "max_depth", "int | None", None,
        "Maximum depth of a tree, top tree included; None grows trees until all leaves are pure.",
        _or_none(_whole(1)),
    ),
    Parameter(
        "min_samples_split", "int | float", 2,
        "Minimum number of rows in a node to split it; a float is a share of all rows.", _rows_or_share(2),
    ),
    Parameter(
        "min_samples_leaf", "int | float", 1, "Minimum number of rows in a leaf; a float is a share of all rows.", _leaf_rows
    ),
    Parameter(
        "min_weight_fraction_leaf", "float", 0.0,
        "Minimum share of the total weight of all rows in a leaf.", _real(0, 0.5),
    ),
    Parameter(
        "min_impurity_decrease", "float", 0.0,
        "Minimum weighted decrease of impurity for a split.", _real(0),
    ),
    *(
        Parameter(
            "max_features", "int | float | str | None", default,
            'Number of features to try at each split, not counting those that are constant in the node: a number, a share, "sqrt", '
            '"log2" or None for all.', _features, tasks=(task,),
        )
        for task, default in zip(TASKS, ("sqrt", 1.0), strict=True)
    ),
    *(
        Parameter(
            "bootstrap", "bool", default,
            "Whether each tree is grown on a bootstrap sample of the rows (Poisson counts), or on every row once.", flag,
            kinds=kinds,
        )
        for kinds, default in ((("random-forest", "subsets"), True), (("extra-trees",), False))
    ),
    Parameter(
        "max_samples", "int | float | None", None,
        "Expected number of rows in a bootstrap sample, or their share, up to 4 times all rows; None means as many "
        "as there are rows.", _or_none(_max_samples),
    ),
    Parameter(
        "oob_score", "bool | Callable[..., float]", False,
        "Whether to score the forest on each row by the trees that did not see it; or the metric to score it with. "
        "Top trees see the targets of their samples: with buckets of a few hundred rows or fewer the score is too "
        "high.", _score, kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "oob_score", "bool | Callable[..., float]", False,
        "Whether to score the forest on each row by the trees that did not see it; or the metric to score it with.", _score,
        kinds=("subsets",),
    ),
    Parameter(
        "class_weight", "dict[Any, float] | str | None", None,
        'Weights of the classes: a dict, "balanced", "balanced_subsample" (by each tree\'s bootstrap sample) or None.',
        _class_weight, tasks=("classification",),
    ),
    Parameter(
        "categorical_features", "list[Any] | str | None", "from_dtype",
        'Which features are categories, whose nodes split by sets of levels: "from_dtype" (text and the categorical types of '
        "pandas, polars and Arrow), a list of their names or numbers, a list with a bool for each feature, or None (text is "
        "then refused).", checked_categorical,
    ),
    Parameter(
        "n_jobs", "int | None", -1, "Number of threads; -1 means all cores, None means 1.", _jobs,
        changes_model=False,
    ),
    Parameter(
        "random_state", "int | RandomState | None", None,
        "Seed. The same seed gives the same forest, bit for bit, whatever n_jobs, chunk_size and store are.", _any,
    ),
    Parameter("verbose", "int", 0, "1 shows progress.", _verbosity, changes_model=False),
    Parameter(
        "trees_per_top", "int | str", "auto",
        'Number of trees that share a top tree: the bottom trees of each bucket. "auto" is 4, or fewer if there '
        "would be fewer than twelve top trees. Few top trees cost accuracy; each takes time and, on disk, a copy "
        "of the rows.", _whole_or_auto(1), kinds=("random-forest",),
    ),
    Parameter(
        "trees_per_top", "int | str", "auto",
        'Number of trees that share a top tree: the bottom trees of each bucket. "auto" is 4. Each top tree takes '
        "time and, on disk, a copy of the rows.", _whole_or_auto(1), kinds=("extra-trees",),
    ),
    *(
        Parameter(
            "bucket_size", "int | str", "auto",
            "Desired maximum number of rows per bucket. Data with no more rows than this gets no top trees, and the "
            f'forest is an ordinary one. "auto" is {auto}, or all rows if there are at most 100,000.',
            _whole_or_auto(2), kinds=(kind,),
        )
        for kind, auto in (
            (
                "random-forest",
                "what a core's cache holds, from 30,000 rows of many or wide features to 60,000",
            ),
            ("extra-trees", "30,000"),
        )
    ),
    Parameter(
        "top_sample", "int | str", "auto",
        'Number of rows that each top tree is grown on; "auto" is 2,048 per expected bucket, at least twice the '
        "bucket size or 65,535, and at most 500,000.", _whole_or_auto(2), kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "top_max_features", "int | float | str | None", "auto",
        'Number of features to try at each split of a top tree, as max_features, which "auto" takes.', _or_auto(_features),
        kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "balance", "float | str", "auto",
        "Weight of even splits against gain in top trees, from 0 to 1: the paper's lambda. \"auto\" is 0.",
        _or_auto(_real(0, 1)), kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "bottom_balance", "float", 0.0, "Weight of even splits against gain in bottom trees, for experiments; ordinary trees have 0.",
        _real(0, 1), kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "subset_size", "int | str", "auto",
        'Number of rows that each tree is grown on; "auto" is 30,000, or a 60th of all rows if that is more.',
        _whole_or_auto(2), kinds=("subsets",),
    ),
    Parameter(
        "store", "str", "auto",
        'Where buckets are kept: "memory", "disk", "gather" for scenes (row numbers on disk, the image in memory), or '
        '"auto", which is memory if everything fits in the limit, else gather where it pays, else disk.',
        _one_of("auto", *STORE_NAMES), kinds=_WITH_TOP_TREES, changes_model=False,
    ),
    Parameter(
        "memory_limit", "int | float | str", "auto",
        'Maximum memory of the process: bytes, a size like "2GB", or a share of the machine\'s memory. "auto" is '
        "80 % of the free memory.", _or_auto(_size), changes_model=False,
    ),
    Parameter(
        "spill_dir", "path | None", None,
        "Where to make a private directory for buckets; None means the system's directory for temporary files.",
        _or_none(_path), kinds=_WITH_TOP_TREES, changes_model=False,
    ),
    Parameter(
        "spill_dir", "path | None", None,
        "Where to write sampled rows and trees that do not fit in memory; None means the system's directory for "
        "temporary files.", _or_none(_path), kinds=("subsets",), changes_model=False,
    ),
    Parameter(
        "spill_limit", "int | float | str", "auto",
        "Maximum disk space of the buckets, given as memory_limit is; if it is too little for all top trees at once, "
        'they are grown in several rounds. "auto" is 80 % of the free space.', _or_auto(_size), kinds=_WITH_TOP_TREES,
        changes_model=False,
    ),
    Parameter(
        "chunk_size", "int | str", "auto",
        'Number of rows to read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.',
        _whole_or_auto(1), changes_model=False,
    ),
    Parameter(
        "checkpoint_dir", "path | None", None,
        "Directory in which an interrupted fit leaves its work; a fit of the same data with the same parameters "
        "resumes it.", _or_none(_path), changes_model=False,
    ),
    Parameter(
        "voting", "str", "soft",
        '"soft" averages the class shares of the leaves; "hard" counts one vote per tree, as in the paper.',
        _one_of("soft", "hard"), tasks=("classification",),
    ),
)  # fmt: skip


def parameters_of(kind: str, task: str) -> dict[str, Parameter]:
    """The parameters of an estimator by their names, in the order of its signature."""
    return {p.name: p for p in PARAMETERS if kind in p.kinds and task in p.tasks}


def checked(parameters: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values in plain types; raises a ParameterError for the first invalid one."""
    return {name: parameter.check(name, given[name]) for name, parameter in parameters.items()}


def that_change_the_model(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given parameters that change the model."""
    others = {parameter.name for parameter in PARAMETERS if not parameter.changes_model}
    return {name: value for name, value in given.items() if name not in others}
