"""What all errors share, and those of parameters and data in general."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..messages.surface import Say, in_python, in_words_of, on_command_line
from ..messages.text import printable


class OldgrowthError(ValueError):
    """The base of all errors raised for bad data or bad parameters.

    A message that tells its reader what to change is a function of how the surface in use spells it.
    """

    __module__ = __package__  # where users find it

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith(f"{__package__}."):
            cls.__module__ = __package__

    def __init__(self, message: str | Callable[[Say], str] = "") -> None:
        super().__init__(message if isinstance(message, str) else message(in_python))
        self.on_command_line = message if isinstance(message, str) else message(on_command_line)

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n")  # names from files may have control characters

    def replace(self, old: str, new: str) -> None:
        """Put it in other words, if what failed has another name for its reader."""
        self.args = tuple(arg.replace(old, new) if isinstance(arg, str) else arg for arg in self.args)
        self.on_command_line = self.on_command_line.replace(old, new)

    def __reduce__(self) -> tuple[Any, ...]:
        """The message alone: processes of joblib send errors to each other."""
        return _rebuilt, (type(self), self.args, vars(self))


def _rebuilt(cls: type[OldgrowthError], args: tuple[Any, ...], attributes: dict[str, Any]) -> OldgrowthError:
    error = cls.__new__(cls, *args)
    vars(error).update(attributes)
    return error


class ParameterError(OldgrowthError):
    """A parameter has a value that it cannot have."""

    def __init__(self, name: str, value: object, wanted: str | Callable[[Say], str]) -> None:
        def message(say: Say) -> str:
            known = in_words_of(say, wanted) if isinstance(wanted, str) else wanted(say)
            bare = name if say is in_python else say(name)
            return f"{say(name, value)} is not possible: {bare} must be {known}."

        super().__init__(message)


class UnknownParameterError(OldgrowthError, TypeError):
    """An estimator does not have a parameter of this name."""

    def __init__(self, estimator: str, name: str, way: str) -> None:
        super().__init__(f"{estimator} has no parameter {name}: {way}{'' if way.endswith('?') else '.'}")


class DataError(OldgrowthError):
    """The rows, targets or weights cannot be learned from."""


class MissingExtraError(OldgrowthError):
    """Something needs a package that is not installed."""

    def __init__(self, requirement: str, source: str) -> None:
        package = requirement.replace(">=", " ") + " or newer"
        super().__init__(f"{source} needs {package}: install it with pip install '{requirement}'.")


class StoppedError(OldgrowthError):
    """The fit that a task belongs to has failed or was interrupted; its error is the one that is seen."""


class SceneError(OldgrowthError):
    """The scene of the demo could not be made."""

    def __init__(self, code: int, said: str) -> None:
        words = said.strip().splitlines() or ["it did not say why"]
        why = words[-1]
        if code < 0:
            why = f"its process was ended by signal {-code}, as a system short of memory does"
        super().__init__(f"The scene could not be made: {why.rstrip('.')}. A smaller --size needs less.")
