"""Measures one forest: python forest_worker.py DIR ROWS SEED PARAMETERS prints a line of JSON.

DIR holds the arrays as .npy files, PARAMETERS (JSON) are those of the estimator. It measures the same as
worker.py: seconds of fit and predict, accuracy, memory of fit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from datasets import Split
from oldgrowth import RandomForestClassifier
from rivals import TREES, Model, Rival
from worker import measure


def measured_apart(folder: Path, rows: int, seed: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """The measurements of a new process."""
    command = [sys.executable, __file__, str(folder), str(rows), str(seed), json.dumps(parameters)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    folder, rows, seed, parameters = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    split = Split.load(folder)
    split = Split(split.x_train[:rows], split.y_train[:rows], split.x_test, split.y_test)

    def make(seed: int, shape: tuple[int, int]) -> RandomForestClassifier:
        return RandomForestClassifier(TREES, random_state=seed, **json.loads(parameters))

    print("\n" + json.dumps(measure(Rival(lambda: Model(make), "oldgrowth"), split, seed)), flush=True)


if __name__ == "__main__":
    main()
