"""The base class of all errors, and errors about parameters and data in general."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..messages.surface import Say, in_python, in_words_of, name_in, on_command_line, value_in
from ..messages.text import printable


class OldgrowthError(ValueError):
    """Base class of all errors raised by oldgrowth.

    A message that names parameters is a function of how to spell them: as in Python, or as options of the
    command line.
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
        """Replace a name in the message by one that the reader knows."""
        self.args = tuple(arg.replace(old, new) if isinstance(arg, str) else arg for arg in self.args)
        self.on_command_line = self.on_command_line.replace(old, new)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the finished message: processes of joblib send errors to each other."""
        return _rebuilt, (type(self), self.args, vars(self))


def _rebuilt(cls: type[OldgrowthError], args: tuple[Any, ...], attributes: dict[str, Any]) -> OldgrowthError:
    new: Any = OSError.__new__ if issubclass(cls, OSError) else cls.__new__
    error: OldgrowthError = new(cls, *args)
    error.args = args
    vars(error).update(attributes)
    return error


class ParameterError(OldgrowthError):
    """A parameter has an invalid value."""

    def __init__(self, name: str, value: object, wanted: str | Callable[[Say], str]) -> None:
        def message(say: Say) -> str:
            expected = in_words_of(say, wanted) if isinstance(wanted, str) else wanted(say)
            return f"{name_in(say, name)} must be {expected}; got {value_in(say, name, value)}."

        super().__init__(message)


class UnknownParameterError(OldgrowthError, TypeError):
    """An estimator has no parameter of this name."""

    def __init__(self, estimator: str, name: str, way: str) -> None:
        super().__init__(f"{estimator} has no parameter {name}: {way}{'' if way.endswith('?') else '.'}")


class DataError(OldgrowthError):
    """The rows, targets or weights cannot be used for training or prediction."""


class MissingExtraError(OldgrowthError):
    """An optional package is not installed."""

    def __init__(self, requirement: str, source: str, others: Sequence[str] = ()) -> None:
        """`others` are installed along with it."""
        package = requirement.replace(">=", " ") + " or newer"
        every = " ".join(f"'{one}'" for one in dict.fromkeys([requirement, *others]))
        super().__init__(f"{source} requires {package}. Install it with: pip install {every}.")


class StoppedError(OldgrowthError):
    """The fit of this task failed or was interrupted; users see the original error instead."""


class SceneError(OldgrowthError):
    """The demo's scene could not be generated."""

    def __init__(self, code: int, said: str) -> None:
        lines = said.strip().splitlines() or ["no reason was given"]
        why = lines[-1]
        if code < 0:
            why = f"its process was ended by signal {-code}, possibly because the system ran out of memory"
        super().__init__(
            f"The scene could not be generated: {why.rstrip('.')}. A smaller --size needs less memory."
        )
