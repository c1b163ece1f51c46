"""The command `oldgrowth`. Each subcommand reads its options here and does its work in a module of its own.

Exit codes: 0 done, 1 failed (one sentence on standard error), 2 wrong usage, 130 interrupted. SIGTERM and
SIGHUP end a command as Ctrl-C does, with nothing half-written left; the process then ends by the signal.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from . import __version__
from .commands.options import (
    BATCH_ROWS,
    FEATURES,
    FORCE,
    FOREST,
    JOBS,
    JSON,
    MEMORY,
    PATH,
    QUIET,
    SOURCES,
    check_writable,
    comma_names,
    memory_size,
    new_path,
    source_options,
)
from .commands.output import SUFFIXES as PREDICTION_SUFFIXES
from .commands.parameters import KINDS, TASKS, given_parameters, in_options, parameter_options
from .commands.sources import Source, Work
from .datasets.columns import AllBut
from .errors import CheckpointError, MemoryLimitError, ParameterError, SpillDirectoryError
from .picture import SUFFIXES
from .scene import MIN_SIDE
from .signals import Terminated, ended_by_signals

FAILED, INTERRUPTED = 1, 130
# What these say of parameters is put in terms of options. Others may name columns, which are left alone.
_ABOUT_PARAMETERS = (CheckpointError, MemoryLimitError, ParameterError, SpillDirectoryError)
# A scene of this side already needs some gigabytes of memory to be made, and more of disk.
_MAX_SIDE = 5000


@dataclass
class State:
    """What `main` must know after a command has failed."""

    debug: bool = False


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--debug`, to be had before and after the name of a subcommand."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        state: State = context.ensure_object(State)
        state.debug |= value

    return click.option(
        "--debug", is_flag=True, is_eager=True, expose_value=False, callback=remember,
        help="Show the traceback if something fails.",
    )(command)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="oldgrowth")
@debug_option
def cli() -> None:
    """Random forests with fully-grown trees on all rows of large data."""


def _console() -> Console:
    return Console(highlight=False, markup=False)  # names of columns may have brackets


@cli.command()
@SOURCES
@click.option("--target", required=True, metavar="NAME", help="Column with the labels or values to learn.")
@FORCE
@click.option(
    "--output", "-o", type=PATH, required=True, callback=new_path(), help="Where to save the forest."
)
@click.option("--features", multiple=True, callback=comma_names, metavar="NAME,...",
              help="Columns to learn from; may be repeated.  [default: all others]")  # fmt: skip
@click.option("--drop", multiple=True, callback=comma_names, metavar="NAME,...",
              help="Columns not to learn from, if --features is not given; may be repeated.")  # fmt: skip
@click.option("--weight", metavar="NAME", help="Column with the weights of the rows.")
@click.option("--kind", type=click.Choice(list(KINDS)), default="random-forest", show_default=True,
              help="subsets is the baseline: each tree sees a random subset of the rows only.")  # fmt: skip
@click.option("--task", type=click.Choice(["auto", *TASKS]), default="auto", show_default=True,
              help="auto: regression if the target holds numbers that are not whole.")  # fmt: skip
@parameter_options
@source_options
@QUIET
@JSON
@debug_option
@click.pass_context
def fit(
    context: click.Context, /, sources: tuple[str, ...], reading: dict[str, Any], target: str, output: Path,
    features: tuple[str, ...] | None, drop: tuple[str, ...] | None, weight: str | None, kind: str, task: str,
    quiet: bool, as_json: bool, **_: Any,
) -> None:  # fmt: skip
    """Train a forest on all rows of SOURCE and save it.

    SOURCE is one or more files, directories, quoted patterns like 'train/*.parquet', or URLs.

    \b
    oldgrowth fit train/*.parquet --target label -o forest.og --trees 24
    """
    from .commands.fit import run_fit

    if drop and features:
        raise click.UsageError("--features and --drop cannot both be given.")
    features = AllBut(drop) if drop else features
    parameters = given_parameters(context) | {"verbose": 0 if quiet else 1}
    columns = {"target": target, "features": features, "weight": weight}
    try:
        run_fit(Source(sources, reading), columns, output, kind, task, parameters, as_json, _console())
    except ParameterError as error:
        raise click.UsageError(in_options(error.on_command_line), context) from error


@cli.command()
@FOREST
@SOURCES
@FORCE
@click.option("--output", "-o", type=PATH, required=True, callback=new_path(PREDICTION_SUFFIXES),
              help="Where to save the predictions: .parquet, .csv or .npy.")  # fmt: skip
@click.option("--keep", multiple=True, callback=comma_names, metavar="NAME,...",
              help="Columns to write beside the predictions, of CSV as text; may be repeated.")  # fmt: skip
@click.option("--proba", is_flag=True,
              help="Write the probability of each class too; a .npy file then holds only these.")  # fmt: skip
@FEATURES
@source_options
@BATCH_ROWS
@MEMORY
@JOBS
@QUIET
@JSON
@debug_option
def predict(
    forest: Path, sources: tuple[str, ...], reading: dict[str, Any], output: Path,
    keep: tuple[str, ...] | None, proba: bool, features: tuple[str, ...] | None, as_json: bool,
    **work: Any,
) -> None:  # fmt: skip
    """Predict the rows of SOURCE with the forest saved in FOREST, in their order.

    The columns of the result are those of --keep, prediction, and with --proba probability_<class>.

    \b
    oldgrowth predict forest.og scene.parquet -o labels.parquet --keep id
    """
    from .commands.predict import run_predict

    if keep and output.suffix.lower() == ".npy":
        raise click.UsageError("--keep needs an output with columns: .parquet or .csv.")
    work.pop("force")
    source = Source(sources, reading)
    run_predict(
        forest, source, output, keep or (), proba, features, Work(**work), as_json, _console()
    )  # fmt: skip


@cli.command()
@FOREST
@SOURCES
@click.option("--target", required=True, metavar="NAME", help="Column with the true labels or values.")
@FEATURES
@source_options
@BATCH_ROWS
@MEMORY
@JOBS
@QUIET
@JSON
@debug_option
def evaluate(
    forest: Path, sources: tuple[str, ...], reading: dict[str, Any], target: str,
    features: tuple[str, ...] | None, as_json: bool, **work: Any,
) -> None:  # fmt: skip
    """Compare what the forest saved in FOREST predicts for SOURCE with its target.

    \b
    oldgrowth evaluate forest.og test.parquet --target label
    """
    from .commands.evaluate import run_evaluate

    source = Source(sources, reading)
    run_evaluate(forest, source, target, features, Work(**work), as_json, _console())


@cli.command()
@FOREST
@JSON
@debug_option
def inspect(forest: Path, as_json: bool) -> None:
    """Show what is in the file FOREST: parameters, training, trees, features."""
    from .commands.inspect import run_inspect

    run_inspect(forest, as_json, _console())


def picture_path(_: click.Context, __: click.Parameter, path: Path) -> Path:
    return check_writable(path, SUFFIXES)


@cli.command()
@click.option("--size", type=click.IntRange(MIN_SIDE, _MAX_SIDE), default=3000, show_default=True,
              help="Height and width of the scene in pixels.")  # fmt: skip
@click.option("--trees", type=click.IntRange(min=1), default=8, show_default=True, help="Number of trees.")
@click.option("--memory-limit", default="660MB", show_default=True, callback=memory_size, metavar="SIZE",
              help="What the process may take while it trains.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="The same seed gives the same scene and the same forest.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, writable=True, path_type=Path),
              default=Path("oldgrowth-demo.png"), show_default=True, callback=picture_path,
              help="Where to save the picture: .png, .pdf or .svg.")  # fmt: skip
@debug_option
def demo(size: int, trees: int, memory_limit: int, seed: int, output: Path) -> None:
    """Train a forest on made-up imagery that is larger than a memory limit, and draw its map.

    The scene has a class that covers less than a thousandth of it. The tables compare how much of each class
    is found by the forest, which sees all rows, and by trees that only see small random subsets of them.
    """
    from .demo import run_demo

    run_demo(size, trees, seed, memory_limit, output, _console())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    state = State()
    with ended_by_signals(), warnings.catch_warnings():
        warnings.showwarning = _warn  # a sentence, without the line of code it comes from
        return _run(arguments, state)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"oldgrowth: {' '.join(str(message).split())}", err=True)


def _run(arguments: Sequence[str] | None, state: State) -> int:
    try:
        code = cli.main(arguments, prog_name="oldgrowth", standalone_mode=False, obj=state)
    except click.ClickException as error:  # wrong usage, mostly
        error.show()
        return error.exit_code
    except click.Abort as abort:
        ended = isinstance(abort.__context__, Terminated)
        click.echo(f"oldgrowth: {f'ended by {abort.__context__}' if ended else 'interrupted'}.", err=True)
        for note in getattr(abort.__context__, "__notes__", []):
            if "checkpoint_dir=" in note:  # the way on, which a quiet fit has not said
                click.echo(f"oldgrowth: {in_options(note)}", err=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever fails, a person at a terminal wants a sentence
        if state.debug:
            traceback.print_exc()
        click.echo(f"oldgrowth: {_sentence(error)}", err=True)
        return FAILED
    return code if isinstance(code, int) else 0


def _sentence(error: Exception) -> str:
    text = " ".join(getattr(error, "on_command_line", str(error)).split())
    if isinstance(error, _ABOUT_PARAMETERS):
        return in_options(text)
    if isinstance(error, MemoryError):
        return f"out of memory: {text or 'choose something smaller'}"
    if text and isinstance(error, ValueError | OSError):
        return text
    # An error of another kind may not explain itself: say what it is.
    kind = type(error).__name__
    return f"{kind}: {text}" if text else f"{kind} (--debug shows where)"


def main() -> None:
    sys.exit(run())
