"""`oldgrowth predict` for scenes: writes maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..estimators.saved import load
from ..messages.text import counted
from ..reporting.tables import print_json, share, table
from .columns import Columns
from .options import MAP_SUFFIXES
from .predict import Wanted
from .scenes import SceneSource
from .sources import Work


def run_predict_map(
    model_path: Path, source: SceneSource, wanted: Wanted, work: Work, as_json: bool, console: Console
) -> None:
    from ..raster import write_map

    _check(wanted, work, source)
    model = load(model_path)
    scene: Any = source.open_for(model, Columns(features=wanted.features))
    if len(scene.scenes) > 1:
        raise click.UsageError(f"A map is of one scene, but {len(scene.scenes)} were named: write one each.")
    written = write_map(
        model,
        scene,
        wanted.output,
        memory_limit=work.memory_limit,
        n_jobs=work.jobs,
        verbose=not work.quiet,
        **wanted.maps,
    )
    files = [str(path) for path in (wanted.output, *wanted.maps.values()) if isinstance(path, Path)]
    if as_json:
        result = {"output": files[0], "files": files, "seconds": written.seconds, "pixels": written.pixels}
        counts = {} if written.by_class is None else {"predicted": written.by_class}
        print_json(result | {"rows": written.predicted} | counts)
        return
    if written.by_class is not None:
        shown = table("Predicted classes", "class", "pixels", "share")
        for label, pixels in written.by_class.items():
            shown.add_row(str(label), f"{pixels:,}", share(pixels / max(1, written.predicted)))
        console.print(shown)
    done = f"{counted(written.predicted, 'pixel')} predicted in {written.seconds:.1f} s"
    console.print(f"{done}, saved to {', '.join(files)}.", soft_wrap=True)


def _check(wanted: Wanted, work: Work, source: SceneSource) -> None:
    """Refuse options of tables, and those that need another one."""
    if wanted.output.suffix.lower() not in MAP_SUFFIXES:
        raise click.UsageError(
            f"{source.paths[0]!r} contains rasters, which become a map: {str(wanted.output)!r} must end in "
            ".tif."
        )
    if wanted.proba:
        raise click.UsageError("--proba is for tables: --probabilities FILE saves a map of them.")
    if wanted.keep:
        raise click.UsageError("--keep is for tables: a map has the pixels of the scene.")
    if work.batch_rows is not None:
        raise click.UsageError("--batch-rows is for tables: use --memory-limit.")
    for option, file in (("probability_type", "probabilities"), ("confidence_kind", "confidence")):
        if option in wanted.maps and file not in wanted.maps:
            raise click.UsageError(f"--{option.replace('_', '-')} needs --{file}, the file to save.")
