"""How a message names what its reader can change: an argument in Python, an option on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# Gives the name of a knob, alone or with a value, in the words of a surface.
Say: TypeAlias = Callable[..., str]

# Options that are not called like the parameter they set.
OPTION_NAMES = {"n_estimators": "trees", "random_state": "seed", "n_jobs": "jobs", "types": "type"}
_PLACEHOLDERS = {"features": "[...]", "missing": "[...]", "types": "{...}"}
_NO_VALUE = object()
_NONE = re.compile(r"\bNone\b")
_LONGEST = 80  # characters of a value in a message


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
    if value is None:
        return f"--{option} none"
    if isinstance(value, dict) and name == "types":
        return " ".join(f"--{option} {column}={kind}" for column, kind in value.items())
    if isinstance(value, dict):
        value = ",".join(f"{key}={_shortest(one)}" for key, one in value.items())
    elif isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return f"--{option} {short(value)}"


def _shortest(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def in_words_of(say: Say, python: str, command_line: str | None = None) -> str:
    """What a value must be, in the words of a surface: on the command line None is `none`."""
    if say is in_python:
        return python
    return _NONE.sub("none", python) if command_line is None else command_line


def short(value: Any) -> str:
    """A value as it is written, or what it is if that would be long."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} of shape {shape}>"
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - any object may be given by mistake, also one that cannot be shown
        return f"<{type(value).__name__}>"
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, list | tuple):
        return f"<{type(value).__name__} of {len(value):,} values>"
    return f"{text[: _LONGEST - 4]} ..."


def difference(missing: list[object], close: list[str]) -> str:
    """What the eye does not see."""
    if any(not isinstance(name, str) and str(name) in close for name in missing):
        return ", which is text"
    if any(
        isinstance(name, str) and name in (c.strip() for c in close if c not in missing) for name in missing
    ):
        return ", with blanks"
    return ""


def listed(names: Sequence[object], most: int = 10) -> str:
    """Names as in a sentence, the first of them if there are many."""
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "none"
