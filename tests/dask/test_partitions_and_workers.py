"""Neither the partitions of the rows, nor the workers, nor the kind of source show in any kind of forest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from cluster_cases import CASES, Case, parquet, same, table
from clusters import cluster_of
from distributed import Client

from oldgrowth.cluster import driver

FEATURES = list("abcde")
pytestmark = [pytest.mark.torture, pytest.mark.filterwarnings("ignore:.*seen by every tree")]


def pieces(frame: pd.DataFrame, n: int) -> list[pd.DataFrame]:
    """Of different lengths; if there are several, one has no rows."""
    edges = [0, *sorted(np.random.default_rng(n).integers(1, len(frame), max(0, n - 2))), len(frame)]
    parts = [frame[a:b] for a, b in pairwise(edges)]
    return parts if n == 1 else [*parts[:1], frame[:0], *parts[1:]]


def files(folder: Path, parts: list[pd.DataFrame], case: Case, ending: str) -> tuple[Any, ...]:
    for i, part in enumerate(parts):
        write = part.to_parquet if ending == "parquet" else part.to_csv
        write(folder / f"{i:02}.{ending}", index=False)
    return (case.opened(f"{folder}/*.{ending}"),)


def frames(folder: Path, parts: list[pd.DataFrame], case: Case) -> tuple[Any, ...]:
    lazy = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    return lazy[FEATURES], lazy[case.target], None if case.weight is None else lazy[case.weight]


def arrays(folder: Path, parts: list[pd.DataFrame], case: Case) -> tuple[Any, ...]:
    whole, chunks = pd.concat(parts), tuple(len(part) for part in parts)
    target = whole[case.target].to_numpy(dtype="U3" if case.target == "label" else None)
    weight = None if case.weight is None else da.from_array(whole[case.weight].to_numpy(), chunks=700)
    x = da.from_array(whole[FEATURES].to_numpy(), chunks=(chunks, -1))
    return x, da.from_array(target, chunks=500), weight


SOURCES: dict[str, Callable[[Path, list[pd.DataFrame], Case], tuple[Any, ...]]] = {
    "parquet": lambda *rows: files(*rows, "parquet"),
    "csv": lambda *rows: files(*rows, "csv"),
    "dask DataFrame": frames,
    "dask Array": arrays,
}


@pytest.fixture(scope="module", params=[1, 2, 4])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with cluster_of(request.param) as client:
        yield client


@cache
def on_one_machine(name: str, folder: Path) -> Any:
    return CASES[name].fitted(parquet(folder, table()), n_jobs=1)


@pytest.mark.parametrize("n", [1, 4, 17])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", CASES)
def test_the_same_forest(
    client: Client,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    source: str,
    n: int,
) -> None:
    monkeypatch.setattr(driver, "RANGE_BYTES", 30_000)
    one = on_one_machine(name, tmp_path_factory.getbasetemp() / name)
    rows = SOURCES[source](tmp_path_factory.mktemp("rows"), pieces(table(), n), CASES[name])
    same(one, CASES[name].made(client=client).fit(*rows))
