"""The parameters of the estimators: one table for docstrings, validation, the command line and the identity
of a fit.

The signatures of the estimators are written out in forests.py; a test compares them with the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill, indent
from typing import Any

from .. import _core
from ..checks import flag
from ..storage.store_names import STORE_NAMES
from .parameter_checks import (
    FROM_DTYPE,
    Check,
    anything,
    categorical,
    class_weight,
    criterion,
    features,
    in_quotes,
    jobs,
    leaf_rows,
    level,
    max_samples,
    only_default,
    or_auto,
    or_none,
    path,
    real_number,
    rows_or_share,
    score,
    size,
    whole_number,
    whole_or_auto,
    word,
)

TASKS = ("classification", "regression")
KINDS = ("random-forest", "extra-trees", "subsets")
_WITH_TOP_TREES = ("random-forest", "extra-trees")


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
    option: bool = True  # of `oldgrowth fit`

    @property
    def documented(self) -> str:
        """As an entry of a docstring."""
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        text = indent(fill(self.text, 106), "    ")
        return f"{self.name} : {self.types}, default {default}\n{text}"


CLASS_CRITERIA, VALUE_CRITERIA = (_core.criteria(classification=kind) for kind in (True, False))

_SMALLER = "max_depth, min_samples_leaf and min_impurity_decrease make trees smaller"
# What scikit-learn's forests have and ours do not: the only value accepted, its type, and what to do instead.
_ONLY_DEFAULT = {
    "max_leaf_nodes": ("None", None, _SMALLER),
    "ccp_alpha": ("float", 0.0, f"trees are not pruned; {_SMALLER}"),
    "monotonic_cst": ("None", None, "scikit-learn's HistGradientBoostingClassifier and -Regressor have it"),
}

# In the order of the signatures.
PARAMETERS = (
    Parameter("n_estimators", "int", 100, "Number of trees.", whole_number(1)),
    Parameter(
        "criterion", "str", "gini", f'{in_quotes(CLASS_CRITERIA)} ("log_loss" is the same as "entropy").',
        word(*CLASS_CRITERIA), tasks=("classification",),
    ),
    Parameter(
        "criterion", "str", "squared_error", f"{in_quotes(VALUE_CRITERIA)}.", criterion(*VALUE_CRITERIA), tasks=("regression",)
    ),
    Parameter(
        "max_depth", "int | None", None,
        "Maximum depth of a tree, top tree included; None grows trees until all leaves are pure.",
        or_none(whole_number(1)),
    ),
    Parameter(
        "min_samples_split", "int | float", 2,
        "Minimum number of rows in a node to split it; a float is a share of all rows.", rows_or_share(2),
    ),
    Parameter(
        "min_samples_leaf", "int | float", 1, "Minimum number of rows in a leaf; a float is a share of all rows.", leaf_rows
    ),
    Parameter(
        "min_weight_fraction_leaf", "float", 0.0,
        "Minimum share of the total weight of all rows in a leaf.", real_number(0, 0.5),
    ),
    Parameter(
        "min_impurity_decrease", "float", 0.0,
        "Minimum weighted decrease of impurity for a split.", real_number(0),
    ),
    *(
        Parameter(
            "max_features", "int | float | str | None", default,
            'Number of features to try at each split, not counting those that are constant in the node: a number, a share, "sqrt", '
            '"log2" or None for all.', features, tasks=(task,),
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
        "as there are rows.", or_none(max_samples),
    ),
    Parameter(
        "oob_score", "bool | Callable[..., float]", False,
        "Whether to score the forest on each row by the trees that did not see it; or the metric to score it with. "
        "Top trees see the targets of their samples: with buckets of a few hundred rows or fewer the score is too "
        "high.", score, kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "oob_score", "bool | Callable[..., float]", False,
        "Whether to score the forest on each row by the trees that did not see it; or the metric to score it with.", score,
        kinds=("subsets",),
    ),
    Parameter(
        "class_weight", "dict[Any, float] | str | None", None,
        'Weights of the classes: a dict, "balanced", "balanced_subsample" (by each tree\'s bootstrap sample) or None.',
        class_weight, tasks=("classification",),
    ),
    Parameter(
        "categorical_features", "list[Any] | str | None", FROM_DTYPE,
        'Which features are categories, whose nodes split by sets of levels: "from_dtype" (text and the categorical types of '
        "pandas, polars and Arrow), a list of their names or numbers, a list with a bool for each feature, or None (text is "
        "then refused).", categorical,
    ),
    Parameter(
        "n_jobs", "int | None", -1, "Number of threads; -1 means all cores, None means 1.", jobs,
        changes_model=False,
    ),
    Parameter(
        "random_state", "int | RandomState | None", None,
        "Seed. The same seed gives the same forest, bit for bit, whatever n_jobs, chunk_size and store are.", anything,
    ),
    Parameter("verbose", "int", 0, "1 shows progress.", level, changes_model=False),
    Parameter(
        "warm_start", "bool", False,
        "True keeps the trees of the last fit and grows those that n_estimators asks for in addition: on the same data, "
        "the forest is the one that is fitted with all trees at once, if trees_per_top is the same.", flag,
        changes_model=False, option=False,
    ),
    Parameter(
        "trees_per_top", "int | str", "auto",
        'Number of trees that share a top tree: the bottom trees of each bucket. "auto" is 4, or fewer if there '
        "would be fewer than twelve top trees. Few top trees cost accuracy; each takes time and, on disk, a copy "
        "of the rows.", whole_or_auto(1), kinds=("random-forest",),
    ),
    Parameter(
        "trees_per_top", "int | str", "auto",
        'Number of trees that share a top tree: the bottom trees of each bucket. "auto" is 4. Each top tree takes '
        "time and, on disk, a copy of the rows.", whole_or_auto(1), kinds=("extra-trees",),
    ),
    *(
        Parameter(
            "bucket_size", "int | str", "auto",
            "Desired maximum number of rows per bucket. Data with no more rows than this gets no top trees, and the "
            f'forest is an ordinary one. "auto" is {auto}, or all rows if there are at most 100,000.',
            whole_or_auto(2), kinds=(kind,),
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
        "bucket size or 65,535, and at most 500,000.", whole_or_auto(2), kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "top_max_features", "int | float | str | None", "auto",
        'Number of features to try at each split of a top tree, as max_features, which "auto" takes.', or_auto(features),
        kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "balance", "float | str", "auto",
        "Weight of even splits against gain in top trees, from 0 to 1: the paper's lambda. \"auto\" is 0.",
        or_auto(real_number(0, 1)), kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "bottom_balance", "float", 0.0, "Weight of even splits against gain in bottom trees, for experiments; ordinary trees have 0.",
        real_number(0, 1), kinds=_WITH_TOP_TREES,
    ),
    Parameter(
        "subset_size", "int | str", "auto",
        'Number of rows that each tree is grown on; "auto" is 30,000, or a 60th of all rows if that is more.',
        whole_or_auto(2), kinds=("subsets",),
    ),
    Parameter(
        "store", "str", "auto",
        'Where buckets are kept: "memory", "disk", "gather" for scenes (row numbers on disk, the image in memory), or '
        '"auto", which is memory if everything fits in the limit, else gather where it pays, else disk.',
        word("auto", *STORE_NAMES), kinds=_WITH_TOP_TREES, changes_model=False,
    ),
    Parameter(
        "memory_limit", "int | float | str", "auto",
        'Maximum memory of the process: bytes, a size like "2GB", or a share of the machine\'s memory. "auto" is '
        "80 % of the free memory.", or_auto(size), changes_model=False,
    ),
    Parameter(
        "spill_dir", "path | None", None,
        "Where to make a private directory for buckets; None means the system's directory for temporary files.",
        or_none(path), kinds=_WITH_TOP_TREES, changes_model=False,
    ),
    Parameter(
        "spill_dir", "path | None", None,
        "Where to write sampled rows and trees that do not fit in memory; None means the system's directory for "
        "temporary files.", or_none(path), kinds=("subsets",), changes_model=False,
    ),
    Parameter(
        "spill_limit", "int | float | str", "auto",
        "Maximum disk space of the buckets, given as memory_limit is; if it is too little for all top trees at once, "
        'they are grown in several rounds. "auto" is 80 % of the free space.', or_auto(size), kinds=_WITH_TOP_TREES,
        changes_model=False,
    ),
    Parameter(
        "chunk_size", "int | str", "auto",
        'Number of rows to read at a time; does not change the forest. "auto" is about 2 MB, or less if memory is short.',
        whole_or_auto(1), changes_model=False,
    ),
    Parameter(
        "checkpoint_dir", "path | None", None,
        "Directory in which an interrupted fit leaves its work; a fit of the same data with the same parameters "
        "resumes it.", or_none(path), changes_model=False,
    ),
    Parameter(
        "voting", "str", "soft",
        '"soft" averages the class shares of the leaves; "hard" counts one vote per tree, as in the paper.',
        word("soft", "hard"), tasks=("classification",),
    ),
    *(
        Parameter(name, types, accepted, f"Only {accepted} is accepted: {way}.", only_default(accepted, way), option=False)
        for name, (types, accepted, way) in _ONLY_DEFAULT.items()
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
