"""The command `oldgrowth`. The options of each subcommand are here, its work is in a module of its own.

Exit codes: 0 done, 1 failed (one sentence on standard error), 2 wrong usage, 130 interrupted. SIGTERM and
SIGHUP end a command as Ctrl-C does, with nothing half-written left; the process then ends by the signal.
"""

from __future__ import annotations

import io
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import (
    CheckpointError,
    DirectoryInUseError,
    MemoryLimitError,
    OldgrowthError,
    ParameterError,
    SpillDirectoryError,
)
from ..estimators.parameters import KINDS, TASKS
from ..messages.log import IN_WORDS
from ..messages.text import printable
from ..system.resource_limits import limit_error
from ..system.signals import Terminated, ended_by_signals
from .options import (
    BATCH_ROWS,
    FEATURES,
    FORCE,
    FOREST,
    FORESTS,
    JOBS,
    JSON,
    MEMORY,
    PATH,
    QUIET,
    SOURCES,
    STANDARD,
    State,
    comma_names,
    debug_option,
    forest_path,
    memory_size,
    picture_path,
    points_path,
    prediction_path,
    size_option,
    source_options,
)
from .parameters import LateOptions, given_parameters, in_options, parameter_options
from .scene_options import LABEL_OPTIONS, MASK, NO_MASK, NODATA, TRAINING, map_files, scene_options

if TYPE_CHECKING:
    from rich.console import Console

# What a command needs beyond its options is imported when it runs, so that `--help` is fast.
FAILED, INTERRUPTED = 1, 130
# The messages of these name parameters, which become options. Others may name columns, which stay.
_ABOUT_PARAMETERS = (
    CheckpointError,
    DirectoryInUseError,
    MemoryLimitError,
    ParameterError,
    SpillDirectoryError,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oldgrowth", prog_name="oldgrowth")
@debug_option
def cli() -> None:
    """Random forests with fully-grown trees on all rows of large data."""


def _console(quiet: bool = False, stderr: bool = False) -> Console:
    from ..reporting.tables import SafeConsole

    # Names of columns may have brackets.
    return SafeConsole(highlight=False, markup=False, quiet=quiet, stderr=stderr)


@cli.command(cls=LateOptions, late=parameter_options, before="format")
@SOURCES
@click.option("--target", required=True, metavar="NAME",
              help="Column with the labels or values to predict; for rasters, a file of polygons or points, "
              "or a raster.")  # fmt: skip
@FORCE
@click.option(
    "--output", "-o", type=PATH, required=True, callback=forest_path, help="Where to save the forest."
)
@click.option("--features", multiple=True, callback=comma_names, metavar="NAME,...",
              help="Columns to use as features; may be repeated.  [default: all others]")  # fmt: skip
@click.option("--drop", multiple=True, callback=comma_names, metavar="NAME,...",
              help="Columns not to use, if --features is not given; may be repeated.")  # fmt: skip
@click.option("--weight", metavar="NAME", help="Column with the weights of the rows.")
@click.option("--kind", type=click.Choice(list(KINDS)), default="random-forest", show_default=True,
              help="subsets is the baseline: each tree sees only a random subset of the rows.")  # fmt: skip
@click.option("--task", type=click.Choice(["auto", *TASKS]), default="auto", show_default=True,
              help="auto: regression if the target holds numbers that are not whole.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS",
              help="Fit on the workers of a Dask cluster, with this scheduler, such as tcp://host:8786. They "
              "must be able to read SOURCE.")  # fmt: skip
@scene_options(*TRAINING)
@source_options
@QUIET
@JSON
@debug_option
@click.pass_context
def fit(  # noqa: PLR0913 - click gives each option as a parameter
    context: click.Context, /, sources: tuple[str, ...], reading: dict[str, Any], scene: dict[str, Any],
    target: str, output: Path, features: tuple[str, ...] | None, drop: tuple[str, ...] | None,
    weight: str | None, kind: str, task: str, scheduler: str | None, quiet: bool, as_json: bool, **_: Any,
) -> None:  # fmt: skip
    """Train a forest on all rows of SOURCE and save it.

    SOURCE is one or more files, directories, quoted patterns like 'train/*.parquet', or URLs; - is standard
    input (CSV, Arrow or Parquet). Or it is rasters: each directory or pattern is a scene, whose labelled
    pixels are rows.

    \b
    oldgrowth fit train/*.parquet --target label -o forest.og --trees 24
    oldgrowth fit scenes/*/ --patch 3 --target osm.gpkg --field landuse -o forest.og
    """
    from ..datasets.columns import AllBut
    from .columns import Columns
    from .fit import Wanted, run_fit
    from .sources import source_of

    if drop and features:
        raise click.UsageError("--features and --drop cannot both be given.")
    parameters = given_parameters(context) | {"verbose": 0 if quiet else 1}
    if "per_class" in scene and isinstance(parameters.get("random_state"), int):
        scene["seed"] = parameters["random_state"]
    columns = Columns(target, AllBut(drop) if drop else features, weight)
    if STANDARD.name in sources and parameters.get("checkpoint_dir") is not None:
        raise click.UsageError("--checkpoint-dir cannot be used with standard input, which is read once.")
    try:
        with source_of(sources, reading, scene, parameters.get("spill_dir")) as source:
            wanted = Wanted(kind, task, parameters, scheduler)
            run_fit(source, columns, output, wanted, as_json, _console(quiet))
    except ParameterError as error:
        raise click.UsageError(in_options(error.on_command_line), context) from error


def prediction_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that predict rows."""
    options = (FEATURES, source_options, BATCH_ROWS, MEMORY, JOBS, QUIET, JSON, debug_option)
    for option in reversed(options):
        command = option(command)
    return command


@cli.command()
@FOREST
@SOURCES
@FORCE
@click.option("--output", "-o", type=PATH, required=True, callback=prediction_path,
              help="Where to save the predictions: .parquet, .csv or .npy; - prints CSV. The map of a scene: "
              ".tif.")  # fmt: skip
@click.option("--keep", multiple=True, callback=comma_names, metavar="NAME,...",
              help="Columns to copy to the output, as text if from CSV; may be repeated.")  # fmt: skip
@click.option("--proba", is_flag=True,
              help="Also write the probability of each class; a .npy file then has only these.")  # fmt: skip
@map_files
@scene_options(NODATA, MASK, NO_MASK)
@prediction_options
def predict(  # noqa: PLR0913 - click gives each option as a parameter
    forest: Path, sources: tuple[str, ...], reading: dict[str, Any], scene: dict[str, Any], output: Path,
    keep: tuple[str, ...] | None, proba: bool, features: tuple[str, ...] | None, maps: dict[str, Any],
    as_json: bool, **work: Any,
) -> None:  # fmt: skip
    """Predict the rows of SOURCE, in order, with the forest saved in FOREST.

    The output has the columns of --keep, prediction, and with --proba probability_<class>. If SOURCE is
    a scene, it is a map: a GeoTIFF with a class or value for each pixel.

    \b
    oldgrowth predict forest.og scene.parquet -o labels.parquet --keep id
    oldgrowth predict forest.og scenes/new/ -o map.tif --confidence margin.tif
    """
    from .predict import Wanted, run_predict
    from .scenes import SceneSource
    from .sources import Work, source_of

    if keep and output.suffix.lower() == ".npy":
        raise click.UsageError("--keep needs an output with columns: .parquet or .csv.")
    if as_json and output == STANDARD:
        raise click.UsageError("--json cannot be used with -o -: both write to standard output.")
    work.pop("force")
    wanted = Wanted(output, keep or (), proba, features, maps)
    console = _console(work["quiet"], stderr=output == STANDARD)
    with source_of(sources, reading, scene) as source:
        if isinstance(source, SceneSource):
            from .predict_map import run_predict_map

            run_predict_map(forest, source, wanted, Work(**work), as_json, console)
        else:
            run_predict(forest, source, wanted, Work(**work), as_json, console)


@cli.command()
@FOREST
@SOURCES
@click.option("--target", metavar="NAME",
              help="Column with the true labels or values; for rasters, a file of polygons or points, or a "
              "raster.")  # fmt: skip
@scene_options(*LABEL_OPTIONS, NODATA, MASK, NO_MASK)
@prediction_options
@click.pass_context
def evaluate(  # noqa: PLR0913 - click gives each option as a parameter
    context: click.Context, /, forest: Path, sources: tuple[str, ...], reading: dict[str, Any],
    scene: dict[str, Any], target: str | None, features: tuple[str, ...] | None, as_json: bool, **work: Any,
) -> None:  # fmt: skip
    """Score the predictions of the forest saved in FOREST against the target of SOURCE.

    Or FOREST is a map, and SOURCE its points from `oldgrowth sample` with the true classes entered: then
    accuracies and areas are estimated for the whole map, with 95 % confidence intervals.

    \b
    oldgrowth evaluate forest.og test.parquet --target label
    oldgrowth evaluate forest.og scenes/held_out/ --target reference.gpkg --field landuse
    oldgrowth evaluate map.tif reference.gpkg
    """
    from ..datasets.map_files import is_raster
    from .columns import Columns
    from .evaluate import run_evaluate
    from .sources import Work, source_of

    if is_raster(forest):
        from .assess import run_assess

        given = {"target": target, "features": features, **reading, **scene, "batch_rows": work["batch_rows"]}
        run_assess(forest, sources, given, work["quiet"], as_json, _console())
        return
    if target is None:
        raise click.MissingParameter(ctx=context, param_hint="'--target'", param_type="option")
    with source_of(sources, reading, scene) as source:
        run_evaluate(forest, source, Columns(target, features), Work(**work), as_json, _console())


@cli.command()
@click.argument("map_file", metavar="MAP", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--points", "-n", type=click.IntRange(min=1), required=True, help="Number of points.")
@FORCE
@click.option("--output", "-o", type=PATH, required=True, callback=points_path,
              help="Where to save the points: .gpkg, .shp or .geojson.")  # fmt: skip
@click.option("--min-per-class", type=click.IntRange(min=0), default=50, show_default=True,
              help="Points of each class at least; the others are proportional to area.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="The same seed draws the same points.")  # fmt: skip
@QUIET
@JSON
@debug_option
def sample(map_file: Path, output: Path, quiet: bool, as_json: bool, force: bool, **drawn: int) -> None:
    """Draw random points of each class of MAP, a GeoTIFF of classes, for an accuracy assessment.

    Enter the true class of each point into its field `reference`, for example in QGIS. Then evaluate the
    map with these points.

    \b
    oldgrowth sample map.tif -n 500 -o reference.gpkg
    oldgrowth evaluate map.tif reference.gpkg
    """
    from .assess import run_sample

    run_sample(map_file, output, drawn, as_json, _console(quiet))


@cli.command()
@FORESTS
@FORCE
@click.option(
    "--output", "-o", type=PATH, required=True, callback=forest_path, help="Where to save the merged forest."
)
@QUIET
@JSON
@debug_option
def merge(forests: tuple[Path, ...], output: Path, quiet: bool, as_json: bool, force: bool) -> None:
    """Save all trees of the files FORESTS, which saw the same features, as one forest.

    It predicts the mean of what they predict, weighted by their numbers of trees. Their rows, seeds and
    classes may differ.

    \b
    oldgrowth merge monday.og tuesday.og -o week.og
    """
    from .merge import run_merge

    run_merge(forests, output, as_json, _console(quiet))


@cli.command()
@FOREST
@JSON
@debug_option
def inspect(forest: Path, as_json: bool) -> None:
    """Show the contents of the file FOREST: parameters, training, trees, features."""
    from .inspect import run_inspect

    run_inspect(forest, as_json, _console())


@cli.command(cls=LateOptions, late=size_option, before="trees")
@click.option("--trees", type=click.IntRange(min=1), default=8, show_default=True, help="Number of trees.")
@click.option("--memory-limit", default="850MB", show_default=True, callback=memory_size, metavar="SIZE",
              help="Maximum memory of the process while it trains.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="The same seed gives the same scene and the same forest.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, writable=True, path_type=Path),
              default=Path("oldgrowth-demo.png"), show_default=True, callback=picture_path,
              help="Picture to save: .png, .pdf or .svg. The map is beside it, as .tif.")  # fmt: skip
@debug_option
def demo(size: int, trees: int, memory_limit: int, seed: int, output: Path) -> None:
    """Train a forest on generated imagery that is larger than a memory limit, and map it.

    Bands are GeoTIFFs, labels are polygons, and so the map is a GeoTIFF, with a picture of it. One class
    covers less than a thousandth of the scene. The tables compare how much of each class is found by the
    forest, which sees all rows, and by trees that see only small random subsets of them.
    """
    from ..demo.demo import run_demo

    run_demo(size, trees, seed, memory_limit, output, _console())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    state = State()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # the terminal may not be able to show all characters
            stream.reconfigure(errors="backslashreplace")
    words = IN_WORDS.set(in_options)
    try:
        with ended_by_signals(interrupts=True), warnings.catch_warnings():
            warnings.showwarning = _warn  # a sentence, without the line of code
            return _run(arguments, state)
    finally:
        IN_WORDS.reset(words)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {_one_line(getattr(message, 'on_command_line', message))}")


def _say(sentence: str) -> None:
    click.echo(f"oldgrowth: {printable(sentence)}", err=True)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _run(arguments: Sequence[str] | None, state: State) -> int:
    try:
        code = cli.main(arguments, prog_name="oldgrowth", standalone_mode=False, obj=state)
    except click.ClickException as error:  # wrong usage, mostly
        shown = io.StringIO()
        error.show(shown)
        click.echo(printable(shown.getvalue(), keep="\n"), nl=False, err=True)
        return error.exit_code
    except click.Abort as abort:
        ended = isinstance(abort.__context__, Terminated)
        _say(f"{f'ended by {abort.__context__}' if ended else 'interrupted'}.")
        for note in getattr(abort.__context__, "__notes__", []):
            if "checkpoint_dir=" in note or "is kept in" in note:  # how to resume
                _say(in_options(note))
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - every failure ends in a sentence
        if state.debug:
            traceback.print_exc()
        _say(_sentence(limit_error(error) or error))
        return FAILED
    return code if isinstance(code, int) else 0


def _sentence(error: Exception) -> str:
    text = _one_line(getattr(error, "on_command_line", error))
    if isinstance(error, _ABOUT_PARAMETERS):
        return in_options(text)
    if text and isinstance(error, OldgrowthError | ValueError | OSError):
        return text
    # The message of another error may not be clear without its type.
    kind = type(error).__name__
    return f"{kind}: {text}" if text else f"{kind} (--debug shows where)"
