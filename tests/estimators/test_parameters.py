"""The table of parameters agrees with signatures, docstrings and options."""

from __future__ import annotations

import inspect

import pytest

import oldgrowth
from oldgrowth.errors import ParameterError
from oldgrowth.estimators.parameters import (
    KINDS,
    PARAMETERS,
    TASKS,
    checked,
    parameters_of,
    that_change_the_model,
)

CLASSES = [
    getattr(oldgrowth, name) for name in oldgrowth.__all__ if name.endswith(("Classifier", "Regressor"))
]
# What the table calls otherwise than a signature does.
WORDS = {"path": "str | PathLike[str]", "int | RandomState | None": "Any"}


def in_signature(types: str) -> str:
    return WORDS.get(types, " | ".join(WORDS.get(part, part) for part in types.split(" | ")))


@pytest.mark.parametrize("cls", CLASSES)
def test_signatures_are_those_of_the_table(cls: type) -> None:
    signature = inspect.signature(cls).parameters
    table = cls._parameters
    assert list(signature) == list(table)
    for name, parameter in table.items():
        assert repr(signature[name].default) == repr(parameter.default), name
        assert signature[name].annotation == in_signature(parameter.types), name
        assert parameter.documented.splitlines()[0] in cls.__doc__
        assert " ".join(parameter.text.split()) in " ".join(cls.__doc__.split())


def test_each_kind_and_task_has_a_parameter_once() -> None:
    for kind in KINDS:
        for task in TASKS:
            names = [p.name for p in PARAMETERS if kind in p.kinds and task in p.tasks]
            assert len(names) == len(set(names)) == len(parameters_of(kind, task))


@pytest.mark.parametrize("cls", CLASSES)
def test_defaults_pass_the_checks_and_objects_do_not(cls: type) -> None:
    given = cls().get_params()
    assert checked(cls._parameters, given) == given
    for name in given.keys() - {"random_state"}:
        with pytest.raises(ParameterError, match=name):
            checked(cls._parameters, given | {name: object()})


def test_what_changes_only_the_way_is_no_part_of_the_model() -> None:
    given = oldgrowth.RandomForestClassifier().get_params()
    assert given.keys() - that_change_the_model(given).keys() == {
        "n_jobs", "verbose", "chunk_size", "store", "memory_limit", "spill_dir", "spill_limit",
        "checkpoint_dir", "warm_start",
    }  # fmt: skip
