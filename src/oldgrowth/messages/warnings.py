"""All warnings that oldgrowth gives."""

from __future__ import annotations

from collections.abc import Sequence

from .text import printable


class OldgrowthWarning(UserWarning):
    """Base class of warnings: something works, but is probably not intended.

    `args` are what a warning was made of, so that another process can make it again.
    """

    def __init__(self, message: str = "") -> None:
        self.message = message

    def __str__(self) -> str:
        return printable(self.message, keep="\n")


class IdColumnWarning(OldgrowthWarning):
    """Features look like an index or an id; `columns` maps their names or numbers to reasons."""

    def __init__(self, columns: dict[str | int, str]) -> None:
        self.columns = columns
        named = ", ".join(
            f"{repr(name) if isinstance(name, str) else f'column {name}'} ({why})"
            for name, why in columns.items()
        )
        what = (
            f"Some features look like an index or an id, which does not generalize to other rows: {named}. "
            "Unless intended, exclude them"
        )
        super().__init__(f"{what}, for example with features=[...] of open_dataset.")
        can_drop = all(isinstance(name, str) and name == name.strip() and "," not in name for name in columns)
        drop = f" with --drop {','.join(map(str, columns))!r}"
        self.on_command_line = f"{what}{drop if can_drop else ': name the other columns with --features'}."


class NoMoreTreesWarning(OldgrowthWarning):
    """A fit that adds trees has none to add."""

    def __init__(self, trees: int) -> None:
        super().__init__(
            f"The forest has {trees:,} trees, as many as n_estimators: with warm_start=True nothing is "
            "fitted. Raise n_estimators, or set warm_start=False to fit anew."
        )


class PooledLevelsWarning(OldgrowthWarning):
    """A categorical feature has more levels than a forest can tell apart."""

    def __init__(self, column: object, levels: int, most: int, rows: int) -> None:
        super().__init__(
            f"The categorical feature {column!r} has {levels:,} levels, but a forest can tell apart only "
            f"{most:,}: the rarest, with {rows:,} rows, are taken as one level."
        )


class NumericTextWarning(OldgrowthWarning):
    """The text of categorical features is numbers, but for a little.

    `columns` has the first text of each that is no number.
    """

    def __init__(self, columns: dict[str | int, str | None]) -> None:
        named = ", ".join(
            f"{name!r}{'' if text is None else f' (but not {text!r})'}" for name, text in columns.items()
        )
        one = len(columns) == 1
        super().__init__(
            f"The text of {'column' if one else 'columns'} {named} could be numbers, and is taken as "
            "categories, which have no order. If these are amounts, convert them to numbers; codes may stay."
        )


class DateTextWarning(OldgrowthWarning):
    """Text that could be dates is taken as categories."""

    def __init__(self, columns: Sequence[str | int]) -> None:
        named = f"{'column' if len(columns) == 1 else 'columns'} {', '.join(map(repr, columns))}"
        super().__init__(
            f"The text of {named} could be dates, and is taken as categories, which have no order. To use "
            "their order, make numbers of them, such as days since 1970."
        )


class TaskWarning(OldgrowthWarning):
    """The target may be classes or amounts: the task had to be guessed."""


class SameForestWarning(OldgrowthWarning):
    """A forest is merged with itself."""

    def __init__(self) -> None:
        super().__init__(
            "Two of the forests to merge have the same trees, which then count twice: forests of the same "
            "rows need different seeds (random_state)."
        )


class FeatureNamesWarning(OldgrowthWarning):
    """Only the data or only the forest has feature names, so columns are matched by position."""


class SampleWarning(OldgrowthWarning):
    """Some points of a sample of a map are left out, or tell less than they could."""


class EmptyMapWarning(OldgrowthWarning):
    """A map has no predicted pixel."""


class LeftOutWarning(OldgrowthWarning):
    """Pixels are predicted that training left out, by a mask or a nodata value that a scene lacks."""

    def __init__(self, where: str, has: str, trained: str, way: str) -> None:
        super().__init__(
            f"{where} has {has}, but the forest was trained with {trained}: pixels like those that were left "
            f"out then are predicted, although the forest has seen none. {way}."
        )


class DamagedPartWarning(OldgrowthWarning):
    """A file of a checkpoint is damaged; what was in it is done again, and the forest is the same."""

    def __init__(self, path: object, what: str) -> None:
        super().__init__(
            f"{path} is damaged: {what}. The disk or another program changed it. What was lost is done "
            "again; the forest is not affected."
        )


class UnwrittenValuesWarning(OldgrowthWarning):
    """Parts of an HDF5 dataset were never written, and are read as its fill value."""

    def __init__(self, where: str, unwritten: int, parts: int, fill: object) -> None:
        what = (
            "It was never written"
            if parts == 1
            else f"{unwritten:,} of its {parts:,} chunks were never written"
        )
        super().__init__(
            f"{where} may be incomplete. {what}, and {'is' if parts == 1 else 'are'} read as {fill}. If its "
            "writer was interrupted, write it again."
        )


class LeftoverWarning(OldgrowthWarning):
    """Temporary files could not be removed; the result is not affected."""


class SpillsToMemoryWarning(OldgrowthWarning):
    """The spill directory is in memory, not on disk."""

    def __init__(self, directory: object) -> None:
        what = (
            f"{directory} is in memory (tmpfs): data spilled there counts against the memory limit. "
            "Choose a {} on disk."
        )
        super().__init__(what.format("spill_dir"))
        self.on_command_line = what.format("--spill-dir")


class NodataWarning(OldgrowthWarning):
    """A scene has no nodata tag, or another one, but much of it is one value around the edge."""

    def __init__(self, where: str, value: float, share: float, tag: float | None = None) -> None:
        has = "no nodata tag" if tag is None else f"the nodata tag {tag:.12g}"
        what = (
            f"{where} has {has}, but about {share:.0%} of its pixels have the value {value:.12g} in "
            "all bands, also at its corners. If this means that there is no data, give"
        )
        instead = "" if tag is None else ", which replaces the tag"
        rest = f"{instead}; otherwise these pixels are rows like others."
        super().__init__(f"{what} nodata={value:.12g}{rest}")
        self.on_command_line = f"{what} --nodata {value:.12g}{rest}"
