"""Interrupted fits, for tests of what they leave and how they are resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oldgrowth.fitting.pipeline
from helpers import make_data
from oldgrowth import RandomForestClassifier


class Stopped(Exception):
    """Raised in place of a stage."""


def interrupted(monkeypatch: pytest.MonkeyPatch, directory: Path, x: Any, y: Any, **params: Any) -> None:
    """A fit that ends before its trees are assembled."""

    def stop(*args: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(oldgrowth.fitting.pipeline, "assemble", stop)
        with pytest.raises(Stopped):
            forest(directory, **params).fit(x, y)


def forest(directory: Path, **params: Any) -> RandomForestClassifier:
    options = {"random_state": 4, "bucket_size": 100, "checkpoint_dir": directory} | params
    return RandomForestClassifier(6, **options)


DATA = make_data(600, 5, 3, seed=9)
