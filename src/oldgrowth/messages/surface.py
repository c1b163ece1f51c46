"""Parameters in messages as the reader would type them: in Python, or as options on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

# Spells a parameter, alone or with a value, as it is given in one of the two interfaces.
Say: TypeAlias = Callable[..., str]

# Options whose names differ from those of their parameters.
OPTION_NAMES = {
    "n_estimators": "trees",
    "random_state": "seed",
    "n_jobs": "jobs",
    "types": "type",
    "n": "points",
    "labels": "target",
    "categorical_features": "categorical",
}
_PLACEHOLDERS = {"features": "[...]", "missing": "[...]", "types": "{...}"}
_NO_VALUE = object()
_NONE = re.compile(r"\bNone\b")
_LONGEST = 80  # maximum number of characters of a value in a message


def in_python(name: str, value: Any = _NO_VALUE) -> str:
    """`features=[...]`, `encoding='latin-1'`."""
    return f"{name}={_PLACEHOLDERS.get(name, '...') if value is _NO_VALUE else short(value)}"


def on_command_line(name: str, value: Any = _NO_VALUE) -> str:
    """`--features`, `--encoding 'latin-1'`, `--no-header`, `--class-weight 'a=1,b=2'`."""
    option = OPTION_NAMES.get(name, name.replace("_", "-"))
    if value is _NO_VALUE or value is True:
        return f"--{option}"
    if value is False:
        return f"--no-{option}"
    if isinstance(value, dict) and name == "types":
        return " ".join(f"--{option} {column}={kind}" for column, kind in value.items())
    return f"--{option} {_typed(value)}"


def _typed(value: Any) -> str:
    """A value as it is typed on the command line."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        value = ",".join(f"{key}={_shortest(one)}" for key, one in value.items())
    elif isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    elif isinstance(value, PurePath):
        value = str(value)
    return short(value)


def _shortest(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def name_in(say: Say, name: str) -> str:
    """The name of a parameter or of its option, without a value."""
    return name if say is in_python else say(name)


def value_in(say: Say, name: str, value: Any) -> str:
    """The value that was given for a parameter, as it was typed."""
    if say is in_python:
        return short(value)
    return say(name, value) if isinstance(value, bool) else _typed(value)


def in_words_of(say: Say, python: str, command_line: str | None = None) -> str:
    """What a value must be, in the terms of an interface: None is `none` on the command line."""
    if say is in_python:
        return python
    return _NONE.sub("none", python) if command_line is None else command_line


def short(value: Any) -> str:
    """The repr of a value, or its type and size if the repr would be long."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} of shape {shape}>"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - any object may be passed by mistake, even one whose repr fails
        return f"<{type(value).__name__}>"
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, list | tuple):
        return f"<{type(value).__name__} of {len(value):,} values>"
    return f"{text[: _LONGEST - 4]} ..."


def difference(missing: list[object], close: list[str]) -> str:
    """A hint at differences that are hard to see: numbers against text, and blanks."""
    if any(not isinstance(name, str) and str(name) in close for name in missing):
        return ", which is text"
    if any(
        isinstance(name, str) and name in (c.strip() for c in close if c not in missing) for name in missing
    ):
        return ", with blanks"
    return ""


def listed(names: Sequence[object], most: int = 10) -> str:
    """Names joined for a sentence, shortened to the first `most`."""
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "none"
