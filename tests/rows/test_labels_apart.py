"""Different labels are kept distinct everywhere, or refused; none silently becomes another."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oldgrowth
from oldgrowth import RandomForestClassifier, RandomForestRegressor, open_dataset
from oldgrowth.cli.main import run
from oldgrowth.datasets.labels import join_labels, text_array
from oldgrowth.errors import DataError, SameNumberError, TooManyLabelsError
from oldgrowth.forest.scoring import Confusion

BIG = 2**60
FOUR = np.arange(4.0).reshape(4, 1)


def fitted(source: Any, **options: Any) -> RandomForestClassifier:
    data = open_dataset(source, **options)
    return RandomForestClassifier(2, bootstrap=False, random_state=0).fit(data)


def classes(source: Any, **options: Any) -> list[Any]:
    return fitted(source, **options).classes_.tolist()


def csv(tmp_path, labels, name="a.csv"):
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    (tmp_path / name).write_text(f"x,y\n{rows}")
    return tmp_path / name


def test_whole_numbers_with_and_without_a_sign():
    def batches():
        yield FOUR[:2], np.array([BIG, BIG + 1])
        yield FOUR[2:], np.array([BIG + 2, BIG + 3], dtype=np.uint64)

    forest = fitted(batches)
    assert forest.classes_.tolist() == [BIG, BIG + 1, BIG + 2, BIG + 3]
    assert forest.classes_.dtype == np.int64
    assert forest.score(open_dataset(batches)) == 1.0


def test_whole_numbers_in_one_batch():
    low, high = np.array([1, BIG + 1]), np.array([BIG, 2**63 + 1], dtype=np.uint64)
    assert join_labels([low, high]).tolist() == [1, BIG + 1, BIG, 2**63 + 1]
    assert join_labels([-low, high]).tolist() == [-1, -BIG - 1, BIG, 2**63 + 1]


def test_files_of_signed_and_unsigned_labels(tmp_path):
    for i, kind in enumerate([pa.int64(), pa.uint64()]):
        table = pa.table({"x": [0.0, 1.0], "y": pa.array([BIG + 2 * i, BIG + 2 * i + 1], kind)})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    assert classes(tmp_path, target="y") == [BIG, BIG + 1, BIG + 2, BIG + 3]


@pytest.mark.parametrize(
    ("labels", "pair"),
    [
        (["007", "7", "8"], "'007' and '7'"),
        (["7", "8", "007"], "'007' and '7'"),
        (["007", "07", "8"], "'07' and '007'"),
        ([BIG * 64, BIG * 64 + 1, 1], "are the same number"),
        (["true", "false", "TRUE"], "'TRUE' and "),
        (["-0", "0", "1"], "'-0' and '0'"),
    ],
)
def test_texts_of_csv_files_that_are_the_same_number(tmp_path, labels, pair):
    path = csv(tmp_path, labels)
    with pytest.raises(SameNumberError, match=rf"{pair}.*row \d of .*a\.csv.*types="):
        fitted(path, target="y")
    assert classes(path, target="y", types={"y": "string"}) == sorted(map(str, labels))


def test_texts_that_are_different_numbers_are_numbers(tmp_path):
    assert classes(csv(tmp_path, ["007", "008", "007"]), target="y") == [7, 8]
    assert classes(csv(tmp_path, ["True", "False", "True"]), target="y") == [False, True]
    assert classes(csv(tmp_path, [BIG * 64, BIG * 128, 1]), target="y") == [1, BIG * 64, BIG * 128]


def test_texts_in_different_files_and_batches(tmp_path):
    csv(tmp_path, ["7"] * 1500 + ["8"], "a.csv")
    csv(tmp_path, ["8", "007"], "b.csv")
    with pytest.raises(SameNumberError, match=r"'007' and '7'.*row 1502 of .*b\.csv"):
        RandomForestClassifier(2, chunk_size=1000).fit(open_dataset(tmp_path, target="y"))
    csv(tmp_path, ["007", "8"], "a.csv")
    csv(tmp_path, ["8", "7"], "b.csv")
    with pytest.raises(SameNumberError, match=r"'007' and '7'.*row 0 of .*a\.csv"):
        fitted(tmp_path, target="y")


@pytest.mark.parametrize(
    "labels", [["007", "7", "8"], ["7"] * 30_000 + ["8", "007"], ["8", "007", "07", "7"]]
)
def test_labels_that_are_scored(tmp_path, labels, capsys):
    forest = fitted(csv(tmp_path, ["7", "8", "8"], "train.csv"), target="y")
    path, model = csv(tmp_path, labels), tmp_path / "m.forest"
    data = open_dataset(path, target="y")
    for use in (forest.score, lambda data: oldgrowth.plot.confusion(forest, data)):
        with pytest.raises(SameNumberError, match=r"are the same number \(row \d+ of .*a\.csv\)"):
            use(data)
    forest.save(model)
    assert run(["evaluate", str(model), str(path), "--target", "y"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "are the same number" in said and "--type y=string" in said
    apart = open_dataset(path, target="y", types={"y": "string"})
    texts = fitted(path, target="y", types={"y": "string"})
    assert texts.score(apart) > 0.9
    with pytest.raises(SameNumberError):
        texts.score(data)


def test_labels_that_are_scored_and_spelled_in_one_way(tmp_path):
    path = csv(tmp_path, ["007", "008", "008"])
    assert fitted(path, target="y").score(open_dataset(path, target="y")) == 1.0


def test_a_regression_does_not_mind(tmp_path):
    path = csv(tmp_path, ["007", "7.0", "07", BIG * 64])
    forest = RandomForestRegressor(2, bootstrap=False).fit(open_dataset(path, target="y"))
    assert forest.predict([[0.0], [3.0]]).tolist() == [7, BIG * 64]


def test_bad_values_of_a_target_still_name_their_line(tmp_path):
    path = csv(tmp_path, ["1"] * 600_000 + ["two"])
    with pytest.raises(DataError, match=r"line 600002, column y: .*'two'"):
        fitted(path, target="y")


def test_keys_of_directories(tmp_path):
    for key in ("007", "07", "8"):
        (tmp_path / f"y={key}").mkdir()
        pq.write_table(pa.table({"x": [float(key)]}), tmp_path / f"y={key}/a.parquet")
    assert classes(tmp_path, target="y") == ["007", "07", "8"]
    (tmp_path / "y=07/a.parquet").unlink()
    assert classes(tmp_path, target="y") == [7, 8]


def test_decimals():
    many = [Decimal("36028797018963968000"), Decimal("36028797018963968001"), Decimal(1)]
    table = pa.table({"x": [0.0, 1.0, 2.0], "y": pa.array(many, pa.decimal128(38, 0))})
    with pytest.raises(SameNumberError, match="'36028797018963968001' and '36028797018963968000'"):
        fitted(table, target="y")
    close = [Decimal("1.000000000000000001"), Decimal(1), Decimal(2)]
    with pytest.raises(SameNumberError, match=r"1\.000000000000000001"):
        fitted(pa.table({"x": [0.0, 1.0, 2.0], "y": pa.array(close, pa.decimal128(38, 18))}), target="y")
    assert classes(table.slice(1), target="y") == [1, 36028797018963968001 // 2048 * 2048]


def with_nul() -> pa.Table:
    return pa.table({"x": [0.0, 1.0, 2.0], "y": ["a", "a\0", "b"]})


def test_text_with_nul_at_its_end(tmp_path):
    forest = fitted(with_nul(), target="y")
    forest.save(tmp_path / "f.og")
    for one in (forest, oldgrowth.load(tmp_path / "f.og")):
        assert one.classes_.tolist() == ["a", "a\0", "b"]
        assert one.predict(FOUR[:3]).tolist() == ["a", "a\0", "b"]
        assert one.score(open_dataset(with_nul(), target="y")) == 1.0
        assert one.score(FOUR[:3], ["a", "a\0", "b"]) == 1.0
        assert one.score(FOUR[:3], ["a", "a", "b"]) == pytest.approx(2 / 3)


def test_text_with_nul_in_lists():
    for y in (["a", "a\0", "b"], np.array(["a", "a\0", "b"], dtype=object)):
        forest = RandomForestClassifier(2, bootstrap=False).fit(FOUR[:3], y)
        assert forest.classes_.tolist() == ["a", "a\0", "b"]
        assert forest.score(FOUR[:3], y) == 1.0
    assert classes(lambda: iter([(FOUR[:3], ["a", "a\0", "b"])])) == ["a", "a\0", "b"]
    assert classes(FOUR[:3], target=["a", "a\0", "b"]) == ["a", "a\0", "b"]


def test_text_with_nul_on_the_command_line(tmp_path, capsys):
    pq.write_table(with_nul(), tmp_path / "a.parquet")
    source, model, output = str(tmp_path / "a.parquet"), str(tmp_path / "f.og"), tmp_path / "p.parquet"
    assert run(["fit", source, "--target", "y", "-o", model, "--trees", "2", "--no-bootstrap", "-q"]) == 0
    assert run(["predict", model, source, "-o", str(output), "-q"]) == 0
    assert pq.read_table(output)["prediction"].to_pylist() == ["a", "a\0", "b"]
    assert run(["predict", model, source, "-o", str(tmp_path / "p.npy"), "-q"]) == 1
    assert "A .npy file cannot hold these labels" in capsys.readouterr().err


def test_lists_of_several_kinds():
    with pytest.raises(DataError, match=r"text and other types, such as '1' and 1"):
        RandomForestClassifier(2).fit(FOUR, [1, "1", 2, 3])
    with pytest.raises(DataError, match="would be rounded"):
        RandomForestClassifier(2).fit(FOUR, [BIG + 1, BIG, 1.0, 2.0])


def test_labels_are_counted_by_value():
    confusion = Confusion(np.array([float(BIG), 1.0]))
    confusion.add(np.array([BIG, BIG + 1, 1]), np.array([0, 0, 1]))
    assert confusion.matrix.tolist() == [[1, 0], [0, 1]]
    assert confusion.unknown == {BIG + 1: 1}


def test_one_long_label_does_not_widen_the_others():
    labels = ["x" * 2**20, *map(str, range(1000))]
    assert text_array(labels).nbytes < 2**16
    assert text_array(["a", "bc"]).dtype == np.dtype("<U2")


def test_a_label_for_every_row_is_refused_before_it_fills_the_memory():
    rows = 600_000

    def batches():
        for first in range(0, rows, 10_000):
            numbers = np.arange(first, first + 10_000)
            yield numbers.reshape(-1, 1), np.char.add("customer-", numbers.astype(str))

    data = open_dataset(batches)
    limit = oldgrowth.system.memory.resident_memory() + 110_000_000
    with pytest.raises(TooManyLabelsError, match=r"'y' has [\d,]+ distinct labels .* is an id") as refused:
        RandomForestClassifier(2, memory_limit=limit).fit(data)
    assert f"memory_limit='{-(-refused.value.least // 10**6)}MB'" in str(refused.value)
    assert refused.value.least > limit


@pytest.mark.parametrize("labels", (["7", "7.0"], ["7.0", "7.00"], ["7e0", "7.0"], ["0x7", "7"], [" 7", "7"]))
def test_two_spellings_of_one_number_are_refused(tmp_path: Path, labels: list[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{i},{labels[i % 2]}\n" for i in range(20)))
    with pytest.raises(SameNumberError, match="are the same number"):
        RandomForestClassifier(2).fit(open_dataset(path, target="y"))
    path.write_text("x,y\n" + "".join(f"{i},{7 + i % 2}.0\n" for i in range(20)))
    assert RandomForestClassifier(2).fit(open_dataset(path, target="y")).classes_.tolist() == [7, 8]
