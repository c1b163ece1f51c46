"""Options and arguments of several subcommands, and checks of their values."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..errors import OutputError, ParameterError
from ..system.atomic_file import check_replaceable
from .parameters import in_options

STANDARD = Path("-")  # standard input or output
PREDICTION_SUFFIXES = (".parquet", ".csv", ".npy", ".tif", ".tiff")
POINT_SUFFIXES = (".gpkg", ".shp", ".geojson")
MAP_SUFFIXES = PREDICTION_SUFFIXES[-2:]


def check_writable(path: Path, suffixes: tuple[str, ...] = ()) -> Path:
    """Refuse a path that cannot be written, before any work is done."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise click.BadParameter(f"{str(path)!r} must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}.")
    if not path.parent.is_dir():
        raise click.BadParameter(f"the directory {str(path.parent)!r} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"the directory {str(path.parent)!r} cannot be written to.")
    _check_replaceable(path)
    return path


def _check_replaceable(path: Path) -> None:
    try:
        check_replaceable(path)
    except OutputError as error:
        raise click.BadParameter(str(error)) from error


def new_path(suffixes: tuple[str, ...] = ()) -> Callable[[click.Context, click.Parameter, Path], Path]:
    """The path of a new file; an existing one is replaced only with --force."""

    def check(context: click.Context, _: click.Parameter, path: Path) -> Path:
        _check_replaceable(path)
        if path.exists() and not context.params.get("force"):
            raise click.BadParameter(f"{str(path)!r} exists: --force replaces it.")
        return check_writable(path, suffixes)

    return check


def forest_path(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    """Where a forest is saved: not to standard output."""
    if path == STANDARD:
        raise click.BadParameter("a forest cannot be written to standard output: name a file.")
    return new_path()(context, parameter, path)


def prediction_path(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    """Where predictions are saved; the suffix says how."""
    return path if path == STANDARD else new_path(PREDICTION_SUFFIXES)(context, parameter, path)


def map_path(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Where another map of the same pixels is saved."""
    return None if path is None else new_path(MAP_SUFFIXES)(context, parameter, path)


def points_path(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    """Where the points of a sample are saved."""
    return new_path(POINT_SUFFIXES)(context, parameter, path)


def comma_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of columns, in several options or separated by commas; one without a name, such as the index
    that pandas writes, is given as the empty text."""
    return tuple(name.strip() for value in values for name in value.split(",")) or None


@dataclass
class State:
    """What `main` must know after a command has failed."""

    debug: bool = False


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--debug`, which may stand before or after the name of a subcommand."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        state: State = context.ensure_object(State)
        state.debug |= value

    return click.option(
        "--debug", is_flag=True, is_eager=True, expose_value=False, callback=remember,
        help="Show the traceback of an error.",
    )(command)  # fmt: skip


# Generating a scene of this size already takes some gigabytes of memory, and more of disk.
_MAX_SIDE = 5000
PATH = click.Path(dir_okay=False, path_type=Path)


class _ForestFile(click.Path):
    """An existing file, which is mapped: not standard input."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == str(STANDARD):
            self.fail("a forest cannot be read from standard input: name a file.", param, ctx)
        return super().convert(value, param, ctx)


FOREST = click.argument("forest", type=_ForestFile(exists=True, dir_okay=False, path_type=Path))
FORESTS = click.argument(
    "forests", type=_ForestFile(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True
)
SOURCES = click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def memory_size(_: click.Context, __: click.Parameter, value: str) -> int:
    from ..system.memory import memory_limit_of

    try:
        return memory_limit_of(value)
    except ParameterError as error:
        raise click.BadParameter(in_options(error.on_command_line)) from error


QUIET = click.option("--quiet", "-q", is_flag=True, help="Print only errors, warnings and scores.")
FORCE = click.option("--force", is_flag=True, is_eager=True, help="Replace the output if it exists.")
FEATURES = click.option(
    "--features", multiple=True, callback=comma_names, metavar="NAME,...",
    help="Columns to use, in this order; may be repeated.  [default: those the forest was trained on]",
)  # fmt: skip
BATCH_ROWS = click.option(
    "--batch-rows", type=click.IntRange(min=1),
    help="Rows read and predicted at a time.  [default: 131,072, or as the memory limit allows]",
)  # fmt: skip
MEMORY = click.option(
    "--memory-limit", default="auto", callback=memory_size, metavar="SIZE",
    help="Maximum memory of the process, such as 2GB or 0.5 of all.  [default: 80% of what is free]",
)  # fmt: skip
JOBS = click.option(
    "--jobs", "-j", type=int, help="Number of threads; -1 means all cores.  [default: as in training]"
)


def column_types(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str] | None:
    """Types of columns, as NAME=TYPE."""
    for value in values:
        if not re.fullmatch(r"(?s).+=[^=]+", value):
            raise click.BadParameter(f"{value!r} is not of the form NAME=TYPE.")
    return dict(value.rsplit("=", 1) for value in values) or None


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for reading files. The command gets them as one value, `reading`."""

    @click.option(
        "--format", help="Format of the files, if their names do not show it: parquet, csv, npy, ..."
    )
    @click.option("--delimiter", help="Delimiter of CSV files.  [default: comma; .tsv: tab]")
    @click.option(
        "--missing", multiple=True, metavar="TEXT", help="Text of missing values in CSV; may be repeated."
    )
    @click.option(
        "--header/--no-header", default=None,
        help="Whether CSV files begin with the names of the columns; otherwise these are 0, 1, ...  "
        "[default: --header]",
    )  # fmt: skip
    @click.option("--decimal", metavar="CHAR", help="Decimal mark of CSV files.  [default: point]")
    @click.option("--encoding", help="Encoding of CSV files, such as latin-1 or utf-16.  [default: utf-8]")
    @click.option(
        "--type", "types", multiple=True, callback=column_types, metavar="NAME=TYPE",
        help="Arrow type of a column of CSV files, such as label=string; may be repeated.",
    )  # fmt: skip
    @click.option(
        "--external-files",
        is_flag=True,
        default=None,
        help="Read values that HDF5 files keep in other files.",
    )
    @functools.wraps(command)
    def with_source(missing: tuple[str, ...], **options: Any) -> Any:
        given = {name: options.pop(name) for name in _READING} | {"missing": list(missing) or None}
        reading = {name: value for name, value in given.items() if value is not None}
        return command(reading=reading, **options)

    return with_source


_READING = ("format", "delimiter", "header", "decimal", "encoding", "types", "external_files")


def picture_path(_: click.Context, __: click.Parameter, path: Path) -> Path:
    from ..demo.picture import SUFFIXES

    return check_writable(path, SUFFIXES)


def size_option() -> list[click.Parameter]:
    from ..demo.scene import MIN_SIDE

    return [
        click.Option(
            ["--size"], type=click.IntRange(MIN_SIDE, _MAX_SIDE), default=3000, show_default=True,
            help="Height and width of the scene in pixels.",
        )
    ]  # fmt: skip
