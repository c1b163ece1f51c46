"""Damaged and forged files of a checkpoint: what is lost is done again, what is not possible is refused."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oldgrowth.fitting.pipeline
from helpers import make_data
from oldgrowth import RandomForestClassifier, _core, open_dataset
from oldgrowth.errors import DamagedCheckpointError
from oldgrowth.messages.warnings import DamagedPartWarning
from oldgrowth.storage.checkpoint_dir import FILES

STAGES = ("grow", "assemble")


class Stopped(Exception):
    """Raised in place of a stage."""


def fitted(directory: Path | None = None) -> tuple[str, float]:
    x, y = make_data(150, 3, 3, seed=2)
    sizes = {"bucket_size": 40, "top_sample": 20, "chunk_size": 50, "trees_per_top": 2}
    model = RandomForestClassifier(
        6, **sizes, random_state=1, n_jobs=1, oob_score=True, store="disk", checkpoint_dir=directory
    )
    model.fit(open_dataset(x.round(1), target=y))
    return model.forest_.digest(), model.oob_score_


def stopped(monkeypatch: pytest.MonkeyPatch, directory: Path, stage: str) -> Path:
    def stop(*args: Any, **options: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(oldgrowth.fitting.pipeline, stage, stop)
        with pytest.raises(Stopped):
            fitted(directory)
    return directory / FILES


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 16
    file.write_bytes(data)


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize(
    ("stage", "name"),
    [
        *(("grow", name) for name in ("sample.npz", "sample.rows", "top-00001.npz", "rounds.npz")),
        *(("grow", name) for name in ("round-00000-split.npz", "top-00000.rows")),
        *(("assemble", name) for name in ("trees.log", "oob.log")),
    ],
)
def test_what_is_lost_is_done_again(monkeypatch, tmp_path, stage: str, name: str) -> None:
    files = stopped(monkeypatch, tmp_path, stage)
    flip(files / name)
    with pytest.warns(DamagedPartWarning, match=f"{files / name} is damaged: .* is done again"):
        assert fitted(tmp_path) == fitted()


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize("name", ["trees.log", "oob.log", "top-00002.rows"])
def test_damage_during_a_fit_says_what_is_true(monkeypatch, tmp_path, name: str) -> None:
    stage = "grow" if name.endswith("rows") else "assemble"
    with monkeypatch.context() as patch:
        run = getattr(oldgrowth.fitting.pipeline, stage)

        def damaged(*args: Any, **options: Any) -> Any:
            flip(tmp_path / FILES / name)
            return run(*args, **options)

        patch.setattr(oldgrowth.fitting.pipeline, stage, damaged)
        with pytest.raises(DamagedCheckpointError, match=rf"{name} .*Fit again with the same checkpoint_dir"):
            fitted(tmp_path)
    with pytest.warns(DamagedPartWarning, match=name):
        assert fitted(tmp_path) == fitted()


def crc(data: bytes) -> int:
    return _core.crc32c(np.frombuffer(data, dtype=np.uint8))


def forged(file: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Other arrays or values with the right checksum."""
    with np.load(io.BytesIO(file.read_bytes()[:-4])) as found:
        arrays = {key: found[key].copy() for key in found.files}
    values = json.loads(arrays.pop("values").tobytes())
    change(arrays, values)
    out = io.BytesIO()
    np.savez(out, **(arrays | {"values": np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)}))
    file.write_bytes(out.getvalue() + crc(out.getvalue()).to_bytes(4, "little"))


def other_value(arrays: dict[str, Any], values: dict[str, Any]) -> None:
    arrays["values_0"][0] -= 1


def other_sum(exponent: str, total: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(arrays: dict[str, Any], values: dict[str, Any]) -> None:
        values["facts"]["weight"] = {"0": {exponent: total}}

    return change


def other_owner(arrays: dict[str, Any], values: dict[str, Any]) -> None:
    arrays["0_owners"][0] = 2**46


def other_split(arrays: dict[str, Any], values: dict[str, Any]) -> None:
    arrays["0_nodes"][0] ^= np.uint64(1 << 20)  # a bit of the threshold


def no_size(arrays: dict[str, Any], values: dict[str, Any]) -> None:
    values["sizes"] = dict.fromkeys(values["sizes"], -1)


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("sample.npz", other_value, r"rounds\.npz .* sample\.npz"),
        *(("sample.npz", other_sum("1", total), r"sample\.npz") for total in (["1"], None, 0.5, -1, 2**90)),
        ("sample.npz", other_sum("99999999", 1), r"sample\.npz"),  # would take memory
        ("round-00000-split.npz", other_owner, r"split\.npz"),
        ("round-00000-split.npz", other_split, r"split\.npz"),
        ("round-00000-split.npz", no_size, r"split\.npz"),
    ],
)
def test_forged_memories_are_refused(monkeypatch, tmp_path, name: str, change: Any, named: str) -> None:
    files = stopped(monkeypatch, tmp_path, "grow")
    forged(files / name, change)
    with pytest.raises(DamagedCheckpointError, match=f"{named}.*Remove {files} and fit again"):
        fitted(tmp_path)


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
@pytest.mark.parametrize("place", [0, 5])
def test_a_forged_row_does_not_match_its_key(monkeypatch, tmp_path, place: int) -> None:
    """A byte of the record or of the key, with the right checksum of the block: the rows are read again."""
    files = stopped(monkeypatch, tmp_path, "grow")
    file = files / "top-00001.rows"
    data = bytearray(file.read_bytes())
    rows, row_bytes = struct.unpack_from("<II", data, 24)
    end = 32 + rows * row_bytes
    data[32 + place] ^= 1
    struct.pack_into("<I", data, 4, crc(bytes(data[8:end])))
    file.write_bytes(data)
    with pytest.warns(
        DamagedPartWarning, match=r"top-00001\.rows is damaged: its rows are not rows of the data"
    ):
        assert fitted(tmp_path) == fitted()


def forged_entry(file: Path, change: Callable[[bytearray], None]) -> None:
    """The first entry of a log, changed, with the right checksum."""
    data = bytearray(file.read_bytes())
    end = 40 + struct.unpack_from("<Q", data, 8)[0]
    change(data)
    struct.pack_into("<I", data, 4, crc(bytes(data[8:end])))
    file.write_bytes(data)


@pytest.mark.filterwarnings("ignore:.*seen by every tree")
def test_two_trees_in_one_place_are_refused(monkeypatch, tmp_path) -> None:
    files = stopped(monkeypatch, tmp_path, "assemble")

    def other_bucket(data: bytearray) -> None:
        (bucket,) = struct.unpack_from("<Q", data, 24)
        struct.pack_into("<Q", data, 24, 1 if bucket == 0 else 0)

    for name in ("trees.log", "oob.log"):  # votes and trees that belong together
        forged_entry(files / name, other_bucket)
    with pytest.raises(DamagedCheckpointError, match=r"trees\.log is damaged: two of its trees"):
        fitted(tmp_path)


VOTE_BYTES = 4 + 4 + 8 + 3 * 8  # row number, trees, target, sums of three classes


@pytest.mark.parametrize(
    ("at", "form", "value"), [(4, "<I", 3), (8, "<d", 3.0), (8, "<d", 0.5), (16, "<q", -1)]
)
def test_votes_that_no_trees_give_are_refused(monkeypatch, tmp_path, at: int, form: str, value: Any) -> None:
    files = stopped(monkeypatch, tmp_path, "assemble")
    forged_entry(files / "oob.log", lambda data: struct.pack_into(form, data, 40 + at, value))
    with pytest.raises(DamagedCheckpointError, match=rf"oob\.log is damaged.*Remove {files} and fit again"):
        fitted(tmp_path)


def test_votes_on_another_row_are_refused(monkeypatch, tmp_path) -> None:
    files = stopped(monkeypatch, tmp_path, "assemble")

    def other_row(data: bytearray) -> None:
        size = struct.unpack_from("<Q", data, 8)[0]
        numbers = [struct.unpack_from("<I", data, 40 + i)[0] for i in range(0, size, VOTE_BYTES)]
        i = next(i for i in range(1, len(numbers)) if numbers[i] > numbers[i - 1] + 1)
        struct.pack_into("<I", data, 40 + i * VOTE_BYTES, numbers[i] - 1)

    forged_entry(files / "oob.log", other_row)
    with pytest.raises(DamagedCheckpointError, match=r"oob\.log is damaged: its (votes|targets) are not"):
        fitted(tmp_path)
