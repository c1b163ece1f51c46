"""Options of `oldgrowth fit` for the parameters of the estimators, from the table of parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import click

from ..estimators.parameters import KINDS, TASKS, parameters_of
from ..messages.surface import OPTION_NAMES, in_words_of, on_command_line

_CLASSES = {"random-forest": "RandomForest", "extra-trees": "ExtraTrees", "subsets": "SubsetForest"}
_ALIASES = {name: [f"--{OPTION_NAMES[name]}"] for name in ("n_estimators", "random_state", "n_jobs")}
_ALIASES["categorical_features"] = [f"--{OPTION_NAMES['categorical_features']}"]
_ALIASES["n_jobs"].append("-j")
# Words in the texts of parameters that do not apply to options, and what replaces them.
_IN_PYTHON = (
    ("a dict", "label=weight,..."),
    ("; or the metric to score it with", ""),
    (", a list with a bool for each feature", ""),
)
_LEFT_OUT = ("verbose",)  # --quiet takes its place


def class_name(kind: str, task: str) -> str:
    return _CLASSES[kind] + ("Classifier" if task == "classification" else "Regressor")


def estimator_class(kind: str, task: str) -> Any:
    from ..estimators import forests as estimators

    return getattr(estimators, class_name(kind, task))


@dataclass(frozen=True)
class Parameter:
    """A parameter of some estimators; `defaults` has one for each kind and task that has the parameter."""

    name: str
    types: tuple[str, ...]
    texts: dict[tuple[str, str], str]  # of each kind and task
    defaults: dict[tuple[str, str], Any]

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def help(self) -> str:
        first, *others = dict.fromkeys(self.texts.values())
        text = " ".join([first, *(f"For {self._whose(other)}: {other}" for other in others)])
        for python, words in _IN_PYTHON:
            text = text.replace(python, words)
        text = in_options(in_words_of(on_command_line, text))
        return f"{text}{self._only()}  [default: {self._default()}]"

    def _whose(self, text: str) -> str:
        """The task or the kinds that have this text."""
        whose = [key for key, one in self.texts.items() if one == text]
        tasks = list(dict.fromkeys(task for _, task in whose))
        if len(tasks) == 1:
            return tasks[0]
        return " and ".join(dict.fromkeys(kind for kind, _ in whose))

    def _only(self) -> str:
        for task in TASKS:
            if all(t == task for _, t in self.defaults):
                return f" Only for {task}."
        kinds = list(dict.fromkeys(kind for kind, _ in self.defaults))
        if len(kinds) == len(KINDS):
            return ""
        if len(kinds) == 1:
            return f" Only for {kinds[0]}."
        return f" Not for {', '.join(kind for kind in KINDS if kind not in kinds)}."

    def _default(self) -> str:
        """One value, or one for each task or kind if they differ."""
        if len(set(map(repr, self.defaults.values()))) == 1:
            return _shown(next(iter(self.defaults.values())))
        for place in (1, 0):
            groups: dict[str, set[str]] = {}
            for key, value in self.defaults.items():
                groups.setdefault(key[place], set()).add(_shown(value))
            if all(len(values) == 1 for values in groups.values()):
                return ", ".join(f"{min(values)} for {group}" for group, values in groups.items())
        return ", ".join(f"{_shown(v)} for {kind} {task}" for (kind, task), v in self.defaults.items())


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


@cache
def all_parameters() -> list[Parameter]:
    """All parameters, in the order of the signatures."""
    found: dict[str, Parameter] = {}
    for kind in KINDS:
        for task in TASKS:
            for name, known in parameters_of(kind, task).items():
                if name in _LEFT_OUT or not known.option:
                    continue
                types = tuple(part.strip() for part in known.types.split("|"))
                parameter = found.setdefault(name, Parameter(name, types, {}, {}))
                parameter.texts[kind, task] = known.text
                parameter.defaults[kind, task] = known.default
    return list(found.values())


def in_options(text: str) -> str:
    """A text about parameters, such as memory_limit='2GB', as one about options: --memory-limit 2GB."""
    if "_" not in text and "=" not in text:
        return text
    for parameter in all_parameters():
        name, option = parameter.name, _ALIASES.get(parameter.name, [parameter.option])[0]
        text = re.sub(rf"(?<![\w./-]){name}=('[^']*'|[^\s:,;()]*[^\s:,;().])", rf"{option} \1", text)
        if "_" in name:  # a single word may be an ordinary word
            text = re.sub(rf"(?<![\w./-]){name}(?!\w|[./]\w)", option, text)
    return text


class Value(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions only
    """A number, a word or "none", whichever the types of the parameter allow."""

    def __init__(self, types: tuple[str, ...]) -> None:
        # A random generator cannot be given on the command line.
        self._types = tuple(kind for kind in types if kind != "RandomState")
        words = {"int": "INT", "float": "FLOAT", "str": "TEXT", "path": "PATH", "None": "none"}
        shown = [word for kind, word in words.items() if kind in self._types]
        if self._pairs:
            shown.insert(0, "LABEL=WEIGHT,...")
        if self._names:
            shown = ["NAME,...", *shown]
        self.name = "|".join(shown) or "TEXT"

    @property
    def _pairs(self) -> bool:
        return any(kind.startswith("dict") for kind in self._types)

    @property
    def _names(self) -> bool:
        return any(kind.startswith("list") for kind in self._types)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if "None" in self._types and value.lower() == "none":
            return None
        if self._names:
            return value if value == "from_dtype" else [name.strip() for name in value.split(",")]
        for kind, number in (("int", int), ("float", float)):
            if kind in self._types:
                try:
                    return number(value)
                except ValueError:
                    pass
        if self._pairs and "=" in value:
            return self._weights(value, param, ctx)
        if any(kind not in ("int", "float", "None") for kind in self._types):
            return value
        words = {"int": "a whole number", "float": "a number", "None": "none"}
        return self.fail(f"{value!r} is not {' or '.join(words[kind] for kind in self._types)}.", param, ctx)

    def _weights(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        try:
            pairs = (pair.rsplit("=", 1) for pair in value.split(","))
            return {label.strip(): float(weight) for label, weight in pairs}
        except ValueError:
            return self.fail(f"{value!r} is not of the form label=weight,label=weight.", param, ctx)


class LateOptions(click.Command):
    """A command with options that are created when first needed, because what they need takes long to import.

    They are listed before the option `before`.
    """

    def __init__(
        self, *args: Any, late: Callable[[], Iterable[click.Parameter]], before: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._late: Callable[[], Iterable[click.Parameter]] | None = late
        self._before = before

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if self._late is not None:
            place = [param.name for param in self.params].index(self._before)
            self.params[place:place] = self._late()
            self._late = None
        return super().get_params(ctx)


def parameter_options() -> Iterable[click.Parameter]:
    """An option for each parameter. Its default is None: see `given_parameters`."""
    for parameter in all_parameters():
        names = [parameter.option, *_ALIASES.get(parameter.name, [])]
        kind: dict[str, Any] = {"type": Value(parameter.types)}
        if "bool" in parameter.types:
            names = [f"{parameter.option}/--no-{parameter.option[2:]}"]
            kind = {"is_flag": True}
        yield click.Option([*names, parameter.name], default=None, help=parameter.help, **kind)


def given_parameters(context: click.Context) -> dict[str, Any]:
    """The parameters that were given on the command line, even if their value is None."""
    from click.core import ParameterSource

    names = {parameter.name for parameter in all_parameters()}
    return {
        name: value
        for name, value in context.params.items()
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def check_known(kind: str, task: str, given: dict[str, Any]) -> None:
    """Refuse parameters that the estimator does not have."""
    known = {parameter.name for parameter in all_parameters() if (kind, task) in parameter.defaults}
    for name in given.keys() - known - {"verbose"}:
        raise click.UsageError(
            f"--{name.replace('_', '-')} cannot be used here: a {kind} for {task} has no such parameter."
        )
