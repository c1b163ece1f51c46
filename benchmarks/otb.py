"""Orfeo ToolBox's random forest on the pixels of a scene, by its applications (Debian: otb-bin)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyogrio
import rasterio
import shapely

CLASSIFIER = "otbcli_ImageClassifier"
TRAINER = "otbcli_TrainVectorClassifier"
MOST_DEPTH = 25  # its trees do not grow deeper
_SAMPLES, _LABEL = "samples.gpkg", "label"


def is_installed() -> bool:
    return shutil.which(CLASSIFIER) is not None and shutil.which(TRAINER) is not None


def train(rows: np.ndarray, labels: np.ndarray, n_trees: int, max_features: int, model: Path) -> None:
    """A forest whose trees grow to the most depth that it allows, on rows of bytes."""
    samples = model.with_name(_SAMPLES)
    names = [f"f{column}" for column in range(rows.shape[1])]
    pyogrio.raw.write(
        samples,
        geometry=np.array([shapely.to_wkb(shapely.Point(0, 0), byte_order=1)] * len(rows), dtype=object),
        field_data=[*(rows[:, column].astype(np.int32) for column in range(rows.shape[1])), labels],
        fields=[*names, _LABEL],
        geometry_type="Point",
        crs="EPSG:32637",
    )
    forest = {"max": MOST_DEPTH, "min": 1, "var": max_features, "nbtrees": n_trees, "acc": 0}
    options = [text for name, value in forest.items() for text in (f"-classifier.rf.{name}", str(value))]
    source = ["-io.vd", samples, "-io.out", model, "-feat", *names, "-cfield", _LABEL]
    _run([TRAINER, *source, "-classifier", "rf", *options, "-rand", "0"])
    samples.unlink()


def write_stack(rows: np.ndarray, like: str, path: Path) -> None:
    """An image with a band for each feature; `rows` are features by line and pixel."""
    lines, _, features = rows.shape
    with rasterio.open(like) as source:
        profile = source.profile | {"count": features, "height": lines, "interleave": "pixel"}
    del profile["nodata"]
    profile |= {"compress": None, "tiled": False, "blockysize": 1}
    with rasterio.open(path, "w", **profile) as file:
        file.write(rows.transpose(2, 0, 1))


def classify(stack: str, model: str, out: str) -> None:
    _run([CLASSIFIER, "-in", stack, "-model", model, "-out", out, "uint8", "-ram", "512"])


def _run(command: list[str | Path]) -> None:
    # GDAL warns of each reading of a newer GeoPackage.
    environment = os.environ | {"OTB_LOGGER_LEVEL": "WARNING", "CPL_LOG": os.devnull}
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, env=environment)
