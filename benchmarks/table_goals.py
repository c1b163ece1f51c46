"""The goals of the comparison on tables: lines that show each goal beside its figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from table_models import AS_YDF

YDF = ("ydf, in order of the target", "ydf, random sets")
SECONDS = ("fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class TableGoal:
    """Seconds: at most `limit` times the fastest rival's. Scores: at least the best rival's plus it."""

    measure: str
    limit: float
    ours: str
    rivals: tuple[str, ...]

    def value(self, measured: list[dict[str, Any]]) -> float | None:
        """The ratio of best seconds or the difference of mean scores; None if either was not measured."""
        summarize, best = (min, min) if self.measure in SECONDS else (fmean, max)
        figures = {}
        for model in (self.ours, *self.rivals):
            good = [m for m in measured if m["model"] == model and m.get(self.measure) is not None]
            if good:
                figures[model] = summarize(m[self.measure] for m in good)
        rivals = [figures[model] for model in self.rivals if model in figures]
        if self.ours not in figures or not rivals:
            return None
        ours, rival = figures[self.ours], best(rivals)
        return ours / rival if self.measure in SECONDS else ours - rival

    def line(self, measured: list[dict[str, Any]]) -> str:
        timed = self.measure in SECONDS
        against = self.rivals[0] if len(self.rivals) == 1 else "the better way of YDF"
        goal = f"at most {self.limit:g}x" if timed else f"at least {self.limit:+g}"
        head = f"{self.measure.replace('_', ' ')} of {self.ours} against {against}"
        value = self.value(measured)
        if value is None:
            return f"{head}: not measured (goal: {goal})"
        holds = value <= self.limit if timed else value >= self.limit
        shown = f"{value:.2f}x" if timed else f"{value:+.4f}"
        return f"{head}: {shown} (goal: {goal}; {'holds' if holds else 'does not hold'})"


def _against_numbers(ours: str) -> tuple[TableGoal, ...]:
    """The time of categories, compared with the same columns as ordinal numbers."""
    limits = zip(SECONDS, (1.5, 1.3), strict=True)
    return tuple(TableGoal(measure, limit, ours, (f"{ours}, ordinal",)) for measure, limit in limits)


GOALS = {
    "flights": (
        TableGoal("auc", -0.002, AS_YDF, YDF),
        TableGoal("accuracy", -0.002, AS_YDF, YDF),
        TableGoal("fit_seconds", 0.2, AS_YDF, YDF),
        TableGoal("auc", 0.02, "oldgrowth", ("oldgrowth, ordinal",)),
        *_against_numbers("oldgrowth"),
        *_against_numbers(AS_YDF),
    ),
    "adult": (TableGoal("auc", -0.002, "oldgrowth", YDF), *_against_numbers("oldgrowth")),
    "kdd99": (
        TableGoal("accuracy", 0.0, "oldgrowth", ("oldgrowth, ordinal",)),
        TableGoal("rare_recall", 0.0, "oldgrowth", ("oldgrowth, ordinal",)),
        *_against_numbers("oldgrowth"),
    ),
}


def verdicts(name: str, measured: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each goal of a set."""
    good = [m for m in measured if "error" not in m]
    for goal in GOALS[name]:
        yield goal.line(good)
