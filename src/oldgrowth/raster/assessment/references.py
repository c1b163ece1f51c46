"""Reference labels of points: which class of a map each one is, by its name or by its pixel value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from ...datasets.files import SourceFile
from ...errors import AmbiguousReferenceError, NoReferenceError, UnknownReferenceError
from ...messages.log import warn
from ...messages.surface import listed
from ...messages.text import printable
from ...messages.warnings import SampleWarning

_MOST_NAMED = 5
_BOOLS = {"False": "0", "True": "1"}


def reference_labels(
    file: SourceFile, values: npt.NDArray[Any], field: str, names: Mapping[int, str]
) -> list[str | None]:
    """The reference label of each point by the name of its class, None if it has none.

    `names` are those of the classes by pixel value.
    """
    texts = [_text(value, names) for value in values.tolist()]
    given = Counter(text for text in texts if text is not None)
    if not given:
        raise NoReferenceError(file.path, field, len(texts))
    known = _known(file, field, given, _Readings.of(names))
    labels = [None if text is None else known.get(text, text.strip()) for text in texts]
    strange = Counter(label for label in labels if label is not None and label not in names.values())
    if strange.total() == given.total():
        raise UnknownReferenceError(file.path, field, listed(sorted(strange)), listed(list(names.values())))
    _warn(file, len(texts) - given.total(), len(texts), strange, names)
    return labels


@dataclass(frozen=True)
class _Readings:
    """The class that a text is, read as a name and read as a pixel value."""

    by_name: Mapping[str, str]
    by_value: Mapping[str, str]

    @staticmethod
    def of(names: Mapping[int, str]) -> _Readings:
        """Names count as they are before they do in another spelling, unless several have the same one."""
        spelled = [(spelling, name) for name in names.values() for spelling in _spellings(name)]
        often = Counter(spelling for spelling, _ in spelled)
        others = {spelling: name for spelling, name in spelled if often[spelling] == 1}
        exact = {name: name for name in names.values()}
        return _Readings(others | exact, {str(value): name for value, name in names.items()})

    def name(self, text: str) -> str | None:
        return self.by_name.get(text, self.by_name.get(text.strip()))

    def value(self, text: str) -> str | None:
        return self.by_value.get(text.strip())


def _known(file: SourceFile, field: str, given: Iterable[str], readings: _Readings) -> dict[str, str]:
    """The classes of texts. Those that can be read in two ways are read like the others."""
    read = {text: (readings.name(text), readings.value(text)) for text in given}
    both = [text for text, (name, value) in read.items() if name and value and name != value]
    by_name = [text for text, (name, value) in read.items() if name and not value]
    by_value = [text for text, (name, value) in read.items() if value and not name]
    values_first = bool(both and by_value)
    if both and by_value and by_name:
        raise AmbiguousReferenceError(file.path, field, both[0].strip(), *map(str, read[both[0]]))
    if both and not by_value and not by_name:
        name, value = read[both[0]]
        what = (
            f"Reference labels in {file.path} can be read as names of classes or as pixel values, which "
            f"differ: {both[0].strip()!r} is the class {name!r}, and the pixel value of {value!r}. They are "
            "read as names. If they are pixel values, enter the names of the classes instead."
        )
        warn(what, SampleWarning, stacklevel=4)
    chosen = {
        text: (value or name) if values_first else (name or value) for text, (name, value) in read.items()
    }
    return {text: label for text, label in chosen.items() if label is not None}


def _spellings(name: str) -> set[str]:
    """A name as it may come back from a file: without blanks around it, or as a number of another type."""
    found = {name.strip(), _BOOLS.get(name, "")}
    try:
        number = float(name)
    except ValueError:
        return found - {""}
    if np.isfinite(number) and number == int(number):
        found.add(str(int(number)))
    return found - {""}


def _text(value: Any, names: Mapping[int, str]) -> str | None:
    """A label as text; numbers without a fraction as whole numbers. None if it is missing or blank."""
    if value is None or value != value:
        return None
    if isinstance(value, bool) and str(value) in names.values():
        return str(value)
    number = whole(value)
    text = printable(value if number is None else number)  # as names on maps are
    return text if text.strip() else None


def whole(value: Any) -> int | None:
    """A number of a field, which some formats give as a float; None if it is missing."""
    is_number = isinstance(value, int | float) and np.isfinite(value)
    return int(value) if is_number and value == int(value) else None


def _warn(file: SourceFile, left: int, points: int, strange: Counter[str], names: Mapping[int, str]) -> None:
    """Warn of points without a label, and of labels that are no classes of the map."""
    if left:
        what = f"Points without a reference label in {file.path} are left out: {left:,} of {points:,}."
        warn(what, SampleWarning, stacklevel=4)
    if strange:
        named = "; ".join(
            f"{label!r} ({count:,}{_nearest(label, list(names.values()))})"
            for label, count in strange.most_common(_MOST_NAMED)
        )
        what = (
            f"Some reference labels in {file.path} are not classes of the map, and count as errors: {named}."
        )
        warn(what, SampleWarning, stacklevel=4)


def _nearest(label: str, names: list[str]) -> str:
    close = get_close_matches(label, names, n=1)
    return f", similar to {close[0]!r}" if close else ""
