"""The forests, fitted on a Dask cluster."""

from __future__ import annotations

import inspect
import os
import pickle
from typing import Any, Self, TypeVar, cast

from distributed import Client, get_client

from ..checks import file_path_of, path_of
from ..cluster.driver import ClusterFit
from ..cluster.journal import Journal
from ..cluster.row_parts import GivenRows, RowParts
from ..cluster.values import Settings
from ..datasets import Dataset, open_dataset
from ..datasets.callables import CallableDataset
from ..datasets.streams import StreamDataset
from ..errors import ParameterError, UnsharedRowsError
from ..estimators import forests
from ..estimators.base import ForestBase
from ..estimators.classifier import Classifier
from ..estimators.oob_scores import OobScorer
from ..estimators.parameters import checked, that_change_the_model
from ..fitting.context import FitContext
from ..fitting.pipeline import Fitted, live
from ..messages.text import human_bytes
from ..planning.planner import Planner
from ..reporting.progress import Callback, Observers
from ..rows.streamed_rows import StreamedRows
from ..rows.training_rows import TrainingRows
from ..storage.checkpoint_dir import clear_checkpoint
from ..system.atomic_file import check_replaceable
from ..system.limits import limits_of
from .fleet import on_workers
from .inputs import given_rows
from .lazy import is_lazy, predicted

_ON_CLUSTER = ("client", "model_path")
# Bytes of rows in memory that are sent to workers; each gets all of them.
_MOST_SENT = 64 * 2**20


class OnCluster(ForestBase):
    """A forest that is fitted on the workers of a Dask cluster."""

    client: Client | None
    model_path: Any
    oob_score: Any
    _given: GivenRows | None = None  # rows of a dask collection, during a fit
    _patience = 60.0  # seconds without a sign of life after which a worker is given up

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, callback: Callback | None = None
    ) -> Self:
        """Fit a forest to the rows of a dataset, which all workers can read.

        Parameters
        ----------
        X : dataset, dask DataFrame or dask Array
            From `open_dataset`, of files that all workers can read. Each partition of a dask collection is
            computed once, and kept on the disk of a worker. Small arrays and data frames are sent.
        y : array, dask Series or Array, or str
            Labels or values, if X is not a dataset; for a dask DataFrame also the name of a column.
        sample_weight : array, dask Series or Array, or str, optional
            Weights, if X is not a dataset, given as y is.
        callback : function, optional
            Called with the progress of the fit, as on one machine.

        Returns
        -------
        self
        """
        self._refuse_what_cannot_be()
        self._given = None
        if is_lazy(X):
            X, self._given = given_rows(X, y, sample_weight, self._client())
            y = sample_weight = None
        elif not isinstance(X, Dataset):
            X, y, sample_weight = open_dataset(X, target=y, weight=sample_weight), None, None
        _check_travels(X)
        try:
            super().fit(X, y, sample_weight, callback=callback)
        finally:
            self._given = None
        if self.model_path is not None:
            self.save(self.model_path)
            if self._keeps_until_saved and not self._keep_checkpoint:
                clear_checkpoint(path_of("checkpoint_dir", self.checkpoint_dir))
        return self

    @property
    def _keeps_until_saved(self) -> bool:
        return self.checkpoint_dir is not None and self.model_path is not None

    def _refuse_what_cannot_be(self) -> None:
        """What a fit on one machine does, and one on a cluster does not."""
        if "subset_size" in self._parameters and self.oob_score:
            wanted = "False on a cluster, where no worker has the rows outside of all subsets"
            raise ParameterError("oob_score", self.oob_score, wanted)
        if self.warm_start:
            way = "fit the further trees with another random_state and add them by oldgrowth.merge"
            raise ParameterError("warm_start", self.warm_start, f"False on a cluster: {way}")
        if (store := getattr(self, "store", "auto")) not in ("auto", "disk"):
            raise ParameterError("store", store, "'auto' or 'disk' on a cluster")
        if self.model_path is not None:
            folder = check_replaceable(file_path_of("model_path", self.model_path)).parent
            if not os.access(folder, os.W_OK):  # or does not exist
                raise ParameterError(
                    "model_path", self.model_path, "a file in a directory that can be written to"
                )

    def predict(self, X: Any) -> Any:
        """Labels or values; lazy for a dask DataFrame or Array, with its partitions or chunks."""
        return predicted(self, "predict", X) if is_lazy(X) else super().predict(X)  # type: ignore[misc]

    def _fit_rows(self, rows: TrainingRows, callback: Callback | None, before: Any = None) -> Fitted:
        assert isinstance(rows, StreamedRows)
        given = {name: value for name, value in self.get_params().items() if name not in _ON_CLUSTER}
        params = checked(self._parameters, given)
        planner = Planner(params, self._random_thresholds, self._classification, that_change_the_model(given))
        scorer = OobScorer(lambda: fit.rows.classes, self.oob_score, keep=False)
        limits = limits_of(params | {"store": "disk", "memory_limit": "auto", "spill_limit": "auto"})
        client, observers = self._client(), Observers(params["verbose"], callback)
        keep = self._keep_checkpoint or self._keeps_until_saved
        with live(limits, 1, observers, keep) as context:
            fingerprint = rows.fingerprint() if self._given is None else self._given.fingerprint
            planner, journal = _begun(context, planner, fingerprint)
            settings = Settings(
                journal.fit,
                client.id,
                params["memory_limit"],
                None if limits.spill_dir is None else limits.spill_dir.absolute(),
                params.get("spill_limit", "auto"),
                params["n_jobs"],
            )
            with on_workers(client, settings, self._patience, context.checkpoint.active) as fleet:
                parts = RowParts(fleet, self._given)
                fit = ClusterFit(fleet, context, planner, limits, rows, parts, journal)
                fitted = fit.run(scorer)
        return self._kept(fitted)

    def _client(self) -> Client:
        if self.client is None:
            try:
                client = get_client()
            except ValueError as error:
                wanted = "a distributed.Client, or the current one: there is none"
                raise ParameterError("client", None, wanted) from error
        else:
            client = self.client
        if not isinstance(client, Client) or client.asynchronous or client.status != "running":
            raise ParameterError(
                "client", client, "a distributed.Client that is connected, and not asynchronous"
            )
        return client

    def __getstate__(self) -> dict[str, Any]:
        return dict(super().__getstate__(), client=None)

    def __sklearn_clone__(self) -> Any:
        """The client is shared, never copied."""
        from sklearn.base import clone

        given = self.get_params(deep=False)
        copied = {
            name: value if name == "client" else clone(value, safe=False) for name, value in given.items()
        }
        return type(self)(**copied)


def _begun(context: FitContext, planner: Planner, fingerprint: dict[str, Any]) -> tuple[Planner, Journal]:
    """A fit that begins, or goes on where an interrupted one was, with its seed."""
    checkpoint = context.checkpoint
    begun = checkpoint.begin(planner.identity() | {"data": fingerprint, "engine": "cluster"})
    if checkpoint.resumed:
        context.recorder.say("resuming the fit")
    return planner.with_seed(begun["seed"]), Journal(checkpoint)


def _check_travels(dataset: Dataset) -> None:
    """Refuse rows that would have to be sent to the workers, unless they are few."""
    if isinstance(dataset, CallableDataset | StreamDataset):
        raise UnsharedRowsError(f"The {dataset.kind} dataset")
    size = len(pickle.dumps(dataset))
    if size > _MOST_SENT:
        raise UnsharedRowsError(f"The {dataset.kind} dataset of {human_bytes(size)} in memory")


def _predict_proba(self: Any, X: Any) -> Any:
    """Probability of each class; lazy for a dask DataFrame or Array, with its partitions or chunks."""
    return predicted(self, "predict_proba", X) if is_lazy(X) else Classifier.predict_proba(self, X)


_Forest = TypeVar("_Forest", bound=ForestBase)


def _on_cluster(cls: type[_Forest]) -> type[_Forest]:
    """The forest with two more parameters, fitted on a cluster."""
    made: Any = cls.__init__

    def __init__(self: Any, *args: Any, client: Any = None, model_path: Any = None, **params: Any) -> None:
        made(self, *args, **params)
        self.client, self.model_path = client, model_path

    signature = inspect.signature(made)
    more = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None) for n in _ON_CLUSTER]
    __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *more]
    )
    contents: dict[str, Any] = {"__init__": __init__, "__doc__": cls.__doc__, "__module__": __name__}
    if issubclass(cls, Classifier):
        contents["predict_proba"] = _predict_proba
    return cast(type[_Forest], type(cls.__name__, (OnCluster, cls), contents))


RandomForestClassifier = _on_cluster(forests.RandomForestClassifier)
RandomForestRegressor = _on_cluster(forests.RandomForestRegressor)
ExtraTreesClassifier = _on_cluster(forests.ExtraTreesClassifier)
ExtraTreesRegressor = _on_cluster(forests.ExtraTreesRegressor)
SubsetForestClassifier = _on_cluster(forests.SubsetForestClassifier)
SubsetForestRegressor = _on_cluster(forests.SubsetForestRegressor)
