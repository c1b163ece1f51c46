"""HDF5 files with values in other files, or missing values."""

from __future__ import annotations

import os

import h5py
import numpy as np
import pytest

from oldgrowth import open_dataset
from oldgrowth.cli.main import run
from oldgrowth.errors import ChangedSourceError, MissingValuesError, OtherFilesError, ParameterError
from oldgrowth.messages.warnings import UnwrittenValuesWarning

ROWS, COLUMNS = 40, 3


def write_part(path, number):
    with h5py.File(path, "w") as file:
        file["data"] = np.full((ROWS, COLUMNS), number, dtype=np.float32)


def write_virtual(folder, parts, rows=None, name="whole.h5"):
    """A virtual dataset of parts, which are files or "." for the file itself."""
    layout = h5py.VirtualLayout((rows or ROWS * len(parts), COLUMNS), np.float32)
    for i, part in enumerate(parts):
        source = h5py.VirtualSource(str(part), "data", (ROWS, COLUMNS))
        layout[i * ROWS : (i + 1) * ROWS] = source
    with h5py.File(folder / name, "w") as file:
        file.create_virtual_dataset("X", layout)
        file["y"] = np.arange(layout.shape[0]) % 2
        if "." in parts:
            file["data"] = np.ones((ROWS, COLUMNS), np.float32)
    return folder / name


def values(path, **options):
    (batch,) = open_dataset(path, **options).batches(1000)
    return batch.x[:, 0]


def test_a_virtual_dataset_is_read_if_allowed(tmp_path):
    for i in (1, 2):
        write_part(tmp_path / f"part{i}.h5", i)
    path = write_virtual(tmp_path, ["part1.h5", "part2.h5"])
    with pytest.raises(OtherFilesError, match=r"part1.h5\)\. Allow this with external_files=True"):
        open_dataset(path)
    np.testing.assert_array_equal(values(path, external_files=True), np.repeat([1, 2], ROWS))


def test_a_source_that_is_missing(tmp_path):
    write_part(tmp_path / "part1.h5", 1)
    path = write_virtual(tmp_path, ["part1.h5", "part2.h5"])
    with pytest.raises(MissingValuesError, match=r"whole.h5 \(X\) takes values from part2.h5"):
        open_dataset(path, external_files=True)
    with h5py.File(tmp_path / "part2.h5", "w") as file:
        file["other"] = 1
    with pytest.raises(MissingValuesError, match=r"data of .*part2.h5, which does not exist"):
        open_dataset(path, external_files=True)
    (tmp_path / "part2.h5").write_bytes(b"no HDF5")
    with pytest.raises(MissingValuesError, match=r"part2.h5, which cannot be read"):
        open_dataset(path, external_files=True)
    with h5py.File(tmp_path / "part2.h5", "w") as file:
        file["data"] = np.ones((ROWS - 1, COLUMNS), np.float32)
    with pytest.raises(MissingValuesError, match="beyond the end of data"):
        open_dataset(path, external_files=True)


def test_a_source_that_goes_between_two_passes(tmp_path):
    write_part(tmp_path / "part1.h5", 1)
    data = open_dataset(write_virtual(tmp_path, ["part1.h5"]), external_files=True)
    list(data.batches(10))
    (tmp_path / "part1.h5").unlink()
    with pytest.raises(MissingValuesError, match=r"part1.h5"):
        list(data.batches(10))


def test_a_source_that_is_itself_virtual(tmp_path):
    (tmp_path / "secret").write_bytes(bytes(ROWS * COLUMNS * 4))
    with h5py.File(tmp_path / "part.h5", "w") as file:
        layout = h5py.VirtualLayout((ROWS, COLUMNS), np.float32)
        layout[:] = h5py.VirtualSource("gone.h5", "data", (ROWS, COLUMNS))
        file.create_virtual_dataset("data", layout)
    with pytest.raises(MissingValuesError, match=r"part.h5 \(data\) takes values from gone.h5"):
        open_dataset(write_virtual(tmp_path, ["part.h5"]), external_files=True)


def test_values_without_any_source(tmp_path):
    write_part(tmp_path / "part1.h5", 1)
    path = write_virtual(tmp_path, ["part1.h5"], rows=ROWS + 5)
    with pytest.raises(MissingValuesError, match="sources for 120 of 135 values"):
        open_dataset(path, external_files=True)


def test_a_virtual_dataset_within_its_file_needs_no_permission(tmp_path):
    path = write_virtual(tmp_path, ["."])
    np.testing.assert_array_equal(values(path), 1)


def write_external(folder, size):
    secret = folder / "secret.bin"
    secret.write_bytes(np.arange(size, dtype=np.float32).tobytes())
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("X", (ROWS, 1), np.float32, external=[(str(secret), 0, ROWS * 4)])
        file["y"] = np.arange(ROWS) % 2
        file["id"] = np.arange(ROWS)
    return folder / "a.h5"


def test_external_storage(tmp_path):
    path = write_external(tmp_path, ROWS)
    with pytest.raises(OtherFilesError, match=r"secret.bin\)\. Allow this with"):
        open_dataset(path)
    np.testing.assert_array_equal(values(path, external_files=True), np.arange(ROWS))
    os.truncate(tmp_path / "secret.bin", ROWS * 4 - 1)
    with pytest.raises(MissingValuesError, match=r"needs 160 bytes of .*secret.bin, which has 159"):
        open_dataset(path, external_files=True)


def test_external_storage_of_a_column(tmp_path):
    path = write_external(tmp_path, ROWS)
    with h5py.File(path, "a") as file:
        del file["X"]
        file["a"] = np.arange(ROWS)
        file.create_dataset("b", (ROWS,), np.float32, external=[(str(tmp_path / "secret.bin"), 0, ROWS * 4)])
    assert open_dataset(path, "y", ["a"]).n_features == 1
    with pytest.raises(OtherFilesError):
        open_dataset(path, "y", ["a", "b"])
    with pytest.raises(OtherFilesError):
        next(open_dataset(path, "y", ["a"]).batches(10, carry=["b"]))


def test_the_option_on_the_command_line(tmp_path, capsys):
    path = write_external(tmp_path, ROWS)
    fit = ["fit", str(path), "--target", "y", "-o", str(tmp_path / "f.og"), "--trees", "2", "-q"]
    assert run(fit) == 1
    assert "with --external-files" in capsys.readouterr().err
    assert run([*fit, "--external-files"]) == 0


def test_the_option_is_true_or_false(tmp_path):
    with pytest.raises(ParameterError, match="external_files must be True or False"):
        open_dataset(write_external(tmp_path, ROWS), external_files="yes")


@pytest.mark.parametrize("kind", ["virtual", "external"])
def test_other_files_belong_to_the_fingerprint(tmp_path, kind):
    other = tmp_path / ("part1.h5" if kind == "virtual" else "secret.bin")
    if kind == "virtual":
        write_part(other, 1)
    path = write_virtual(tmp_path, ["part1.h5"]) if kind == "virtual" else write_external(tmp_path, ROWS)
    data = open_dataset(path, external_files=True)
    before = data.fingerprint()
    assert {os.path.basename(file["path"]) for file in before["files"]} == {path.name, other.name}
    list(data.batches(1000))
    os.utime(other, ns=(1, 1))
    with pytest.raises(ChangedSourceError, match=rf"{other.name}.*was modified"):
        list(data.batches(1000))
    assert open_dataset(path, external_files=True).fingerprint() != before


def incomplete(path, chunks, written):
    with h5py.File(path, "w") as file:
        data = file.create_dataset("X", (ROWS, COLUMNS), np.float32, chunks=chunks, fillvalue=-1.0)
        if written:
            data[:written] = 1
        file["y"] = np.arange(ROWS) % 2
    return path


@pytest.mark.parametrize(
    ("chunks", "written", "what"),
    [
        ((16, COLUMNS), 16, "2 of its 3 chunks were"),
        ((16, 2), 0, "6 of its 6"),
        (None, 0, "It was never written"),
    ],
)
def test_parts_that_were_never_written_draw_a_warning(tmp_path, chunks, written, what):
    path = incomplete(tmp_path / "t.h5", chunks, written)
    with pytest.warns(
        UnwrittenValuesWarning, match=rf"t\.h5 \(X\) may be incomplete. {what}.* read as -1\.0"
    ):
        found = values(path, target="y")
    np.testing.assert_array_equal(found, [1] * written + [-1] * (ROWS - written))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("chunks", [(16, COLUMNS), (1, 1), None])
def test_what_was_written_draws_no_warning(tmp_path, chunks):
    assert len(values(incomplete(tmp_path / "t.h5", chunks, ROWS), target="y")) == ROWS
