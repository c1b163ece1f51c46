"""Features computed from bands by expressions such as ``(B5 - B4) / (B5 + B4)``.

An expression is parsed to a syntax tree of which only arithmetic and a few functions are allowed. It is
never run as code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ExpressionError
from ...messages.text import counted

Values = npt.NDArray[np.float32]

# Of an expression and its syntax tree: far more than anyone writes.
MOST_TEXT, MOST_NODES, MOST_DEPTH = 4000, 1000, 200
PIXELS_AT_ONCE = 1 << 14  # intermediate values stay in the cache
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "abs": (1, np.abs),
    "sqrt": (1, np.sqrt),
    "log": (1, np.log),
    "exp": (1, np.exp),
    "minimum": (2, np.minimum),
    "maximum": (2, np.maximum),
}


@dataclass(frozen=True)
class Expression:
    """A checked expression; `names` are the bands it uses."""

    name: str
    text: str
    names: tuple[str, ...]

    def fill(self, out: Values, bands: Mapping[str, Values]) -> None:
        """Compute the values by line and pixel in float32.

        What is not finite is missing (NaN), and so is what is made of something undefined on the way.
        """
        tree = _parse(self.name, self.text)
        lines = max(1, PIXELS_AT_ONCE // max(1, out.shape[1]))
        for first in range(0, len(out), lines):
            part = {name: bands[name][first : first + lines] for name in self.names}
            undefined = np.zeros((len(out[first : first + lines]), out.shape[1]), dtype=bool)
            with np.errstate(all="ignore"):
                values = np.asarray(_evaluate(tree, part, undefined), dtype=np.float32)
            undefined |= ~np.isfinite(values)
            out[first : first + lines] = np.where(undefined, np.float32(np.nan), values)


def parse_expression(name: str, text: Any, bands: Sequence[str]) -> Expression:
    """Check an expression against the names of the bands."""
    if not isinstance(text, str):
        raise ExpressionError(name, text, "an expression is text, such as '(B5 - B4) / (B5 + B4)'")
    if len(text) > MOST_TEXT:
        raise ExpressionError(name, f"{text[:40]} ...", f"it has more than {MOST_TEXT} characters")
    used: dict[str, None] = {}
    nodes = 0
    pending: list[tuple[ast.AST, int]] = [(_parse(name, text), 1)]
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if nodes > MOST_NODES or depth > MOST_DEPTH:
            raise ExpressionError(name, text, f"it has more than {MOST_NODES} parts, or {MOST_DEPTH} levels")
        if isinstance(node, ast.Name):
            used[_known(name, text, node.id, bands)] = None
        pending.extend((operand, depth + 1) for operand in _operands(name, text, node))
    if not used:
        raise ExpressionError(name, text, "it uses no band")
    return Expression(name, text, tuple(used))


def _parse(name: str, text: str) -> ast.AST:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", None) or str(error) or "it is nested too deeply"
        raise ExpressionError(name, text, why) from error


def _known(name: str, text: str, band: str, bands: Sequence[str]) -> str:
    if band in bands:
        return band
    near = get_close_matches(band, bands, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; the bands are {', '.join(bands)}"
    raise ExpressionError(name, text, f"there is no band {band}{hint}")


def _operands(name: str, text: str, node: ast.AST) -> list[ast.AST]:
    """The parts of an allowed node."""
    if isinstance(node, ast.Name):
        return []
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and _is_number(node.value):
        return []
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return [node.operand]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return [node.left, node.right]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        count, _ = _FUNCTIONS.get(node.func.id, (-1, None))
        if count == len(node.args):
            return list(node.args)
        if count >= 0:
            takes = f"{node.func.id} takes {counted(count, 'argument')}, and has {len(node.args)}"
            raise ExpressionError(name, text, takes)
    part = ast.get_source_segment(text.strip(), node) if hasattr(node, "lineno") else None  # type: ignore[arg-type]
    allowed = f"+, -, *, /, **, parentheses, numbers, bands and {', '.join(_FUNCTIONS)}"
    raise ExpressionError(name, text, f"{part or type(node).__name__} is not allowed; allowed are {allowed}")


def _is_number(value: float) -> bool:
    return not isinstance(value, bool) and abs(value) < 1e30


def _evaluate(node: ast.AST, bands: Mapping[str, Values], undefined: npt.NDArray[np.bool_]) -> Any:
    """The values of a part, of which those that are undefined are marked: they may become finite again."""
    if isinstance(node, ast.Name):
        return bands[node.id].astype(np.float32, copy=False)
    if isinstance(node, ast.Constant):
        return np.float32(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_evaluate(node.operand, bands, undefined))
    if isinstance(node, ast.BinOp):
        left, right = (_evaluate(side, bands, undefined) for side in (node.left, node.right))
        if isinstance(node.op, ast.Div):
            undefined |= right == 0
        elif isinstance(node.op, ast.Pow):
            undefined |= (left == 0) & (right < 0)
        values = _OPERATORS[type(node.op)](left, right)
    else:
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        arguments = [_evaluate(argument, bands, undefined) for argument in node.args]
        if node.func.id == "log":
            undefined |= arguments[0] == 0
        values = _FUNCTIONS[node.func.id][1](*arguments)
    undefined |= np.isnan(values)
    return values
