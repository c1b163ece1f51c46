"""`oldgrowth fit` and `inspect`: every parameter by an option, forests in files, and what is in them."""

from __future__ import annotations

import inspect
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from cli_files import FEATURES, as_json, done, failed, frame, write
from helpers import Inner, decode
from oldgrowth.cli.main import run
from oldgrowth.cli.parameters import all_parameters, estimator_class, in_options
from oldgrowth.estimators import forests as estimators
from oldgrowth.estimators.parameters import KINDS, TASKS
from oldgrowth.forest.depths import forest_depths
from oldgrowth.reporting.tables import ranges_of

BASE = ["--trees", "6", "--seed", "3", "--quiet"]


def dropping(target: str) -> list[str]:
    return [
        "--target",
        target,
        "--drop",
        ",".join({"label", "number", "wet", "value", "id", "name"} - {target}),
    ]


@pytest.fixture(params=[".parquet", ".csv"])
def train(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(frame(), tmp_path / f"train{request.param}")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    return write(frame(), tmp_path / "train.parquet")


@pytest.mark.parametrize("target", ["label", "number", "wet", "value"])
def test_a_forest_from_a_file_is_that_of_the_arrays(target: str, train: Path, tmp_path: Path) -> None:
    done("fit", train, "--target", target, "--features", ",".join(FEATURES), "-o", tmp_path / "f.og", *BASE)
    loaded = oldgrowth.load(tmp_path / "f.og")
    rows = frame()
    kind = oldgrowth.RandomForestRegressor if target == "value" else oldgrowth.RandomForestClassifier
    model = kind(6, random_state=3).fit(rows[FEATURES], rows[target].to_numpy())
    assert type(loaded) is kind
    assert loaded.feature_names_in_.tolist() == FEATURES
    assert loaded.get_params() == model.get_params()
    if target != "value":
        assert loaded.classes_.tolist() == model.classes_.tolist()
    if train.suffix == ".parquet" or target != "value":  # text rounds the values
        assert loaded.forest_.digest() == model.forest_.digest()


def test_columns_are_dropped_and_rows_weighted(parquet: Path, tmp_path: Path) -> None:
    done("fit", parquet, *dropping("label"), "--weight", "weight", "-o", tmp_path / "f.og", *BASE)
    rows = frame()
    model = oldgrowth.RandomForestClassifier(6, random_state=3)
    model.fit(rows[FEATURES], rows["label"].to_numpy(), rows["weight"])
    assert oldgrowth.load(tmp_path / "f.og").forest_.digest() == model.forest_.digest()


def test_several_files_are_one_dataset(parquet: Path, tmp_path: Path) -> None:
    rows = frame()
    for i in range(3):
        write(rows[i * 400 : (i + 1) * 400], tmp_path / f"part{i}.parquet")
    columns = ["--target", "label", "--features", "a,b", "--features", "c"]
    done("fit", parquet, *columns, "-o", tmp_path / "1.og", *BASE)
    done("fit", *sorted(tmp_path.glob("part*")), *columns, "-o", tmp_path / "2.og", *BASE)
    done("fit", f"{tmp_path}/part*.parquet", *columns, "-o", tmp_path / "3.og", *BASE)
    digests = {oldgrowth.load(tmp_path / f"{i}.og").forest_.digest() for i in (1, 2, 3)}
    assert len(digests) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_every_kind_of_forest(kind: str, task: str, parquet: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.og"
    done("fit", parquet, *dropping("number"), "--kind", kind, "--task", task, "-o", out, *BASE)
    assert type(oldgrowth.load(out)) is estimator_class(kind, task)


def test_whole_floats_are_classes_even_if_late_ones_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oldgrowth.cli.fit._LOOK_ROWS", 100)
    rows = frame()[[*FEATURES, "number"]].astype(float)
    whole = write(rows, tmp_path / "whole.parquet")
    done("fit", whole, "--target", "number", "-o", tmp_path / "f.og", *BASE)
    assert oldgrowth.load(tmp_path / "f.og").classes_.tolist() == [0.0, 10.0, 20.0]
    rows.loc[len(rows) - 1, "number"] = 0.5
    late = write(rows, tmp_path / "late.parquet")
    done("fit", late, "--target", "number", "-o", tmp_path / "g.og", *BASE)
    assert type(oldgrowth.load(tmp_path / "g.og")) is oldgrowth.RandomForestRegressor


def test_choices_are_reported(parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done("fit", parquet, *dropping("value"), "-o", tmp_path / "f.og", "--trees", "3")
    out, err = capsys.readouterr()
    assert "The target value holds numbers: regression (chosen automatically)." in out
    assert "Training a RandomForestRegressor on 7 features." in out
    assert f"Forest saved to {tmp_path / 'f.og'}" in out
    assert "oldgrowth: grow: " in err, "progress is shown"


def test_json_is_all_there_is_on_standard_output(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = as_json(capsys, "fit", parquet, *dropping("wet"), "-o", tmp_path / "f.og", *BASE, "--oob-score")
    assert result["task"] == "classification" and result["classes"] == [False, True]
    assert result["rows"] == 1200 and result["report"]["trees"] == 6
    assert 0.5 < result["oob_score"] <= 1
    assert result["bytes"] == (tmp_path / "f.og").stat().st_size


def test_quiet_says_nothing_on_the_way_but_warnings(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["fit", parquet, *dropping("wet"), "-o", tmp_path / "f.og", *BASE, "--force"]
    done(*command)
    assert capsys.readouterr().err == ""
    done(*command, "--oob-score")
    err = capsys.readouterr().err
    assert re.fullmatch(r"oldgrowth: warning: \d+ rows were seen by every tree, .*\n", err), (
        "one sentence, no code"
    )


def test_the_help_tells_where_kinds_of_forests_differ(capsys: pytest.CaptureFixture[str]) -> None:
    run(["fit", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "For extra-trees: Desired maximum number of rows per bucket." in text
    assert 'For regression: "squared_error" or "poisson".' in text


# Accepted as scikit-learn has them, at their defaults; and for a forest that was fitted before.
WITHOUT_OPTION = {"max_leaf_nodes", "ccp_alpha", "monotonic_cst", "warm_start"}


def test_every_parameter_has_an_option_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    done("fit", "--help")
    out = " ".join(capsys.readouterr().out.split())
    for name in estimators.__dict__:
        cls = getattr(estimators, name)
        if isinstance(cls, type) and cls.__module__ == estimators.__name__:
            for parameter in inspect.signature(cls).parameters.keys() - {"verbose"} - WITHOUT_OPTION:
                option = "--" + parameter.replace("_", "-")
                assert re.search(rf"{option}[ ,].*?\[default: ", out), option
    for parameter in all_parameters():
        assert all(len(text) > 10 for text in parameter.texts.values()), parameter.name
    assert "sqrt for classification, 1.0 for regression" in out
    assert (
        "no for extra-trees" in out
        and "Only for subsets." in out
        and 'For regression: "squared_error" or "poisson".' in out
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--max-features", "0.5"], {"max_features": 0.5}),
        (["--max-features", "1"], {"max_features": 1}),
        (["--max-features", "none"], {"max_features": None}),
        (["--max-features", "log2"], {"max_features": "log2"}),
        (["--max-depth", "4"], {"max_depth": 4}),
        (["--max-depth", "None"], {"max_depth": None}),
        (["--n-estimators", "3"], {"n_estimators": 3}),
        (["--no-bootstrap"], {"bootstrap": False}),
        (["--bootstrap", "--oob-score"], {"bootstrap": True, "oob_score": True}),
        (["--random-state", "none"], {"random_state": None}),
        (["--bucket-size", "100", "--balance", "0.3"], {"bucket_size": 100, "balance": 0.3}),
        (["--bucket-size", "auto", "--balance", "auto"], {"bucket_size": "auto", "balance": "auto"}),
        (["--min-samples-leaf", "0.01"], {"min_samples_leaf": 0.01}),
        (["--class-weight", "balanced"], {"class_weight": "balanced"}),
        (
            ["--class-weight", "wood=2,water=0.5,grass=1"],
            {"class_weight": {"wood": 2, "water": 0.5, "grass": 1}},
        ),
        (["--jobs", "1", "--voting", "hard"], {"n_jobs": 1, "voting": "hard"}),
        (["--memory-limit", "2GB", "--spill-limit", "0.5"], {"memory_limit": "2GB", "spill_limit": 0.5}),
        (
            ["--memory-limit", "2000000000", "--spill-dir", "none"],
            {"memory_limit": 2 * 10**9, "spill_dir": None},
        ),
        (["--store", "disk"], {"store": "disk"}),
    ],
)
def test_options_become_parameters(
    options: list[str], expected: dict[str, Any], parquet: Path, tmp_path: Path
) -> None:
    out = tmp_path / "f.og"
    done("fit", parquet, *dropping("label"), "-o", out, *BASE, *options)
    params = oldgrowth.load(out).get_params()
    found = {name: params[name] for name in expected}
    assert found == expected and list(map(type, found.values())) == list(map(type, expected.values()))


def test_weights_of_classes_have_the_type_of_the_labels(parquet: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.og"
    done("fit", parquet, *dropping("number"), "-o", out, *BASE, "--class-weight", "0=1,10=2.5,20=1")
    assert oldgrowth.load(out).class_weight == {0: 1.0, 10: 2.5, 20: 1.0}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--target", "lable"], 1, "has no column 'lable'. Did you mean 'label' "),
        (["--target", "label", "--categorical", "none"], 1, "holds text"),
        ([*dropping("label"), "--drop", "no"], 1, "has no column 'no'"),
        ([*dropping("label"), "--features", "a"], 2, "--features and --drop cannot both be given"),
        ([*dropping("label"), "--task", "regression"], 1, "holds text, but a regression needs numbers"),
        ([*dropping("label"), "--max-depth", "deep"], 2, "'deep' is not a whole number or none"),
        ([*dropping("label"), "--max-depth", "0"], 2, "--max-depth must be a whole number of at least 1"),
        ([*dropping("label"), "--max-features", "cube"], 2, "got 'cube'"),
        ([*dropping("label"), "--class-weight", "wood=heavy"], 2, "label=weight,label=weight"),
        ([*dropping("number"), "--class-weight", "wood=1"], 1, "--class-weight has a weight for the label"),
        ([*dropping("label"), "--subset-size", "9"], 2, "--subset-size cannot be used here"),
        ([*dropping("value"), "--voting", "hard"], 2, "a random-forest for regression has no such parameter"),
        ([*dropping("label"), "--kind", "oak"], 2, "'oak' is not one of"),
        (["--drop", "id"], 2, "Missing option '--target'"),
        ([*dropping("label"), "--delimiter", ";"], 2, "delimiter"),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str],
    code: int,
    words: str,
    parquet: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    err = failed(capsys, code, "fit", parquet, "-o", tmp_path / "f.og", "--quiet", "--json", *arguments)
    assert words in " ".join(err.split())
    assert len(err.splitlines()) == (1 if code == 1 else 4)
    assert not (tmp_path / "f.og").exists()


def test_a_forest_is_not_replaced_by_accident(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "f.og"
    out.write_bytes(b"precious")
    command = ["fit", parquet, *dropping("label"), "-o", out, *BASE]
    assert "exists: --force replaces it" in failed(capsys, 2, *command)
    assert out.read_bytes() == b"precious"
    done(*command, "--force")
    assert oldgrowth.load(out).n_estimators == 6


def test_what_is_read_is_never_replaced(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, forest = tmp_path / "rows.parquet", tmp_path / "forest.og"
    shutil.copy(parquet, source)
    shutil.copy(parquet, tmp_path / "other.parquet")
    done("fit", parquet, "--target", "label", "--features", "a,b", "-o", forest, "--trees", 2, "-q")
    for command in (
        ("fit", tmp_path, "--target", "label", "--features", "a,b", "-o", source),
        ("predict", forest, source, "-o", source),
    ):
        assert "is one of the files to read" in failed(capsys, 2, *command, "--force", "-q")
        assert source.read_bytes() == parquet.read_bytes()


def test_a_forest_that_cannot_be_saved_is_not_lost(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder, forest = tmp_path / "checkpoint", tmp_path / "forest.og"
    command = ["fit", parquet, "--target", "label", "--features", "a,b", "--trees", 2, "--seed", 1]
    command += ["--quiet", "--json"]
    kept = ["--checkpoint-dir", "~/checkpoint", "-o", forest]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("oldgrowth.system.atomic_file._sync", full)
        assert "No space left" in failed(capsys, 1, *command, *kept)
    assert (folder / "oldgrowth-fit" / "checkpoint.json").exists() and not forest.exists()
    done(*command, *kept)
    assert list(folder.iterdir()) == []
    done(*command, "-o", tmp_path / "other.og")
    first, second = (oldgrowth.load(tmp_path / name).forest_.digest() for name in ("forest.og", "other.og"))
    assert first == second


def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = failed(capsys, 2, "fit", "none.parquet", "--target", "y", "-o", tmp_path / "no" / "f.og")
    assert "does not exist" in err
    err = failed(capsys, 1, "fit", tmp_path / "none.parquet", "--target", "y", "-o", tmp_path / "f.og")
    assert "none.parquet" in err and len(err.splitlines()) == 1


def test_inspect_tells_what_is_in_a_forest(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "f.og"
    sizes = ["--bucket-size", "200", "--top-sample", "400"]
    done("fit", parquet, *dropping("label"), "-o", out, *BASE, *sizes, "--oob-score")
    facts = as_json(capsys, "inspect", out)
    model = oldgrowth.load(out)
    assert facts["estimator"] == "RandomForestClassifier" and facts["classes"] == ["grass", "water", "wood"]
    assert facts["trees"] == 6 and facts["top_trees"] == 6 and facts["nodes"] == model.forest_.n_nodes
    assert facts["bucket_rows"] == model.fit_report_.bucket_rows
    assert facts["depth"]["max"] == model.fit_report_.depth
    assert facts["bytes"] == out.stat().st_size and 8 < facts["bytes_per_node"] < 200
    assert facts["oob_score"] == model.oob_score_
    best = FEATURES[int(model.feature_importances_[:6].argmax())]
    assert facts["top_features"][0]["feature"] == best and len(facts["top_features"]) == 7
    assert facts["parameters"]["bucket_size"] == 200 and facts["report"]["rows"] == 1200
    assert facts["leaves_by_depth"] == forest_depths(model.forest_).leaves.tolist()
    rows = np.concatenate(model.fit_report_.rows_by_bucket)
    for line in facts["buckets_by_rows"]:
        assert line["count"] == ((rows >= line["first"]) & (rows <= line["last"])).sum()
    assert sum(line["count"] for line in facts["buckets_by_rows"]) == facts["buckets"] == len(rows)
    assert "rows_by_bucket" not in facts["report"], "too many to be read"
    assert run(["inspect", str(out)]) == 0
    text = capsys.readouterr().out
    for word in ("RandomForestClassifier", "grass, water, wood", "depth of leaves", "grow", "peak memory"):
        assert word in text
    assert re.search(r"bucket_size +│ +200 +│ auto ", text) and re.search(r"max_depth +│ None +│ +│", text)
    for title in ("Depths of leaves", "Sizes of buckets", "Most important features"):
        assert f"{title} " in text
    assert "█" * 24 in text and max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("high", [0, 9, 15, 16, 17, 99, 12_345, 2**40])
@pytest.mark.parametrize("low", [0, 7])
def test_ranges_hold_every_value_once(low: int, high: int) -> None:
    rng = np.random.default_rng(high)
    values = np.unique(
        np.concatenate([rng.integers(low, low + high, size=500, endpoint=True), [low, low + high]])
    )
    counts = rng.integers(1, 100, size=len(values))
    ranges = ranges_of(values, counts)
    assert len(ranges) <= 16 and ranges[0].first == low and ranges[-1].last == low + high
    assert all(a.last + 1 == b.first for a, b in pairwise(ranges))
    for r in ranges:
        assert r.count == counts[(values >= r.first) & (values <= r.last)].sum()


def leaf_depths(tree: Any, depth: int = 0) -> list[int]:
    if isinstance(tree, Inner):
        return leaf_depths(tree.left, depth + 1) + leaf_depths(tree.right, depth + 1)
    return [depth]


def test_depths_are_those_of_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oldgrowth.forest.depths._NODES_AT_A_TIME", 50)
    rows = frame()
    model = oldgrowth.RandomForestClassifier(5, random_state=0, n_jobs=1).fit(rows[FEATURES], rows["label"])
    depths = forest_depths(model.forest_)
    trees = [leaf_depths(decode(model.forest_, tree)) for tree in range(5)]
    assert depths.trees.tolist() == [max(tree) for tree in trees]
    leaves = np.concatenate(trees)
    assert depths.leaves.tolist() == np.bincount(leaves).tolist()
    assert depths.leaf_quantile(1e-18) == leaves.min() and depths.leaf_quantile(1) == leaves.max()
    assert depths.leaf_quantile(0.5) == np.quantile(leaves, 0.5, method="inverted_cdf")


def test_inspect_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.og"
    other.write_bytes(b"a text")
    assert "is not a forest saved by oldgrowth" in failed(capsys, 1, "inspect", other)
    assert "does not exist" in failed(capsys, 2, "inspect", tmp_path / "none.og")


def test_columns_that_are_named_like_parameters_keep_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.csv").write_text("max_depth,y\na,1\nb,2\n")
    fitted = ["fit", tmp_path / "x.csv", "--target", "y", "-o", tmp_path / "f.og", "--quiet"]
    assert "'max_depth'" in failed(capsys, 1, *map(str, fitted), "--categorical", "none")
    assert "'bucket_size'" in failed(capsys, 1, *map(str, fitted), "--features", "bucket_size")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("a higher spill_limit.", "a higher --spill-limit."),
        ("store='wrong' cannot be used", "--store 'wrong' cannot be used"),
        ("unless bootstrap=True.", "unless --bootstrap True."),
        ("n_estimators=0: n_estimators must be", "--trees 0: --trees must be"),
        ("the disk store at /a/spill_dir/max_depth.txt", "the disk store at /a/spill_dir/max_depth.txt"),
    ],
)
def test_parameters_are_called_by_their_options(said: str, wanted: str) -> None:
    assert in_options(said) == wanted
