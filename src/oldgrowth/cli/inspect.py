"""`oldgrowth inspect`: the contents of a model file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ..datasets.levels import POOLED
from ..estimators.saved import estimator_of
from ..forest.depths import forest_depths
from ..forest.model_file import VERSION, Model, read_model
from ..messages.text import counted, human_bytes
from ..reporting.report import FitReport
from ..reporting.tables import (
    Range,
    SafeTable,
    distribution_table,
    facts_table,
    plain,
    print_json,
    ranges_of,
    report_facts,
    stage_table,
    table,
)

_TOP_FEATURES = 10
_MOST_CLASSES = 20
_MOST_LEVELS = 6
_QUANTILES = {"min": 1e-18, "median": 0.5, "max": 1.0}


def run_inspect(path: Path, as_json: bool, console: Console) -> None:
    read = read_model(path)
    model = estimator_of(path, read)
    facts = _facts(path, read, model)
    if as_json:
        print_json(facts)
        return
    console.print(f"{path}: {facts['estimator']}, saved by oldgrowth {facts['version']}", markup=False)
    _show_forest(facts, console)
    _show_recipe(facts["recipe"], console)
    _show_parameters(model, facts, console)
    console.print(stage_table(model.fit_report_))
    _show_training(model.fit_report_, console)
    _show_distributions(facts, console)
    _show_features(facts, console)
    _show_levels(facts, console)


def _facts(path: Path, read: Model, model: Any) -> dict[str, Any]:
    forest = read.forest
    with forest.checked():
        depths = forest_depths(forest)
    importances = model.feature_importances_
    names = getattr(model, "feature_names_in_", None)
    names = [f"column {i}" for i in range(forest.n_features)] if names is None else names.tolist()
    top = np.argsort(-importances, kind="stable")[:_TOP_FEATURES]
    return {
        "file": str(path),
        "bytes": read.size,
        "format": VERSION,
        "version": read.meta["version"],
        "estimator": read.meta["estimator"],
        "parameters": plain(model.get_params()),
        "not_saved": read.meta["not_saved"],
        "features": forest.n_features,
        "feature_names": read.meta["feature_names"],
        "recipe": plain(model.recipe_),
        "levels": _levels(model, names),
        "classes": plain(getattr(model, "classes_", None)),
        "trees": forest.n_trees,
        "top_trees": model.fit_report_.top_trees,
        "buckets": int(forest.bucket_start[-1]),
        "nodes": forest.n_nodes,
        "leaves": int(depths.leaves.sum()),
        "bytes_per_node": read.size / forest.n_nodes,
        "depth": _spread(depths.trees),
        "leaves_by_depth": depths.leaves,
        "leaf_depth": {name: depths.leaf_quantile(q) for name, q in _QUANTILES.items()},
        "bucket_rows": model.fit_report_.bucket_rows,
        "buckets_by_rows": _buckets_by_rows(model.fit_report_),
        "oob_score": getattr(model, "oob_score_", None),
        "top_features": [{"feature": names[i], "importance": importances[i]} for i in top],
        "report": report_facts(model.fit_report_),
        "sections": [{"name": s.name, "offset": s.offset, "bytes": s.length} for s in read.sections],
    }


def _levels(model: Any, names: list[str]) -> dict[str, list[Any]]:
    """The levels of the categorical features; of those with very many the last one stands for the rarest."""
    found = zip(names, model._levels or (), strict=False)
    return {name: [*one.values, *[POOLED] * one.pooled] for name, one in found if one is not None}


def _buckets_by_rows(report: FitReport) -> list[dict[str, int]] | None:
    """Numbers of buckets by ranges of their rows; None if only quantiles are known."""
    if not report.rows_by_bucket:
        return None
    rows = np.concatenate([np.array(top, dtype=np.int64) for top in report.rows_by_bucket])
    return [asdict(r) for r in ranges_of(rows)]


def _spread(values: Any) -> dict[str, float]:
    return {"min": int(values.min()), "median": float(np.median(values)), "max": int(values.max())}


def _show_forest(facts: dict[str, Any], console: Console) -> None:
    shown = facts_table("Forest")
    depth, leaf, rows = facts["depth"], facts["leaf_depth"], facts["bucket_rows"]
    shown.add_row("features", f"{facts['features']:,}")
    classes = facts["classes"]
    if classes is not None:
        listed = ", ".join(map(str, classes[:_MOST_CLASSES]))
        more = ", ..." if len(classes) > _MOST_CLASSES else ""
        shown.add_row("classes", f"{len(classes):,}: {listed}{more}")
    tops = f"on {counted(facts['top_trees'], 'top tree')}" if facts["top_trees"] else "without top trees"
    shown.add_row("trees", f"{facts['trees']:,}, {tops}")
    shown.add_row("nodes", f"{facts['nodes']:,}, {facts['leaves']:,} of them leaves")
    shown.add_row("depth of trees", f"{depth['min']} to {depth['max']}, median {depth['median']:g}")
    shown.add_row("depth of leaves", f"{leaf['min']} to {leaf['max']}, median {leaf['median']}")
    shown.add_row("buckets", f"{facts['buckets']:,}")
    if rows:
        quantiles = ", ".join(f"{n:,} ({q})" for q, n in rows.items())
        shown.add_row("rows per bucket", quantiles if facts["buckets"] > 1 else f"{rows['100%']:,}")
    shown.add_row("size", f"{human_bytes(facts['bytes'])}, {facts['bytes_per_node']:.1f} bytes per node")
    if facts["oob_score"] is not None:
        shown.add_row("out-of-bag score", f"{facts['oob_score']:.4f}")
    console.print(shown)


def _show_recipe(recipe: dict[str, Any] | None, console: Console) -> None:
    """How features are made of the bands of a scene."""
    if recipe is None:
        return
    shown = facts_table("Features of scenes")
    for name, text in _recipe_texts(recipe).items():
        if text:
            shown.add_row(name, text)
    console.print(shown)


def _recipe_texts(recipe: dict[str, Any]) -> dict[str, str]:
    """What a recipe has; empty if it is as usual. Older ones lack some."""
    scales = {name: pair for name, pair in (recipe.get("scale") or {}).items() if pair != [1.0, 0.0]}
    nodata = recipe.get("nodata")
    return {
        "bands": ", ".join(recipe["bands"]),
        "expressions": ", ".join(f"{name} = {text}" for name, text in (recipe.get("extra") or {}).items()),
        "patch": f"{recipe['patch']} x {recipe['patch']} pixels",
        "lines": "from south to north" if recipe.get("south_up") else "",
        "nodata": "" if nodata is None else f"{nodata:g}",
        "mask": ": ".join(recipe.get("mask") or ()),
        "scale and offset": ", ".join(f"{name}: {a:g} and {b:g}" for name, (a, b) in scales.items()),
    }


def _show_parameters(model: Any, facts: dict[str, Any], console: Console) -> None:
    defaults = type(model)().get_params()
    heads = ("parameter", "value", "default, if different")
    shown = SafeTable(*heads, title="Parameters", title_justify="left")
    for name, value in model.get_params().items():
        if name in facts["not_saved"]:
            continue
        if repr(value) != repr(defaults[name]):
            shown.add_row(name, str(value), str(defaults[name]), style="bold")
        else:
            shown.add_row(name, str(value), "")
    for name, why in facts["not_saved"].items():
        shown.add_row(name, f"not saved: {why}", "", style="bold")
    console.print(shown)


def _show_training(report: FitReport, console: Console) -> None:
    shown = facts_table("Training")
    shown.add_row("rows", f"{report.rows:,}, {human_bytes(report.record_bytes)} each")
    if report.top_trees:
        shown.add_row("bucket size", counted(report.bucket_size, "row"))
        shown.add_row("rows sampled per top tree", counted(report.top_sample, "row"))
        shown.add_row("buckets split again", f"{report.buckets_split:,}")
    rounds = f" in {report.rounds:,} rounds" if report.rounds > 1 else ""
    shown.add_row("store", f"{report.store}{rounds}: {report.store_reason}")
    peak, limit = human_bytes(report.peak_memory), human_bytes(report.memory_limit)
    shown.add_row("peak memory", f"{peak}, limit {limit}")
    console.print(shown)


def _show_distributions(facts: dict[str, Any], console: Console) -> None:
    leaves = facts["leaves_by_depth"]
    depths = np.flatnonzero(leaves)
    ranges = ranges_of(depths, leaves[depths])
    plain_bars = console.options.ascii_only
    console.print(distribution_table("Depths of leaves", "depth", "leaves", ranges, plain_bars))
    if facts["buckets"] > 1 and facts["buckets_by_rows"]:
        ranges = [Range(**line) for line in facts["buckets_by_rows"]]
        console.print(distribution_table("Sizes of buckets", "rows", "buckets", ranges, plain_bars))


def _show_features(facts: dict[str, Any], console: Console) -> None:
    shown = table("Most important features", "feature", "importance")
    for line in facts["top_features"]:
        shown.add_row(line["feature"], f"{line['importance']:.4f}")
    console.print(shown)


def _show_levels(facts: dict[str, Any], console: Console) -> None:
    if not facts["levels"]:
        return
    shown = table("Categories", "feature", "levels", "the first")
    for name, levels in facts["levels"].items():
        more = ", ..." if len(levels) > _MOST_LEVELS else ""
        shown.add_row(name, f"{len(levels):,}", ", ".join(map(str, levels[:_MOST_LEVELS])) + more)
    console.print(shown)
