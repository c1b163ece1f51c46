"""The goals of oldgrowth in the comparison: turns measurements into summaries and verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any


@dataclass(frozen=True)
class Summary:
    """All repeats of one model on one data set; None if every repeat failed or nothing could be measured."""

    repeats: int
    failures: int
    fit_best: float | None
    fit_median: float | None
    predict_best: float | None
    accuracy: float | None
    memory: float | None


@dataclass(frozen=True)
class Goal:
    """The goal for `ours`: a factor over the rival; for accuracy, a value or a difference from the rival."""

    set_name: str
    measure: str  # fit, predict, memory or accuracy
    at_least: float
    rival: str | None = None
    ours: str = "oldgrowth"


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    value: float | None
    met: bool | None

    def __str__(self) -> str:
        goal = self.goal
        value = "not measured" if self.value is None else f"{self.value:.4f}"
        if goal.measure != "accuracy":
            value = value if self.value is None else f"{self.value:.2f}x"
            return f"{goal.measure} vs {goal.rival}: {value} (goal {goal.at_least:g}x)"
        if goal.rival is None:
            return f"accuracy of {goal.ours}: {value} (goal {goal.at_least:g})"
        value = value if self.value is None else f"{self.value:+.4f}"
        return f"accuracy vs {goal.rival}: {value} (goal at least {goal.at_least:+g})"


# Factors are the rival's best seconds, or its bytes, over ours; accuracies are means over the repeats.
GOALS = (
    Goal("covtype", "fit", 6, "scikit-learn"),
    Goal("covtype", "fit", 4, "scikit-learn-intelex"),
    Goal("covtype", "predict", 8, "scikit-learn"),
    Goal("covtype", "predict", 3, "scikit-learn-intelex"),
    Goal("covtype", "memory", 2, "scikit-learn"),
    Goal("covtype", "accuracy", 0.966),
    Goal("covtype", "fit", 6, "scikit-learn ExtraTrees", "oldgrowth ExtraTrees"),
    Goal("covtype", "accuracy", 0, "scikit-learn ExtraTrees", "oldgrowth ExtraTrees"),
    Goal("generated", "fit", 20, "scikit-learn"),
    Goal("generated", "fit", 4, "scikit-learn-intelex"),
    Goal("generated", "predict", 8, "scikit-learn"),
    Goal("generated", "predict", 3, "scikit-learn-intelex"),
    Goal("generated", "memory", 2, "scikit-learn"),
    Goal("generated", "accuracy", -0.002, "scikit-learn"),
)

_FIELDS = {"fit": "fit_best", "predict": "predict_best", "memory": "memory"}


def summarise(measurements: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Summary]:
    """By (set, model), in the order of first appearance."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for measurement in measurements:
        groups.setdefault((measurement["set"], measurement["model"]), []).append(measurement)
    return {key: _summary(group) for key, group in groups.items()}


def _summary(group: list[dict[str, Any]]) -> Summary:
    good = [m for m in group if "error" not in m]
    if not good:
        return Summary(len(group), len(group), None, None, None, None, None)
    memory = [m["memory_bytes"] for m in good if m["memory_bytes"] is not None]
    return Summary(
        repeats=len(group),
        failures=len(group) - len(good),
        fit_best=min(m["fit_seconds"] for m in good),
        fit_median=median(m["fit_seconds"] for m in good),
        predict_best=min(min(m["predict_seconds"]) for m in good),
        accuracy=fmean(m["accuracy"] for m in good),
        memory=median(memory) if memory else None,
    )


def ratio(measure: str, rival: Summary | None, ours: Summary | None) -> float | None:
    """The rival's seconds or bytes divided by ours."""
    theirs, own = (getattr(s, _FIELDS[measure], None) for s in (rival, ours))
    if theirs is None or own is None or own <= 0:
        return None
    return theirs / own


def judge(goal: Goal, summaries: dict[tuple[str, str], Summary]) -> Verdict:
    ours = summaries.get((goal.set_name, goal.ours))
    rival = summaries.get((goal.set_name, goal.rival)) if goal.rival else None
    if goal.measure != "accuracy":
        value = ratio(goal.measure, rival, ours)
    elif ours is None or ours.accuracy is None or (goal.rival and (rival is None or rival.accuracy is None)):
        value = None
    else:
        value = ours.accuracy - (rival.accuracy if rival and rival.accuracy is not None else 0.0)
    return Verdict(goal, value, None if value is None else value >= goal.at_least)
