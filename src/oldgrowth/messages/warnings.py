"""Every warning that we give: something is possible, but rarely meant."""

from __future__ import annotations

from .text import printable


class OldgrowthWarning(UserWarning):
    """The base of all warnings: something is possible, but rarely meant."""

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n")


class IdColumnWarning(OldgrowthWarning):
    """Features that look like an index or an id; `columns` says why of each name, or number without names."""

    def __init__(self, columns: dict[str | int, str]) -> None:
        super().__init__(columns)
        self.columns = columns
        named = ", ".join(
            f"{repr(name) if isinstance(name, str) else f'column {name}'} ({why})"
            for name, why in columns.items()
        )
        what = (
            "Among the features is what looks like an index or an id, from which nothing can be learned that "
            f"holds for other rows: {named}. Unless it is meant, leave it out"
        )
        self._in_python = f"{what}, as with features=[...] of open_dataset."
        can_drop = all(isinstance(name, str) and name.strip() and "," not in name for name in columns)
        drop = f" with --drop {','.join(map(str, columns))!r}"
        self.on_command_line = f"{what}{drop if can_drop else ': name the others with --features'}."

    def __str__(self) -> str:
        return printable(self._in_python)


class TaskWarning(OldgrowthWarning):
    """A target from which it cannot be told whether it holds classes or amounts."""


class FeatureNamesWarning(OldgrowthWarning):
    """Names of features on one side only, so that columns are taken in their order."""


class LeftoverWarning(OldgrowthWarning):
    """Files that we made could not be removed; what was trained or written is not affected."""


class SpillsToMemoryWarning(UserWarning):
    """What a fit spills goes to memory."""

    def __init__(self, directory: object) -> None:
        what = (
            f"{directory} is memory itself (a tmpfs): what is spilled there counts as memory, and leaves "
            "less for the rest. Choose a {} on a disk."
        )
        super().__init__(what.format("spill_dir"))
        self.on_command_line = what.format("--spill-dir")
