"""CSV files as users have them."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa
from trial import Trial, opens, writes

from oldgrowth import errors

TEXT = "a,b,y\n1,2.5,no\n3,4,yes\n"
READ = ([1.0, 2.5], "no", 2)
NAMELESS = "1.5,2,0\n3,4,1\n"
COMMAS = "a;b;y\n1,5;2;0\n3,5;4;1\n"
ACCENT = "a,b,y\n1,2.5,né\n3,4,oui\n"
LINES = "a,note,y\n" + "".join(f'{i},"first\nsecond, {i}",{i % 2}\n' for i in range(50))
MANY = "a,note,y\n" + "".join(f'{i},"first\nsecond, {i} {"x" * 900}",{i % 2}\n' for i in range(6000))


def works(name, content, result=READ, file="t.csv", **options):
    options = {"target": "y", **options}
    return Trial(name, opens(file, **options), writes(file, content), result=result)


def refused(name, content, error, *words, file="t.csv", **options):
    options = {"target": "y", **options}
    return Trial(name, opens(file, **options), writes(file, content), error, (file, *words))


def wrong(option, value, *words):
    call = opens("t.csv", target="y", **{option: value})
    return Trial(f"{option} {value!r}", call, writes("t.csv", TEXT), errors.ParameterError, (option, *words))


TRIALS = [
    works("plain", TEXT),
    works("carriage returns", TEXT.replace("\n", "\r\n")),
    works("no end of line at the end", TEXT[:-1]),
    works("byte order mark", TEXT.encode("utf-8-sig")),
    works("tabs", TEXT.replace(",", "\t"), file="t.tsv"),
    works("semicolons", TEXT.replace(",", ";"), delimiter=";"),
    works("blank lines", TEXT + "\n\n"),
    works("upper case ending", TEXT, file="t.CSV"),
    works("gzip", gzip.compress(TEXT.encode()), file="t.csv.gz"),
    works("gzip without its ending", gzip.compress(TEXT.encode())),
    works("bzip2", bz2.compress(TEXT.encode()), file="t.csv.bz2"),
    works("bzip2 without its ending", bz2.compress(TEXT.encode())),
    works("zstandard", pa.compress(TEXT.encode(), "zstd", asbytes=True), file="t.csv.zst"),
    works("tsv.gz", gzip.compress(TEXT.replace(",", "\t").encode()), file="t.tsv.gz"),
    works("gzip of another name", gzip.compress(TEXT.encode()), file="train.gz", format="csv"),
    works("another name", TEXT, file="t.data", format="csv"),
    works("UTF-16", TEXT.encode("utf-16"), encoding="utf-16"),
    works("UTF-16 without a mark", TEXT.encode("utf-16-le"), encoding="utf-16-le"),
    works("Latin-1", ACCENT.encode("latin-1"), ([1.0, 2.5], "né", 2), encoding="latin-1"),
    works("UTF-8 with accents", ACCENT, ([1.0, 2.5], "né", 2)),
    works("no header", NAMELESS, ([1.5, 2.0], 0, 2), header=False, target="2"),
    works("no header, target by number", NAMELESS, ([1.5, 2.0], 0, 2), header=False, target=2),
    works("no header, features by number", NAMELESS, ([2.0], 0, 2), header=False, target=2, features=[1]),
    works("names for no header", NAMELESS, ([1.5, 2.0], 0, 2), header=["a", "b", "y"]),
    works("numbers are the names", NAMELESS, ([3.0, 4.0], 1, 1), header=True, target="0"),
    works("names counted from 0", "0,1,2\n5,6,7\n", ([5.0, 6.0], 7, 1), target="2"),
    works("decimal commas", COMMAS, ([1.5, 2.0], 0, 2), decimal=",", delimiter=";"),
    works("decimal commas in quotes", COMMAS.replace(";", "\t"), ([1.5, 2.0], 0, 2), decimal=",", delimiter="\t"),
    works("quoted newlines", LINES, ([0.0], 0, 50), features=["a"]),
    works("quoted newlines over several blocks", MANY, ([0.0], 0, 6000), features=["a"]),
    works("one text for missing", "a,b,y\n-9,1,0\n2,3,1\n", None, missing="-9"),
    works("several texts for missing", "a,b,y\n-9,?,0\n2,3,1\n", None, missing=["-9", "?"]),
    works("a label is text", "a,y\n1,007\n2,07\n", ([1.0], "007", 2), types={"y": "string"}),
    works("a name with a blank", "a, y\n1,2\n", ([1.0], 2, 1), target=" y"),
    works("a column that is empty", "a,b,y\n1,,0\n2,,1\n", None),
    refused("UTF-16 not told", TEXT.encode("utf-16"), errors.EncodingError, "encoding='utf-16'"),
    refused("UTF-16 without a mark not told", TEXT.encode("utf-16-le"), errors.EncodingError, "encoding="),
    *(
        refused(f"{code} not told", TEXT.encode(code), errors.EncodingError, code[:6].upper(), f"encoding='{code}'")
        for code in ("utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    ),
    *(works(f"{code} told", TEXT.encode(code), encoding=code) for code in ("utf-32", "utf-32-le", "utf-32-be")),
    refused("xz called csv", lzma.compress(TEXT.encode()), errors.UnknownSourceError, "compression by xz", "unpack"),
    refused("xz", lzma.compress(TEXT.encode()), errors.UnknownSourceError, "compression by xz", file="t.csv.xz"),
    refused("xz in gzip", gzip.compress(lzma.compress(TEXT.encode())), errors.UnknownSourceError, "xz", file="t.csv.gz"),
    refused("no text at all", bytes(range(32)) * 9 + bytes(99), errors.UnknownSourceError, "binary data"),
    works("a NUL in a label", TEXT.replace("no", "n\0o"), ([1.0, 2.5], "n\0o", 2)),
    works("a NUL in a name", TEXT.replace("a,", "a\0,"), READ),
    refused("a NUL in a number", TEXT.replace("3,", "3\0,"), errors.BadValueError, "line 3", "column a", "'3\\x00'"),
    refused("a Latin-1 text column", "s,a,y\né,1,0\né,2,1\n".encode("latin-1"), errors.EncodingError, "line 2", "column s"),
    refused("Latin-1 labels not told", ACCENT.encode("latin-1"), errors.EncodingError, "line 2", "column y"),
    refused("Latin-1 header", "é,y\n1,2\n".encode("latin-1"), errors.EncodingError, "encoding='latin-1'"),
    refused("not in that encoding", ACCENT, errors.EncodingError, "ascii", encoding="ascii"),
    refused("no header, not told", NAMELESS, errors.HeaderError, "header=False"),
    refused("semicolons, not told", TEXT.replace(",", ";"), errors.HeaderError, "delimiter=';'"),
    refused("tabs, not told", TEXT.replace(",", "\t"), errors.HeaderError, "delimiter='\\t'"),
    refused("decimal commas, not told", COMMAS, errors.DecimalCommaError, "'1,5'", "decimal=','", delimiter=";"),
    refused("a decimal comma further down", "a;y\n1;2\n2;3\n3,5;4\n", errors.DecimalCommaError, "line 4", delimiter=";"),
    refused("more names than columns", NAMELESS, errors.ParameterError, "header", "3 names", "line 1", header=list("abcy")),
    refused("fewer names than columns", NAMELESS, errors.ParameterError, "header", "3 names", "line 1", header=["a", "y"]),
    refused("the blank in a name", "a, y\n1,2\n", errors.MissingColumnError, "' y'", "blanks"),
    refused("a column that is not there", TEXT, errors.MissingColumnError, "'z'", target="z"),
    refused("two columns not there", TEXT, errors.MissingColumnError, "'u'", "'v'", features=["u", "v", "a"]),
    refused("a type for no column", TEXT, errors.MissingColumnError, "'typo'", types={"typo": "string"}),
    refused("a column twice", "a,a,y\n1,2,3\n", errors.DuplicateColumnError, "'a'"),
    refused("a line too long", "a,y\n1,2\n1,2,3\n", errors.BrokenLineError, "line 3"),
    refused("a line too short", "a,b,y\n1,2,3\n1,2\n", errors.BrokenLineError, "line 3"),
    refused("text among numbers", "a,y\n1,0\nred,1\n", errors.BadValueError, "line 3", "column a", "'red'"),
    refused("lines in quotes count", 'a,b,y\n1,"2\n\n",0\n3,4,1\nred,5,0\n', errors.BadValueError, "line 6", "column a", features=["a"]),
    refused("blank lines count", "a,y\n\n1,0\n\n2,0\nred,1\n", errors.BadValueError, "line 6", "'red' is not a number"),
    refused("lines in quotes before a short one", 'a,b,y\n"1\n",2,0\n5,6\n', errors.BrokenLineError, "line 4", "2 values instead of 3"),
    refused("text with a type given", "a,b,y\n1,2,0\n1,z,1\n", errors.BadValueError, "line 3", "column b", types={"b": "int64"}),
    refused("text with a type and no header", "1,0\nz,1\n", errors.BadValueError, "line 2", "column 0", header=False, target=1, types={"0": "float64"}),
    refused("a title above the names", "My table\na,b,y\n1,2,0\n", errors.BrokenLineError, "line 2", "3 values instead of 1", "above"),
    refused("a column of text", "a,b,y\nred,1,0\nblue,2,1\n", errors.TextColumnsError, "'a'", "holds text"),
    refused("two columns of text", "a,b,y\nred,u,0\nblue,v,1\n", errors.TextColumnsError, "'a'", "'b'"),
    refused("text and dates", "a,b,y\nred,2020-01-01,0\n", errors.ColumnTypeError, "'b'", "date32", "pl.scan_csv("),
    refused("a label is missing", "a,y\n1,0\n2,\n", errors.MissingLabelError, "row 1", "column y"),
    refused("empty", "", errors.NoDataError, "empty"),
    refused("only a header", "a,y\n", errors.NoDataError, "no rows"),
    refused("gzip that is cut", gzip.compress(TEXT.encode() * 99)[:-9], errors.DamagedFileError, file="t.csv.gz"),
    refused("bzip2 that is cut", bz2.compress(TEXT.encode())[:-9], errors.DamagedFileError, file="t.csv.bz2"),
    refused("not gzip", TEXT, errors.DamagedFileError, file="t.csv.gz"),
    refused("parquet called csv", b"PAR1" + bytes(90), errors.UnknownSourceError, "parquet"),
    refused("a zip file called csv", b"PK\x03\x04" + bytes(90), errors.UnknownSourceError, "zip"),
    refused("gzip without a format", gzip.compress(TEXT.encode()), errors.UnknownSourceError, "gzip", "format=", file="train.gz"),
    refused("a quote that is not closed", 'a,b,y\n1,"x,2\n' + "2,3,4\n" * 1_700_000, errors.UnclosedQuoteError, "MB"),
    refused("a quote that is not closed in the last column", 'a,y\n1,x\n2,"z\n3,x\n4,x\n', errors.UnclosedQuoteError, "row 1"),
    refused("a quote that is not closed in a column of no use", 'a,y,note\n1,0,x\n2,1,"z\n3,1,x\n', errors.UnclosedQuoteError, "row 1", features=["a"]),
    *(wrong("delimiter", value) for value in (";;", "", b";", 3, ["a"], {}, "\n", "\r", "\0", '"')),
    *(wrong("decimal", value) for value in (";", "", 3, "..")),
    *(wrong("encoding", value) for value in ("klingon", "", 3, b"utf-8", ["utf-8"], "a\0b")),
    *(wrong("header", value) for value in ("yes", 3, [], [1, 2], ["a", "a"], {}, 0.5)),
    *(wrong("types", value) for value in ("string", ["a"], 3, {"a": "klingon"}, {1: "string"})),
    *(wrong("missing", value) for value in (3, [3], b"x", {"a": 1}, float("nan"))),
    wrong("format", "klingon", "parquet"),
    wrong("format", ["csv"]),
    wrong("spelling", 1, "delimiter"),
    Trial("decimal is the delimiter", opens("t.csv", target="y", decimal=","), writes("t.csv", TEXT),
          errors.ParameterError, ("decimal", "delimiter")),
]  # fmt: skip
