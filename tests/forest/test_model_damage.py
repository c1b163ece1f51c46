"""Damaged, truncated or forged model files are refused."""

from __future__ import annotations

import json
import os
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth
from helpers import make_data
from oldgrowth import _core, errors
from oldgrowth.forest.forest import ARRAYS
from oldgrowth.forest.model_file import PAGE, ModelWriter, read_model
from oldgrowth.forest.model_meta import describe
from oldgrowth.forest.nodes import NodeFormat
from torture.fuzz_model import run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forest.og"


def fitted() -> Any:
    x, y = make_data(300, 5, 3, seed=1)
    return oldgrowth.RandomForestClassifier(6, random_state=0, n_jobs=1).fit(x, y)


def small_data() -> Any:
    """The first column has whole numbers, which can also be levels: more than fit a node."""
    x, y = make_data(60, 3, 3, seed=0)
    x[:, 0] = np.arange(60) * 7 % 40
    return x, y


def small_file(path: Path, categories: bool = False) -> bytes:
    forest = oldgrowth.RandomForestClassifier(
        2, bucket_size=30, max_depth=4, random_state=0, categorical_features=[0] if categories else None
    )
    forest.fit(*small_data()).save(path)
    return path.read_bytes()


def loaded_and_used(path: Path, mmap: bool = True) -> Any:
    """Predict rows that reach every bottom tree: those of a mapped file are checked when they are used."""
    model = oldgrowth.load(path, mmap)
    return model.predict_proba(small_data()[0])


@pytest.mark.slow
@pytest.mark.parametrize("categories", [False, True])
def test_a_flipped_bit_anywhere_is_found(categories: bool, path: Path, every: bool) -> None:
    whole = small_file(path, categories)
    # Every bit that holds something, and some of the zeros between the sections.
    sections = read_model(path).sections
    used = {i for s in sections for i in range(s.offset, s.end)} | set(range(24 + len(sections) * 48))
    path.write_bytes(whole)
    with open(path, "r+b") as file:
        for at in range(len(whole)):
            for bit in range(8) if every or at in used else (at % 8,) if at % 13 == 0 else ():
                file.seek(at)
                file.write(bytes([whole[at] ^ 1 << bit]))
                file.flush()
                for mmap in (True, False) if every else (bit % 2 == 0,):
                    with pytest.raises(errors.ModelFileError):
                        loaded_and_used(path, mmap)
            file.seek(at)
            file.write(whole[at : at + 1])


def test_blocks_that_changed_places_or_came_twice_are_found(path: Path) -> None:
    whole = small_file(path)
    for size in (64, PAGE):
        blocks = [whole[i : i + size] for i in range(0, len(whole), size)]
        full = [i for i, block in enumerate(blocks) if any(block)]
        for n, i in enumerate(full):
            for j in full[n + 1 :] if size == PAGE else full[n + 1 : n + 3]:
                if blocks[i] == blocks[j] or len(blocks[i]) != len(blocks[j]):
                    continue
                for first, second in ((blocks[j], blocks[i]), (blocks[i], blocks[i])):
                    path.write_bytes(
                        b"".join([*blocks[:i], first, *blocks[i + 1 : j], second, *blocks[j + 1 :]])
                    )
                    with pytest.raises(errors.ModelFileError):
                        loaded_and_used(path)


@pytest.mark.parametrize("categories", [False, True])
def test_the_damaged_section_is_named(categories: bool, path: Path) -> None:
    whole = small_file(path, categories)
    for section in read_model(path).sections:
        damaged = bytearray(whole)
        damaged[section.offset] ^= 1
        path.write_bytes(damaged)
        for mmap in (True, False):
            with pytest.raises(errors.CorruptedModelFileError, match="in section") as caught:
                loaded_and_used(path, mmap)
            assert caught.value.section == section.name


def test_a_mapped_file_is_checked_as_far_as_it_is_used(path: Path) -> None:
    x, y = make_data(2000, 3, 3, seed=0)
    model = oldgrowth.RandomForestClassifier(2, bucket_size=100, random_state=0).fit(x, y)
    model.save(path)
    damaged = bytearray(path.read_bytes())
    nodes = next(s for s in read_model(path).sections if s.name == "nodes")
    damaged[nodes.end - 8] ^= 1  # the last bottom tree
    path.write_bytes(damaged)
    mapped = oldgrowth.load(path)
    refused = 0
    for i in range(300):
        try:
            np.testing.assert_array_equal(
                mapped.predict_proba(x[i : i + 1]), model.predict_proba(x[i : i + 1])
            )
        except errors.CorruptedModelFileError:
            refused += 1
    assert 0 < refused < 100
    for use in (lambda: pickle.dumps(mapped), lambda: oldgrowth.load(path, mmap=False), mapped.forest_.check):
        with pytest.raises(errors.CorruptedModelFileError, match="nodes"):
            use()


def test_truncation_at_every_length_is_found(path: Path, every: bool) -> None:
    whole = small_file(path)
    with open(path, "r+b") as file:
        for length in range(len(whole) - 1, -1, -1):
            file.truncate(length)
            if length > 2 * PAGE and length % 5 and not every:
                continue
            with pytest.raises(errors.TruncatedModelFileError, match="is truncated"):
                read_model(path)


def test_more_bytes_than_written_are_found(path: Path) -> None:
    path.write_bytes(small_file(path) + b"\0")
    with pytest.raises(errors.CorruptedModelFileError, match="instead of"):
        oldgrowth.load(path)


def resealed(page: bytearray) -> bytes:
    """With a correct checksum of the first page."""
    crc = _core.crc32c(np.frombuffer(bytes(page[: PAGE - 4]), dtype=np.uint8))
    page[PAGE - 4 : PAGE] = struct.pack("<I", crc)
    return bytes(page)


def test_a_newer_version_is_named(path: Path) -> None:
    page = bytearray(small_file(path))
    struct.pack_into("<I", page, 8, 3)
    path.write_bytes(resealed(page))
    with pytest.raises(errors.NewerModelFileError, match=r"format version 3, .* formats up to 2"):
        oldgrowth.load(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04" + bytes(9000), b"x", b"OLDGROWTH is a text" * 999])
def test_another_file_is_not_ours(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(errors.NotAModelFileError, match="not a forest"):
        oldgrowth.load(path)


def test_a_missing_file_and_a_directory_are_named(path: Path) -> None:
    for missing in (path, path.parent / "no" / "such.og"):
        with pytest.raises(errors.MissingModelFileError, match=f"{missing} could not be read: No such"):
            oldgrowth.load(missing)
    assert issubclass(errors.MissingModelFileError, FileNotFoundError)
    with pytest.raises(errors.UnreadableModelFileError, match=f"{path.parent} could not be read: Is a dir"):
        oldgrowth.load(path.parent)
    (path.parent / "loop.og").symlink_to("loop.og")
    with pytest.raises(errors.UnreadableModelFileError, match="Too many levels of symbolic links"):
        oldgrowth.load(path.parent / "loop.og")


@pytest.mark.parametrize("field", range(4))
@pytest.mark.parametrize("value", [0, 1, 4096, 4097, 2**40, 2**64 - 1])
def test_a_table_of_sections_that_lies_is_refused(field: int, value: int, path: Path) -> None:
    """The checksum of the header is correct: the file is forged."""
    page = bytearray(small_file(path))
    where = (16, 24 + 24, 24 + 32, 24 + 48 + 24)[field]  # file length, first offset, length, second offset
    if struct.unpack_from("<Q", page, where)[0] == value:
        pytest.skip("it is so")
    struct.pack_into("<Q", page, where, value)
    path.write_bytes(resealed(page))
    with pytest.raises(errors.ModelFileError):
        oldgrowth.load(path)


def test_sections_that_share_their_bytes_are_refused(path: Path) -> None:
    """All checksums are correct, but the third section has the offset of the second."""
    page = bytearray(small_file(path))
    place = slice(24, 44)  # offset, length and checksum in an entry of the table
    second, third = 24 + 48, 24 + 96
    page[third + place.start : third + place.stop] = page[second + place.start : second + place.stop]
    path.write_bytes(resealed(page))
    with pytest.raises(errors.CorruptedModelFileError, match="its offset is wrong"):
        oldgrowth.load(path)


def with_meta(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    model = fitted()
    meta = describe(model)
    change(meta)
    with ModelWriter(path) as writer:
        for name in ARRAYS:
            writer.add(name, getattr(model.forest_, name))
        writer.add_meta(json.loads(json.dumps(meta)))


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 4},
        {"n_features": "5"},
        {"n_features": 2**40},
        {"n_classes": 2},
        {"n_classes": -1},
        {"classes": None},
        {"classes": {"type": "int64", "values": [1, 2]}},
        {"classes": {"type": "V8", "values": [1, 2, 3]}},
        {"classes": {"type": "int64", "values": ["a", 2, 3]}},
        {"classes": {"type": "int8", "values": [1, 2, 3000]}},
        {"classes": {"type": "object", "values": [[1], 2, 3]}},
        {"estimator": "RandomForestRegressor"},
        {"estimator": "os.system"},
        {"estimator": ["RandomForestClassifier"]},
        {"importances": [1.0]},
        {"importances": ["a", "b", "c", "d", "e"]},
        {"feature_names": ["a"]},
        {"feature_names": [1, 2, 3, 4, 5]},
        {"parameters": []},
        {"parameters": {"max_depth": {"pairs": [[[1], 2]]}}},
        {"fit_report": None},
        {"fit_report": {"pairs": [["stages", [5]]]}},
        {"fit_report": {"pairs": [["rows_by_bucket", 5]]}},
        {"fit_report": {"pairs": [["rows_by_bucket", [[300], [300]]]]}},
        {"fit_report": {"pairs": [["rows_by_bucket", [[100, 200]]]]}},
        {"fit_report": {"pairs": [["rows_by_bucket", [["many"]]]]}},
        {"fit_report": {"pairs": [["rows_by_bucket", [[0]]]]}},
    ],
)
def test_a_description_that_lies_is_refused(change: dict[str, Any], path: Path) -> None:
    with_meta(path, lambda meta: meta.update(change))
    with pytest.raises(errors.CorruptedModelFileError, match="corrupted"):
        oldgrowth.load(path)


def test_parameters_of_another_version_are_named(path: Path) -> None:
    with_meta(path, lambda meta: meta["parameters"].update(wings=2))
    with pytest.warns(UserWarning, match="does not have: wings"):
        loaded = oldgrowth.load(path)
    assert loaded.n_estimators == 6


def test_indices_that_lead_outside_are_refused(path: Path) -> None:
    model = fitted()
    with ModelWriter(path) as writer:
        for name in ARRAYS:
            array = getattr(model.forest_, name).copy()
            if name == "nodes":
                array[0] |= np.uint64(2**62)  # a right child far away
            writer.add(name, array)
        writer.add_meta(describe(model))
    with pytest.raises(errors.CorruptedModelFileError, match="bottom tree 0"):
        oldgrowth.load(path).predict(make_data(300, 5, 3, seed=1)[0])


# A list and a bitmap that are too long, an unknown level, an empty list, and a place beyond all sets.
@pytest.mark.parametrize("words", [(0xFFFF,), (0x7FFF,), (0x8001, 40), (0x8000,), ()])
@pytest.mark.parametrize("mmap", [False, True])
def test_sets_that_lead_outside_are_refused(words: tuple[int, ...], mmap: bool, path: Path) -> None:
    """Checksums of the tree, the sections and the header are right."""
    small_file(path, categories=True)
    model = oldgrowth.load(path, mmap=False)
    forest = model.forest_
    arrays = {name: np.concatenate([*forest.parts(name)]) for name in forest.array_names}
    nodes = NodeFormat(3)
    node = next(i for i, n in enumerate(arrays["nodes"]) if n < 2**63 and nodes.feature(n) == 0)
    tree = int(np.searchsorted(arrays["node_start"], node, side="right")) - 1
    at = int(arrays["set_start"][tree]) + (int(arrays["nodes"][node]) & 0xFFFFFFFF)
    if words:
        arrays["sets"][at : at + len(words)] = words
    else:
        arrays["nodes"][node] |= np.uint64(0xFFFFFFFF)
    arrays["tree_crc"][tree] = checksum_of(arrays, tree, model.n_classes_)
    with ModelWriter(path) as writer:
        for name, array in arrays.items():
            writer.add(name, array)
        writer.add_meta(describe(model))
    with pytest.raises(errors.CorruptedModelFileError, match=f"bottom tree {tree}"):
        loaded_and_used(path, mmap)


def checksum_of(arrays: Any, tree: int, n_classes: int) -> int:
    """Of its nodes, rows of the table and sets."""
    crc = 0
    for name, starts, items in (
        ("nodes", "node_start", 1),
        ("table", "table_start", n_classes),
        ("sets", "set_start", 1),
    ):
        first, end = (int(start) * items for start in arrays[starts][tree : tree + 2])
        crc = _core.crc32c(arrays[name][first:end].view(np.uint8), crc)
    return crc


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("categories", [False, True])
def test_files_made_to_mislead_are_refused_or_forests(categories: bool) -> None:
    passed, _ = run(300, categories=categories)
    assert 0 < passed < 100


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("importances", "12345"),
        ("importances", [[1, 2]] * 5),
        ("importances", [10**400] * 5),
        ("feature_names", "abcde"),
        ("feature_names", ["a", "b", "c", "d", "\ud800"]),
        ("feature_names", [1, 2, 3, 4, 5]),
        ("oob_score", "high"),
        ("oob_score", [1]),
    ],
)
def test_what_the_file_says_besides_its_trees_is_checked(name: str, value: Any, path: Path) -> None:
    written(path, fitted(), {name: value})
    with pytest.raises(errors.CorruptedModelFileError) as caught:
        oldgrowth.load(path)
    assert caught.value.section == "meta"


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows", "abc"), ("bucket_rows", "abc"), ("peak_memory", 10**400), ("top_trees", None), ("stages", 3)],
)
def test_the_report_in_a_file_is_checked(name: str, value: Any, path: Path) -> None:
    model = fitted()
    pairs = describe(model)["fit_report"]["pairs"]
    written(path, model, {"fit_report": {"pairs": [*pairs, [name, value]]}})
    with pytest.raises(errors.CorruptedModelFileError) as caught:
        oldgrowth.load(path)
    assert caught.value.section == "meta"


def test_a_file_of_brackets_is_not_read(path: Path) -> None:
    written(path, fitted(), {"extra": [{}] * 300_000})
    with pytest.raises(errors.CorruptedModelFileError, match="brackets"):
        oldgrowth.load(path)


def written(path: Path, model: Any, changes: dict[str, Any]) -> None:
    """A file with valid checksums and other contents."""
    with ModelWriter(path) as writer:
        for name in ARRAYS:
            writer.add(name, getattr(model.forest_, name))
        writer.add_meta(describe(model) | changes)


@pytest.mark.parametrize("kind", ["str", "object", "int64"])
def test_one_long_label_does_not_make_all_labels_long(kind: str, path: Path) -> None:
    """Fixed-width text would take 4 x 2,000 x 300,000 bytes."""
    x, y = np.arange(2000.0)[:, None], np.array([f"c{i:04}" for i in range(2000)])
    with pytest.warns(UserWarning, match="unique classes"):
        model = oldgrowth.RandomForestClassifier(1, bootstrap=False).fit(x, y)
    values = [*sorted(y.tolist()[:-1]), "x" * 300_000]
    written(path, model, {"classes": {"type": kind, "values": values}})
    tracemalloc.start()
    try:
        if kind == "int64":
            with pytest.raises(errors.CorruptedModelFileError, match="is a text"):
                oldgrowth.load(path)
        else:
            loaded = oldgrowth.load(path)
        assert tracemalloc.get_traced_memory()[1] < 60 * path.stat().st_size
    finally:
        tracemalloc.stop()
    if kind != "int64":
        assert loaded.classes_.tolist() == values
        assert loaded.predict(x).tolist() == values and loaded.score(x, values) == 1.0


def test_a_pipe_is_not_a_model_file(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(errors.NotAModelFileError, match="not a regular file"):
        oldgrowth.load(path)
