"""`oldgrowth sample` draws points of a map; `oldgrowth evaluate` of the map and these points assesses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..datasets.map_files import has_rasters
from ..messages.text import counted
from ..reporting.tables import print_json, share, table

# Two tables, which fit a screen, of the columns of `Accuracy.cells`.
_TABLES = {"Accuracy with 95 % intervals": (0, 1, 3, 4), "Area with 95 % intervals": (0, 2, 5)}


def run_sample(map_file: Path, output: Path, drawn: dict[str, int], as_json: bool, console: Console) -> None:
    from ..raster import sample_map

    strata = sample_map(
        map_file,
        drawn["points"],
        output,
        min_per_class=drawn["min_per_class"],
        seed=drawn["seed"],
        overwrite=True,
    )
    if as_json:
        classes = [
            {"class": s.label, "value": s.value, "pixels": s.pixels, "points": s.points} for s in strata
        ]
        print_json({"output": str(output), "map": str(map_file), "classes": classes})
        return
    total = sum(stratum.pixels for stratum in strata)
    shown = table("Sample", "class", "pixels", "share", "points")
    for s in strata:
        shown.add_row(s.label, f"{s.pixels:,}", share(s.pixels / total), f"{s.points:,}")
    console.print(shown)
    points = counted(sum(stratum.points for stratum in strata), "point")
    console.print(
        f"{points} saved to {output}. Enter the true class of each into its field reference, then run: "
        f"oldgrowth evaluate {map_file} {output}",
        soft_wrap=True,
    )


def run_assess(
    map_file: Path,
    sources: tuple[str, ...],
    given: dict[str, Any],
    quiet: bool,
    as_json: bool,
    console: Console,
) -> None:
    """Estimate the accuracy of a map; `given` are options, most of which are not for maps."""
    from ..raster import assess_map

    chosen = {name: given.pop(name) for name in ("field", "layer") if name in given}
    for name, value in given.items():
        if value is not None:
            option = {"types": "type"}.get(name, name).replace("_", "-")
            raise click.UsageError(
                f"--{option} is for a forest, but {str(map_file)!r} is a map: only --field and --layer can "
                "be given."
            )
    if len(sources) != 1:
        raise click.UsageError("A map is evaluated with one file of points.")
    if has_rasters(sources[0]):
        raise click.UsageError(
            f"{sources[0]!r} contains rasters, but a map is evaluated with points: draw them with `oldgrowth "
            f"sample`, and enter their classes. If {str(map_file)!r} is not the map, name a forest."
        )
    found = assess_map(map_file, sources[0], **chosen)
    if as_json:
        print_json({"map": str(map_file), "points": sources[0], **_facts(found)})
        return
    if not quiet:
        rows = [found.headings, *found.cells()]
        for title, columns in _TABLES.items():
            heads, *lines = ([cells[i] for i in columns] for cells in rows)
            shown = table(title, *heads)
            for cells in lines:
                shown.add_row(*cells)
            console.print(shown)
    console.print(f"Overall accuracy {found.overall.text(3)} (95 % interval)")


def _facts(found: Any) -> dict[str, Any]:
    def fact(estimate: Any) -> dict[str, Any]:
        return {
            "value": estimate.value,
            "standard_error": estimate.error,
            "interval": list(estimate.interval),
        }

    return {
        "overall_accuracy": fact(found.overall),
        "area_unit": found.area_unit,
        "classes": [
            {
                "class": label.label,
                "mapped_pixels": label.mapped,
                "points": label.points,
                "users_accuracy": fact(label.users),
                "producers_accuracy": fact(label.producers),
                "area": fact(found.area(label)),
            }
            for label in found.classes
        ],
        "counts": found.counts,
    }
