"""Detects the format and compression of a file by its extension, or else by its first bytes."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import UnknownSourceError
from ..messages.surface import Say
from .files import SourceFile

MAGIC = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"\x93NUMPY", "npy"),
    (b"\x89HDF", "hdf5"),
)
ZIP = b"PK\x03\x04"
CODECS = (
    (b"\x1f\x8b", ".gz", "gzip"),
    (b"BZh", ".bz2", "bz2"),
    (b"\x28\xb5\x2f\xfd", ".zst", "zstd"),
)
# Unsupported compressions.
OTHER_CODECS = (
    (b"\xfd7zXZ\0", ".xz", "xz"),
    (b"\x5d\0\0", ".lzma", "LZMA"),
    (b"\x04\x22\x4d\x18", ".lz4", "LZ4"),
    (b"\x1f\x9d", ".z", "compress"),
    (b"7z\xbc\xaf\x27\x1c", ".7z", "7-Zip"),
    (b"\xff\x06\0\0sN", ".sz", "Snappy"),
)
LONGEST = 8  # length of the longest of these signatures
# Common file types that are not supported, by extension.
FOREIGN = {
    ".xlsx": "an Excel workbook: save its sheet as CSV",
    ".xls": "an Excel workbook: save its sheet as CSV",
    ".ods": "a spreadsheet: save it as CSV",
    ".json": "JSON: convert it to Parquet or CSV",
    ".jsonl": "JSON: convert it to Parquet or CSV",
    ".orc": "ORC: convert it to Parquet",
    ".avro": "Avro: convert it to Parquet",
    ".pkl": "a pickle, which is not opened because it can run code: save it as Parquet or .npy",
    ".pickle": "a pickle, which is not opened because it can run code: save it as Parquet or .npy",
    ".dta": "a Stata file: convert it to Parquet or CSV",
    ".sav": "an SPSS file: convert it to Parquet or CSV",
    ".sas7bdat": "a SAS file: convert it to Parquet or CSV",
    ".zip": "a zip archive: unpack it first",
    ".tar": "an archive: unpack it first",
    ".og": "a forest saved by oldgrowth, not rows",
    ".tif": "an image: open it with oldgrowth.raster.open_scene",
    ".tiff": "an image: open it with oldgrowth.raster.open_scene",
}


def format_of(file: SourceFile, endings: Mapping[str, Sequence[str]]) -> str:
    """The format of a file; `endings` maps formats to their extensions."""
    name = Path(file.path).name.lower()
    for kind, ends in endings.items():
        if name.endswith(tuple(ends)):
            return kind
    suffix = next((end for end in FOREIGN if name.endswith(end)), None)
    if suffix is not None:
        raise UnknownSourceError(file.path, f"it is {FOREIGN[suffix]}")
    begin = first_bytes(file)
    _refuse_other_codecs(file, begin, name)
    for magic, kind in MAGIC:
        if begin.startswith(magic):
            return kind
    if begin.startswith(ZIP):
        refuse_foreign_zip(file)
        return "npz"
    codec = codec_of(file)
    packed = f"it is compressed with {codec}, and " if codec else ""

    def what(say: Say) -> str:
        return f"{packed}its name does not show its format. Give {say('format')}, one of {', '.join(endings)}"

    raise UnknownSourceError(file.path, what)


def refuse_foreign(file: SourceFile, begin: bytes) -> None:
    """Refuse a file with the extension of CSV and the first bytes of another format."""
    _refuse_other_codecs(file, begin)
    for magic, kind in (*MAGIC, (ZIP, "zip"), (b"OLDGROW", "forest")):
        if begin.startswith(magic) and len(begin) > 4:
            raise UnknownSourceError(file.path, f"its name is that of a CSV file, but it is a {kind} file")


def _refuse_other_codecs(file: SourceFile, begin: bytes, name: str = "") -> None:
    for magic, ending, codec in OTHER_CODECS:
        if begin.startswith(magic) or name.endswith(ending):
            what = f"compression by {codec} is not supported: unpack it, or use gzip, bzip2 or zstd"
            raise UnknownSourceError(file.path, what)


def first_bytes(file: SourceFile, count: int = LONGEST) -> bytes:
    with file.blamed("a file"), file.open() as source:
        return source.read(count)


def codec_of(file: SourceFile) -> str | None:
    """The codec of a compressed file, by its extension, or else by its first bytes; None if uncompressed."""
    named = next((codec for _, end, codec in CODECS if file.path.lower().endswith(end)), None)
    if named is not None:
        return named
    begin = first_bytes(file)
    return next((codec for magic, _, codec in CODECS if begin.startswith(magic)), None)


def refuse_foreign_zip(file: SourceFile) -> None:
    """Refuse zip files without NumPy arrays, such as workbooks and archives."""
    with file.blamed("a zip file"), file.open() as source, zipfile.ZipFile(source) as archive:
        names = archive.namelist()
    if any(name.endswith(".npy") for name in names):
        return
    if any(name.startswith("xl/") for name in names):
        raise UnknownSourceError(file.path, f"it is {FOREIGN['.xlsx']}")
    held = f" of {names[0]}" if len(names) == 1 else ""
    raise UnknownSourceError(file.path, f"it is a zip archive{held} without NumPy arrays: unpack it first")
