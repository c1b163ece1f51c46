"""Selects the columns of a table that are features, target and weight, and checks their types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass, replace

import pyarrow as pa

from ..errors import (
    ColumnTypeError,
    DifferentFilesError,
    DuplicateColumnError,
    MissingColumnError,
    NoDataError,
    ParameterError,
    SameRoleError,
)
from .labels import type_class

NUMBERS = {"whole", "float", "bool", "null"}
FEATURES = {*NUMBERS, "text"}


@dataclass(frozen=True)
class Columns:
    """The columns that are read, by name."""

    features: tuple[str, ...]
    target: str | None
    weight: str | None
    every: bool  # whether all columns but target and weight are features

    @property
    def used(self) -> tuple[str, ...]:
        roles = (name for name in (self.target, self.weight) if name is not None)
        return tuple(dict.fromkeys([*self.features, *roles]))

    def with_features(self, features: tuple[str, ...]) -> Columns:
        return replace(self, features=features, every=False)


class AllBut(tuple[str, ...]):
    """As `features`: all columns except these, target and weight."""


def choose_columns(
    schema: pa.Schema, target: object, features: Sequence[str] | None, weight: object, where: str
) -> Columns:
    """Assign columns of a table to roles; by default all but target and weight are features."""
    check_names(target, features, weight, where)
    assert target is None or isinstance(target, str)
    assert weight is None or isinstance(weight, str)
    check_unique(schema, where)
    left_out = features if isinstance(features, AllBut) else ()
    check_known(schema, left_out, where)
    if features is None or isinstance(features, AllBut):
        not_features = {target, weight, *left_out}
        chosen = tuple(name for name in schema.names if name not in not_features)
    else:
        chosen = tuple(features)
    columns = Columns(chosen, target, weight, features is None)
    check_columns(schema, columns, where)
    return columns


def check_names(target: object, features: object, weight: object, where: str) -> None:
    """Refuse targets, weights and features that are not column names."""
    for name, role in ((target, "target"), (weight, "weight")):
        if isinstance(name, Sized) and not isinstance(name, str):
            raise ParameterError(
                role, name, f"the name of a column of {where} (add the values to it as a column)"
            )
        if name is not None and not isinstance(name, str):
            raise ParameterError(role, name, f"the name of a column of {where}")
    if isinstance(features, str):
        raise ParameterError("features", features, "a list of column names")


def check_known(schema: pa.Schema, names: Iterable[str], where: str) -> None:
    known = set(schema.names)
    missing = [name for name in names if name not in known]
    if missing:
        raise MissingColumnError(missing, where, schema.names)


def first_twice(names: Iterable[str]) -> str | None:
    """The first name that occurs for the second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def check_unique(schema: pa.Schema, where: str) -> None:
    if (twice := first_twice(schema.names)) is not None:
        raise DuplicateColumnError(twice, where)


def check_columns(schema: pa.Schema, columns: Columns, where: str) -> None:
    """Refuse columns that are missing, selected twice or of a type that their role does not allow."""
    if not columns.features:
        raise NoDataError(where, "no column is left for the features")
    if columns.target is not None and columns.target == columns.weight:
        raise SameRoleError(columns.target, where, "is both target and weight")
    check_known(schema, columns.used, where)
    if (twice := first_twice(columns.features)) is not None:
        raise DuplicateColumnError(twice, where, selected=True)
    for name in columns.features:
        if name in (columns.target, columns.weight):
            raise SameRoleError(name, where, "is a feature, and also target or weight")
    bad = [name for name in columns.features if type_class(schema.field(name).type) not in FEATURES]
    if bad:
        others = {name: shown_type(schema.field(name)) for name in bad[1:]}
        raise ColumnTypeError(bad[0], where, shown_type(schema.field(bad[0])), "feature", others)
    for role, role_name in (("target", columns.target), ("weight", columns.weight)):
        if role_name is None:
            continue
        kind = type_class(schema.field(role_name).type)
        if kind == "other" or (role == "weight" and kind not in NUMBERS):
            raise ColumnTypeError(role_name, where, shown_type(schema.field(role_name)), role)


def unusable(name: str, what: str) -> pa.Field:
    """A column without an Arrow type; error messages show `what` as its type."""
    return pa.field(name, pa.binary(), metadata={"holds": what})


def shown_type(field: pa.Field) -> str:
    holds = (field.metadata or {}).get(b"holds")
    return str(field.type) if holds is None else holds.decode()


def check_same(first: pa.Schema, first_file: str, schema: pa.Schema, file: str, columns: Columns) -> None:
    """Refuse a file whose columns, as far as they are used, differ from those of the first file."""
    if schema.equals(first):
        return
    check_unique(schema, file)
    known = set(schema.names)
    used = columns.used
    for name in first.names if columns.every else used:
        if name not in known:
            raise DifferentFilesError(file, name, "is missing, but is present in", first_file)
    if columns.every:
        for name in known.difference(first.names):
            raise DifferentFilesError(file, name, "is not in", first_file)
    for name in used:
        found, wanted = schema.field(name).type, first.field(name).type
        if not _alike(found, wanted, name == columns.target):
            raise DifferentFilesError(file, name, f"has type {found}, but type {wanted} in", first_file)


def with_types_of(first: pa.Schema, schema: pa.Schema) -> pa.Schema:
    """The schema of the first file; columns in which it has no value have the type of another file."""
    for place, field in enumerate(first):
        if pa.types.is_null(field.type) and field.name in schema.names:
            first = first.set(place, field.with_type(schema.field(field.name).type))
    return first


def _alike(found: pa.DataType, wanted: pa.DataType, exact: bool) -> bool:
    a, b = type_class(found), type_class(wanted)
    if "null" in (a, b):
        return True
    if not exact and a in NUMBERS and b in NUMBERS:
        return pa.types.is_dictionary(found) == pa.types.is_dictionary(wanted)  # categories, or numbers
    return a == b
