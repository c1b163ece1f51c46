"""`oldgrowth merge`: several model files as one, whose trees are copied part by part."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from ..errors import MergeError
from ..estimators.merging import unassembled
from ..estimators.saved import load
from ..forest.model_file import write_model
from ..forest.model_meta import describe
from ..messages.text import counted
from ..reporting.tables import print_json


def run_merge(paths: tuple[Path, ...], output: Path, as_json: bool, console: Console) -> None:
    estimators = [load(path) for path in paths]
    try:
        merged = unassembled(estimators)
    except MergeError as error:
        for i, path in reversed([*enumerate(paths, 1)]):  # number 12 before number 1
            error.replace(f"number {i}", str(path))
        raise
    write_model(output, merged.forest_, describe(merged))
    facts = {
        "output": str(output),
        "forests": len(paths),
        "trees": merged.forest_.n_trees,
        "nodes": merged.forest_.n_nodes,
    }
    if as_json:
        print_json(facts)
        return
    console.print(
        f"{output}: {counted(facts['trees'], 'tree')}, {counted(facts['nodes'], 'node')}, of "
        f"{counted(len(paths), 'forest')}"
    )
