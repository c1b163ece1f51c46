"""A cluster by the address of its scheduler, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client

from .. import dask
from ..errors import ClusterError

_SECONDS = 10


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """A client of the cluster, until the block ends."""
    try:
        client = Client(scheduler, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"No scheduler of Dask answers at {scheduler!r}: {error}. Start one with `dask scheduler`, and "
            "workers with `dask worker ADDRESS`."
        ) from error
    with client:
        yield client


def on_cluster(estimator: Any) -> Any:
    """The estimator of the same name that is fitted on a cluster."""
    if estimator.__name__ not in dask.__all__:
        raise ClusterError(f"A {estimator.__name__} cannot be fitted on a cluster: fit it on one machine.")
    return getattr(dask, estimator.__name__)
