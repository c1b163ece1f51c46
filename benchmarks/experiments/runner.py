"""Shared by the experiments: options, a journal of finished runs, tables and plots.

An experiment is a script with `main(arguments)`: it creates a Runner, requests runs, and shows the results. A
finished run is in the journal and not repeated, so that an experiment can be interrupted at any time, and its
tables and plots depend only on the journal.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from journal import Journal, Run  # noqa: E402

SIZES = ("full", "quick", "tiny")


@dataclass(frozen=True)
class Options:
    """`size` is full (hours in all), quick (minutes) or tiny (seconds, for tests)."""

    size: str
    data: Path | None
    output: Path
    images: Path
    fresh: bool

    def of_size(self, **by_size: Any) -> Any:
        """The value for the chosen size: of_size(full=..., quick=..., tiny=...)."""
        return by_size[self.size]


def parse(doc: str, arguments: list[str] | None = None) -> Options:
    """Parse the options, by default of the command line; a terminated script then ends its worker."""
    if arguments is None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="full", help="hours, minutes, or seconds")
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--output", type=Path, default=HERE.parent / "results" / "experiments")
    parser.add_argument("--images", type=Path, help="for the plots; docs/images for the full size")
    parser.add_argument("--fresh", action="store_true", help="forget finished runs")
    given = parser.parse_args(arguments)
    output = given.output / given.size
    images = given.images or (HERE.parents[1] / "docs" / "images" if given.size == "full" else output)
    return Options(given.size, given.data, output, images, given.fresh)


class Runner:
    """The runs of one experiment, `name`.jsonl, and its output: `name`.md, results-`name`.png."""

    def __init__(self, name: str, options: Options) -> None:
        self.options = options
        self.console = Console(highlight=False, soft_wrap=True)
        self._name = name
        self._journal = Journal(options.output / f"{name}.jsonl", options.fresh)
        self._page: list[str] = []

    def run(self, measure: Callable[[], Run], **parameters: Any) -> Run:
        """The results of a run, which is identified by its parameters."""
        words = ", ".join(f"{name} {value}" for name, value in parameters.items())
        self.console.print(f"{self._name}: {words}", style="dim")
        return self._journal.run(parameters, measure)

    def table(self, title: str, headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
        """Printed, and kept in the experiment's page, as Markdown."""
        cells = [[str(cell) for cell in row] for row in ([*headings], *rows)]
        lines = ["| " + " | ".join(row) + " |" for row in cells]
        text = "\n".join([f"**{title}**", "", lines[0], "|" + "---|" * len(cells[0]), *lines[1:], ""])
        self.console.print(text)
        self._page.append(text)
        (self.options.output / f"{self._name}.md").write_text("\n".join(self._page))

    def plot(self, figure: Figure, part: str = "") -> None:
        self.options.images.mkdir(parents=True, exist_ok=True)
        path = self.options.images / f"results-{self._name}{part and '-' + part}.png"
        figure.savefig(path, dpi=150)
        self.console.print(f"Drawn: {path}")


def mean_and_spread(values: Iterable[float], form: str = ".4f") -> str:
    """The mean of some seeds, with their standard deviation if there are several."""
    values = list(values)
    mean = format(fmean(values), form)
    return mean if len(values) < 2 else f"{mean} ± {stdev(values):{form}}"


def draw_means(panel: Any, points: Mapping[float, list[float]], **look: Any) -> None:
    """A line through the means of some seeds at each place, with their standard deviation."""
    places = sorted(points)
    means = [fmean(points[place]) for place in places]
    spread = [stdev(points[place]) if len(points[place]) > 1 else 0.0 for place in places]
    panel.errorbar(places, means, spread, capsize=2, **look)
