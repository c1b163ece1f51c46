"""The picture of two top trees on the same rows, one split by gain alone and one split evenly.

Needs the extra `plot`; takes seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
from sklearn.datasets import make_classification

import oldgrowth.plot

HERE = Path(__file__).resolve().parent


def draw(output: Path, n_rows: int = 40_000) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x, y = make_classification(n_rows, 20, n_informative=8, n_classes=4, random_state=0)
    shares = {"width_ratios": [3, 2]}
    figure, axes = pyplot.subplots(1, 2, figsize=(13, 4.6), layout="constrained", gridspec_kw=shares)
    for balance, ax in enumerate(axes):
        forest = oldgrowth.RandomForestClassifier(
            4, bucket_size=n_rows * 3 // 80, balance=balance, max_depth=14, random_state=1
        ).fit(x, y)
        oldgrowth.plot.top_tree(forest, ax=ax)
        ax.set_title(f"balance={balance}: {forest.fit_report_.buckets} buckets", loc="left", size=12, pad=10)
    figure.savefig(output, dpi=90)
    pyplot.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE.parent / "docs/images/top_trees.png")
    draw(parser.parse_args().output)
