"""The shape of the code: files and functions that fit a screen or two, and one way to print bytes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
CPP = sorted((HERE / "cpp").rglob("*.[ch]pp"))
MOST_FILE_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 400, 60, 6
TABLES = ("*_trials.py",)  # a line each, of which there may be many
PYTHON = sorted(path for room in ("src", "tests", "benchmarks") for path in (HERE / room).rglob("*.py"))
# A number with a unit of bytes behind it, in an f-string.
_UNIT = re.compile(r"\s?[kKMGT]i?B\b")
BYTES_OWNER = HERE / "src/oldgrowth/messages/text.py"


def test_files_are_short() -> None:
    files = [path for path in (*PYTHON, *CPP) if not any(path.match(table) for table in TABLES)]
    lines = {str(path.relative_to(HERE)): len(path.read_text().splitlines()) for path in files}
    assert not {path: n for path, n in lines.items() if n > MOST_FILE_LINES}


def test_test_files_have_names_of_their_own() -> None:
    """Pytest imports them by name alone."""
    names = Counter(path.name for path in (HERE / "tests").rglob("test_*.py"))
    assert not [name for name, n in names.items() if n > 1]


def test_functions_are_short() -> None:
    lines = {
        f"{path.relative_to(HERE)}, {name}": n
        for path in PYTHON
        for name, n in function_lines(path.read_text())
    }
    assert not {name: n for name, n in lines.items() if n > MOST_FUNCTION_LINES}


def function_lines(code: str) -> Iterator[tuple[str, int]]:
    """The functions of a file with their numbers of lines, without docstrings."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped = len((ast.get_docstring(node) or "").splitlines())
            yield node.name, node.end_lineno - node.lineno + 1 - skipped


def test_functions_of_the_core_have_few_parameters() -> None:
    """Those of bindings have a parameter for each array of NumPy; ruff counts those of Python."""
    core = [path for path in CPP if HERE / "cpp/python" not in path.parents]
    found = {str(path.relative_to(HERE)): list(long_signatures(path.read_text())) for path in core}
    assert not {path: names for path, names in found.items() if names}


# A name, and behind it parameters: each a type and a name, maybe with a default.
_SIGNATURE = re.compile(r"(\w+)\(([^(){};]+)\)")
_PARAMETER = re.compile(r"\s*(const )?[\w:]+(<[^()]*>)?\s*(const)?[*& ]+\w+(\s*=.*)?\s*", re.DOTALL)


def long_signatures(code: str) -> Iterator[str]:
    """The functions of C++ code that have too many parameters."""
    for name, inside in _SIGNATURE.findall(re.sub(r"//.*", "", code)):
        parameters = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", inside)).split(",")
        if len(parameters) > MOST_PARAMETERS and all(_PARAMETER.fullmatch(one) for one in parameters):
            yield name


def test_long_signatures_are_found() -> None:
    six = "int a, const std::map<int, int>& b, const T* c, std::uint8_t* d,\n    Node e, double f"
    assert list(long_signatures(f"void many({six}, bool g = false) {{")) == ["many"]
    assert not list(
        long_signatures(f"void few({six}); many(a, b, c, d, e, f, g); // void many({six}, int g)")
    )


def test_bytes_are_printed_by_one_function() -> None:
    """Text for users formats bytes with `human_bytes`."""
    files = [path for path in PYTHON if HERE / "tests" not in path.parents and path != BYTES_OWNER]
    found = {str(path.relative_to(HERE)): list(printed_bytes(path.read_text())) for path in files}
    assert not {path: texts for path, texts in found.items() if texts}


def printed_bytes(code: str) -> Iterator[str]:
    """The f-strings that add a unit of bytes to a number."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.JoinedStr):
            for one, other in zip(node.values, node.values[1:], strict=False):
                pair = isinstance(one, ast.FormattedValue) and isinstance(other, ast.Constant)
                if pair and _UNIT.match(other.value):
                    yield ast.unparse(node)


def test_printed_bytes_are_found() -> None:
    assert list(printed_bytes("f'{n / 1e6:,.0f} MB are needed'")) and list(printed_bytes("f'{n >> 20}MiB'"))
    assert not list(printed_bytes("f'{n} Bytes, {human_bytes(n)} in all, {name} MBA'"))
