"""Observers of a fit: a callback, which can end it, a logger, a notebook."""

import logging
import pickle
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import make_data
from oldgrowth import RandomForestClassifier, open_dataset
from oldgrowth.errors import ParameterError
from oldgrowth.reporting.progress import FitProgress
from oldgrowth.reporting.report import FitReport

X, Y = make_data(600, 4, 3, seed=0)
SMALL: dict[str, Any] = {"bucket_size": 100, "random_state": 0}
STAGES = ["sample", "top trees", "distribute", "grow", "assemble"]


@pytest.fixture(params=["memory", "disk"])
def forest(request: pytest.FixtureRequest, tmp_path: Path) -> RandomForestClassifier:
    return RandomForestClassifier(4, store=request.param, spill_dir=tmp_path, **SMALL)


def test_a_callback_is_called_for_every_stage(forest: RandomForestClassifier) -> None:
    seen: list[FitProgress] = []
    forest.fit(X, Y, callback=seen.append)
    assert list(dict.fromkeys(p.stage for p in seen)) == STAGES
    ends = [p for p in seen if p.finished]
    assert [p.stage for p in ends] == STAGES
    reported = forest.fit_report_.stages
    assert [p.rows for p in ends] == [stage.rows for stage in reported]
    assert [p.bytes_read for p in ends] == [stage.bytes_read for stage in reported]
    assert [p.bytes_written for p in ends] == [stage.bytes_written for stage in reported]
    for p in seen:
        assert 0 <= p.rows <= (p.total_rows or 0)
        assert p.memory > 10**7 and p.memory_limit > 10**7 and p.seconds >= 0
    on_disk = forest.store == "disk"
    assert (max(p.bytes_written for p in seen) > 0) == (max(p.disk for p in seen) > 0) == on_disk


def test_no_rows_are_promised_of_a_stage_with_nothing_to_do() -> None:
    seen: list[FitProgress] = []
    RandomForestClassifier(4).fit(X, Y, callback=seen.append)
    ends = {p.stage: (p.rows, p.total_rows) for p in seen if p.finished}
    assert ends["top trees"] == (0, 0)
    assert all(done == total for done, total in ends.values())


def test_a_callback_is_called_during_a_slow_stage() -> None:
    def slow() -> Any:
        for first in range(0, 600, 100):
            time.sleep(0.12)
            yield X[first : first + 100], Y[first : first + 100]

    seen: list[FitProgress] = []
    RandomForestClassifier(2, chunk_size=100, **SMALL).fit(open_dataset(slow), callback=seen.append)
    between = [p.rows for p in seen if p.stage == "sample" and not p.finished]
    assert len(between) > 2 and between == sorted(between)


def test_a_callback_changes_neither_the_forest_nor_what_is_kept(tmp_path: Path) -> None:
    plain = RandomForestClassifier(4, **SMALL).fit(X, Y)
    model = RandomForestClassifier(4, **SMALL).fit(X, Y, callback=lambda progress: True)
    assert model.forest_.digest() == plain.forest_.digest()
    assert "callback" not in model.get_params() and "callback" not in vars(model)
    pickle.dumps(model)  # a lambda in it would not let it
    model.save(tmp_path / "forest.og")
    assert b"callback" not in (tmp_path / "forest.og").read_bytes()


class Enough(Exception):
    pass


@pytest.mark.parametrize("stage", STAGES)
def test_a_callback_that_raises_ends_the_fit(
    stage: str, forest: RandomForestClassifier, tmp_path: Path
) -> None:
    def stop(progress: FitProgress) -> None:
        if progress.stage == stage:
            raise Enough("no more")

    with pytest.raises(Enough, match="no more") as caught:
        forest.fit(X, Y, callback=stop)
    assert f"in stage {stage!r}" in " ".join(caught.value.__notes__)
    assert not hasattr(forest, "forest_")
    assert list(tmp_path.iterdir()) == []
    assert forest.fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize("kind", [StopIteration, MemoryError, OSError, KeyboardInterrupt, SystemExit])
def test_whatever_a_callback_raises_comes_out_of_fit(kind: type[BaseException]) -> None:
    raised = kind("mine")

    def stop(progress: FitProgress) -> None:
        if progress.stage == "grow":
            raise raised from ValueError("why")

    with pytest.raises(kind) as caught:
        RandomForestClassifier(4, **SMALL).fit(X, Y, callback=stop)
    assert caught.value is raised
    assert isinstance(raised.__cause__, ValueError)


def test_a_program_without_a_console_can_be_verbose(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    RandomForestClassifier(2, verbose=1).fit(X, Y)
    assert capfd.readouterr() == ("", "")


def test_a_fit_that_a_callback_stopped_is_resumed(tmp_path: Path) -> None:
    def stop(progress: FitProgress) -> None:
        if progress.stage == "grow" and progress.finished:
            raise Enough

    whole = RandomForestClassifier(4, store="disk", **SMALL).fit(X, Y)
    model = RandomForestClassifier(4, store="disk", checkpoint_dir=tmp_path / "kept", **SMALL)
    with pytest.raises(Enough) as caught:
        model.fit(X, Y, callback=stop)
    assert "call fit again with the same data" in " ".join(caught.value.__notes__)
    assert list((tmp_path / "kept").iterdir())
    seen: list[FitProgress] = []
    assert model.fit(X, Y, callback=seen.append).forest_.digest() == whole.forest_.digest()
    assert seen[-1].finished


@pytest.mark.parametrize("callback", [3, "print", [print]])
def test_a_callback_must_be_callable(callback: Any) -> None:
    with pytest.raises(ParameterError, match="callback must be"):
        RandomForestClassifier(2).fit(X, Y, callback=callback)


def test_callbacks_in_scikit_learns_tools() -> None:
    seen: list[FitProgress] = []
    search = GridSearchCV(RandomForestClassifier(2, random_state=0), {"max_depth": [2, 3]}, cv=2)
    search.fit(X, Y, callback=seen.append)
    assert sum(p.stage == "sample" and p.finished for p in seen) == 5
    seen.clear()
    name = "randomforestclassifier__callback"
    make_pipeline(StandardScaler(), RandomForestClassifier(2)).fit(X, Y, **{name: seen.append})
    assert seen


def test_messages_go_through_logging(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, logger="oldgrowth"):
        RandomForestClassifier(4, **SMALL).fit(X, Y)
    assert {(record.name, record.levelname) for record in caplog.records} == {("oldgrowth", "INFO")}
    told = [record.getMessage() for record in caplog.records]
    assert [line.split(": ")[0] for line in told] == ["sample", "store", *STAGES[1:]]
    assert capfd.readouterr() == ("", "")


def test_nothing_is_logged_unless_somebody_listens(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    RandomForestClassifier(4, verbose=1, **SMALL).fit(X, Y)
    assert caplog.records == []
    assert len(capfd.readouterr().err.splitlines()) == 6
    assert logging.getLogger("oldgrowth").level == logging.NOTSET


def test_warnings_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(UserWarning, match="seen by every tree"):
        RandomForestClassifier(3, oob_score=True, random_state=0).fit(X, Y)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "seen by every tree" in caplog.records[0].getMessage()


NOTEBOOK = """
import numpy as np
from oldgrowth import RandomForestClassifier
x = np.random.default_rng(0).random((600, 4))
model = RandomForestClassifier(4, bucket_size=100, verbose=1).fit(x, np.arange(600) % 3)
model.fit_report_
"""


def test_a_notebook_has_one_output_that_changes_in_place() -> None:
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    said: list[Any] = []
    try:
        reply = client.execute_interactive(NOTEBOOK, timeout=60, output_hook=said.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply
    kinds = [
        message["msg_type"] for message in said if message["msg_type"] not in ("status", "execute_input")
    ]
    assert "stream" not in kinds
    assert kinds.count("display_data") == 1 and kinds.count("execute_result") == 1
    assert kinds.count("update_display_data") >= 5
    last = [m["content"]["data"]["text/html"] for m in said if m["msg_type"] == "update_display_data"][-1]
    assert [stage in last for stage in STAGES] == [True] * 5
    assert "<progress" not in last  # all is done
    (report,) = [m["content"]["data"]["text/html"] for m in said if m["msg_type"] == "execute_result"]
    assert "<td style='text-align:left'>grow</td>" in report


HOSTILE = "<script>alert(1)</script>&\"'"


def test_what_comes_from_files_is_text_in_html() -> None:
    model = RandomForestClassifier(4, **SMALL).fit(X, Y)
    report = model.fit_report_
    report.store_reason = HOSTILE + "\udcff"  # of a path that is not UTF-8
    report.stages[0] = report.stages[0].__class__(HOSTILE, 1, 1.0, 1)
    names = [HOSTILE, "b", "c", "d"]
    data = open_dataset(pd.DataFrame(X, columns=names).assign(y=Y), target="y")
    for shown in (report._repr_html_(), data._repr_html_()):
        shown.encode()  # a notebook sends it as UTF-8
        assert "<script>" not in shown and "&lt;script&gt;alert(1)" in shown


def test_a_report_from_a_file_may_lack_quantiles() -> None:
    report = RandomForestClassifier(4, **SMALL).fit(X, Y).fit_report_
    assert "median" in str(report)
    damaged = FitReport.from_dict(report.as_dict() | {"bucket_rows": {}})
    assert "4 trees" in str(damaged) and "4 trees" in damaged._repr_html_()


def test_repr_html_says_what_repr_says() -> None:
    data = open_dataset(pd.DataFrame(X, columns=list("abcd")).assign(y=Y), target="y")
    for line in repr(data).splitlines()[1:]:
        assert line.split()[0] in data._repr_html_()
    assert ">600<" in data._repr_html_()
