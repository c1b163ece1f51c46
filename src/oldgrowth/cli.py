"""The command `oldgrowth`. Each subcommand reads its options here and does its work in a module of its own.

Exit codes: 0 done, 1 failed (one sentence on standard error), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from . import __version__
from .picture import SUFFIXES
from .scene import MIN_SIDE

FAILED, INTERRUPTED = 1, 130
# A scene of this side already needs some gigabytes of memory.
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


def _picture_path(_: click.Context, __: click.Parameter, path: Path) -> Path:
    """Refuse what cannot be written before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise click.BadParameter(f"{str(path)!r} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}.")
    if not path.parent.is_dir():
        raise click.BadParameter(f"the directory {str(path.parent)!r} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"the directory {str(path.parent)!r} cannot be written to.")
    return path


@cli.command()
@click.option("--size", type=click.IntRange(MIN_SIDE, _MAX_SIDE), default=600, show_default=True,
              help="Height and width of the scene in pixels.")  # fmt: skip
@click.option("--trees", type=click.IntRange(min=1), default=24, show_default=True, help="Number of trees.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="The same seed gives the same scene and the same forest.")  # fmt: skip
@click.option("--output", type=click.Path(dir_okay=False, writable=True, path_type=Path),
              default=Path("oldgrowth-demo.png"), show_default=True, callback=_picture_path,
              help="Where to save the picture: .png, .pdf or .svg.")  # fmt: skip
@debug_option
def demo(size: int, trees: int, seed: int, output: Path) -> None:
    """Train a forest on made-up imagery and draw its map.

    The scene has a class that covers less than a thousandth of it. The tables compare how much of each class
    is found by the forest, which sees all rows, and by trees that only see small random subsets of them.
    """
    from .demo import run_demo

    run_demo(size, trees, seed, output, Console(highlight=False))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    state = State()
    try:
        code = cli.main(arguments, prog_name="oldgrowth", standalone_mode=False, obj=state)
    except click.ClickException as error:  # wrong usage, mostly
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("oldgrowth: interrupted.", err=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - whatever fails, a person at a terminal wants a sentence
        if state.debug:
            traceback.print_exc()
        click.echo(f"oldgrowth: {_sentence(error)}", err=True)
        return FAILED
    return code if isinstance(code, int) else 0


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory: {text or 'choose something smaller'}"
    if text and isinstance(error, ValueError | OSError):
        return text
    # An error of another kind may not explain itself: say what it is.
    kind = type(error).__name__
    return f"{kind}: {text}" if text else f"{kind} (--debug shows where)"


def main() -> None:
    sys.exit(run())
