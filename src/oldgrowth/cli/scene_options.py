"""Options of commands that take scenes: rasters instead of tables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from .options import PATH, comma_names, map_path

LABELS = ("field", "layer", "label_nodata", "per_class")  # options of with_labels
_NAMES = ("bands", "patch", "extra", "nodata", "mask", *LABELS)


def expressions(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str] | None:
    """Features as NAME=EXPRESSION."""
    pairs = [value.partition("=") for value in values]
    for value, (name, _, text) in zip(values, pairs, strict=True):
        if not name.strip().isidentifier() or not text.strip():
            raise click.BadParameter(
                f"{value!r} is not of the form NAME=EXPRESSION, such as 'ndvi=(B5-B4)/(B5+B4)'."
            )
    return {name.strip(): text.strip() for name, _, text in pairs} or None


NODATA = click.option(
    "--nodata",
    type=float,
    metavar="NUMBER",
    help="Rasters: value of pixels without data, if the files do not say it.",
)
MASK = click.option(
    "--mask", nargs=2, metavar="FILE RULE",
    help="Rasters: a file or pattern in each scene, and which of its pixels do not count: 'bits 1,3,4', "
    "'values 0,255' or 'not values 1'.",
)  # fmt: skip
NO_MASK = click.option(
    "--no-mask", is_flag=True, default=None,
    help="Rasters: use no mask, although the forest was trained with one.",
)  # fmt: skip
LABEL_OPTIONS = (
    click.option("--field", metavar="NAME",
                 help="Rasters: field of the vector file with the labels; not needed if it has only one."),
    click.option("--layer", metavar="NAME",
                 help="Rasters: layer of the vector file; not needed if it has only one."),
    click.option("--label-nodata", type=float, metavar="NUMBER",
                 help="Rasters: value in a raster of labels that stands for no label."),
)  # fmt: skip


def scene_options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options of scenes. The command gets those that were given as one value, `scene`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_scene(**given: Any) -> Any:
            names = [name for name in _NAMES if name in given]
            scene = {name: given.pop(name) for name in names}
            if given.pop("no_mask", None):
                if scene["mask"] is not None:
                    raise click.UsageError("--mask and --no-mask cannot both be given.")
                scene["mask"] = False
            return command(scene={name: v for name, v in scene.items() if v is not None}, **given)

        decorated: Callable[..., Any] = with_scene
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


TRAINING = (
    *LABEL_OPTIONS,
    click.option("--per-class", type=click.IntRange(min=1), metavar="PIXELS",
                 help="Rasters: at most this number of labelled pixels of each class.  [default: all]"),
    click.option("--bands", multiple=True, callback=comma_names, metavar="NAME,...",
                 help="Rasters: bands to use, or patterns like 'B[2-7]'; may be repeated.  [default: all]"),
    click.option("--patch", type=int, metavar="PIXELS",
                 help="Rasters: also use the pixels around each one: 3 for 3 x 3, ....  [default: 1]"),
    NODATA,
    MASK,
    click.option("--extra", multiple=True, callback=expressions, metavar="NAME=EXPRESSION",
                 help="Rasters: a feature made of bands, as 'ndvi=(B5-B4)/(B5+B4)'; may be repeated."),
)  # fmt: skip
_MAPS = ("probabilities", "probability_type", "confidence", "confidence_kind")


def map_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """Other maps of the same pixels. The command gets those that were given as one value, `maps`."""

    @click.option("--probabilities", type=PATH, callback=map_path,
                  help="Rasters: also save a .tif with the probability of each class.")  # fmt: skip
    @click.option("--probability-type", type=click.Choice(["uint8", "float32"]),
                  help="uint8: in steps of 1/250.  [default: uint8]")  # fmt: skip
    @click.option("--confidence", type=PATH, callback=map_path,
                  help="Rasters: also save a .tif of how sure the forest is of each pixel.")  # fmt: skip
    @click.option("--confidence-kind", type=click.Choice(["margin", "entropy", "share"]),
                  help="margin: of the first class over the second; entropy: 1 minus it; share: of the first "
                  "class.  [default: margin]")  # fmt: skip
    @functools.wraps(command)
    def with_maps(**given: Any) -> Any:
        maps = {name: given.pop(name) for name in _MAPS}
        return command(maps={name: value for name, value in maps.items() if value is not None}, **given)

    return with_maps
